"""The training loop: a member's result is its own, evaluation is clean, resuming is exact."""

import pytest
import torch

from longnn.config import Config
from longnn.data import make_split
from longnn.data._synthetic import csbm
from longnn.training import load_checkpoint, save_checkpoint
from longnn.training._fit import Scaling, make_model, make_population, make_problem, predict

EPOCHS = 12


@pytest.fixture(scope="module")
def dataset():
    return csbm(num_nodes=120, num_features=30, seed=3)


def config(**keys):
    base = {"epochs": EPOCHS, "patience": 100, "hidden_channels": 8, "precision": "float64"}
    return Config.from_dict({**base, "device": "cpu", **keys})


def problem_of(dataset, c):
    return make_problem(dataset, c, Scaling("none"))


def population(dataset, configs, **options):
    splits = [make_split(dataset, "published", c.seed) for c in configs]
    return make_population(configs, problem_of(dataset, configs[0]), splits, **options)


VARIED = [
    {"seed": 0, "lr_transform": 0.05, "dropout": 0.5, "input_dropout": 0.2},
    {"seed": 1, "lr_transform": 0.01, "dropout": 0.0, "wd_transform": 1e-2},
    {"seed": 2, "lr_transform": 0.02, "dropout": 0.8, "input_dropout": 0.0},
]


def test_rounded_products_are_for_a_gpu_and_for_training_alone(dataset):
    """On a CPU tf32 is float32 to the bit; what others set for their own products stays."""
    before = torch.get_float32_matmul_precision()
    ours, usual = (population(dataset, [config(precision=p)]).run()[0] for p in ("tf32", "float32"))
    assert torch.equal(ours.history["train_loss"], usual.history["train_loss"])
    assert problem_of(dataset, config(precision="tf32")).rounded
    assert torch.get_float32_matmul_precision() == before


def test_evaluation_sees_no_dropout(dataset):
    """The validation written down is that of a plain model with dropout off."""
    c = config(dropout=0.7, input_dropout=0.7, filter_dropout=0.5, epochs=1)
    p = population(dataset, [c])
    split = make_split(dataset, "published", 0)
    (result,) = p.run()
    problem = problem_of(dataset, c)
    model = make_model(c, problem.features.shape[1], problem.outputs)
    model.load_state_dict(result.state, strict=False)
    probabilities = predict(model, problem)
    y = dataset.data.y
    accuracy = (probabilities.argmax(1) == y)[split.val].double().mean()
    loss = -probabilities[split.val, y[split.val]].log().mean()
    torch.testing.assert_close(result.history["val_score"][0], accuracy)
    torch.testing.assert_close(result.history["val_loss"][0], loss)


def test_one_step_equals_torchs_own_adam(dataset):
    """Two epochs without dropout against autograd and torch.optim.Adam on a plain model."""
    c = config(
        dropout=0.0,
        input_dropout=0.0,
        filter_dropout=0.0,
        epochs=2,
        lr_basis=0.03,
        wd_coefficients=1e-2,
        penalty=1e-2,
        degree_penalty=1e-3,
    )
    problem, split = problem_of(dataset, c), make_split(dataset, "published", 0)
    model = make_model(c, problem.features.shape[1], problem.outputs).double()
    lr, wd = c.settings.rates("lr"), c.settings.rates("wd")
    groups = [
        {"params": p, "lr": lr[role], "weight_decay": wd[role]}
        for role, p in model.parameter_groups().items()
    ]
    optimizer = torch.optim.Adam(groups)
    for _ in range(2):
        optimizer.zero_grad()
        logits = model.scores(problem.features, problem.operator)
        y = dataset.data.y
        loss = torch.nn.functional.cross_entropy(logits[split.train], y[split.train])
        total = loss + 1e-2 * model.penalty() + 1e-3 * model.filters()[0].degree_penalty()
        total.backward()
        optimizer.step()
    p = population(dataset, [c])
    p.step()
    p.step()
    torch.testing.assert_close(p.rows["train_loss"][-1][0], loss.detach())
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(
            p.parameters[f"model.{name}"][0], parameter, rtol=1e-9, atol=1e-12
        )


def test_best_weights_are_kept_and_patience_stops(dataset):
    c = config(epochs=300, patience=15, lr_transform=0.1)
    (result,) = population(dataset, [c]).run()
    assert result.stopped == "patience"
    assert result.epochs == result.best_epoch + 15
    best = result.history["val_score"].max()
    assert result.history["val_score"][result.best_epoch - 1] == best
    # The weights are those of the best epoch, not of the last.
    problem, split = problem_of(dataset, c), make_split(dataset, "published", 0)
    model = make_model(c, problem.features.shape[1], problem.outputs)
    model.load_state_dict(result.state, strict=False)
    predicted = predict(model, problem).argmax(1)
    accuracy = (predicted == dataset.data.y)[split.val].double().mean()
    torch.testing.assert_close(accuracy, best)


def test_monitor_loss(dataset):
    (result,) = population(dataset, [config(monitor="loss", epochs=40)]).run()
    assert result.best_epoch == int(result.history["val_loss"].argmin()) + 1


def test_finished_members_are_dropped(dataset):
    configs = [config(seed=s, epochs=200, patience=10, lr_transform=0.1) for s in range(3)]
    p = population(dataset, configs)
    sizes = []
    results = p.run(lambda p: sizes.append(len(p.index)))
    assert sizes[0] == 3
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == max(r.epochs for r in results)
    assert [len(r.history["val_loss"]) for r in results] == [r.epochs for r in results]


def test_members_can_be_stopped_from_outside(dataset):
    """What successive halving does: the others go on as if nothing had happened."""
    configs = [config(**keys) for keys in VARIED]  # each with rates of its own
    whole = population(dataset, configs).run()
    halved = population(dataset, configs).run(lambda p: p.stop([0, 2]) if p.epoch == 5 else None)
    assert [r.stopped for r in halved] == ["pruned", "epochs", "pruned"]
    assert [r.epochs for r in halved] == [5, EPOCHS, 5]
    torch.testing.assert_close(halved[1].history["val_loss"], whole[1].history["val_loss"])


def test_a_diverging_member_stops_alone(dataset):
    configs = [
        config(epochs=60),
        config(seed=1, lr_transform=1e300, lr_coefficients=1e300, epochs=60),
    ]
    calm, wild = population(dataset, configs).run()
    assert calm.stopped == "epochs"
    assert wild.stopped == "diverged"
    assert wild.epochs < 60


@pytest.mark.parametrize("stop", [1, 7])
def test_resumed_training_is_bit_identical(dataset, tmp_path, stop):
    keys = {"epochs": 30, "patience": 8, "lr_transform": 0.1}
    configs = [config(seed=s, **keys) for s in range(3)]
    whole = population(dataset, configs, record_filters=True).run()

    class KilledError(Exception):
        pass

    def kill(p):
        if p.epoch == stop + 10:
            raise KilledError

    broken = population(dataset, configs, record_filters=True)
    for _ in range(stop):
        broken.step()
        broken._retire()
    save_checkpoint(broken, tmp_path / "c.safetensors")
    with pytest.raises(KilledError):
        broken.run(kill)
    again = population(dataset, configs, record_filters=True)
    load_checkpoint(again, tmp_path / "c.safetensors")
    assert same(again.run(), whole)


def same(ours, theirs):
    """Whether results agree to the bit."""
    return all(
        (a.best_epoch, a.epochs, a.stopped) == (b.best_epoch, b.epochs, b.stopped)
        and all(torch.equal(a.state[k], b.state[k]) for k in b.state)
        and all(
            torch.equal(a.history[k].nan_to_num(), b.history[k].nan_to_num()) for k in b.history
        )
        and (a.filter_path is None or torch.equal(a.filter_path, b.filter_path))
        for a, b in zip(ours, theirs, strict=True)
    )


def test_checkpoint_of_finished_members_keeps_their_results(dataset, tmp_path):
    configs = [config(seed=s, epochs=200, patience=5, lr_transform=0.1) for s in range(3)]
    p = population(dataset, configs)
    while len(p.results) < 2:
        p.step()
        p._retire()
    save_checkpoint(p, tmp_path / "c.safetensors")
    again = population(dataset, configs)
    load_checkpoint(again, tmp_path / "c.safetensors")
    assert same(again.run(), p.run())


def test_history_tells_basis_and_amplitude(dataset):
    c = config(a=0.5, lr_basis=0.1, shared=False, placement="hidden")
    (result,) = population(dataset, [c], record_filters=True).run()
    a = result.history["a"]
    assert a[0] != 0.5
    assert a[0] == pytest.approx(0.5, abs=0.15)
    assert (result.history["amplitude"] > 0).all()
    assert result.filter_path.shape == (EPOCHS, 11, 8)  # one filter per hidden channel
    (plain,) = population(dataset, [config(model="mlp")], record_filters=True).run()
    assert plain.history["a"].isnan().all()
    assert plain.filter_path is None


def test_members_must_agree_on_when_to_stop(dataset):
    with pytest.raises(ValueError, match="same epochs, patience and monitor"):
        population(dataset, [config(), config(patience=3)])

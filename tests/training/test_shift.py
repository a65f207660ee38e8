"""Class frequencies that differ between training and validation nodes: found, and followed."""

import numpy as np
import pytest
import scipy.stats
import torch

import longnn
from longnn.config import Config
from longnn.data import Split, make_split
from longnn.data._synthetic import csbm
from longnn.training import fit, fit_shift, frequency_shift, score, shifted
from longnn.training._readout import KNOWN, chance_of
from tests.shifted import balanced_split, shifted_graph


def posterior(x: torch.Tensor, frequencies: torch.Tensor) -> torch.Tensor:
    """The logarithms, but for a constant, of the probabilities of classes with unit normal x."""
    means = torch.arange(len(frequencies)).double()
    return -0.5 * (x[:, None] - means).square() + frequencies.double().log()


def drawn(counts: list[int], seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    y = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    return y + torch.randn(len(y), generator=generator, dtype=torch.float64), y


def test_the_shift_is_bayes_rule() -> None:
    """Scores of a perfect model of the training nodes become those of the validation nodes."""
    train, val = torch.tensor([4000, 4000, 4000]), torch.tensor([9000, 2000, 1000])
    delta = frequency_shift(train, val)
    assert delta is not None
    x = torch.linspace(-2, 4, 50).double()
    moved = (posterior(x, train) + delta).softmax(1)
    torch.testing.assert_close(moved, posterior(x, val).softmax(1), atol=1e-3, rtol=1e-3)


def test_few_nodes_count_less() -> None:
    train = torch.tensor([30, 30])
    few, many = (frequency_shift(train, torch.tensor([n, 0])) for n in (20, 2000))
    assert few is not None
    assert many is not None
    assert few[1] == pytest.approx(torch.tensor(KNOWN / (20 + KNOWN)).log().item())
    assert many[1] < few[1] < 0 < few[0] < many[0]


@pytest.mark.parametrize(
    ("train", "val"),
    [([60, 60], [22, 18]), ([90, 10], [28, 4]), ([50, 0], [10, 0]), ([5, 5], [0, 0])],
    ids=["chance", "alike", "one class", "no nodes"],
)
def test_chance_is_no_shift(train: list[int], val: list[int]) -> None:
    assert frequency_shift(torch.tensor(train), torch.tensor(val)) is None


def test_a_class_without_training_nodes_is_left_as_it_is() -> None:
    delta = frequency_shift(torch.tensor([50, 0, 50]), torch.tensor([90, 5, 5]))
    assert delta is not None
    assert delta[1] == 0
    assert torch.isfinite(delta).all()


def test_the_strength_is_what_the_model_lacks() -> None:
    """All of the shift for a model of the training nodes, none for one that knows the others."""
    train, val = torch.tensor([500, 500, 500]), torch.tensor([1200, 250, 50])
    x, y = drawn(val.tolist(), 0)
    delta = frequency_shift(train, val)
    assert delta is not None
    lacking = fit_shift(posterior(x, train), y, delta)
    knowing = fit_shift(posterior(x, val), y, delta)
    assert lacking[0] == pytest.approx(1, abs=0.15)
    assert lacking[1][2] / delta[2] == pytest.approx(1, abs=0.15)
    assert knowing[1] == ()


@pytest.fixture(scope="module")
def balanced() -> tuple[longnn.data.NodeDataset, Split]:
    """Training nodes of both classes alike; nine of ten others are of the first."""
    dataset = csbm(num_nodes=900, num_features=8, phi=0.3, seed=3)
    return dataset, balanced_split(dataset.data.y, 100)


def test_predictions_follow_the_validation_nodes(
    balanced: tuple[longnn.data.NodeDataset, Split],
) -> None:
    dataset, split = balanced
    config = Config.from_dict({"epochs": 60})
    shifted, plain = fit(dataset, [config, config.replace(frequencies="train")], [split] * 2)
    assert shifted.readout.shift[0] > 0 > shifted.readout.shift[1]
    assert plain.readout.shift == ()
    found = [score(one.predicted, dataset, split.test)["accuracy"] for one in (shifted, plain)]
    assert found[0] > found[1] + 0.02


@pytest.mark.parametrize("table", [{"class_weight": "balanced"}, {"calibrate": False}])
def test_who_weighs_classes_wants_no_shift(
    balanced: tuple[longnn.data.NodeDataset, Split], table: dict[str, object]
) -> None:
    dataset, split = balanced
    (one,) = fit(dataset, [Config.from_dict({"epochs": 3, **table})], [split])
    assert one.readout.shift == ()


def test_models_without_the_graph_follow_too() -> None:
    """What the graph adds is not what frequencies add."""
    own = shifted_graph()
    found = {}
    for frequencies in ("auto", "train"):
        run = longnn.train(own, {"epochs": 5, "preset": "fast", "frequencies": frequencies})
        found[frequencies] = {b.name: b.summary["accuracy"].mean for b in run.record.baselines}
    y = own.data.y[make_split(own, None, 0).test]
    assert found["auto"]["constant"] == pytest.approx(float((y == 0).double().mean()))
    assert found["auto"]["linear"] > found["train"]["linear"] + 0.02


def test_members_are_compared_with_the_whole_on_equal_terms() -> None:
    """The gain of joining is not that of following frequencies."""
    own = shifted_graph()
    run = longnn.train(own, {"epochs": 15, "preset": "default", "baselines": False})
    (repeat,) = run.record.repeats
    assert repeat.shift is not None
    split = make_split(own, None, 0)
    (whole,) = fit(own, [run.config], [split])
    for member, one in zip(repeat.members, whole.members, strict=True):
        plain = score(one.fitted.predicted, own, split.test)["accuracy"]
        counts = torch.bincount(own.data.y[split.train])
        moved = shifted(one.fitted.predicted, own.data.y, counts, split.val)
        assert member.test == pytest.approx(score(moved, own, split.test)["accuracy"])
        assert member.test >= plain - 0.02


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_chance_is_that_of_scipy(classes):
    rng = np.random.default_rng(classes)
    for counts in rng.integers(1, 60, (20, 2, classes)):
        expected = scipy.stats.chi2_contingency(counts).pvalue
        assert chance_of(counts) == pytest.approx(expected, rel=1e-9)

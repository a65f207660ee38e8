"""On a GPU: the same numbers as on the CPU, with kernels and CUDA graphs in between."""

import pytest
import torch

from longnn import GraphOperator, apply_filter
from longnn.config import Config
from longnn.data import make_split
from longnn.data._synthetic import csbm
from longnn.registry import NETWORKS
from longnn.training import _history as history
from longnn.training import _population as module
from longnn.training._fit import Scaling, make_population, make_problem

from .helpers import double_operator, random_graph, random_tensor

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


def train(device, *, sparse, precision="float64", epochs=30, **keys):
    dataset = csbm(num_nodes=200, num_features=64, seed=3)
    if sparse:
        data = dataset.data.clone()
        data.x = data.x * (data.x > 0.2)
        data.x[:, 8:] = 0
        dataset = type(dataset)("sparse", data, classes=dataset.classes)
    base = {
        "epochs": epochs,
        "hidden_channels": 8,
        "precision": precision,
        "device": device,
        **keys,
    }
    configs = [
        Config.from_dict({**base, "seed": s, "dropout": d, "lr_transform": 0.02})
        for s, d in enumerate((0.5, 0.0, 0.8))
    ]
    problem = make_problem(dataset, configs[0], Scaling("none"))
    splits = [make_split(dataset, "stratified", c.seed) for c in configs]
    return make_population(configs, problem, splits).run()


@pytest.mark.parametrize("model", sorted(NETWORKS))
def test_an_epoch_of_every_model_becomes_a_cuda_graph(model):
    """A tensor made on the CPU inside the epoch would forbid it, and cost ten times the time."""
    dataset = csbm(num_nodes=100, num_features=16, seed=3)
    config = Config.from_dict({"model": model, "epochs": 20, "device": "cuda"})
    problem = make_problem(dataset, config, Scaling("none"))
    splits = [make_split(dataset, "stratified", seed) for seed in (0, 1)]
    population = make_population([config, config], problem, splits)
    for _ in range(module.WARM_UP + 1):
        population.step()
    assert population._graph is not None


def test_filter_on_cuda_equals_cpu():
    operator = double_operator(random_graph(300, probability=0.05), 300)
    x, beta = random_tensor(300, 5).requires_grad_(), random_tensor(9, 5, seed=1).requires_grad_()
    apply_filter(operator, x, beta).square().sum().backward()
    moved = [t.detach().cuda().requires_grad_() for t in (x, beta)]
    apply_filter(operator.to("cuda"), *moved).square().sum().backward()
    torch.testing.assert_close(moved[0].grad.cpu(), x.grad)
    torch.testing.assert_close(moved[1].grad.cpu(), beta.grad)


def test_learned_weights_on_cuda_equal_cpu():
    edges = random_graph(300, probability=0.05)
    number = torch.unique(edges.sort(0).values, dim=1, return_inverse=True)[1]
    weights = random_tensor(int(number.max()) + 1).abs() + 0.1
    inputs = [weights, random_tensor(300, 5), random_tensor(9, 5, seed=1)]
    grads = []
    for device in ("cpu", "cuda"):
        w, x, beta = (t.detach().to(device).requires_grad_() for t in inputs)
        operator = GraphOperator.from_edge_index(
            edges.to(device), w[number.to(device)], 300, dtype=torch.float64
        )
        apply_filter(operator, x, beta).square().sum().backward()
        grads.append([t.grad.cpu() for t in (w, x, beta)])
    torch.testing.assert_close(grads[1], grads[0])


FORMS = [
    *({"model": model} for model in ("lon", "gpr", "favard", "gcn", "optbasis", "arma")),
    {"model": "lon", "coefficients": "pcd", "normalize": True},
    {"model": "lon", "weight": "paper"},
    *({"model": "lon-deep", "norm": norm, "blocks": 2} for norm in ("layer", "rms")),
]


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("keys", FORMS, ids=lambda keys: "-".join(map(str, keys.values())))
def test_training_on_cuda_equals_cpu(keys, sparse):
    """Dropout numbers are a hash: thirty epochs agree to rounding in float64."""
    for ours, theirs in zip(
        train("cuda", sparse=sparse, **keys),
        train("cpu", sparse=sparse, **keys),
        strict=True,
    ):
        torch.testing.assert_close(
            ours.history["train_loss"], theirs.history["train_loss"], rtol=1e-4, atol=1e-5
        )


def test_rounded_products_train_nearly_the_same():
    """TF32 has 10 bits of mantissa: other bits, the same course."""
    keys = {"sparse": False, "model": "lon-deep", "epochs": 10, "hidden_channels": 64}
    for ours, usual in zip(
        train("cuda", precision="tf32", **keys),
        train("cuda", precision="float32", **keys),
        strict=True,
    ):
        assert not torch.equal(ours.history["train_loss"], usual.history["train_loss"])
        torch.testing.assert_close(
            ours.history["train_loss"], usual.history["train_loss"], rtol=0.05, atol=0.05
        )
    assert torch.get_float32_matmul_precision() == "highest"


def test_a_graph_replays_what_it_recorded(monkeypatch):
    captured = train("cuda", sparse=True)
    monkeypatch.setattr(module, "WARM_UP", 10**9)
    eager = train("cuda", sparse=True)
    for a, b in zip(captured, eager, strict=True):
        assert torch.equal(a.history["train_loss"], b.history["train_loss"])


def test_a_graph_is_captured_anew_when_its_tables_grow(monkeypatch):
    """The old one would write into tables that are no longer there."""
    usual = train("cuda", sparse=True)
    monkeypatch.setattr(history, "ROOM", 4)
    grown = train("cuda", sparse=True)
    for a, b in zip(grown, usual, strict=True):
        assert torch.equal(a.history["train_loss"], b.history["train_loss"])
        assert all(torch.equal(a.state[k], b.state[k]) for k in a.state)


def test_runs_are_deterministic():
    first, second = (train("cuda", sparse=True, precision="float32") for _ in range(2))
    for a, b in zip(first, second, strict=True):
        assert all(torch.equal(a.state[k], b.state[k]) for k in a.state)

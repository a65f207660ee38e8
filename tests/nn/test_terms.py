"""A model on rows of precomputed terms is the model on the whole graph: scores and gradients."""

import pytest
import torch

from longnn.graphs import GraphOperator
from longnn.nn._ensemble import Ensemble
from longnn.nn._terms import OnRows, Terms
from longnn.registry import NETWORKS, get_model
from tests.helpers import random_graph, random_tensor

NODES, FEATURES, DEGREE = 40, 6, 5
FORM = {"placement": "features"}


def dense_terms(operator, x, degree):
    """T_j(P) X by dense products, in float64: (K+1, nodes, columns)."""
    P, x = operator.to_dense().double(), x.double()
    terms = [x, P @ x]
    for _ in range(degree - 1):
        terms.append(2 * P @ terms[-1] - terms[-2])
    return torch.stack(terms[: degree + 1])


@pytest.fixture(scope="module")
def world():
    edges = random_graph(NODES, isolated=2)
    edges = torch.cat([edges, torch.tensor([[3, 7], [3, 7]])], dim=1)  # two self loops
    x = random_tensor(NODES, FEATURES, dtype=torch.float32)
    operators, values, ones = {}, {}, {}
    for loops in ("keep", "add", "remove"):
        operators[loops] = GraphOperator.from_edge_index(edges, num_nodes=NODES, self_loops=loops)
        joined = dense_terms(operators[loops], torch.cat([x, torch.ones(NODES, 1)], 1), DEGREE)
        values[loops] = joined[..., :-1].float().contiguous()
        ones[loops] = joined[..., -1].float().contiguous()
    return x, operators, Terms(values, ones)


def rows_of(terms, rows):
    return Terms(
        {k: v[:, rows].contiguous() for k, v in terms.values.items()},
        {k: v[:, rows].contiguous() for k, v in terms.ones.items()},
    )


def on_rows(model, count=NODES):
    return OnRows(model.self_loops, count, torch.device("cpu"), torch.float32)


def randomize(model):
    """Weights for which no bias and no coefficient is what it starts as."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=generator))
    return model


def build(name, **options):
    known = NETWORKS[name].options
    given = {**FORM, "degree": DEGREE, **options}
    return randomize(get_model(name, FEATURES, 8, 3, **{k: given[k] for k in given if k in known}))


#: Every polynomial model of the registry that takes the form; forms of LON-GNN; models without a
#: hidden layer, which have rows wherever their filter is.
CASES = [
    *((n, {}) for n, e in NETWORKS.items() if {"placement", "degree"} <= e.options.keys()),
    *(
        ("lon", {"shared": shared, "self_loops": loops, "normalize": normalize})
        for shared in (True, False)
        for loops in ("keep", "add", "remove")
        for normalize in (True, False)
    ),
    *((name, {"placement": "output", "transform": "linear"}) for name in ("sgc", "jacobi")),
    ("lon", {"placement": "hidden", "transform": "linear"}),
    ("mlp", {}),
]


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_same_weights_same_scores(world, name, options):
    x, operators, terms = world
    model = build(name, **options).eval()
    if name == "optbasis":  # its basis depends on the signal
        assert model.row_degree is None
        return
    assert model.row_degree == (0 if name == "mlp" else DEGREE)
    whole = model.scores(x, operators[model.self_loops])
    rows = torch.tensor([5, 3, 39, 0, 7])
    answers = model.scores(rows_of(terms, rows), on_rows(model, len(rows)))
    assert torch.allclose(answers, whole[rows], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("shared", [True, False])
def test_gradients_are_those_of_the_whole_graph(world, shared):
    """a and b included; those of batches sum to those of all."""
    x, operators, terms = world
    model = build("lon", shared=shared, input_dropout=0.0, dropout=0.0, filter_dropout=0.0)
    target = torch.arange(NODES) % 3

    def gradient(scores, rows):
        loss = torch.nn.functional.cross_entropy(scores, target[rows], reduction="sum")
        found = torch.autograd.grad(loss, list(model.parameters()))
        return dict(zip(dict(model.named_parameters()), found, strict=True))

    every = torch.arange(NODES)
    whole = gradient(model.scores(x, operators["keep"]), every)
    assert {"filter.raw_basis.a", "filter.raw_basis.b"} <= whole.keys()
    assert all(bool((g != 0).any()) for g in whole.values())
    parts = [
        gradient(model.scores(rows_of(terms, rows), on_rows(model, len(rows))), rows)
        for rows in every[torch.randperm(NODES)].split(13)
    ]
    at_once = gradient(model.scores(terms, on_rows(model)), every)
    for name, value in whole.items():
        scale = float(value.abs().max())
        assert torch.allclose(at_once[name], value, atol=1e-5 * scale, rtol=1e-4), name
        summed = sum(part[name] for part in parts)
        assert torch.allclose(summed, value, atol=1e-5 * scale, rtol=1e-4), name


@pytest.mark.parametrize("shared", [True, False])
def test_a_dropped_feature_is_dropped_from_all_terms(world, shared):
    """So dropping all but nothing is dropping nothing, and the mean is that without dropout."""
    _, _, terms = world
    model = build("lon", shared=shared, transform="linear", input_dropout=0.5, dropout=0.0)
    model.filter_dropout.rate = 0.0
    torch.manual_seed(0)
    with torch.no_grad():
        mean = sum(model.train().scores(terms, on_rows(model)) for _ in range(500)) / 500
        exact = model.eval().scores(terms, on_rows(model))
    assert torch.allclose(mean, exact, atol=0.2 * float(exact.abs().max()))


def test_an_ensemble_asks_each_member_for_its_self_loops(world):
    x, operators, terms = world
    members = {"one": build("lon", shared=True), "two": build("gpr")}
    half = {"one": 0.5, "two": 0.5}
    both = Ensemble(members, half, half).eval()
    assert both.row_degree == DEGREE
    whole = both.scores_on(x, operators.__getitem__)
    place = {loops: OnRows(loops, NODES, torch.device("cpu"), torch.float32) for loops in operators}
    found = both.scores_on(terms, place.__getitem__)
    assert torch.allclose(found, whole, atol=1e-5, rtol=1e-5)
    mixed = Ensemble({"one": build("lon", placement="hidden")}, {"one": 1.0}, {"one": 1.0})
    assert mixed.row_degree is None

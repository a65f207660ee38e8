"""Edges of several types: a filter for each, against dense matrices and PyG's RGCN."""

import dataclasses
import json

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import RGCNConv

from longnn import GraphOperator, LONGNNClassifier, load_run
from longnn.config import Config
from longnn.data import DataError, Split, from_data, from_networkx, load, make_split
from longnn.data._convert import undirected
from longnn.data._relations import Relation
from longnn.data._scaling import Scaling
from longnn.explain import explain_nodes
from longnn.filters import PolynomialFilter
from longnn.graphs import typed_operator
from longnn.nn import GCN, LONGNN, DeepLONGNN, Directed, truncate_filters
from longnn.nn._deep import Block
from longnn.nn._typed import TypedFilter, hears_types
from longnn.registry import MODELS, get_model
from longnn.training import Job, Trained, fit, predict, score

from .commands import fail, succeed, succeed_json
from .helpers import random_graph, random_tensor

NODES, DOUBLE = 12, torch.float64
EDGES = torch.cat([random_graph(NODES, probability=0.3, seed=s) for s in (0, 1, 2)], 1)
SIZES = [random_graph(NODES, probability=0.3, seed=s).shape[1] for s in (0, 1, 2)]
KIND = torch.repeat_interleave(torch.arange(3), torch.tensor(SIZES))
P = typed_operator(EDGES, KIND, None, NODES, dtype=DOUBLE)


def dense(kind, nodes=NODES):
    """P of one type, by hand."""
    A = torch.zeros(nodes, nodes, dtype=DOUBLE)
    A[tuple(EDGES[:, kind == KIND])] = 1.0
    degree = A.sum(1)
    root = torch.where(degree > 0, degree, 1.0).sqrt()
    return A / (root[:, None] * root)


def polynomial(f, matrix, x):
    """A filter by the eigenvectors of a dense matrix."""
    values, U = torch.linalg.eigh(matrix)
    g = f.response(1 - values)  # (channels, nodes)
    return U @ (g.T * (U.T @ x))


def randomize(module, seed=0):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=generator, dtype=p.dtype))
    return module


@pytest.mark.parametrize("join", ["sum", "cat"])
def test_the_filters_are_those_of_dense_matrices(join):
    typed = randomize(TypedFilter(lambda: PolynomialFilter("jacobi", 4, 2), 3, join=join).double())
    x = random_tensor(NODES, 2)
    each = [polynomial(f, dense(r), x) for r, f in enumerate(typed.each)]
    expected = torch.cat(each, 1) if join == "cat" else sum(each)
    torch.testing.assert_close(typed(P, x), expected)
    inputs = (x.requires_grad_(),)
    assert torch.autograd.gradcheck(lambda x: typed(P, x), inputs)


def test_one_type_for_all_is_the_plain_filter():
    """Split at random, filters of the first degree add up to one on all edges without its norm."""
    one = typed_operator(
        EDGES[:, KIND == 0], torch.zeros(SIZES[0], dtype=torch.int64), dtype=DOUBLE
    )
    plain = GraphOperator.from_edge_index(EDGES[:, KIND == 0], dtype=DOUBLE)
    x = random_tensor(NODES, 3)
    torch.testing.assert_close(one.types[0].to_dense(), plain.to_dense())
    torch.manual_seed(0)
    typed = LONGNN(3, 4, 2, types=1).double().eval()
    torch.manual_seed(0)
    alone = LONGNN(3, 4, 2).double().eval()
    torch.testing.assert_close(typed(x, one), alone(x, plain))


def rings():
    """Three types on 7 nodes, each node with two neighbours of each type."""
    here = torch.arange(7)
    each = [torch.stack([here, (here + step) % 7]) for step in (1, 2, 3)]
    edges = torch.cat([torch.cat([e, e.flip(0)], 1) for e in each], 1)
    return edges, torch.repeat_interleave(torch.arange(3), 14)


def test_a_block_of_single_hops_is_rgcn():
    """The first map sees [n(h), P_1 n(h), ..., P_R n(h)]: RGCN's sum, with ReLU and residual."""
    edges, kind = rings()
    operator = typed_operator(edges, kind, dtype=DOUBLE)
    hop = lambda: PolynomialFilter("monomial", 1, 1, coefficients="fixed", init=torch.eye(2)[1])  # noqa: E731
    block = Block(4, TypedFilter(hop, 3, join="cat"), norm="none", types=3).double()
    conv = RGCNConv(4, 4, 3, aggr="add").double()
    own, *each = block.first.weight.detach().split(4)
    with torch.no_grad():
        conv.root.copy_(own)
        conv.bias.copy_(block.first.bias)
        conv.weight.copy_(torch.stack(each) / 2)  # P_r = A_r / 2 on rings
    h = random_tensor(7, 4)
    expected = h + block.second(torch.relu(conv(h, edges, kind)))
    torch.testing.assert_close(block(operator, h), expected)


def test_stacks_hear_every_type():
    model = randomize(DeepLONGNN(3, 4, 2, blocks=2, degree=2, types=3).double().eval())
    assert len(model.filters()) == 6
    x = random_tensor(NODES, 3).requires_grad_()
    (grad,) = torch.autograd.grad(model(x, P)[0, 0], x)
    assert bool((grad != 0).any())
    shorter = truncate_filters(model, 0.5)
    assert len(shorter.filters()) == 6
    assert shorter(x, P).shape == (NODES, 2)
    other = typed_operator(EDGES, (KIND + 1) % 3, None, NODES, dtype=DOUBLE)
    assert not torch.allclose(model(x, P), model(x, other))


@pytest.mark.parametrize("name", [n for n, m in MODELS.items() if m.model.takes_types])
def test_every_model_with_a_filter_takes_types(name):
    """It is equivariant, starts as the mean of its filters, and nothing else reads the types."""
    torch.manual_seed(0)
    options = {"blocks": 2} if name == "lon-deep" else {}
    model = get_model(name, 3, 8, 2, types=3, **options).double().eval()
    assert hears_types(model)
    assert len(model.filters()) % 3 == 0
    x, order = random_tensor(NODES, 3), torch.randperm(NODES)
    moved = torch.argsort(order)[EDGES]
    turned = typed_operator(moved, KIND, None, NODES, self_loops=model.self_loops, dtype=DOUBLE)
    straight = typed_operator(EDGES, KIND, None, NODES, self_loops=model.self_loops, dtype=DOUBLE)
    torch.testing.assert_close(model(x[order], turned), model(x, straight)[order])
    before = {k: v.clone() for k, v in model.state_dict().items() if "each" in k}
    randomize(model)
    model.reset_parameters()
    for key, value in before.items():
        torch.testing.assert_close(model.state_dict()[key], value)
    groups = model.parameter_groups()
    assert {id(p) for g in groups.values() for p in g} == {id(p) for p in model.parameters()}


def test_types_of_arcs():
    arcs = EDGES[:, EDGES[0] < EDGES[1]]
    kind = KIND[EDGES[0] < EDGES[1]]
    operator = typed_operator(arcs, kind, None, NODES, directed=True, dtype=DOUBLE)
    other = typed_operator(arcs.flip(0), kind, None, NODES, directed=True, dtype=DOUBLE)
    x = random_tensor(NODES, 3)
    for inner in (DeepLONGNN(3, 4, 2, blocks=2, copies=2, types=3), LONGNN(6, 4, 2, types=3)):
        model = randomize(Directed(inner).double().eval())
        assert (model(x, operator) - model(x, other)).abs().max() > 1e-4


def test_other_models_see_all_edges():
    model = GCN(3, 4, 2).double().eval()
    loops = typed_operator(EDGES, KIND, None, NODES, self_loops="add", dtype=DOUBLE)
    plain = GraphOperator.from_edge_index(EDGES, None, NODES, self_loops="add", dtype=DOUBLE)
    x = random_tensor(NODES, 3)
    torch.testing.assert_close(model(x, loops), model(x, plain))
    single = loops.to(torch.float32)
    assert [t.dtype for t in single.types] == [torch.float32] * 3


def test_wrong_types_are_named():
    x = random_tensor(NODES, 3)
    with pytest.raises(ValueError, match=r"Expected an operator with 2 types of edges \(got 3\)"):
        LONGNN(3, 4, 2, types=2).double()(x, P)
    with pytest.raises(ValueError, match=r"Expected `edge_type` of whole numbers, shape \(2,\)"):
        typed_operator(EDGES[:, :2], torch.zeros(3, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"Expected types of edges in 0\.\.1 \(got 2\)"):
        typed_operator(EDGES, KIND, types=2)


def two_kinds(nodes=200, seed=0):
    """Classes that only the types tell: edges of one type within classes, of the other between."""
    random = np.random.default_rng(seed)
    role = random.integers(0, 2, nodes)
    pairs = np.unique(np.sort(random.integers(0, nodes, (2, 6 * nodes)), axis=0), axis=1)
    pairs = pairs[:, pairs[0] != pairs[1]]
    same = role[pairs[0]] == role[pairs[1]]
    x = np.c_[role + 2.0 * random.standard_normal(nodes), random.standard_normal((nodes, 2))]
    return x, pairs, np.where(same, "friend", "rival"), role


def data(**sizes):
    x, pairs, kind, role = two_kinds(**sizes)
    return Data(
        x=torch.from_numpy(x).float(),
        edge_index=torch.from_numpy(pairs),
        edge_type=torch.from_numpy((kind == "rival").astype(np.int64)),
        y=torch.from_numpy(role),
    )


QUICK = {"epochs": 40, "degree": 3, "device": "cpu", "preset": "fast", "placement": "output"}
QUICK |= {"input_dropout": 0.0, "filter_dropout": 0.0}


def test_types_tell_what_all_edges_together_hide():
    found = {}
    for name, typed in (("typed", True), ("plain", False)):
        graph = data()
        if not typed:
            del graph.edge_type
        dataset = from_data(graph)
        split = make_split(dataset, "stratified", 0)
        (one,) = fit(dataset, [Config.from_dict(QUICK)], [split])
        found[name] = score(one.predicted, dataset, split.test)["accuracy"]
    assert found["typed"] > 0.9, found
    assert found["plain"] < 0.75, found


@pytest.mark.parametrize("model", ["lon", "lon-deep"])
def test_members_together_are_what_they_are_alone(model):
    dataset = from_data(data(nodes=60))
    table = {"epochs": 4, "device": "cpu", "model": model, "precision": "float64"}
    table |= {"blocks": 2, "hidden_channels": 8} if model == "lon-deep" else {}
    configs = [Config.from_dict({**table, "seed": seed}) for seed in (0, 1)]
    splits = [make_split(dataset, "stratified", seed) for seed in (0, 1)]
    together = fit(dataset, configs, splits)
    for one, config, split in zip(together, configs, splits, strict=True):
        (alone,) = fit(dataset, [config], [split])
        torch.testing.assert_close(alone.predicted, one.predicted, atol=1e-9, rtol=1e-9)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("kinds")
    for name, seed in (("old", 0), ("new", 1)):
        x, pairs, kind, role = two_kinds(seed=seed)
        (root / name).mkdir()
        rows = [f"n{u},n{v},{k}" for (u, v), k in zip(pairs.T, kind, strict=True)]
        (root / name / "edges.csv").write_text("\n".join(["source,target,kind", *rows]) + "\n")
        lines = [
            f"n{i},{a:.4f},{b:.4f},{c:.4f},{['red', 'blue'][r]}"
            for i, ((a, b, c), r) in enumerate(zip(x, role, strict=True))
        ]
        (root / name / "nodes.csv").write_text("\n".join(["id,e,f,g,label", *lines]) + "\n")
    return root


@pytest.fixture(scope="module")
def run(folder):
    out = folder / "run"
    flags = [f for k, v in QUICK.items() for f in ("--set", f"{k}={str(v).lower()}")]
    flags += ["--set", "baselines=false", "--output", out]
    succeed("train", folder / "old", "--data", "type_column=kind", *flags)
    return out


def test_a_run_tells_types_apart_to_the_end(folder, run):
    card = succeed_json("info", folder / "old", "--data", "type_column=kind")
    assert set(card["edge_types"]) == {"friend", "rival"}
    text = succeed("info", folder / "old", "--data", "type_column=kind")
    assert "edge types" in text
    assert f"friend: {card['edge_types']['friend'] // 2:,}" in text
    record = json.loads((run / "record.json").read_text())
    filters = record["repeats"][0]["filters"]
    assert [f["edge_type"] for f in filters] == ["friend", "rival"]
    assert record["summary"]["test"]["accuracy"]["mean"] > 0.9
    page = (run / "report.html").read_text()
    for name in ("friend", "rival"):
        assert f"The filter for edges of type {name} is" in page
    assert "the eigenvalues of the graph of all edges, of whatever type, are" in page
    scores = succeed_json("evaluate", run)["summary"]["test"]["accuracy"]["mean"]
    assert scores == pytest.approx(record["summary"]["test"]["accuracy"]["mean"])
    succeed("predict", run, folder / "new", "--output", folder / "new.csv")
    new = load(folder / "new", type_column="kind")
    rows = (folder / "new.csv").read_text().splitlines()[1:]
    said = np.array([line.split(",")[1].strip('"') for line in rows])
    assert (said == np.array(new.classes)[new.data.y.numpy()]).mean() > 0.9


def test_a_new_graph_has_the_types_of_training(folder, run):
    trained = load_run(run).trained
    assert trained.edge_types == ("friend", "rival")
    with pytest.raises(DataError, match=r"Expected edges of the types friend, rival.*type_column"):
        trained.problem(load(folder / "old"))
    other = load(folder / "old", type_column="kind")
    friend = [r for r in other.relations if r.name == "friend"]
    few = load_run(run).trained.problem(_with(other, friend))
    assert [t.num_edges for t in few.operator.types][1] == 0
    odd = Relation("enemy", friend[0].edge_index)
    with pytest.raises(DataError, match="got 'enemy'"):
        trained.problem(_with(other, [*friend, odd]))
    assert "got 2 types of edges" in fail("export", run)
    with pytest.raises(DataError, match="all alike, to explain it"):
        explain_nodes(trained, other, [0])
    untyped = Trained.collect(load(folder / "old"), Scaling("none"), fit_one(load(folder / "old")))
    assert untyped.problem(other).operator.types == ()


def _with(dataset, relations):
    return dataclasses.replace(dataset, relations=tuple(relations))


def fit_one(dataset):
    every = torch.ones(dataset.num_nodes, dtype=torch.bool)
    config = Config.from_dict({"epochs": 1, "device": "cpu", "preset": "fast"})
    return Job(dataset, [config], [Split(every, every, every, "own", 0)]).run()


def test_a_dataset_keeps_types_beside_the_graph():
    graph = data(nodes=30)
    pair = graph.edge_index[:, :1]
    graph.edge_index = torch.cat([graph.edge_index, pair], 1)  # the same pair, another type
    graph.edge_type = torch.cat([graph.edge_type, 1 - graph.edge_type[:1]])
    dataset = from_data(graph, edge_types=["friend", "rival"], directed=True)
    assert [r.name for r in dataset.relations] == ["friend", "rival"]
    sizes = [r.edge_index.shape[1] for r in dataset.relations]
    assert sum(sizes) == dataset.num_edges + 1
    assert "Edges have 2 types: friend (" in " ".join(dataset.notes)
    both = undirected(dataset)
    assert [r.edge_index.shape[1] for r in both.relations] == [2 * size for size in sizes]
    plain = data(nodes=30)
    del plain.edge_type
    prints = {d.fingerprint() for d in (from_data(plain), from_data(data(nodes=30)))}
    assert len(prints) == 2
    listed = data(nodes=30)
    listed.edge_index = torch.cat([listed.edge_index, listed.edge_index.flip(0)], 1)
    listed.edge_type = listed.edge_type.repeat(2)
    made = LONGNNClassifier(epochs=2, device="cpu").fit(listed)
    assert made.trained_.edge_types == ("0", "1")
    assert made.predict(listed).shape == (30,)


def test_edges_from_elsewhere_have_types(tmp_path):
    graph = nx.Graph()
    graph.add_edge("a", "b", kind="road")
    graph.add_edge("b", "c", kind="rail")
    for node in graph:
        graph.nodes[node]["label"] = node
    assert [r.name for r in from_networkx(graph, type_column="kind").relations] == ["rail", "road"]
    torch.save(data(nodes=30).to_dict(), tmp_path / "graph.pt")
    assert [r.name for r in load(tmp_path / "graph.pt").relations] == ["0", "1"]
    named = "source,target,edge_type\na,b,x\nb,c,y\n"
    (tmp_path / "edges.csv").write_text(named)
    assert [r.name for r in load(tmp_path / "edges.csv").relations] == ["x", "y"]
    (tmp_path / "edges.csv").write_text(named.replace(",y", ",x"))
    alike = load(tmp_path / "edges.csv")
    assert alike.relations == ()
    assert "All edges are of one type, which tells nothing." in alike.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,x\nb,c,\n", "Expected the type of an edge"),
        (
            "".join(f"a,b,{i}\n" for i in range(70)),
            r"Expected at most 64 types of edges \(got 70\)",
        ),
    ],
)
def test_bad_columns_of_types_are_named(tmp_path, text, message):
    (tmp_path / "edges.csv").write_text(f"source,target,kind\n{text}")
    with pytest.raises(DataError, match=message):
        load(tmp_path / "edges.csv", type_column="kind")


def test_bad_types_are_named(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    with pytest.raises(DataError, match="type"):
        load(tmp_path / "edges.csv", type_column="kind")
    with pytest.raises(DataError, match="types of edges in a column of their own"):
        load(tmp_path / "edges.csv", type_column="target")
    for wrong, message in (
        (torch.zeros(3), r"Expected `edge_type` of shape"),
        (torch.full_like(data(nodes=30).edge_type, -1), r"Expected `edge_type` >= 0 \(got -1\)"),
        (data(nodes=30).edge_type + 0.5, "Expected whole numbers in `edge_type`"),
        (torch.arange(data(nodes=30).num_edges), "is that column one of ids"),
    ):
        graph = data(nodes=30)
        graph.edge_type = wrong
        with pytest.raises(DataError, match=message):
            from_data(graph)
    graph = data(nodes=30)
    with pytest.raises(DataError, match="Expected names of 2 types of edges"):
        from_data(graph, edge_types=["one"])


@pytest.mark.slow
def test_every_model_of_a_portfolio_is_served():
    dataset = from_data(data(nodes=60))
    config = Config.from_dict({"epochs": 2, "device": "cpu", "preset": "default"})
    (one,) = fit(dataset, [config], [make_split(dataset, "stratified", 0)])
    assert all(hears_types(m.fitted.model) for m in one.members)
    trained = Trained.collect(dataset, Scaling("none"), [one])
    assert predict(one.model, trained.problem(dataset)).shape == (60, 2)

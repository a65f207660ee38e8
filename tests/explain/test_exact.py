"""Exact explanations against dense references: eigendecompositions, paths, fine integrals."""

import networkx
import numpy as np
import pandas as pd
import pytest
import torch

from longnn.explain import explain_model, explain_nodes
from longnn.explain._forms import WAYS
from tests.explain.cases import ARROWS, COUNT, HERE, arrows, double_model, make_trained

NODES = [0, 3, 7, 22]
#: Every form that is exact: shared and own filters, transforms, places of the filter, self loops.
FORMS = {
    "shared": ("lon", {}),
    "own filters": ("lon", {"shared": False, "coefficients": "pcd"}),
    "linear": ("jacobi", {}),
    "hidden, own filters": ("lon", {"placement": "hidden", "shared": False}),
    "hidden, shared": ("lon", {"placement": "hidden"}),
    "own bases": ("favard", {}),
    "features, linear": ("lon", {"placement": "features", "transform": "linear"}),
    "self loops": ("gpr", {}),
    "fixed": ("sgc", {}),
    "no graph": ("mlp", {}),
}
ON_ARCS = list(FORMS)[:6]


@pytest.fixture(params=[*FORMS, *(f"{name}, on arcs" for name in ON_ARCS)], scope="module")
def form(request):
    """A trained model, its graph, the same model in float64, and its problem."""
    name, options = FORMS[request.param.removesuffix(", on arcs")]
    graph = ARROWS if request.param.endswith(", on arcs") else HERE
    direction = {"direction": "cover"} if graph is ARROWS else {}
    trained = make_trained(name, repeats=1, **options, **direction)
    return trained, graph, *double_model(trained, graph)


def dense_filters(model, problem):
    """g_c(P) of every channel by the eigendecomposition, (channels, rows, rows)."""
    values, U = torch.linalg.eigh(problem.operator.to_dense())
    if not model.filters():
        return torch.eye(len(U), dtype=torch.float64)[None]
    g = model.filter.response(1 - values)  # (channels, rows)
    return torch.einsum("ik,ck,jk->cij", U, g, U)


def copied(x, copies):
    """What the model is given: on arcs diag(x, x), written out; x of shape (..., nodes, F)."""
    zero = torch.zeros_like(x)
    own, other = torch.cat([x, zero], -1), torch.cat([zero, x], -1)
    return x if copies == 1 else torch.cat([own, other], -2)


def signal(model, x):
    """What the filter acts on."""
    S = model.transform(x)
    return torch.relu(S) if getattr(model, "activate_before", False) else S


def pieces(model, problem):
    """g, the signal before the filter, the linear map behind it, and the number of copies."""
    copies = problem.operator.to_dense().shape[0] // COUNT
    inner = model if copies == 1 else model.model
    with torch.no_grad():
        g = dense_filters(inner, problem)
        S = signal(inner, copied(problem.features.values, copies))
    readout = getattr(inner, "readout", None)
    W = torch.eye(S.shape[1], dtype=torch.float64) if readout is None else readout.weight.detach()
    b = torch.zeros(W.shape[1], dtype=torch.float64) if readout is None else readout.bias.detach()
    return g.expand(S.shape[1], -1, -1), S, W, b, copies


def full(e, values):
    """A row over all nodes of the graph from that of the sources."""
    row = np.zeros(COUNT)
    row[list(e.sources)] = values
    return row


def test_contributions_are_those_of_the_dense_filter(form):
    trained, graph, model, problem = form
    g, S, W, b, copies = pieces(model, problem)
    explained = explain_nodes(trained, graph, NODES)
    assert explained.exact
    assert explained.method == "exact"
    scores = model.scores(problem.features, problem.operator).detach()
    for i, e in zip(NODES, explained.nodes, strict=True):
        c = int(scores[i].argmax())  # no threshold of three classes
        rows = g[:, i::COUNT]  # (channels, own copy, rows)
        each = torch.einsum("hav,vh,h->av", rows, S, W[:, c]).numpy().reshape(copies, copies, COUNT)
        np.testing.assert_allclose(full(e, e.contribution), each.sum((0, 1)), atol=1e-10)
        assert e.constant == pytest.approx(copies * float(b[c]), abs=1e-12)
        assert e.score == pytest.approx(float(scores[i, c]), abs=1e-10)
        assert e.constant + e.base + e.features.sum() == pytest.approx(e.score, abs=1e-10)
        assert abs(e.gap) < 1e-12
        if e.weight is not None:
            np.testing.assert_allclose(e.weight * e.says, e.contribution, atol=1e-12)
        if copies == 1:
            assert e.ways is None
            continue
        assert e.weight is None  # two copies have two weights
        assert e.constant + e.chebyshev.sum() == pytest.approx(e.score, abs=1e-10)
        assert e.constant + e.terms.sum() == pytest.approx(e.score, abs=1e-10)
        itself = each[:, :, i].sum()
        each[:, :, i] = 0
        along, against, out, into = each[0, 1], each[1, 0], each[0, 0], each[1, 1]
        ways = [itself, *(block.sum() for block in (along, against, out, into))]
        np.testing.assert_allclose(e.ways, ways, atol=1e-10)


def test_a_filter_of_degree_one_goes_along_and_against_arcs_only():
    """On one arc the node it leaves hears the other along it, and the other way round."""
    arc = arrows(torch.tensor([[0], [1]]), torch.ones(1))
    trained = make_trained("lon", repeats=1, direction="cover", degree=1)
    source, target = explain_nodes(trained, arc, [0, 1]).nodes
    names = {way: k for k, way in enumerate(WAYS)}
    assert source.ways[names["along its arcs"]] == pytest.approx(source.rings[1][1])
    assert target.ways[names["against its arcs"]] == pytest.approx(target.rings[1][1])
    assert source.ways[names["against its arcs"]] == target.ways[names["along its arcs"]] == 0
    assert source.ways[3:].tolist() == [0, 0]


def test_weights_are_rows_of_the_filter():
    trained = make_trained("lon", repeats=1, shared=False)
    g, S, *_ = pieces(*double_model(trained))
    e = explain_nodes(trained, HERE, [7], output="c")[0]
    np.testing.assert_allclose(full(e, e.weight), g[2, 7].numpy(), atol=1e-12)
    np.testing.assert_allclose(e.says, S[list(e.sources), 2].numpy(), atol=1e-12)


def test_rings_are_shortest_paths(form):
    """On arcs they count those along and against."""
    trained, graph, *_ = form
    paths = networkx.Graph(graph.data.edge_index.T.tolist())
    paths.add_nodes_from(range(COUNT))
    explained = explain_nodes(trained, graph, NODES)
    for i, e in zip(NODES, explained.nodes, strict=True):
        hops = networkx.single_source_shortest_path_length(paths, i)
        assert [hops[v] for v in e.sources] == e.distance.tolist()
        assert sum(n for n, _ in e.rings.values()) == len(e.sources)
        assert sum(total for _, total in e.rings.values()) == pytest.approx(e.contribution.sum())
    noted = any("along and against" in note for note in explained.notes)
    assert noted == (graph is ARROWS)


def test_features_are_the_finely_integrated_gradient(form):
    """The mean of the gradient over 4000 points of the way, by autograd, times the features."""
    trained, graph, model, problem = form
    g, _, W, _, copies = pieces(model, problem)
    e = explain_nodes(trained, graph, [7])[0]
    c, steps, x = ["a", "b", "c"].index(e.output), 4000, problem.features.values
    times = (torch.arange(steps, dtype=torch.float64) + 0.5) / steps
    way = (times[:, None, None] * x).requires_grad_()  # (steps, nodes, features)
    lifted = copied(way, copies)
    S = signal(model if copies == 1 else model.model, lifted.flatten(0, 1))
    M = g[:, 7::COUNT].sum(1).T * W[:, c]  # (rows, channels)
    (gradient,) = torch.autograd.grad((M * S.unflatten(0, (steps, -1))).sum(), way)
    wanted = (x * gradient.mean(0)).sum(0).numpy()
    np.testing.assert_allclose(e.features, wanted, atol=1e-3 * max(1, np.abs(wanted).max()))
    assert abs(e.feature_gap) < 1e-12
    nothing = model.scores(torch.zeros_like(x), problem.operator)[7, c].item()
    assert e.base + e.constant == pytest.approx(nothing, abs=1e-12)


@pytest.mark.parametrize("name", ["lon", "bern", "favard", "even"])
def test_terms_of_the_filter_are_the_polynomials(name):
    trained = make_trained(name, repeats=1)
    model, problem = double_model(trained)
    _, S, W, b, _ = pieces(model, problem)
    values, U = torch.linalg.eigh(problem.operator.to_dense())
    f = model.filter
    with torch.no_grad():
        polynomials = f.current_basis().evaluate(values, f.degree)  # (terms, [channels,] nodes)
        alpha = f.effective_coefficients().detach()
    e = explain_nodes(trained, HERE, [7])[0]
    c = ["a", "b", "c"].index(e.output)
    if polynomials.dim() == 2:
        polynomials = polynomials[:, None].expand(-1, S.shape[1], -1)
    rows = torch.einsum("kcn,n,jn->kcj", polynomials, U[7], U)  # p_k(P)[7, :]
    alpha = alpha.expand(-1, S.shape[1])
    wanted = torch.einsum("kcj,kc,jc,c->k", rows, alpha, S, W[:, c]).numpy()
    np.testing.assert_allclose(e.terms, wanted, atol=1e-10)
    assert e.terms.sum() + float(b[c]) == pytest.approx(e.score)
    assert e.chebyshev.sum() + float(b[c]) == pytest.approx(e.score)
    x = np.cos(np.arange(len(e.chebyshev))[:, None] * np.arccos(np.clip(values.numpy(), -1, 1)))
    beta = f.chebyshev_coefficients().detach().expand(-1, S.shape[1]).numpy()
    T = np.einsum("jn,n,vn->jv", x, U[7].numpy(), U.numpy())
    series = np.einsum("jv,jc,vc,c->j", T, beta, S.numpy(), W[:, c].numpy())
    np.testing.assert_allclose(e.chebyshev, series, atol=1e-7)


@pytest.mark.parametrize(
    "options",
    [{"transform": "residual"}, {"normalize": True}, {"normalize": True, "direction": "cover"}],
    ids=str,
)
def test_deeper_transforms_are_exact_by_node_and_integrated_by_feature(options):
    graph = ARROWS if "direction" in options else HERE
    explained = explain_nodes(make_trained("lon", repeats=1, **options), graph, NODES)
    assert explained.exact
    assert explained.method == "exact by node; by feature, integrated gradients of the transform"
    assert all(abs(e.gap) < 1e-12 for e in explained.nodes)
    assert 1e-15 < max(abs(e.feature_gap) for e in explained.nodes) < 0.06


def test_why_one_class_rather_than_another():
    trained = make_trained("lon", repeats=1)
    one, two = (explain_nodes(trained, HERE, NODES, output=c) for c in "ab")
    both = explain_nodes(trained, HERE, NODES, output="a", against="b")
    assert both.what == "class score, minus that of b"
    for e, f, d in zip(one.nodes, two.nodes, both.nodes, strict=True):
        assert d.score == pytest.approx(e.score - f.score)
        np.testing.assert_allclose(
            full(d, d.contribution), full(e, e.contribution) - full(f, f.contribution), atol=1e-12
        )


def test_blocks_of_nodes_give_the_same(monkeypatch):
    trained = make_trained("lon", repeats=1)
    whole, overview = explain_nodes(trained, HERE, NODES), explain_model(trained, HERE)
    monkeypatch.setattr("longnn.explain._subject.BLOCK", 1)
    for e, f in zip(whole.nodes, explain_nodes(trained, HERE, NODES).nodes, strict=True):
        np.testing.assert_allclose(e.contribution, f.contribution, atol=1e-15)
        np.testing.assert_allclose(e.features, f.features, atol=1e-15)
    for name, table in explain_model(trained, HERE).tables.items():
        pd.testing.assert_frame_equal(table.to_pandas(), overview.tables[name].to_pandas())


def test_influence_is_the_sum_of_all_contributions(form):
    """One adjoint pass against every node explained."""
    trained, graph, *_ = form
    each = explain_nodes(trained, graph, list(range(COUNT))).nodes
    tables = explain_model(trained, graph).tables
    rows = tables["influence"].to_pydict()
    wanted = sum(full(e, e.contribution) for e in each)
    np.testing.assert_allclose(np.array(rows["influence"]), wanted[rows["node"]], atol=1e-10)
    assert np.delete(wanted, rows["node"]) == pytest.approx(0)
    rows = {r["feature"]: r for r in tables["features"].to_pylist() if r["output"] == "all"}
    sizes = [row["size"] for row in rows.values()]
    assert sizes == sorted(sizes, reverse=True)
    nothing = {"size": 0.0, "contribution": 0.0}
    by_feature = np.array([e.features for e in each])
    for k, (size, mean) in enumerate(
        zip(np.abs(by_feature).mean(0), by_feature.mean(0), strict=True)
    ):
        row = rows.get(f"feature {k}", nothing)
        assert row["size"] == pytest.approx(size, abs=1e-10)
        assert row["contribution"] == pytest.approx(mean, abs=1e-10)
    rings = [r for r in tables["distances"].to_pylist() if r["output"] == "all"]
    assert sum(r["share"] for r in rings) == pytest.approx(1)
    assert rings[0]["contribution"] == pytest.approx(np.mean([e.rings[0][1] for e in each]))

"""Exact explanations against dense references: eigendecompositions, paths, fine integrals."""

import networkx
import numpy as np
import pytest
import torch

from longnn.explain import explain_model, explain_nodes
from tests.explain.cases import HERE, THERE, double_model, make_trained

NODES = [0, 3, 7, 22]
#: Every form that is exact: shared and own filters, transforms, places of the filter, self loops.
FORMS = {
    "shared": ("lon", {}),
    "own filters": ("lon", {"shared": False, "coefficients": "pcd"}),
    "linear": ("jacobi", {}),
    "hidden, own filters": ("lon", {"placement": "hidden", "shared": False}),
    "hidden, shared": ("lon", {"placement": "hidden"}),
    "features, linear": ("lon", {"placement": "features", "transform": "linear"}),
    "self loops": ("gpr", {}),
    "own bases": ("favard", {}),
    "fixed": ("sgc", {}),
    "no graph": ("mlp", {}),
}


def dense_filters(model, problem):
    """g_c(P) of every channel by the eigendecomposition, (channels, nodes, nodes)."""
    values, U = torch.linalg.eigh(problem.operator.to_dense())
    if not model.filters():
        return torch.eye(len(U), dtype=torch.float64)[None]
    g = model.filter.response(1 - values)  # (channels, nodes)
    return torch.einsum("ik,ck,jk->cij", U, g, U)


def signal(model, x):
    """What the filter acts on."""
    S = model.transform(x)
    return torch.relu(S) if getattr(model, "activate_before", False) else S


def pieces(model, problem):
    """g, the signal before the filter, and the linear map behind it."""
    with torch.no_grad():
        g, S = dense_filters(model, problem), signal(model, problem.features)
    readout = getattr(model, "readout", None)
    W = torch.eye(S.shape[1], dtype=torch.float64) if readout is None else readout.weight.detach()
    b = torch.zeros(W.shape[1], dtype=torch.float64) if readout is None else readout.bias.detach()
    return g.expand(S.shape[1], -1, -1), S, W, b


def full(e, values):
    """A row over all nodes of the graph from that of the sources."""
    found = np.zeros(HERE.num_nodes)
    found[list(e.sources)] = values
    return found


@pytest.fixture(params=FORMS, scope="module")
def form(request):
    name, options = FORMS[request.param]
    trained = make_trained(name, repeats=1, **options)
    return trained, *double_model(trained)


def test_contributions_are_those_of_the_dense_filter(form):
    trained, model, problem = form
    g, S, W, b = pieces(model, problem)
    found = explain_nodes(trained, HERE, NODES)
    assert found.exact
    assert found.method == "exact"
    scores = model.scores(problem.features, problem.operator).detach()
    for i, e in zip(NODES, found.nodes, strict=True):
        c = int(scores[i].argmax())  # no threshold of three classes
        wanted = torch.einsum("hv,vh,h->v", g[:, i], S, W[:, c]).numpy()
        np.testing.assert_allclose(full(e, e.contribution), wanted, atol=1e-12)
        assert e.constant == pytest.approx(float(b[c]), abs=1e-12)
        assert e.score == pytest.approx(float(scores[i, c]), abs=1e-12)
        assert abs(e.gap) < 1e-12
        if e.weight is not None:
            np.testing.assert_allclose(e.weight * e.says, e.contribution, atol=1e-12)


def test_weights_are_rows_of_the_filter():
    trained = make_trained("lon", repeats=1, shared=False)
    model, problem = double_model(trained)
    g, S, _, _ = pieces(model, problem)
    e = explain_nodes(trained, HERE, [7], output="c")[0]
    np.testing.assert_allclose(full(e, e.weight), g[2, 7].numpy(), atol=1e-12)
    np.testing.assert_allclose(e.says, S[list(e.sources), 2].numpy(), atol=1e-12)


def test_rings_are_shortest_paths(form):
    trained, *_ = form
    graph = networkx.Graph(HERE.data.edge_index.T.tolist())
    graph.add_nodes_from(range(HERE.num_nodes))
    for i, e in zip(NODES, explain_nodes(trained, HERE, NODES).nodes, strict=True):
        hops = networkx.single_source_shortest_path_length(graph, i)
        assert [hops[v] for v in e.sources] == e.distance.tolist()
        assert sum(n for n, _ in e.rings.values()) == len(e.sources)
        assert sum(total for _, total in e.rings.values()) == pytest.approx(e.contribution.sum())


def test_features_are_the_finely_integrated_gradient(form):
    """The mean of the gradient over 4000 points of the way, by autograd, times the features."""
    trained, model, problem = form
    g, _, W, _ = pieces(model, problem)
    found = explain_nodes(trained, HERE, [7])[0]
    c, steps, x = ["a", "b", "c"].index(found.output), 4000, problem.features.values
    times = (torch.arange(steps, dtype=torch.float64) + 0.5) / steps
    way = (times[:, None, None] * x).flatten(0, 1).requires_grad_()  # (steps * nodes, features)
    S = signal(model, way).unflatten(0, (steps, len(x)))
    M = g[:, 7].T * W[:, c]  # (nodes, channels)
    (gradient,) = torch.autograd.grad((M * S).sum(), way)
    wanted = (x * gradient.unflatten(0, (steps, len(x))).mean(0)).sum(0).numpy()
    np.testing.assert_allclose(found.features, wanted, atol=1e-3 * max(1, np.abs(wanted).max()))
    assert abs(found.feature_gap) < 1e-12
    nothing = model.scores(torch.zeros_like(x), problem.operator)[7, c].item()
    assert found.base + found.constant == pytest.approx(nothing, abs=1e-12)


@pytest.mark.parametrize("name", ["lon", "bern", "favard", "even"])
def test_terms_of_the_filter_are_the_polynomials(name):
    trained = make_trained(name, repeats=1)
    model, problem = double_model(trained)
    _, S, W, b = pieces(model, problem)
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


@pytest.mark.parametrize("options", [{"transform": "residual"}, {"normalize": True}], ids=str)
def test_deeper_transforms_are_exact_by_node_and_integrated_by_feature(options):
    found = explain_nodes(make_trained("lon", repeats=1, **options), HERE, NODES)
    assert found.exact
    assert found.method == "exact by node; by feature, integrated gradients of the transform"
    for e in found.nodes:
        assert abs(e.gap) < 1e-12
        assert 1e-15 < abs(e.feature_gap) < 0.05


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
    whole = explain_nodes(trained, HERE, NODES)
    monkeypatch.setattr("longnn.explain._nodes.BLOCK", 1)
    for e, f in zip(whole.nodes, explain_nodes(trained, HERE, NODES).nodes, strict=True):
        np.testing.assert_allclose(e.contribution, f.contribution, atol=1e-15)
        np.testing.assert_allclose(e.features, f.features, atol=1e-15)


def test_another_graph_is_explained():
    trained = make_trained("lon", repeats=1)
    problem = trained.problem(THERE)
    scores = trained.models[0].scores(problem.features, problem.operator).detach()
    e = explain_nodes(trained, THERE, [30])[0]
    assert e.score == pytest.approx(float(scores[30].max()), abs=1e-5)
    assert abs(e.gap) < 1e-12


def test_influence_is_the_sum_of_all_contributions(form):
    """One adjoint pass against every node explained."""
    trained, *_ = form
    nodes = range(HERE.num_nodes)
    each = explain_nodes(trained, HERE, list(nodes))
    found = explain_model(trained, HERE)
    wanted = sum(full(e, e.contribution) for e in each.nodes)
    rows = found.tables["influence"].to_pydict()
    np.testing.assert_allclose(full_of(rows["node"], rows["influence"]), wanted, atol=1e-10)
    features = {
        r["feature"]: r["contribution"]
        for r in found.tables["features"].to_pylist()
        if r["output"] == "all"
    }
    sizes = {
        r["feature"]: r["size"]
        for r in found.tables["features"].to_pylist()
        if r["output"] == "all"
    }
    assert list(sizes.values()) == sorted(sizes.values(), reverse=True)
    for k, value in enumerate(np.mean([np.abs(e.features) for e in each.nodes], axis=0)):
        assert sizes.get(f"feature {k}", 0.0) == pytest.approx(value, abs=1e-10)
    total = sum(e.features for e in each.nodes) / HERE.num_nodes
    for k, value in enumerate(total):
        assert features.get(f"feature {k}", 0.0) == pytest.approx(value, abs=1e-10)
    first = [r for r in found.tables["distances"].to_pylist() if r["output"] == "all"]
    assert sum(r["share"] for r in first) == pytest.approx(1)
    own = np.mean([e.rings[0][1] for e in each.nodes])
    assert first[0]["contribution"] == pytest.approx(own)


def full_of(nodes, values):
    found = np.zeros(HERE.num_nodes)
    found[nodes] = values
    return found

"""Explanations of runs that keep arcs, against dense blocks of the double cover."""

import dataclasses

import networkx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from longnn.data import from_data
from longnn.explain import explain_model, explain_nodes
from longnn.explain._exact import has_exact_form
from longnn.explain._integrated import IntegratedForm
from longnn.explain._parts import WAYS
from tests.explain.cases import HERE, make_ensemble, make_trained
from tests.helpers import random_tensor
from tests.test_arcs import normalized, random_arcs
from tests.test_export import FEATURES

NODES = [0, 3, 7, 22]
COUNT = 23
ARCS = random_arcs(COUNT, isolated=1, seed=3)
WEIGHT = 1.0 + (ARCS[0] + 2 * ARCS[1]) % 3


def dataset(edges=ARCS, weight=WEIGHT):
    x = random_tensor(COUNT, FEATURES, seed=5).float()
    y = torch.arange(COUNT) % 3
    return from_data(Data(x=x, edge_index=edges, edge_weight=weight, y=y), directed=True)


GRAPH = dataset()
FORMS = {
    "shared": ("lon", {}),
    "own filters": ("lon", {"shared": False, "coefficients": "pcd"}),
    "linear": ("jacobi", {}),
    "hidden, own filters": ("lon", {"placement": "hidden", "shared": False}),
    "hidden, shared": ("lon", {"placement": "hidden"}),
    "own bases": ("favard", {}),
}


def adjacency():
    A = torch.zeros(COUNT, COUNT, dtype=torch.float64)
    source, target = GRAPH.data.edge_index
    return A.index_put((source, target), GRAPH.data.edge_weight.double(), accumulate=True)


def blocks(model):
    """g_c of the cover by the singular values of N, (channels, 2 nodes, 2 nodes): even parts on the
    diagonal, odd ones beside it."""
    U, S, Vh = torch.linalg.svd(normalized(adjacency()))
    plus, minus = (model.filter.response(1 - s) for s in (S, -S))  # g(S), g(-S)
    even, odd, V = (plus + minus) / 2, (plus - minus) / 2, Vh.T
    rows = [[(U, even, U), (U, odd, V)], [(V, odd, U), (V, even, V)]]
    made = [
        torch.cat([torch.einsum("ik,ck,jk->cij", a, g, b) for a, g, b in row], 2) for row in rows
    ]
    return torch.cat(made, 1)


def lifted_signal(model, x):
    """What the filter acts on, from diag(X, X) written out, (2 nodes, channels)."""
    S = model.transform(torch.block_diag(x, x))
    return torch.relu(S) if model.activate_before else S


def dense_contributions(trained, node, c):
    """(own copy, copy of the source, nodes) of the score of class c of a node."""
    problem = double_problem(trained)
    inner = trained.models[0].double().eval().model
    with torch.no_grad():
        G, S = blocks(inner), lifted_signal(inner, problem.features.values)
        readout = inner.readout
        W = torch.eye(S.shape[1], dtype=torch.float64) if readout is None else readout.weight
        G = G.expand(S.shape[1], -1, -1)
        rows = torch.stack([G[:, node], G[:, COUNT + node]])  # (own copy, channels, 2 nodes)
        found = torch.einsum("ahv,vh,h->av", rows, S, W[:, c])
    return found.unflatten(1, (2, COUNT)).numpy()


def double_problem(trained, graph=GRAPH):
    config = trained.config.replace(precision="float64")
    return dataclasses.replace(trained, config=config).problem(graph)


def full(e, values):
    found = np.zeros(COUNT)
    found[list(e.sources)] = values
    return found


@pytest.mark.parametrize("form", FORMS)
def test_contributions_are_those_of_the_dense_blocks(form):
    name, options = FORMS[form]
    trained = make_trained(name, repeats=1, direction="cover", **options)
    found = explain_nodes(trained, GRAPH, NODES)
    assert found.exact
    problem = trained.problem(GRAPH)
    with torch.no_grad():
        scores = trained.models[0].scores(problem.features, problem.operator)
    for i, e in zip(NODES, found.nodes, strict=True):
        c = int(scores[i].argmax())
        assert e.constant + e.contribution.sum() == pytest.approx(float(scores[i, c]), abs=1e-5)
        assert e.constant + e.base + e.features.sum() == pytest.approx(e.score, abs=1e-10)
        assert abs(e.gap) < 1e-12
        assert e.constant + e.chebyshev.sum() == pytest.approx(e.score, abs=1e-10)
        assert e.constant + e.terms.sum() == pytest.approx(e.score, abs=1e-10)
        wanted = dense_contributions(trained, i, c)
        np.testing.assert_allclose(full(e, e.contribution), wanted.sum((0, 1)), atol=1e-7)
        assert e.weight is None  # two copies have two weights


def test_ways_are_the_blocks_of_the_cover():
    trained = make_trained("lon", repeats=1, direction="cover")
    for i, e in zip(NODES, explain_nodes(trained, GRAPH, NODES).nodes, strict=True):
        wanted = dense_contributions(trained, i, ["a", "b", "c"].index(e.output))
        itself = wanted[:, :, i].sum()
        wanted[:, :, i] = 0
        odd = wanted[0, 1].sum(), wanted[1, 0].sum()
        even = wanted[0, 0].sum(), wanted[1, 1].sum()
        np.testing.assert_allclose(e.ways, [itself, *odd, *even], atol=1e-7)
        assert e.ways.sum() == pytest.approx(e.contribution.sum())
    assert explain_nodes(make_trained("lon", repeats=1), HERE, [0])[0].ways is None


def test_a_filter_of_degree_one_goes_along_and_against_arcs_only():
    """On one arc the node it leaves hears the other along it, and the other way round."""
    arc = dataset(torch.tensor([[0], [1]]), torch.ones(1))
    trained = make_trained("lon", repeats=1, direction="cover", degree=1)
    source, target = explain_nodes(trained, arc, [0, 1]).nodes
    names = {way: k for k, way in enumerate(WAYS)}
    assert source.ways[names["along its arcs"]] == pytest.approx(source.rings[1][1])
    assert target.ways[names["against its arcs"]] == pytest.approx(target.rings[1][1])
    assert source.ways[names["against its arcs"]] == target.ways[names["along its arcs"]] == 0
    assert source.ways[3:].tolist() == [0, 0]


@pytest.mark.parametrize("name", ["lon", "mlp", "cheb", "arma", "gat-deep"])
def test_models_of_each_kind_are_explained_on_arcs(name):
    small = {"blocks": 2} if name.endswith("deep") else {}
    trained = make_trained(name, repeats=1, direction="cover", **small)
    found = explain_nodes(trained, GRAPH, [7])[0]
    problem, model = double_problem(trained), trained.models[0].double().eval()
    with torch.no_grad():
        scores = model.scores(problem.features, problem.operator)
    assert found.score == pytest.approx(float(scores[7].max()), abs=1e-10)
    limit = 1e-12 if has_exact_form(model) else 0.05 * max(1, abs(found.score))
    assert abs(found.gap) < limit
    assert abs(found.feature_gap) < limit


@pytest.mark.parametrize("name", ["gcn", "cheb"])
def test_gradients_are_taken_within_reach_only(name):
    trained = make_trained(name, repeats=1, direction="cover")
    problem, model = double_problem(trained), trained.models[0].double().eval()
    form = IntegratedForm(model, problem.features, problem.operator)
    near, operator = form._neighbourhood(7)
    assert len(near) < COUNT
    with torch.no_grad():
        local = model.scores(torch.from_numpy(form._features[near].toarray()), operator)
    torch.testing.assert_close(local[list(near).index(7)], form.scores[7])


def test_rings_count_arcs_along_and_against():
    graph = networkx.Graph(ARCS.T.tolist())
    graph.add_nodes_from(range(COUNT))
    found = explain_nodes(make_trained("lon", repeats=1, direction="cover"), GRAPH, NODES)
    for i, e in zip(NODES, found.nodes, strict=True):
        hops = networkx.single_source_shortest_path_length(graph, i)
        assert [hops[v] for v in e.sources] == e.distance.tolist()
    assert any("along and against" in note for note in found.notes)


def test_influence_is_the_sum_of_all_contributions():
    trained = make_trained("lon", repeats=1, direction="cover")
    each = explain_nodes(trained, GRAPH, list(range(COUNT)))
    found = explain_model(trained, GRAPH)
    rows = found.tables["influence"].to_pydict()
    wanted = sum(full(e, e.contribution) for e in each.nodes)
    np.testing.assert_allclose(np.array(rows["influence"]), wanted[rows["node"]], atol=1e-10)
    total = sum(e.features for e in each.nodes) / COUNT
    for row in found.tables["features"].to_pylist():
        if row["output"] == "all":
            k = int(row["feature"].split()[1])
            assert row["contribution"] == pytest.approx(total[k], abs=1e-10)


def test_a_normalised_transform_is_integrated_by_feature():
    trained = make_trained("lon", repeats=1, direction="cover", normalize=True)
    e = explain_nodes(trained, GRAPH, [7])[0]
    assert abs(e.gap) < 1e-12
    assert 1e-15 < abs(e.feature_gap) < 0.05


def test_an_ensemble_on_arcs_adds_up():
    """With a member that ignores the graph, and so has no copies."""
    trained = make_ensemble("lon", "gpr", "mlp", direction="cover")
    found = explain_nodes(trained, GRAPH, NODES)
    assert found.exact
    for e in found.nodes:
        assert abs(e.gap) < 1e-9
        assert abs(e.feature_gap) < 1e-9
        assert e.ways.sum() == pytest.approx(e.contribution.sum())

"""The card agrees with definitions written out node by node."""

import json

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import homophily as pyg_homophily

from longnn.data import describe, from_data
from longnn.data._card import homophily
from longnn.data._files import load_files
from longnn.data._synthetic import csbm


@pytest.mark.parametrize("phi", [-0.8, 0.0, 0.8])
def test_homophily_is_pygs(phi):
    d = csbm(phi=phi, num_nodes=300, num_features=4)
    edge, node, adjusted = homophily(d)
    index, y = d.data.edge_index, d.data.y
    assert edge == pytest.approx(pyg_homophily(index, y, method="edge"))
    assert adjusted is not None
    assert edge is not None
    # PyG counts nodes without neighbours as 0; ours are means over the others.
    share = len(index.unique()) / 300
    assert node == pytest.approx(pyg_homophily(index, y, method="node") / share, rel=1e-5)
    degree = np.bincount(index[0])
    classes = [degree[np.flatnonzero(y[: len(degree)] == c)].sum() for c in (0, 1)]
    chance = sum(c**2 for c in classes) / degree.sum() ** 2
    assert adjusted == pytest.approx((edge - chance) / (1 - chance))


def test_homophily_ignores_unlabelled_ends_and_loops():
    # 0(a) - 1(a) - 2(?) and 3(b) - 1, a loop at 0: labelled edges are 0-1 (same), 1-3 (not)
    index = torch.tensor([[0, 1, 1, 0], [1, 2, 3, 0]])
    y = torch.tensor([0, 0, -1, 1])
    d = from_data(Data(x=torch.ones(4, 1), edge_index=index, y=y), self_loops=True)
    assert homophily(d)[0] == pytest.approx(1 / 2)
    assert homophily(d)[1] == pytest.approx((1 + 1 / 2 + 0) / 3)


def test_permuting_nodes_changes_nothing():
    d = csbm(num_nodes=120, num_features=6, seed=3)
    order = torch.randperm(120, generator=torch.Generator().manual_seed(0))
    place = torch.empty_like(order)
    place[order] = torch.arange(120)
    moved = from_data(
        Data(x=d.data.x[order], edge_index=place[d.data.edge_index], y=d.data.y[order]),
        name="csbm",
        classes=d.classes,
    )
    first, second = describe(d).to_dict(), describe(moved).to_dict()
    assert first.pop("fingerprint") != second.pop("fingerprint")
    for key, value in first.items():
        if isinstance(value, float):
            assert second[key] == pytest.approx(value), key
        else:
            assert second[key] == value, key


def test_a_graph_counted_by_hand():
    # a triangle, an edge, and a node alone; features repeat
    index = torch.tensor([[0, 1, 2, 3], [1, 2, 0, 4]])
    x = torch.tensor([[1.0, 0], [1, 0], [0, 2], [0, 0], [0, 0], [3, 1]])
    y = torch.tensor([0, 0, 0, 1, -1, -1])
    card = describe(from_data(Data(x=x, edge_index=index, y=y), classes=["a", "b"]))
    assert (card.nodes, card.edges, card.features) == (6, 4, 2)
    degrees = (card.degree_min, card.degree_median, card.degree_mean, card.degree_max)
    assert degrees == (0, 1.5, pytest.approx(8 / 6), 2)
    assert (card.components, card.largest_component_share, card.isolated_nodes) == (3, 0.5, 1)
    assert card.class_counts == {"a": 3, "b": 1}
    assert card.imbalance == 3
    assert card.labelled_share == pytest.approx(4 / 6)
    assert card.feature_density == pytest.approx(5 / 12)
    assert (card.duplicate_rows, card.zero_rows) == (2, 2)
    assert card.warnings == (
        "The graph has 3 pieces without an edge between them; the largest has 50 % of the nodes.",
        "Classes with fewer than 5 labelled nodes: a, b.",
        "Nodes whose features are all zero: 2.",
        "Nodes whose features repeat those of another: 2 (33 %); copies across splits flatter "
        "the score.",
    )


def test_warnings_on_labels():
    index = torch.stack([torch.arange(39), torch.arange(1, 40)])
    x = torch.eye(40)

    def warn(y, classes):
        return describe(from_data(Data(x=x, edge_index=index, y=y), classes=classes)).warnings

    assert warn(torch.zeros(40).long(), ["only"]) == (
        "All labelled nodes are of one class, 'only'.",
    )
    skewed = warn((torch.arange(40) >= 38).long(), ["big", "small"])
    assert skewed[0].startswith("The largest class is 19 times the smallest")
    assert skewed[1] == "Classes with fewer than 5 labelled nodes: small."
    assert warn(torch.full((40,), -1), []) == (
        "No node has a label: the graph can be predicted on, not trained on. If a column holds "
        "labels, name it with label_column.",
    )


def test_no_edges_and_regression():
    empty = torch.empty(2, 0, dtype=torch.long)
    y = torch.tensor([0.5, 1.5])
    card = describe(from_data(Data(x=torch.eye(2), edge_index=empty, y=y)))
    assert card.class_counts == {}
    assert card.imbalance is None
    assert card.edge_homophily is None
    assert card.warnings[0] == "There are no edges: a graph filter has nothing to work on."


def test_numbers_to_predict_are_described():
    """Against NumPy, over both directions of the edges between labelled nodes."""
    index = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    y = torch.tensor([1.0, 2.0, 4.0, 3.0, float("nan")])
    d = from_data(Data(x=torch.eye(5), edge_index=index, y=y), targets=["rent"])
    card = describe(d)
    ends = np.array([[1, 2, 2, 4, 4, 3], [2, 1, 4, 2, 3, 4]])
    found = card.targets["rent"]
    assert found.pop("neighbours") == pytest.approx(np.corrcoef(ends)[0, 1])
    assert found == {"min": 1, "median": 2.5, "mean": 2.5, "max": 4}
    (line,) = [line for line in describe(d).lines() if line.startswith("target")]
    assert line.split(None, 1)[1].startswith(
        "rent: min 1, median 2.5, mean 2.5, max 4; correlation"
    )
    assert json.loads(json.dumps(card.to_dict()))["targets"]["rent"] == found


def test_few_columns_and_degrees_repeat_by_chance(write):
    edges = write("e.csv", "source,target\na,b\nb,c\nc,a\n")
    for nodes in ("id,size,label\na,0,x\nb,0,y\nc,0.5,x\n", "id,label\na,x\nb,y\nc,x\n"):
        card = describe(load_files(edges, write("n.csv", nodes)))
        assert card.duplicate_rows
        assert not [text for text in card.warnings if "features" in text]

"""Any listing of the same edges gives the same graph."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from longnn.data import DataError, from_data
from longnn.data._arcs import merge_edges

NODES = 12


def random_arcs(seed):
    return torch.randint(0, NODES, (2, 40), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("seed", range(5))
class TestSymmetrize:
    def test_is_pygs_to_undirected(self, seed):
        arcs = random_arcs(seed)
        expected = to_undirected(remove_self_loops(arcs)[0], num_nodes=NODES)
        assert torch.equal(merge_edges(arcs)[0], expected)
        looped = merge_edges(arcs, self_loops=True)[0]
        assert torch.equal(looped, to_undirected(arcs, num_nodes=NODES))

    def test_weights_are_the_mean_of_the_given_directions(self, seed):
        arcs = random_arcs(seed)
        weight = torch.rand(40, generator=torch.Generator().manual_seed(seed)) + 0.1
        index, result, *_ = merge_edges(arcs, weight)
        a = sp.coo_array((weight.double(), tuple(arcs.numpy())), shape=(NODES, NODES)).toarray()
        np.fill_diagonal(a, 0)
        given = (a > 0).astype(int) + (a.T > 0)
        expected = (a + a.T) / np.maximum(given, 1)
        dense = np.zeros_like(a)
        assert result is not None
        dense[tuple(index.numpy())] = result
        np.testing.assert_allclose(dense, expected, rtol=1e-6)

    def test_order_and_direction_of_lines_do_not_matter(self, seed):
        arcs = merge_edges(random_arcs(seed))[0]
        weight = (arcs.sum(0) + arcs.prod(0)).float()  # a symmetric weight
        full = merge_edges(arcs, weight)
        assert torch.equal(full[0], arcs)
        assert full[1] is not None
        assert torch.equal(full[1], weight)
        assert full.notes == ()
        assert full.one_way == 0
        once = arcs[0] < arcs[1]
        shuffle = torch.randperm(int(once.sum()), generator=torch.Generator().manual_seed(seed))
        index, result, notes, one_way, _ = merge_edges(
            arcs[:, once][:, shuffle].flip(0), weight[once][shuffle]
        )
        assert torch.equal(index, arcs)
        assert result is not None
        assert torch.equal(result, weight)
        assert notes == (f"All {one_way} edges were listed one way; each was made two-way.",)
        assert one_way == int(once.sum())


def test_says_what_it_changed():
    arcs = torch.tensor([[0, 0, 1, 2, 2], [1, 1, 0, 2, 1]])
    assert merge_edges(arcs).notes == (
        "1 of 2 edges were listed one way; each was made two-way.",
        "1 self loop was dropped.",
        "1 repeated edge was merged.",
    )
    notes = merge_edges(arcs, torch.ones(5))[2]
    assert "1 repeated edge was merged, their weights added." in notes


EDGE = torch.tensor([[0], [1]])


def test_brings_types_to_one_form_and_leaves_the_input_alone():
    data = Data(
        x=torch.eye(3, dtype=torch.int64).to_sparse(),
        edge_index=EDGE.int(),
        edge_weight=torch.tensor([[2]]),
        y=torch.tensor([[1], [-1], [0]]),
        train_mask=torch.tensor([1, 1, 0]),
    )
    d = from_data(data, ids=["u", "v", "w"])
    assert d.data.x.dtype == torch.float32
    assert torch.equal(d.data.x, torch.eye(3))
    assert d.data.edge_index.tolist() == [[0, 1], [1, 0]]
    assert d.data.edge_weight.tolist() == [2.0, 2.0]
    assert d.data.y.tolist() == [1, -1, 0]
    assert d.classes == ("0", "1")
    assert d.data.train_mask.tolist() == [True, False, False]
    assert d.default_split == "own"
    assert d.notes == (
        "The edge was listed one way; it was made two-way.",
        "1 node has no edge: it is predicted from its own columns.",
        "1 node in a mask has no label and was left out.",
    )
    assert data.edge_index.dtype == torch.int32
    assert data.train_mask.sum() == 2


@pytest.mark.parametrize(
    ("y", "task", "expected"),
    [
        (None, None, ("classification", [-1, -1])),
        (None, "regression", ("regression", [None, None])),
        (torch.tensor([0.5, float("nan")]), None, ("regression", [0.5, None])),
        (torch.tensor([1.0, float("nan")]), "classification", ("classification", [0, -1])),
        (torch.tensor([3, 4]), "regression", ("regression", [3.0, 4.0])),
        (torch.tensor([True, False]), None, ("classification", [1, 0])),
    ],
)
def test_task_follows_the_labels_unless_given(y, task, expected):
    d = from_data(Data(x=torch.eye(2), edge_index=EDGE, y=y), task=task)
    labels = [None if v != v else v for v in d.data.y.tolist()]
    assert (d.task, labels) == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": None}, r"Expected node features `x` .* features='degree'"),
        ({"x": torch.eye(2) * 1j}, r"Expected `x` to be real numbers \(got torch.complex64\)"),
        ({"edge_index": None}, r"`edge_index` of shape \(2, arcs\) \(got NoneType\)"),
        ({"edge_index": torch.ones(3, 2).long()}, r"\(2, arcs\) \(got \(3, 2\)\)"),
        ({"edge_index": torch.tensor([[0, 0], [1, 2]])}, r"nodes 0..1 \(got \[0, 2\] as edge 1\)"),
        ({"edge_weight": torch.ones(3)}, r"Expected 1 edge weights \(got 3\)"),
        ({"y": torch.ones(3)}, r"`y` of shape \(2,\) or \(2, targets\) \(got \(3,\)\)"),
        (
            {"y": torch.tensor([0.5, 1])},
            r"row 1: .*whole numbers up to 2\^53 as classes \(got 0.5\)",
        ),
        (
            {"val_mask": torch.ones(5)},
            r"`val_mask` of shape \(2,\) or \(2, splits\) \(got \(5,\)\)",
        ),
    ],
)
def test_refuses(changes, message):
    fields = {"x": torch.eye(2), "edge_index": EDGE, **changes}
    with pytest.raises(DataError, match=message):
        from_data(Data(**fields), task="classification")
    with pytest.raises(DataError, match="one of classification, regression"):
        from_data(Data(x=torch.eye(2), edge_index=EDGE), task="ranking")


@pytest.mark.parametrize("shape", [(2,), (2, 1)])
def test_an_edge_attribute_with_one_value_per_edge_is_the_weight(shape):
    edges = torch.tensor([[0, 1], [1, 2]])
    value = torch.tensor([2.0, 3.0]).reshape(shape)
    d = from_data(Data(x=torch.eye(3), edge_index=edges, edge_attr=value))
    assert d.data.edge_weight.tolist() == [2, 2, 3, 3]
    both = Data(x=torch.eye(3), edge_index=edges, edge_attr=torch.ones(2, 5), edge_weight=value)
    assert from_data(both).data.edge_weight.tolist() == [2, 2, 3, 3]


def test_edge_attributes_that_are_no_weights_are_refused():
    data = Data(x=torch.eye(2), edge_index=EDGE, edge_attr=torch.ones(1, 3))
    message = r"`edge_attr` of shape \(1,\) or \(1, 1\), one weight per edge \(got \(1, 3\)\)"
    with pytest.raises(DataError, match=message):
        from_data(data)

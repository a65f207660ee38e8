"""`NodeDataset` accepts one form only, and its fingerprint depends on content alone."""

import pickle

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import NormalizeFeatures

from longnn.data import DataError, NodeDataset, from_data, make_split
from longnn.data._errors import DatasetUnavailable
from longnn.data._features import row_normalize

PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])  # 0 - 1 - 2


def path_graph(**changes):
    fields = {"x": torch.eye(3), "edge_index": PATH, "y": torch.tensor([0, 1, -1])}
    return Data(**{**fields, **changes})


def dataset(*, task="classification", **changes):
    classes = ("a", "b") if task == "classification" else ()
    return NodeDataset("path", path_graph(**changes), task=task, classes=classes)


def test_counts_and_labels():
    d = dataset(train_mask=torch.ones(3, 4, dtype=torch.bool))
    assert (d.num_nodes, d.num_edges, d.num_features, d.num_classes) == (3, 2, 3, 2)
    assert d.labelled.tolist() == [True, True, False]
    assert list(d.ids) == [0, 1, 2]
    assert repr(d) == (
        "NodeDataset('path', nodes=3, edges=2, features=3, classes=2, labelled=2, splits=4)"
    )


def test_fingerprint_is_of_content_only():
    base = dataset().fingerprint()
    masks = dataset(train_mask=torch.ones(3, dtype=torch.bool))
    strided = dataset(x=torch.eye(6)[:3, :3].t().contiguous().t())
    renamed = NodeDataset("other", path_graph(), classes=("c", "d"), notes=("n",))
    assert base == masks.fingerprint() == strided.fingerprint() == renamed.fingerprint()


def test_fingerprint_is_the_same_on_every_machine():
    expected = "526d4393b4c30b98613e3eb518ba59b38155c6ba21bd1257efe8dd6e55be85f3"
    assert dataset().fingerprint() == expected


@pytest.mark.parametrize(
    "changes",
    [
        {"x": 2 * torch.eye(3)},
        {"x": torch.eye(3, 4)},
        {"edge_index": PATH[:, :2]},
        {"edge_index": torch.empty(2, 0, dtype=torch.long)},
        {"edge_weight": torch.ones(4)},
        {"y": torch.tensor([0, 1, 1])},
    ],
)
def test_fingerprint_sees_every_part(changes):
    assert dataset(**changes).fingerprint() != dataset().fingerprint()


NAN = float("nan")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"x": torch.eye(3).double()},
            r"`x` to be float32 \(nodes, features\) \(got torch.float64",
        ),
        ({"x": torch.empty(3, 0)}, r"at least one node and one feature \(got \(3, 0\)\)"),
        (
            {"x": torch.tensor([[1.0, 2], [3, NAN], [5, NAN]])},
            r"row 2, column 1: Expected finite features \(got nan at node 1, 2 such in all\)",
        ),
        ({"x": torch.full((3, 1), float("inf"))}, r"row 1, column 0: .*got inf"),
        ({"edge_index": PATH.int()}, r"`edge_index` to be int64 \(2, arcs\) \(got torch.int32"),
        ({"edge_index": PATH.t()}, r"\(2, arcs\) \(got torch.int64 \(4, 2\)\)"),
        ({"edge_index": PATH + 1}, r"within 0..2 \(got 1..3\)"),
        ({"edge_index": PATH.flip(1)}, "sorted, no arc twice"),
        ({"edge_index": PATH.repeat_interleave(2, 1)}, "sorted, no arc twice"),
        ({"edge_index": PATH[:, :3]}, "both directions of each edge"),
        ({"edge_weight": torch.ones(4).double()}, r"float32 \(arcs,\) \(got torch.float64"),
        ({"edge_weight": torch.tensor([1.0, 1, NAN, NAN])}, "finite and >= 0"),
        ({"edge_weight": -torch.ones(4)}, "finite and >= 0"),
        ({"edge_weight": torch.tensor([1.0, 2, 1, 1])}, "same `edge_weight` in both directions"),
        ({"y": torch.zeros(3)}, r"torch.int64 \(3,\) for classification \(got torch.float32"),
        ({"y": torch.tensor([0, 2, 0])}, r"row 2: Expected labels -1 or 0..1 \(got 2\)"),
        ({"y": torch.tensor([0, 0, -7])}, r"row 3: Expected labels -1 or 0..1 \(got -7\)"),
        ({"train_mask": torch.ones(3)}, r"`train_mask` to be bool \(3,\) or \(3, splits\)"),
        (
            {"train_mask": PATH[0, :3] > 0, "val_mask": torch.ones(3, 2, dtype=torch.bool)},
            r"masks of one shape \(got \[\(3,\), \(3, 2\)\]\)",
        ),
        ({"task": "ranking"}, "one of classification, regression, multilabel .got 'ranking'"),
        ({"task": "regression", "y": torch.full((3,), float("inf"))}, r"row 1: .*finite .got inf"),
    ],
)
def test_refuses_what_is_not_of_the_form(changes, message):
    with pytest.raises(DataError, match=message):
        dataset(**changes)


def test_refuses_wrong_ids_and_names():
    with pytest.raises(DataError, match=r"Expected 3 ids, one per node \(got 2\)"):
        NodeDataset("p", path_graph(), classes=("a", "b"), ids=["u", "v"])
    with pytest.raises(DataError, match=r"row 3: Expected unique ids \(got 'u' twice\)"):
        NodeDataset("p", path_graph(), classes=("a", "b"), ids=["u", "v", "u"])
    with pytest.raises(DataError, match=r"Expected 3 feature names \(got 1\)"):
        NodeDataset("p", path_graph(), classes=("a", "b"), feature_names=("f",))
    named = path_graph(x=torch.tensor([[1.0], [NAN], [1.0]]))
    with pytest.raises(DataError, match="row 2, column 'age'") as caught:
        NodeDataset("p", named, classes=("a", "b"), feature_names=("age",))
    assert (caught.value.row, caught.value.column) == (2, "age")
    with pytest.raises(DataError, match="no `classes` for regression"):
        NodeDataset("p", path_graph(y=torch.zeros(3)), task="regression", classes=("a",))


def test_errors_survive_pickling_and_are_one_line():
    error = DatasetUnavailable("no\n  network", path="f.csv", row=2, column="c", value="v")
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error) == "f.csv, line 2, column 'c': no network"
    assert (copy.row, copy.column, copy.value, copy.path) == (2, "c", "v", error.path)
    assert isinstance(error, FileNotFoundError)
    assert isinstance(error, ValueError)


# Several labels, and several numbers to predict

RING = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])


def graph(y, **options):
    return from_data(Data(x=torch.eye(4), edge_index=RING, y=y), **options)


def test_a_split_is_random_over_the_nodes_with_a_label():
    y = torch.zeros(10, 2)
    y[3] = NAN
    data = from_data(Data(x=torch.eye(10), edge_index=RING, y=y))
    split = make_split(data, "stratified", seed=0)
    assert not bool((split.train | split.val | split.test)[3])
    assert split.sizes == (5, 2, 2)


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (torch.zeros(4, 2, dtype=torch.int64), {"task": "classification"}, "task='multilabel'"),
        (torch.full((4, 2), 2.0), {"task": "multilabel"}, r"0, 1 or NaN \(got 2.0\)"),
        (torch.zeros(4, 2), {"classes": ("a",)}, r"\(4, 1\) for multilabel"),
        (torch.rand(4, 2), {"targets": ("a",)}, "name the 2 columns of `y`"),
        (torch.zeros(4), {"targets": ("a",), "task": "classification"}, "for classification"),
        (torch.zeros(4, 0), {}, r"\(4, targets\) \(got \(4, 0\)\)"),
    ],
)
def test_what_does_not_fit_is_refused(y, options, message):
    with pytest.raises(DataError, match=message):
        graph(y, **options)


class TestRowNormalize:
    def test_is_pygs_for_nonnegative_features(self):
        x = torch.randint(0, 3, (50, 20), generator=torch.Generator().manual_seed(0)).float()
        x[7] = 0
        expected = NormalizeFeatures()(Data(x=x.clone())).x
        torch.testing.assert_close(row_normalize(x), expected, rtol=1e-6, atol=0)

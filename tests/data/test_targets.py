"""Several labels of yes or no, and several numbers to predict, as a dataset holds them."""

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from longnn.data import DataError, NodeDataset, describe, from_data, make_split

NAN = float("nan")
PATH = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])


def graph(y: Tensor, **options: object) -> NodeDataset:
    return from_data(Data(x=torch.eye(4), edge_index=PATH, y=y), **options)  # type: ignore[arg-type]


def test_columns_of_zeros_and_ones_are_labels_of_yes_or_no() -> None:
    data = graph(torch.tensor([[1, 0], [0, 0], [1, 1], [0, 1]]), classes=("red", "round"))
    assert (data.task, data.classes, data.outputs) == ("multilabel", ("red", "round"), 2)
    assert describe(data).class_counts == {"red": 2, "round": 2}
    assert "labels=2" in repr(data)


def test_other_columns_are_numbers_to_predict() -> None:
    data = graph(torch.tensor([[1.5, 0], [0, 0], [1, NAN], [NAN, NAN]]), targets=("price", "rent"))
    assert (data.task, data.targets, data.outputs) == ("regression", ("price", "rent"), 2)
    assert data.labelled.tolist() == [True, True, True, False]
    assert "targets=2" in repr(data)


def test_a_split_is_random_over_the_nodes_with_a_label() -> None:
    y = torch.zeros(10, 2)
    y[3] = NAN
    data = from_data(Data(x=torch.eye(10), edge_index=PATH, y=y))
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
def test_what_does_not_fit_is_refused(y: Tensor, options: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        graph(y, **options)

""":class:`NodeDataset`: the one thing every loader returns, checked once, where it is made.

A graph with features, labels and perhaps masks, in one form: undirected edges in both directions,
sorted; unlabelled nodes marked. Knows nothing of files or of training.
"""

import copy
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from longnn.data._errors import DataError

if TYPE_CHECKING:
    from longnn.data._source import Source

Task = Literal["classification", "regression"]
TASKS = ("classification", "regression")
MASKS = ("train_mask", "val_mask", "test_mask")
UNLABELLED = -1


@dataclass(frozen=True, eq=False, repr=False)
class NodeDataset:
    """A graph for node classification or regression.

    Args:
        name: a short name for titles and file names.
        data: ``x`` float32 (nodes, features); ``edge_index`` int64 (2, arcs), both directions,
            sorted by row then column, no arc twice; optionally ``edge_weight`` float32 (arcs,),
            the same both ways; ``y`` int64 (nodes,) with -1 for an unlabelled node, or float32
            with NaN; optionally ``train_mask``, ``val_mask``, ``test_mask``, bool (nodes,) or
            (nodes, splits).
        task: ``"classification"`` or ``"regression"``.
        classes: class names in the order of the labels; empty for regression.
        ids: one unique id per node, as the user gave them (default: 0, 1, ...).
        feature_names: one name per feature, or empty.
        notes: sentences the user ought to read.
        default_split: the default split protocol.
        ready: whether the features are ready to use, so that ``scale="auto"`` leaves them as they
            are: those of named and bundled datasets, and identity features.
        one_way: how many edges were listed in one direction only, and made two-way.
        source: where the graph comes from, or None if it was made from tensors.

    Raises:
        DataError: if ``data`` is not of that form, naming the entry at fault.

    >>> x, edges = torch.eye(2), torch.tensor([[0, 1], [1, 0]])
    >>> data = Data(x=x, edge_index=edges, y=torch.tensor([0, -1]))
    >>> NodeDataset("pair", data, classes=("yes",))
    NodeDataset('pair', nodes=2, edges=1, features=2, classes=1, labelled=1, splits=0)
    """

    name: str
    data: Data
    task: Task = "classification"
    classes: tuple[str, ...] = ()
    ids: Sequence[str] | Sequence[int] = ()
    feature_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    default_split: str = "stratified"
    ready: bool = False
    one_way: int = 0
    source: "Source | None" = None

    def __post_init__(self) -> None:
        if len(self.ids) == 0:
            object.__setattr__(self, "ids", range(len(self.data.x)))
        _check_features(self.data.x, self.feature_names)
        _check_edges(self.data, self.num_nodes)
        _check_labels(self)
        _check_masks(self.data, self.num_nodes)
        _check_ids(self.ids, self.num_nodes)

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return int(self.data.x.shape[0])

    @property
    def num_edges(self) -> int:
        """Undirected edges, each counted once (a self loop too)."""
        row, col = self.data.edge_index
        return int((row <= col).sum())

    @property
    def num_features(self) -> int:
        """The number of features per node."""
        return int(self.data.x.shape[1])

    @property
    def num_classes(self) -> int:
        """The number of classes; 0 for regression."""
        return len(self.classes)

    @property
    def num_splits(self) -> int:
        """Number of train/validation/test splits that came with the data."""
        mask = self.data.get("train_mask")
        return 0 if mask is None else 1 if mask.dim() == 1 else int(mask.shape[1])

    @property
    def labelled(self) -> Tensor:
        """Which nodes have a label, bool (nodes,)."""
        y = self.data.y
        return y != UNLABELLED if self.task == "classification" else ~torch.isnan(y)

    def fingerprint(self) -> str:
        """SHA-256 of edges, weights, features and labels, the same on every machine."""
        digest = hashlib.sha256()
        for key in ("edge_index", "edge_weight", "x", "y"):
            value = self.data.get(key)
            if value is None:
                continue
            array = np.ascontiguousarray(value.detach().cpu().numpy())
            array = array.astype(array.dtype.newbyteorder("<"), copy=False)
            digest.update(f"{key} {array.dtype.str} {array.shape}\n".encode())
            digest.update(array.data)
        return digest.hexdigest()

    def with_source(self, source: "Source") -> "NodeDataset":
        """The same dataset, with a note of where it comes from; nothing is checked again."""
        dataset = copy.copy(self)
        object.__setattr__(dataset, "source", source)
        return dataset

    def __repr__(self) -> str:
        what = f"classes={self.num_classes}" if self.task == "classification" else "regression"
        return (
            f"NodeDataset({self.name!r}, nodes={self.num_nodes}, edges={self.num_edges}, "
            f"features={self.num_features}, {what}, labelled={int(self.labelled.sum())}, "
            f"splits={self.num_splits})"
        )


def row_normalize(x: Tensor) -> Tensor:  # (nodes, features) -> (nodes, features)
    """Divide each row by the sum of its absolute values; a zero row stays zero.

    The usual treatment of bag-of-words features. Summed in float64, so that the result does not
    depend on how a machine orders the sum.

    >>> row_normalize(torch.tensor([[1.0, 3.0], [0.0, 0.0]]))
    tensor([[0.2500, 0.7500],
            [0.0000, 0.0000]])
    """
    total = x.abs().sum(dim=1, keepdim=True, dtype=torch.float64)
    return (x / total.masked_fill(total == 0, 1.0)).to(x.dtype)


def _check_features(x: object, names: Sequence[str]) -> None:
    if not isinstance(x, Tensor) or x.dim() != 2 or x.dtype != torch.float32:
        raise DataError(f"Expected features `x` to be float32 (nodes, features) (got {_form(x)}).")
    if 0 in x.shape:
        raise DataError(
            f"Expected at least one node and one feature (got {tuple(x.shape)}); without "
            "features use features='degree' or 'identity'."
        )
    if names and len(names) != x.shape[1]:
        raise DataError(f"Expected {x.shape[1]} feature names (got {len(names)}).")
    bad = (~torch.isfinite(x)).nonzero()
    if len(bad):
        row, column = bad[0].tolist()
        name = names[column] if names else column
        value = float(x[row, column])
        raise DataError(
            f"Expected finite features (got {value} at node {row}, {len(bad)} such in all); "
            "fill the gaps or drop the column.",
            row=row + 1,
            column=name,
            value=value,
        )


def _check_edges(data: Data, nodes: int) -> None:
    index, weight = data.get("edge_index"), data.get("edge_weight")
    if not isinstance(index, Tensor) or index.dtype != torch.int64 or index.dim() != 2:
        raise DataError(f"Expected `edge_index` to be int64 (2, arcs) (got {_form(index)}).")
    if index.shape[0] != 2:
        raise DataError(f"Expected `edge_index` to be int64 (2, arcs) (got {_form(index)}).")
    if index.numel() and (int(index.min()) < 0 or int(index.max()) >= nodes):
        raise DataError(
            f"Expected `edge_index` within 0..{nodes - 1} "
            f"(got {int(index.min())}..{int(index.max())})."
        )
    key = index[0] * nodes + index[1]
    if not bool((key[1:] > key[:-1]).all()):
        raise DataError("Expected `edge_index` sorted, no arc twice; see `from_data`.")
    start = np.zeros(nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(index[0].cpu().numpy(), minlength=nodes), out=start[1:])
    col = index[1].cpu().numpy()
    back = _transpose(np.zeros(len(col), dtype=np.int8), col, start)
    if not (np.array_equal(back.indptr, start) and np.array_equal(back.indices, col)):
        raise DataError("Expected both directions of each edge in `edge_index`; see `from_data`.")
    if weight is None:
        return
    if weight.dtype != torch.float32 or weight.shape != key.shape:
        raise DataError(f"Expected `edge_weight` to be float32 (arcs,) (got {_form(weight)}).")
    if not bool((torch.isfinite(weight) & (weight >= 0)).all()):
        raise DataError("Expected `edge_weight` finite and >= 0; drop or shift such edges.")
    values = weight.detach().cpu().numpy()
    if not np.array_equal(_transpose(values, col, start).data, values):
        raise DataError("Expected the same `edge_weight` in both directions.")


def _transpose(values: np.ndarray, col: np.ndarray, start: np.ndarray) -> sp.csr_array:
    """The transpose of a matrix in compressed rows, made by counting: nothing is sorted again."""
    size = len(start) - 1
    matrix = sp.csr_array((values, col, start), shape=(size, size))
    return sp.csr_array(matrix.T.tocsr())


def _check_labels(dataset: NodeDataset) -> None:
    y, task, nodes = dataset.data.get("y"), dataset.task, dataset.num_nodes
    if task not in TASKS:
        raise DataError(f"Expected `task` to be one of {', '.join(TASKS)} (got {task!r}).")
    kind = torch.int64 if task == "classification" else torch.float32
    if not isinstance(y, Tensor) or y.shape != (nodes,) or y.dtype != kind:
        raise DataError(f"Expected `y` to be {kind} ({nodes},) for {task} (got {_form(y)}).")
    if task == "regression":
        if dataset.classes:
            raise DataError("Expected no `classes` for regression.")
        bad = torch.isinf(y).nonzero()
    else:
        bad = ((y < UNLABELLED) | (y >= len(dataset.classes))).nonzero()
    if len(bad):
        row = int(bad[0])
        limit = "finite" if task == "regression" else f"-1 or 0..{len(dataset.classes) - 1}"
        raise DataError(
            f"Expected labels {limit} (got {y[row].item()}).", row=row + 1, value=y[row].item()
        )


def _check_masks(data: Data, nodes: int) -> None:
    shapes = set()
    for key in MASKS:
        mask = data.get(key)
        if mask is None:
            continue
        if mask.dtype != torch.bool or mask.dim() not in (1, 2) or len(mask) != nodes:
            raise DataError(
                f"Expected `{key}` to be bool ({nodes},) or ({nodes}, splits) (got {_form(mask)})."
            )
        shapes.add(tuple(mask.shape))
    if len(shapes) > 1:
        raise DataError(f"Expected masks of one shape (got {sorted(shapes)}).")


def _check_ids(ids: Sequence[str] | Sequence[int], nodes: int) -> None:
    if len(ids) != nodes:
        raise DataError(f"Expected {nodes} ids, one per node (got {len(ids)}).")
    if isinstance(ids, range) or len(set(ids)) == nodes:
        return
    seen: set[object] = set()
    for row, value in enumerate(ids):
        if value in seen:
            raise DataError(f"Expected unique ids (got {value!r} twice).", row=row + 1, value=value)
        seen.add(value)


def _form(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype} {tuple(value.shape)}"
    return type(value).__name__

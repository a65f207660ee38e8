""":class:`NodeDataset`: the one thing every loader returns, checked once, where it is made.

A graph with features, labels and perhaps masks, in one form: undirected edges in both directions,
or arcs, sorted; unlabelled nodes marked. Knows nothing of files or of training.
"""

import copy
import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from longnn.data._backing import Backing, InMemory
from longnn.data._errors import DataError
from longnn.data._features import check_features, side_by_side
from longnn.data._features import form as _form
from longnn.data._relations import Relation
from longnn.data._tensors import GraphTensors, as_tensors
from longnn.matrices import take_columns

if TYPE_CHECKING:
    from longnn.data._encoding import Encoding
    from longnn.data._source import Source
    from longnn.data._tables import Table

Task = Literal["classification", "regression", "multilabel"]
TASKS = ("classification", "regression", "multilabel")
MASKS = ("train_mask", "val_mask", "test_mask")
#: What else is known of nodes, by the names of tensors, and its type.
BESIDE = {"node_group": torch.int64, "node_weight": torch.float32}
UNLABELLED = -1


@dataclass(frozen=True, eq=False, repr=False)
class NodeDataset:
    """A graph whose nodes have a class, a number or several, or several labels of yes or no.

    Args:
        name: a short name for titles and file names.
        data: tensors by PyG's names; a PyG ``Data`` is taken apart. ``x`` float32 (nodes,
            features), dense or ``torch.sparse_csr`` (columns sorted, none twice, no stored zero);
            ``edge_index`` int64 (2, arcs), both directions, sorted by row then column, no arc
            twice; optionally ``edge_weight`` float32 (arcs,), the same both ways; ``y`` for
            classification int64 (nodes,) with -1 for an unlabelled node, for regression float32
            (nodes,) or (nodes, targets) with NaN, for several labels float32 (nodes, labels) of 0,
            1 and NaN; optionally ``train_mask``, ``val_mask``, ``test_mask``, bool (nodes,) or
            (nodes, splits); ``node_group`` int64 (nodes,), nodes that stay together in a split,
            -1 where unknown; ``node_weight`` float32 (nodes,) >= 0, NaN where unknown.
        task: ``"classification"``, ``"regression"`` or ``"multilabel"``.
        classes: class names in the order of the labels, or the names of several labels; empty for
            regression.
        ids: one unique id per node, as the user gave them (default: 0, 1, ...).
        feature_names: one name per feature, or empty.
        targets: the name of each column to predict in regression, or empty.
        open_features: how many of the last features are an open vocabulary, as words are: on
            another graph unknown ones may turn up and known ones be absent.
        notes: sentences the user ought to read.
        default_split: the default split protocol.
        ready: whether the features are ready to use, so that ``scale="auto"`` leaves them as they
            are: those of named and bundled datasets, and identity features.
        one_way: how many edges were listed in one direction only, and made two-way; in a directed
            graph, how many arcs have no reverse.
        directed: whether ``edge_index`` holds arcs, from the first row to the second, which need
            no reverse, nor the same weight as theirs.
        relations: the edges of each type, if they have types; ``edge_index`` holds them all.
        source: where the graph comes from, or None if it was made from tensors.
        encoding: how columns of a table became features, or None. Features beyond those of the
            encoding come from elsewhere and stand behind them.
        columns: the columns that features were made of, as they were read, or None.
        disk: where features and edges are, if not in ``data``, which has labels and masks then.

    Raises:
        DataError: if ``data`` is not of that form, naming the entry at fault.

    >>> x, edges = torch.eye(2), torch.tensor([[0, 1], [1, 0]])
    >>> data = GraphTensors(x=x, edge_index=edges, y=torch.tensor([0, -1]))
    >>> NodeDataset("pair", data, classes=("yes",))
    NodeDataset('pair', nodes=2, edges=1, features=2, classes=1, labelled=1, splits=0)
    """

    name: str
    data: GraphTensors
    task: Task = "classification"
    classes: tuple[str, ...] = ()
    ids: Sequence[str] | Sequence[int] = ()
    feature_names: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    open_features: int = 0
    notes: tuple[str, ...] = ()
    default_split: str = "stratified"
    ready: bool = False
    one_way: int = 0
    directed: bool = False
    relations: tuple[Relation, ...] = ()
    source: "Source | None" = None
    encoding: "Encoding | None" = None
    columns: "Table | None" = None
    disk: Backing | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise DataError(f"Expected `name` to be text (got {self.name!r}).")
        object.__setattr__(self, "data", as_tensors(self.data))
        if len(self.ids) == 0:
            object.__setattr__(self, "ids", range(self.num_nodes))
        if self.disk is None:
            self._check_inputs()
        _check_labels(self)
        _check_masks(self.data, self.num_nodes)
        _check_beside(self)
        if self.disk is None:
            _check_ids(self.ids, self.num_nodes)
        if self.columns is not None and len(self.columns) != self.num_nodes:
            raise DataError(
                f"Expected `columns` of {self.num_nodes} nodes (got {len(self.columns)})."
            )

    def _check_inputs(self) -> None:
        check_features(self.data.x, self.feature_names)
        if not 0 <= self.open_features <= len(self.feature_names):
            raise DataError(
                f"Expected `open_features` within 0..{len(self.feature_names)}, the number of "
                f"feature names (got {self.open_features})."
            )
        both_ways = not self.directed
        _check_edges(self.data, self.num_nodes, both_ways=both_ways)
        for r in self.relations:
            own = GraphTensors(edge_index=r.edge_index, edge_weight=r.edge_weight)
            _check_edges(own, self.num_nodes, both_ways=both_ways)

    @property
    def backing(self) -> Backing:
        """Where features and edges are, and all that is done with them."""
        return self.disk or InMemory(self.data, self.directed, self.relations)

    @property
    def asked(self) -> "NodeDataset":
        """The nodes that training and scores need: all, or on disk those with a label."""
        return self.backing.asked(self)

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self.backing.num_nodes

    @property
    def num_edges(self) -> int:
        """Undirected edges, each counted once (a self loop too); in a directed graph the arcs."""
        return self.backing.num_edges

    @property
    def degrees(self) -> Tensor:
        """The number of neighbours of each node, whichever way the edge goes, (nodes,)."""
        return self.backing.degrees()

    @property
    def num_features(self) -> int:
        """The number of features per node."""
        return self.backing.num_features

    @property
    def num_classes(self) -> int:
        """The number of classes, or of labels of yes or no; 0 for regression."""
        return len(self.classes)

    @property
    def outputs(self) -> int:
        """How many numbers a model computes for each node: one per class, label or target."""
        if self.task != "regression":
            return max(len(self.classes), 1)
        return 1 if self.data.y.dim() == 1 else int(self.data.y.shape[1])

    @property
    def num_splits(self) -> int:
        """Number of train/validation/test splits that came with the data."""
        mask = self.data.get("train_mask")
        return 0 if mask is None else 1 if mask.dim() == 1 else int(mask.shape[1])

    @property
    def labelled(self) -> Tensor:
        """Which nodes have a label, or at least one of several, bool (nodes,)."""
        return known_labels(self.data.y, self.task)

    @functools.cached_property
    def node_weight(self) -> Tensor | None:
        """How much each node counts, float64 (nodes,), 1 in the mean over labelled ones, 0 for the
        others; None where all count alike."""
        weight, labelled = self.data.get("node_weight"), self.labelled
        if weight is None or len(weight[labelled].unique()) < 2:
            return None
        weight = torch.where(labelled, weight, 0).double()
        return weight / weight[labelled].mean()

    def fingerprint(self) -> str:
        """SHA-256 of edges, weights, features and labels, the same on every machine.

        A directed graph has another one than an undirected graph with the same arcs.

        Sparse features are hashed as they are: made dense, they have another fingerprint.
        """
        return self.backing.fingerprint()

    def with_source(self, source: "Source") -> "NodeDataset":
        """The same dataset, with a note of where it comes from; nothing is checked again."""
        dataset = copy.copy(self)
        object.__setattr__(dataset, "source", source)
        return dataset

    def with_columns(self, columns: "Table | None", encoding: "Encoding | None") -> "NodeDataset":
        """The same dataset, with the columns its features were made of, and how."""
        dataset = copy.copy(self)
        object.__setattr__(dataset, "columns", columns)
        object.__setattr__(dataset, "encoding", encoding)
        return dataset

    def encoded(self, encoding: "Encoding") -> "NodeDataset":
        """The same graph, the features of its columns made by another encoding: that of training.

        Raises:
            DataError: if the graph has no columns, or lacks one that the encoding needs.
        """
        if self.columns is None:
            raise DataError(f"Expected {self.name!r} to have columns of a table (it has none).")
        if encoding == self.encoding:
            return self
        x, names = encoding.apply(self.columns), list(encoding.feature_names)
        notes = self.notes
        if self.encoding is not None:
            own = len(self.encoding.feature_names)
            rest = self.num_features - own
            names += self.feature_names[own:] or [f"features[{i}]" for i in range(rest)]
            x = side_by_side(x, take_columns(self.data.x, range(own, self.num_features)))
            notes = tuple(note for note in notes if note != self.encoding.note)
        data = copy.copy(self.data)
        data.x = x
        return dataclasses.replace(
            self, data=data, feature_names=tuple(names), encoding=encoding, notes=notes
        )

    def __repr__(self) -> str:
        what = {
            "classification": f"classes={self.num_classes}",
            "multilabel": f"labels={self.num_classes}",
        }.get(self.task, "regression" if self.outputs == 1 else f"targets={self.outputs}")
        edges = "arcs" if self.directed else "edges"
        return (
            f"NodeDataset({self.name!r}, nodes={self.num_nodes}, {edges}={self.num_edges}, "
            f"features={self.num_features}, {what}, labelled={int(self.labelled.sum())}, "
            f"splits={self.num_splits})"
        )


def known_labels(y: Tensor, task: Task) -> Tensor:
    """Which nodes have a label, or at least one of several, bool (nodes,)."""
    if task == "classification":
        return y != UNLABELLED
    return ~torch.isnan(y) if y.dim() == 1 else ~torch.isnan(y).all(dim=1)


def _check_edges(data: GraphTensors, nodes: int, *, both_ways: bool) -> None:
    index: Any = data.get("edge_index")
    weight = data.get("edge_weight")
    is_int = isinstance(index, Tensor) and index.dtype == torch.int64
    if not is_int or index.dim() != 2 or len(index) != 2:
        raise DataError(f"Expected `edge_index` to be int64 (2, arcs) (got {_form(index)}).")
    if index.numel() and (int(index.min()) < 0 or int(index.max()) >= nodes):
        raise DataError(
            f"Expected `edge_index` within 0..{nodes - 1} "
            f"(got {int(index.min())}..{int(index.max())})."
        )
    key = index[0] * nodes + index[1]
    if not bool((key[1:] > key[:-1]).all()):
        raise DataError("Expected `edge_index` sorted, no arc twice; see `from_data`.")
    if weight is not None:
        if weight.dtype != torch.float32 or weight.shape != key.shape:
            raise DataError(f"Expected `edge_weight` to be float32 (arcs,) (got {_form(weight)}).")
        if not bool((torch.isfinite(weight) & (weight >= 0)).all()):
            raise DataError("Expected `edge_weight` finite and >= 0; drop or shift such edges.")
    if both_ways:
        _check_both_ways(index, weight, nodes)


def _check_both_ways(index: Tensor, weight: Tensor | None, nodes: int) -> None:
    """Raise unless an undirected graph has each edge in both directions, with one weight."""
    start = np.zeros(nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(index[0].cpu().numpy(), minlength=nodes), out=start[1:])
    col = index[1].cpu().numpy()
    back = _transpose(np.zeros(len(col), dtype=np.int8), col, start)
    if not (np.array_equal(back.indptr, start) and np.array_equal(back.indices, col)):
        raise DataError(
            "Expected both directions of each edge in `edge_index`; see `from_data`, or set "
            "`directed`."
        )
    if weight is None:
        return
    values = weight.detach().cpu().numpy()
    if not np.array_equal(_transpose(values, col, start).data, values):
        raise DataError("Expected the same `edge_weight` in both directions.")


def _transpose(values: np.ndarray, col: np.ndarray, start: np.ndarray) -> sp.csr_array:
    """The transpose of a matrix in compressed rows, made by counting: nothing is sorted again."""
    size = len(start) - 1
    matrix = sp.csr_array((values, col, start), shape=(size, size))
    return sp.csr_array(matrix.T.tocsr())


def _check_labels(dataset: NodeDataset) -> None:
    y: Any = dataset.data.get("y")
    task, nodes, names = dataset.task, dataset.num_nodes, len(dataset.classes)
    if task not in TASKS:
        raise DataError(f"Expected `task` to be one of {', '.join(TASKS)} (got {task!r}).")
    kind = torch.int64 if task == "classification" else torch.float32
    size = tuple(y.shape) if isinstance(y, Tensor) and y.dtype == kind else ()
    shape, fits = {
        "classification": (f"({nodes},)", size == (nodes,)),
        "regression": (
            f"({nodes},) or ({nodes}, targets)",
            size == (nodes,) or (len(size) == 2 and size[0] == nodes and size[1] > 0),
        ),
        "multilabel": (f"({nodes}, {names})", size == (nodes, names) and names > 0),
    }[task]
    if not fits:
        raise DataError(f"Expected `y` to be {kind} {shape} for {task} (got {_form(y)}).")
    if task == "regression" and names:
        raise DataError("Expected no `classes` for regression.")
    if dataset.targets and (task != "regression" or len(dataset.targets) != dataset.outputs):
        raise DataError(
            f"Expected `targets` to name the {dataset.outputs} columns of `y` for regression "
            f"(got {len(dataset.targets)} for {task})."
        )
    if task == "classification":
        limit, wrong = f"-1 or 0..{names - 1}", (y < UNLABELLED) | (y >= names)
    elif task == "multilabel":
        limit, wrong = "0, 1 or NaN", ~((y == 0) | (y == 1) | torch.isnan(y))
    else:
        limit, wrong = "finite", torch.isinf(y)
    bad = wrong.nonzero()
    if len(bad):
        place = tuple(bad[0].tolist())
        value = y[place].item()
        raise DataError(f"Expected labels {limit} (got {value}).", row=place[0] + 1, value=value)


def _check_masks(data: GraphTensors, nodes: int) -> None:
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


def _check_beside(dataset: NodeDataset) -> None:
    """Groups and weights: of a labelled node they are known."""
    for key, kind in BESIDE.items():
        values = dataset.data.get(key)
        if values is None:
            continue
        if values.dtype != kind or values.shape != (dataset.num_nodes,):
            raise DataError(
                f"Expected `{key}` to be {kind} ({dataset.num_nodes},) (got {_form(values)})."
            )
        bad = (dataset.labelled & ~((values >= 0) & (values < torch.inf))).nonzero()
        if len(bad):
            value = values[int(bad[0])].item()
            raise DataError(
                f"Expected `{key}` >= 0 of every labelled node (got {value:g} of node "
                f"{dataset.ids[int(bad[0])]!r}).",
                value=value,
            )


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

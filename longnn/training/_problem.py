"""What is to be learned: features, a graph, labels, and how much each node counts in the losses."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longnn._base.suggestions import did_you_mean
from longnn.config import Config
from longnn.config._config import parse_class_weight
from longnn.data import DataError
from longnn.graphs._adjacency import SelfLoops
from longnn.matrices import (
    SPARSE_SHARE,
    DenseMatrix,
    SparseMatrix,
    csr_to_scipy,
    nonzero_share,
)
from longnn.metrics import Task, headline
from longnn.registry import find_model, get_model
from longnn.store._ranks import Ranks
from longnn.training._known import Known

#: By the share of nonzeros: features are sparse up to the first, and up to the second without a
#: dense copy at their side, through which a GPU takes products without dropout (on an H200).
SPARSE_UP_TO = {"cpu": (SPARSE_SHARE, 1.0), "cuda": (0.08, 0.03)}
EVERY = slice(None)


@dataclasses.dataclass(frozen=True)
class Problem:
    """A graph, its features and labels; shared by all members of a population.

    Build with :meth:`make`, which keeps sparse features sparse.

    >>> from longnn.graphs import GraphOperator
    >>> P = GraphOperator.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
    >>> Problem.make(torch.eye(2), P, torch.tensor([0, 2])).outputs
    3
    """

    features: Any  # (nodes, features): a matrix, or rows of stored terms
    operator: Any  # of the graph, or of the terms
    labels: (
        Tensor  # (nodes,) int64 with -1 for unlabelled, or float with NaN, also (nodes, outputs)
    )
    task: Task
    outputs: int  # classes, labels or targets
    metric: str = "accuracy"  # the headline score
    positive: int = 1  # of two classes the rarer
    #: The operator under this and other treatments of self loops, for members of an ensemble.
    variants: Mapping[SelfLoops, Any] = dataclasses.field(default_factory=dict)
    #: Whether a GPU may round the factors of dense products to TF32 in training.
    rounded: bool = False
    #: What known answers change in the predictions; nothing while models are trained.
    known: Known | None = None
    #: How much each node counts, 1 in the mean over labelled ones; None where all count alike.
    weight: Tensor | None = None
    #: Who trains: ranks share the rows of a batch, and a whole graph has one alone.
    ranks: Ranks = dataclasses.field(default_factory=Ranks)

    @classmethod
    def make(
        cls,
        features: Any,
        operator: Any,
        labels: Tensor,
        *,
        task: Task = "classification",
        classes: int | None = None,
    ) -> "Problem":
        """A problem on the device and in the type of the operator."""
        if isinstance(features, Tensor):
            features = choose_form(features, operator.device)
        if isinstance(features, SparseMatrix | DenseMatrix):
            features = features.to(operator.dtype).to(operator.device)
        if isinstance(features, SparseMatrix):
            alone = SPARSE_UP_TO.get(operator.device.type, (0.0, 1.0))[1]
            share = features.nnz / max(features.shape[0] * features.shape[1], 1)
            features = features.with_dense() if share > alone else features
        metric, positive = headline(labels, task)
        if task == "classification":
            outputs = classes if classes is not None else int(labels.max()) + 1
        else:
            outputs = 1 if labels.dim() == 1 else labels.shape[1]
            labels = labels.to(operator.dtype)
        labels = labels.to(operator.device)
        return cls(features, operator, labels, task, outputs, metric, positive)

    @property
    def by_rows(self) -> bool:
        """Whether models see rows of stored terms, some at a time, and not the whole graph."""
        return bool(self.operator.by_rows)

    @property
    def size(self) -> int:
        """Nodes and stored edges, both ways, or rows of all terms, that an epoch passes over."""
        if self.by_rows:
            return self.num_nodes * (self.features.degree + 1)
        return self.num_nodes + self.operator.matrix.nnz

    def batches(self, size: int, rows: slice = EVERY) -> Iterator[Any]:
        """Features of some nodes after the other; a graph in memory is one batch."""
        if not self.by_rows:
            yield self.features
            return
        for _, terms in self.features.in_order(np.arange(self.num_nodes)[rows], size):
            yield terms

    def watched(self, monitor: str) -> str:
        """The score that a monitor stands for (see :class:`~longnn.config.Settings`)."""
        return self.metric if monitor in ("score", "loss") else monitor

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return int(self.operator.num_nodes)

    @property
    def device(self) -> torch.device:
        """Where the data is."""
        return self.operator.device

    @property
    def dtype(self) -> torch.dtype:
        """The type of features and operator."""
        return self.operator.dtype


def row_degree_of(config: Config) -> int | None:
    """The degree of the terms that a model needs on rows; None if it has no such form.

    >>> row_degree_of(Config(options={"placement": "features", "degree": 4}))
    4
    >>> row_degree_of(Config(model="gcn"))
    """
    if config.inputs != "columns":
        return None
    joins = config.direction == "cover" and find_model(config.model).model.joins_copies
    copies = {"copies": 2} if joins else {}
    return get_model(config.model, 1, 1, 1, **config.options, **copies).row_degree


def require_row_degree(config: Config) -> int:
    """The same, or an error that says what to do."""
    degree = row_degree_of(config)
    if degree is None:
        if config.inputs != "columns":
            raise DataError(
                f"Expected inputs=columns, since this graph is on disk (got {config.inputs}); or "
                "give more memory with --memory to train on the whole graph"
            )
        has = "placement" in config.options
        form = f" with placement={config.options['placement']!r}" if has else ""
        raise DataError(
            "Expected a model that is linear up to its filter, since this graph is on disk "
            f"(got {find_model(config.model).title}{form}); train with "
            + ("--set placement=features" if has else "--model lon")
            + ", or give more memory with --memory to use the whole graph"
        )
    return degree


def self_loops_of(config: Config) -> SelfLoops:
    """What becomes of self loops, by the option of the model or by the model."""
    loops: SelfLoops = find_model(config.model).model.self_loops
    return config.options.get("self_loops", loops)


def choose_form(features: Tensor, device: torch.device) -> SparseMatrix | DenseMatrix:
    """Features, dense or CSR, as what products with them are quickest with on a device.

    Only the values decide, not the form they come in.

    >>> choose_form(torch.eye(8), torch.device("cpu")).nnz
    8
    """
    limit = SPARSE_UP_TO.get(device.type, (0.0, 1.0))[0]
    sparse = features.numel() > 0 and nonzero_share(features) <= limit
    if features.layout is torch.sparse_csr:
        if sparse:
            return SparseMatrix.from_scipy(csr_to_scipy(features), dtype=features.dtype)
        return DenseMatrix(features.to_dense())
    features = features.contiguous()
    return SparseMatrix.from_dense(features) if sparse else DenseMatrix(features)


def loss_weights(
    problem: Problem,
    train: Tensor,  # (nodes,) bool
    class_weight: str,
    classes: Sequence[str],
) -> Tensor | None:
    """The weight of each node (nodes,), or of each label (nodes, labels), by its class; None if all
    are alike.

    Args:
        problem: what is learned.
        train: the training nodes, which ``"balanced"`` counts.
        class_weight: as in :class:`~longnn.config.Settings`.
        classes: names of the classes or labels.

    Raises:
        ValueError: for a class that is not there, or for classes in a regression.

    >>> from longnn.graphs import GraphOperator
    >>> P = GraphOperator.from_edge_index(torch.tensor([[0, 1], [1, 0]]), num_nodes=3)
    >>> problem = Problem.make(torch.eye(3), P, torch.tensor([0, 0, 1]))
    >>> loss_weights(problem, torch.ones(3, dtype=torch.bool), "b=4", ("a", "b"))
    tensor([1., 1., 4.])
    """
    train = train.to(problem.device)
    asked = parse_class_weight(class_weight)
    if asked == "none":
        return None
    if problem.task == "regression":
        raise ValueError(f"Expected no `class_weight` for regression (got {class_weight!r})")
    y = problem.labels
    if isinstance(asked, str):
        if problem.task == "multilabel":
            held, free = ((y[train] == value).sum(0).clamp_min(1) for value in (1, 0))
            return torch.where(y == 1, (free / held).to(problem.dtype), 1.0)
        count = torch.bincount(y[train].clamp_min(0), minlength=problem.outputs)
        table = train.sum() / (problem.outputs * count.clamp_min(1)).to(problem.dtype)
    else:
        for name in asked:
            if name not in classes:
                raise ValueError(
                    f"Expected `class_weight` to name classes among {', '.join(classes)} "
                    f"(got {name!r}){did_you_mean(name, classes)}"
                )
        table = torch.tensor(
            [asked.get(name, 1.0) for name in classes], dtype=problem.dtype, device=y.device
        )
        if problem.task == "multilabel":
            return torch.where(y == 1, table, 1.0)
    return table[y.clamp_min(0)]

"""What is to be learned: features, a graph, labels, and which nodes serve for what."""

import dataclasses
from typing import Literal

import torch
from torch import Tensor

from longnn.graphs import GraphOperator
from longnn.matrices import DenseMatrix, SparseMatrix

Task = Literal["classification", "regression"]

#: By the share of nonzeros: features are sparse up to the first, and up to the second without a
#: dense copy at their side, through which a GPU takes products without dropout (on an H200).
SPARSE_UP_TO = {"cpu": (0.2, 1.0), "cuda": (0.08, 0.03)}


@dataclasses.dataclass(frozen=True)
class Problem:
    """A graph, its features and labels; shared by all members of a population.

    Build with :meth:`make`, which keeps sparse features sparse.

    >>> P = GraphOperator.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
    >>> Problem.make(torch.eye(2), P, torch.tensor([0, 2])).outputs
    3
    """

    features: SparseMatrix | DenseMatrix  # (nodes, features)
    operator: GraphOperator
    labels: Tensor  # (nodes,) int64 with -1 for unlabelled, or float with NaN for unlabelled
    task: Task
    outputs: int  # classes, or 1

    @classmethod
    def make(
        cls,
        features: Tensor | SparseMatrix | DenseMatrix,
        operator: GraphOperator,
        labels: Tensor,
        *,
        task: Task = "classification",
        classes: int | None = None,
    ) -> "Problem":
        """A problem on the device and in the type of the operator."""
        if isinstance(features, Tensor):
            features = choose_form(features, operator.device)
        features = features.to(operator.dtype).to(operator.device)
        if isinstance(features, SparseMatrix):
            alone = SPARSE_UP_TO.get(operator.device.type, (0.0, 1.0))[1]
            share = features.nnz / max(features.shape[0] * features.shape[1], 1)
            features = features.with_dense() if share > alone else features
        if task == "classification":
            outputs = classes if classes is not None else int(labels.max()) + 1
        else:
            outputs = 1
            labels = labels.to(operator.dtype)
        return cls(features, operator, labels.to(operator.device), task, outputs)

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self.operator.num_nodes

    @property
    def device(self) -> torch.device:
        """Where the data is."""
        return self.operator.device

    @property
    def dtype(self) -> torch.dtype:
        """The type of features and operator."""
        return self.operator.dtype


def choose_form(features: Tensor, device: torch.device) -> SparseMatrix | DenseMatrix:
    """Dense features as what products with them are quickest with on a device.

    >>> choose_form(torch.eye(8), torch.device("cpu")).nnz
    8
    """
    assert features.layout is torch.strided, "torch sparse features are converted by the loaders"
    share = torch.count_nonzero(features).item() / max(features.numel(), 1)
    if features.numel() and share <= SPARSE_UP_TO.get(device.type, (0.0, 1.0))[0]:
        return SparseMatrix.from_dense(features.contiguous())
    return DenseMatrix(features.contiguous())

"""What is to be learned: features, a graph, labels, and which nodes serve for what."""

import dataclasses
from typing import Literal

import torch
from torch import Tensor

from longnn.graphs import GraphOperator
from longnn.matrices import DenseMatrix, SparseMatrix

Task = Literal["classification", "regression"]

#: Features with at most this share of nonzeros are kept sparse; on a GPU, above the second share,
#: products without dropout go through a dense copy (measured on an H200).
SPARSE_BELOW = {"cpu": 0.2, "cuda": 0.08}
DENSE_COPY_ABOVE = 0.03


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
        if isinstance(features, Tensor) and features.layout is torch.strided:
            density = (features != 0).float().mean().item() if features.numel() else 1.0
            sparse = density <= SPARSE_BELOW.get(operator.device.type, 0.0)
            form = SparseMatrix.from_dense if sparse else DenseMatrix
            features = form(features.contiguous())
        assert not isinstance(features, Tensor), (
            "torch sparse features are converted by the loaders"
        )
        features = features.to(operator.dtype).to(operator.device)
        if isinstance(features, SparseMatrix) and operator.device.type == "cuda":
            share = features.nnz / max(features.shape[0] * features.shape[1], 1)
            features = features.with_dense() if share > DENSE_COPY_ABOVE else features
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

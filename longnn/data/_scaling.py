"""How features are scaled before training, and again before prediction.

A scaling is fitted on one graph and applied to that graph and to others. It is plain numbers, one
mean and one deviation per feature, computed in float64 over blocks of rows, so that a large matrix
never needs a second copy in float64. Knows nothing of models or of files.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from longnn._base.suggestions import did_you_mean
from longnn.data._dataset import NodeDataset, row_normalize
from longnn.data._errors import DataError

#: What ``Scaling.fit`` accepts; ``"auto"`` becomes one of the others.
SCALINGS = ("auto", "none", "columns", "standard", "row")
#: Share of nonzero values up to which ``"columns"`` takes a feature for a sparse one.
SPARSE_SHARE = 1 / 5
_BLOCK = 2**20  # values that are held in float64 at a time: 8 MB


@dataclass(frozen=True, eq=False)
class Scaling:
    """What is done to the features: :math:`(x - m) / d`, column by column, or to each row.

    Args:
        kind: ``"none"``; ``"standard"``, each column to mean 0 and deviation 1; ``"columns"``, the
            same for dense columns, while a column that is mostly zeros is divided by its largest
            absolute value; ``"row"``, each row divided by the sum of its absolute values.
        mean: float64 (features,), or None where the kind has none.
        deviation: float64 (features,), or None where the kind has none.

    >>> x = torch.tensor([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0], [5.0, 4.0]])
    >>> Scaling.fit("auto", x).apply(x)
    tensor([[-1.4142,  0.0000],
            [-0.7071,  0.0000],
            [ 0.0000,  0.0000],
            [ 0.7071,  0.0000],
            [ 1.4142,  1.0000]])
    """

    kind: str
    mean: Tensor | None = None
    deviation: Tensor | None = None

    @classmethod
    def fit(cls, kind: str, dataset: NodeDataset | Tensor) -> "Scaling":
        """Find mean and deviation of each feature; constant features keep their scale.

        Args:
            kind: one of :data:`SCALINGS`. ``"auto"`` is ``"none"`` for features that are ready to
                use (:attr:`NodeDataset.ready`) and ``"columns"`` for all others, which come in any
                unit.
            dataset: the dataset, or its features (nodes, features), which are not known to be
                ready.

        Raises:
            DataError: for an unknown ``kind``, with the choices.
        """
        if kind not in SCALINGS:
            raise DataError(
                f"Expected `scale` to be one of {', '.join(SCALINGS)} (got {kind!r})"
                f"{did_you_mean(kind, SCALINGS)}",
                value=kind,
            )
        if kind == "auto":
            kind = "none" if isinstance(dataset, NodeDataset) and dataset.ready else "columns"
        if kind in ("none", "row"):
            return cls(kind)
        x = dataset if isinstance(dataset, Tensor) else dataset.data.x
        mean, deviation = _moments(x)
        if kind == "columns":
            nonzeros = torch.stack([(rows != 0).sum(0) for rows in _blocks(x)]).sum(0)
            sparse = nonzeros.double() / len(x) <= SPARSE_SHARE
            largest = torch.maximum(x.amax(0), -x.amin(0)).double()
            mean = torch.where(sparse, 0.0, mean)
            deviation = torch.where(sparse, torch.where(largest > 0, largest, 1.0), deviation)
        return cls(kind, mean, deviation)

    def apply(self, x: Tensor) -> Tensor:  # (nodes, features) -> (nodes, features)
        """The features scaled; a zero of a sparse column stays a zero. ``x`` is not changed."""
        if self.kind == "row":
            return row_normalize(x)
        if self.mean is None or self.deviation is None:
            return x
        mean, deviation = self.mean.to(x.device), self.deviation.to(x.device)
        scaled = torch.empty_like(x)
        for rows, target in zip(_blocks(x), _blocks(scaled), strict=True):
            target.copy_((rows.double() - mean) / deviation)
        return scaled


def _blocks(x: Tensor) -> Iterator[Tensor]:
    """Views of consecutive rows, each of at most ``_BLOCK`` values."""
    return iter(x.split(max(1, _BLOCK // max(1, x.shape[1]))))


def _moments(x: Tensor) -> tuple[Tensor, Tensor]:  # (features,), (features,)
    """Mean and deviation of each column in float64; the deviation of a constant column is 1.

    Whether a column is constant is decided by its values: the deviation that rounding leaves of
    a constant, 1e-17 or so, would blow its noise up to 1.
    """
    low, high = x.amin(0).double(), x.amax(0).double()
    total = torch.stack([rows.double().sum(0) for rows in _blocks(x)]).sum(0)
    mean = torch.where(low == high, low, total / len(x))
    squares = [(rows.double() - mean).square().sum(0) for rows in _blocks(x)]
    deviation = (torch.stack(squares).sum(0) / len(x)).sqrt()
    return mean, torch.where(deviation > 0, deviation, 1.0)

"""How features are scaled before training, and again before prediction.

A scaling is fitted on one graph and applied to that graph and to others. It is plain numbers, one
mean and one deviation per feature, computed in float64 over blocks of rows, so that a large matrix
never needs a second copy in float64. Sparse features stay sparse. Knows nothing of models or of
files.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from longnn._base.suggestions import did_you_mean
from longnn.data._errors import DataError
from longnn.data._features import is_sparse, row_normalize, rows_of, with_values
from longnn.matrices import SPARSE_SHARE, compact

if TYPE_CHECKING:
    from longnn.data._dataset import NodeDataset

#: What ``Scaling.fit`` accepts; ``"auto"`` becomes one of the others.
SCALINGS = ("auto", "none", "columns", "standard", "row")
_BLOCK = 2**20  # values that are held in float64 at a time: 8 MB


@dataclass(frozen=True, eq=False)
class Scaling:
    """What is done to the features: :math:`(x - m) / d`, column by column, or to each row.

    Args:
        kind: ``"none"``; ``"standard"``, each column to mean 0 and deviation 1; ``"columns"``, the
            same for dense columns, while a column that is mostly zeros is divided by its largest
            absolute value; ``"row"``, each row divided by the sum of its absolute values. A column
            is mostly zeros up to :data:`~longnn.matrices.SPARSE_SHARE` of nonzero values.
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
    def fit(cls, kind: str, dataset: "NodeDataset | Tensor") -> "Scaling":
        """Find mean and deviation of each feature; constant features keep their scale.

        Args:
            kind: one of :data:`SCALINGS`. ``"auto"`` is ``"none"`` for features that are ready to
                use (:attr:`NodeDataset.ready`) and ``"columns"`` for all others, which come in any
                unit.
            dataset: the dataset, or its features (nodes, features), which are not known to be
                ready. For sparse features ``"standard"`` divides by the deviation but leaves the
                mean where it is, as moving it would make them dense.

        Raises:
            DataError: for an unknown ``kind``, with the choices.
        """
        if kind not in SCALINGS:
            raise DataError(
                f"Expected `scale` to be one of {', '.join(SCALINGS)} (got {kind!r})"
                f"{did_you_mean(kind, SCALINGS)}",
                value=kind,
            )
        if not isinstance(dataset, Tensor):
            return dataset.backing.scaling(kind, ready=dataset.ready)
        if kind == "auto":
            kind = "columns"
        if kind in ("none", "row"):
            return cls(kind)
        x = dataset
        if is_sparse(x):
            mean, deviation = _sparse_moments(x) if kind == "standard" else _sparse_columns(x)
            return cls(kind, mean, deviation)
        mean, deviation = _moments(x)
        if kind == "columns":
            nonzeros = torch.stack([(rows != 0).sum(0) for rows in _blocks(x)]).sum(0)
            largest = torch.maximum(x.amax(0), -x.amin(0)).double()
            mean, deviation = _by_column(nonzeros.double() / len(x), largest, mean, deviation)
        return cls(kind, mean, deviation)

    def after(self, done: "Scaling") -> "Scaling":
        """What is left to do to columns that another scaling was done to.

        Raises:
            DataError: for the scaling of rows, which is not done column by column.

        >>> x = torch.tensor([[1.0], [5.0]])
        >>> done, wanted = Scaling.fit("columns", x), Scaling("none")
        >>> wanted.after(done).apply(done.apply(x)).tolist()
        [[1.0], [5.0]]
        """
        if "row" in (self.kind, done.kind):
            raise DataError(
                "Expected a scaling of columns on rows (got scale='row'); use scale='columns', or "
                "divide the rows before `longnn prepare`"
            )
        (m, d), (done_m, done_d) = self._moments, done._moments
        mean, deviation = (m - done_m) / done_d, d / done_d
        if not bool(mean.any()) and bool((deviation == 1).all()):
            return Scaling("none")
        return Scaling("columns", mean, deviation)

    def of(self, columns: slice) -> "Scaling":
        """The scaling of some of the features."""
        if self.mean is None or self.deviation is None:
            return self
        return Scaling(self.kind, self.mean[columns], self.deviation[columns])

    @property
    def _moments(self) -> tuple[Tensor, Tensor]:
        none = (torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64))
        return none if self.mean is None or self.deviation is None else (self.mean, self.deviation)

    def apply(self, x: Tensor) -> Tensor:  # (nodes, features) -> (nodes, features)
        """The features scaled; a zero of a sparse column stays a zero. ``x`` is not changed."""
        if self.mean is None or self.deviation is None:
            return self.formula(x)
        if is_sparse(x):
            return _apply_sparse(x, self.mean.to(x.device), self.deviation.to(x.device))
        scaled = torch.empty_like(x)
        for rows, target in zip(_blocks(x), _blocks(scaled), strict=True):
            target.copy_(self.formula(rows))
        return scaled

    def formula(self, x: Tensor) -> Tensor:  # (nodes, features) -> (nodes, features)
        """The same for all rows at once, however many: what a recorded program does."""
        if self.kind == "row":
            return row_normalize(x)
        if self.mean is None or self.deviation is None:
            return x
        mean, deviation = self.mean.to(x.device), self.deviation.to(x.device)
        return ((x.double() - mean) / deviation).to(x.dtype)


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


def _by_column(
    share: Tensor, largest: Tensor, mean: Tensor, deviation: Tensor
) -> tuple[Tensor, Tensor]:  # (features,) each
    """Mean and deviation where a column is dense, else 0 and the largest absolute value."""
    sparse = share <= SPARSE_SHARE
    largest = torch.where(largest > 0, largest, 1.0)
    return torch.where(sparse, 0.0, mean), torch.where(sparse, largest, deviation)


def _sparse_columns(x: Tensor) -> tuple[Tensor, Tensor]:
    """What ``"columns"`` needs of sparse features; only their dense columns are laid out."""
    col = x.col_indices().long()
    share = torch.bincount(col, minlength=x.shape[1]).double() / len(x)
    largest = x.values().new_zeros(x.shape[1]).scatter_reduce(0, col, x.values().abs(), "amax")
    dense = share > SPARSE_SHARE
    mean, deviation = torch.zeros_like(share), torch.ones_like(share)
    if bool(dense.any()):
        mean[dense], deviation[dense] = _moments(_dense_columns(x, dense))
    return _by_column(share, largest.double(), mean, deviation)


def _sparse_moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Zero, and the deviation of each column of sparse features; that of a constant one is 1."""
    col, values, rows = x.col_indices().long(), x.values().double(), len(x)
    zeros = values.new_zeros(x.shape[1])
    stored = torch.bincount(col, minlength=x.shape[1])
    mean = zeros.index_add(0, col, values) / rows
    squares = zeros.index_add(0, col, (values - mean[col]).square())
    deviation = ((squares + (rows - stored) * mean.square()) / rows).sqrt()
    high = zeros.scatter_reduce(0, col, values, "amax", include_self=False)
    low = zeros.scatter_reduce(0, col, values, "amin", include_self=False)
    constant = (high == low) & (stored == rows)
    return zeros, torch.where((deviation > 0) & ~constant, deviation, 1.0)


def _apply_sparse(x: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """:math:`(x - m) / d` for sparse features; a column with a mean stores all its values."""
    row, col, values = rows_of(x), x.col_indices().long(), x.values().double()
    moved = mean != 0
    if not bool(moved.any()):
        return with_values(x, (values / deviation[col]).to(x.dtype))
    still = ~moved[col]
    laid_out = _dense_columns(x, moved)
    for block in _blocks(laid_out):
        block.copy_((block.double() - mean[moved]) / deviation[moved])
    entries = torch.cat([values[still] / deviation[col[still]], laid_out.reshape(-1).double()])
    columns = moved.nonzero()[:, 0]
    place = torch.stack(
        [
            torch.cat([row[still], torch.arange(len(x)).repeat_interleave(len(columns))]),
            torch.cat([col[still], columns.repeat(len(x))]),
        ]
    )
    return compact(
        torch.sparse_coo_tensor(place, entries, x.shape, check_invariants=False), x.dtype
    )


def _dense_columns(x: Tensor, which: Tensor) -> Tensor:  # which: bool (features,)
    """Some columns of sparse features as a dense matrix."""
    row, col = rows_of(x), x.col_indices().long()
    kept = which[col]
    out = x.values().new_zeros(len(x), int(which.sum()))
    out[row[kept], (which.cumsum(0) - 1)[col[kept]]] = x.values()[kept]
    return out

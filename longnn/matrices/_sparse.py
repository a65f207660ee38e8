r"""Sparse times dense: the one product under everything else.

:class:`SparseMatrix` is a checked CSR matrix that also knows its transpose, so that the backward
pass of a product is a product again. ``matrix @ dense`` is the torch operator
``longnn::csr_matmul`` with rules for autograd, vmap (a batch is folded into the columns) and
tracing. Graph operators and sparse node features both use it; it knows of neither.
"""

import dataclasses
import warnings
from typing import Any, Self

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from longnn import kernels
from longnn._base.autograd import differentiable, to_front
from longnn.matrices import _noise as noise
from longnn.matrices._layout import csr, multiply

#: Types in which products accumulate; half-precision signals are stored but not summed so.
_WIDE = {torch.bfloat16: torch.float32, torch.float16: torch.float32}


#: On a CPU the members of a batch are multiplied side by side if each has fewer channels than
#: this: the calls cost more than the work. Wider, they no longer fit the cache together.
NARROW = 16


def accumulate_dtype(dtype: torch.dtype) -> torch.dtype:
    """The type in which sums over a signal of type ``dtype`` are taken."""
    return _WIDE.get(dtype, dtype)


def _spend_beta_warning() -> None:
    """torch warns once per process that CSR is in beta; users can do nothing about it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        index = torch.zeros(1, dtype=torch.int32)
        csr(index, index[:0], torch.zeros(0), 0)


_spend_beta_warning()


@torch.library.custom_op("longnn::csr_matmul", mutates_args=())
def csr_matmul(
    crow: Tensor,  # (rows+1,)
    col: Tensor,  # (nnz,)
    values: Tensor,  # (nnz,)
    crow_t: Tensor,  # the transpose's CSR arrays, for the backward pass
    col_t: Tensor,
    values_t: Tensor,
    dense: Tensor,  # (columns, channels)
) -> Tensor:
    """``matrix @ dense``, shape (rows, channels), in the type of ``dense``.

    For a batch, ``dense`` of shape (batch, columns, channels), each may have its own values,
    shape (batch, nnz).
    """
    wide = dense.to(values.dtype)
    if kernels.usable(values):
        out = kernels.feature_product(crow, col, values, wide.reshape(-1, *wide.shape[-2:]))
        return (out if wide.dim() == 3 else out[0]).to(dense.dtype)
    if wide.dim() == 2:
        return multiply(crow, col, values, wide).to(dense.dtype)
    each = zip(values.expand(len(wide), -1), wide, strict=True)
    return torch.stack([multiply(crow, col, v, d) for v, d in each]).to(dense.dtype)


@csr_matmul.register_fake
def _(crow, col, values, crow_t, col_t, values_t, dense):  # type: ignore[no-untyped-def]
    return dense.new_empty(*dense.shape[:-2], crow.shape[0] - 1, dense.shape[-1])


def _product_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    arrays = ctx.saved_tensors
    return *(None,) * 6, csr_product(*arrays[3:], *arrays[:3], grad)


def _save_arrays(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs[:6])


def _batch_product(info, in_dims, crow, col, values, crow_t, col_t, values_t, dense):  # type: ignore[no-untyped-def]
    """The vmap rule; narrow signals are multiplied side by side on a CPU."""
    own = in_dims[2] is not None
    if own:
        values, values_t = (
            to_front(t, dim, info.batch_size)
            for t, dim in ((values, in_dims[2]), (values_t, in_dims[5]))
        )
    dense = to_front(dense, in_dims[6], info.batch_size)
    arrays = (crow, col, values, crow_t, col_t, values_t)
    if own or dense.shape[2] >= NARROW or kernels.usable(values):
        return csr_product(*arrays, dense), 0
    folded = dense.movedim(0, 1)  # (columns, batch, channels)
    out = csr_product(*arrays, folded.reshape(folded.shape[0], -1))
    return out.view(out.shape[0], info.batch_size, -1), 1


csr_product = differentiable(csr_matmul, _product_gradient, _save_arrays, vmap=_batch_product)


@torch.library.custom_op("longnn::dropped_matmul", mutates_args=())
def dropped_matmul(
    crow: Tensor,
    col: Tensor,
    values: Tensor,
    position: Tensor,  # (nnz,) which dropout number each entry takes; empty: its own place
    crow_t: Tensor,
    col_t: Tensor,
    values_t: Tensor,
    position_t: Tensor,
    stream: Tensor,  # (2,) int64: seed and epoch, see _noise
    p: Tensor,  # scalar
    dense: Tensor,  # (columns, channels)
    site: int,
) -> Tensor:
    """``dropout(matrix) @ dense``, dropout on the stored values, the mask made in the kernel.

    For a batch: stream (batch, 2), p (batch,), dense (batch, columns, channels).
    """
    moved = len(position) > 0
    out = kernels.feature_product(
        crow,
        col,
        values,
        dense.reshape(-1, *dense.shape[-2:]),
        stream=stream.reshape(-1, 2).contiguous(),
        p=p.reshape(-1).contiguous(),
        site=site,
        position=position if moved else None,
        members_first=moved,
    )
    return out if dense.dim() == 3 else out[0].contiguous()


@dropped_matmul.register_fake
def _(crow, col, values, position, crow_t, col_t, values_t, position_t, stream, p, dense, site):  # type: ignore[no-untyped-def]
    return dense.new_empty(*dense.shape[:-2], crow.shape[0] - 1, dense.shape[-1])


def _batch_dropped(info, in_dims, *inputs):  # type: ignore[no-untyped-def]
    """The vmap rule: the matrix is shared, the rest is each member's own."""
    own = zip(inputs[8:11], in_dims[8:11], strict=True)
    batch = (to_front(t, dim, info.batch_size) for t, dim in own)
    return _dropped_product(*inputs[:8], *batch, inputs[11]), 0


def _dropped_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    *arrays, stream, p = ctx.saved_tensors
    swapped = (*arrays[4:], *arrays[:4])
    return *(None,) * 10, _dropped_product(*swapped, stream, p, grad, ctx.site), None


def _save_dropped(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs[:10])
    ctx.site = inputs[11]


_dropped_product = differentiable(
    dropped_matmul, _dropped_gradient, _save_dropped, vmap=_batch_dropped
)


@dataclasses.dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A CSR matrix and its transpose, ready for differentiable products with dense tensors.

    Build one with :meth:`from_scipy` or :meth:`from_dense`.

    >>> matrix = SparseMatrix.from_dense(torch.tensor([[0.0, 2.0], [1.0, 0.0]]))
    >>> matrix @ torch.tensor([[1.0], [10.0]])
    tensor([[20.], [ 1.]])
    """

    crow: Tensor  # (rows+1,)
    col: Tensor  # (nnz,)
    values: Tensor  # (nnz,)
    crow_t: Tensor  # (columns+1,)
    col_t: Tensor  # (nnz,)
    order_t: Tensor | None  # (nnz,) values of the transpose are values[order_t]; None = symmetric
    values_t: Tensor  # (nnz,)
    dropout: tuple[Tensor, Tensor, int] | None = None  # stream, rate, site: see _noise
    dense: Tensor | None = None  # a dense copy, for plain products where that is faster

    @classmethod
    def from_scipy(
        cls,
        matrix: scipy.sparse.spmatrix | scipy.sparse.sparray,
        *,
        symmetric: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> Self:
        """From a SciPy matrix; with ``symmetric`` the transpose shares the same arrays."""
        rows = scipy.sparse.csr_matrix(matrix)
        rows.sum_duplicates()
        small = max(rows.nnz, *rows.shape) < 2**31
        index = np.int32 if small else np.int64

        def tensors(m: scipy.sparse.csr_matrix) -> tuple[Tensor, Tensor]:
            arrays = (m.indptr.astype(index), m.indices.astype(index))
            return torch.from_numpy(arrays[0]), torch.from_numpy(arrays[1])

        crow, col = tensors(rows)
        values = torch.from_numpy(np.array(rows.data, dtype=np.float64)).to(dtype)
        if symmetric:
            return cls(crow, col, values, crow, col, None, values)
        numbered = scipy.sparse.csr_matrix(
            (np.arange(rows.nnz), rows.indices, rows.indptr), shape=rows.shape
        )
        columns = numbered.T.tocsr()
        crow_t, col_t = tensors(columns)
        order = torch.from_numpy(columns.data.astype(np.int64))
        return cls(crow, col, values, crow_t, col_t, order, values[order])

    @classmethod
    def from_dense(cls, dense: Tensor) -> Self:
        """From a dense matrix, keeping its nonzero entries and its type."""
        if dense.dim() != 2:
            raise ValueError(f"Expected a matrix (got {dense.dim()} dimensions)")
        array = dense.detach().cpu().double().numpy()
        matrix = cls.from_scipy(scipy.sparse.csr_matrix(array), dtype=dense.dtype)
        return matrix.to(dense.device)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.crow.shape[0] - 1, self.crow_t.shape[0] - 1

    @property
    def nnz(self) -> int:
        """The number of stored entries."""
        return self.col.shape[0]

    @property
    def dtype(self) -> torch.dtype:
        """The type of the values."""
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        """Where the values are."""
        return self.values.device

    def dropped(self, stream: Tensor, p: Tensor, site: int) -> Self:
        """The matrix with dropout on its stored values, applied when it is multiplied."""
        assert self.dropout is None, "dropout on a matrix that has it already"
        return dataclasses.replace(self, dropout=(stream, p, site))

    def with_values(self, values: Tensor) -> Self:
        """The same pattern with other stored values, shape (nnz,)."""
        return dataclasses.replace(self, values=values, values_t=self._turned(values), dense=None)

    def _turned(self, values: Tensor) -> Tensor:
        """The values of the transpose."""
        # index_select is three times faster than indexing here.
        return values if self.order_t is None else values.index_select(-1, self.order_t)

    def with_dense(self) -> Self:
        """The matrix with a dense copy at its side."""
        return dataclasses.replace(self, dense=self.to_dense())

    def to(self, target: torch.device | torch.dtype | str) -> Self:
        """The matrix on another device, or with values of another type."""
        if isinstance(target, torch.dtype):
            return self.with_values(self.values.to(target))
        order = None if self.order_t is None else self.order_t.to(target)
        rows = (self.crow.to(target), self.col.to(target), self.values.to(target))
        columns = (self.crow_t.to(target), self.col_t.to(target))
        return type(self)(*rows, *columns, order, self.values_t.to(target))

    def __matmul__(self, dense: Tensor) -> Tensor:
        check_operand(self, dense)
        if self.dropout is not None:
            return self._dropped_matmul(dense, *self.dropout)
        if self.dense is not None:
            return self.dense @ dense
        return csr_product(
            self.crow, self.col, self.values, self.crow_t, self.col_t, self.values_t, dense
        )

    def _dropped_matmul(self, dense: Tensor, stream: Tensor, p: Tensor, site: int) -> Tensor:
        if not kernels.usable(self.values):  # making the mask twice would cost more than keeping it
            kept = self.values * noise.quick_mask(stream, p, self.values, site)
            turned = (self.crow_t, self.col_t, self._turned(kept))
            return csr_product(self.crow, self.col, kept, *turned, dense)
        none = self.crow[:0].long()
        position = none if self.order_t is None else self.order_t
        rows = (self.crow, self.col, self.values, none)
        columns = (self.crow_t, self.col_t, self.values_t, position)
        return _dropped_product(*rows, *columns, stream, p, dense, site)

    def to_dense(self) -> Tensor:
        """The dense matrix: for small ones."""
        return csr(self.crow, self.col, self.values, self.shape[1]).to_dense()

    def to_scipy(self) -> scipy.sparse.csr_matrix:
        """The same matrix for SciPy, in float64."""
        arrays = (self.values.double(), self.col, self.crow)
        return scipy.sparse.csr_matrix(tuple(t.cpu().numpy() for t in arrays), shape=self.shape)

    def __repr__(self) -> str:
        rows, columns = self.shape
        return (
            f"SparseMatrix({rows} x {columns}, nnz={self.nnz}, "
            f"dtype={str(self.dtype).removeprefix('torch.')}, device={self.device})"
        )


def _even(x: Tensor) -> list[int]:
    """The shape of x with rows of even length: two neighbours share a random number."""
    return [x.shape[0], x.shape[1] + x.shape[1] % 2]


@torch.library.custom_op("longnn::dropped_dense_matmul", mutates_args=())
def dropped_dense_matmul(
    x: Tensor, stream: Tensor, p: Tensor, dense: Tensor, site: int, transposed: bool
) -> Tensor:
    """``dropout(x) @ dense``, or ``dropout(x).T @ dense``, the mask made in the kernel."""
    return _dropped_dense(x, stream[None], p[None], dense[None], site, transposed)[0].clone()


def _dropped_dense(
    x: Tensor, stream: Tensor, p: Tensor, dense: Tensor, site: int, transposed: bool
) -> Tensor:
    """For a batch of streams (batch, 2), rates (batch,) and operands (batch, inner, channels)."""
    if kernels.usable(x):
        return kernels.dense_product(
            x, dense, stream.contiguous(), p.contiguous(), site, transposed=transposed
        )
    masked = x * noise.masks(stream, p, x, site, _even(x))[..., : x.shape[1]]
    return (masked.mT if transposed else masked) @ dense


@dropped_dense_matmul.register_fake
def _(x, stream, p, dense, site, transposed):  # type: ignore[no-untyped-def]
    return dense.new_empty(x.shape[1 if transposed else 0], dense.shape[1])


@dropped_dense_matmul.register_vmap
def _(info, in_dims, x, stream, p, dense, site, transposed):  # type: ignore[no-untyped-def]
    batch = [
        t.expand(info.batch_size, *t.shape) if dim is None else t.movedim(dim, 0)
        for t, dim in zip((stream, p, dense), in_dims[1:4], strict=True)
    ]
    return _dropped_dense(x, *batch, site, transposed), 0


class _DroppedDense(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, stream: Tensor, p: Tensor, dense: Tensor, site: int) -> Tensor:
        return dropped_dense_matmul(x, stream, p, dense, site, False)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[:3])
        ctx.site = inputs[4]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        gradient = dropped_dense_matmul(*ctx.saved_tensors, grad, ctx.site, True)
        return None, None, None, gradient, None


@dataclasses.dataclass(frozen=True, eq=False)
class DenseMatrix:
    """A dense matrix with the interface of :class:`SparseMatrix`: features that are not sparse."""

    values: Tensor  # (rows, columns), contiguous
    dropout: tuple[Tensor, Tensor, int] | None = None

    @property
    def shape(self) -> torch.Size:
        """Rows and columns."""
        return self.values.shape

    @property
    def dtype(self) -> torch.dtype:
        """The type of the values."""
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        """Where the values are."""
        return self.values.device

    def to(self, target: torch.device | torch.dtype | str) -> Self:
        """The matrix on another device or in another type."""
        return type(self)(self.values.to(target))

    def with_values(self, values: Tensor) -> Self:
        """The matrix with other values, shape (rows, columns)."""
        return dataclasses.replace(self, values=values)

    def dropped(self, stream: Tensor, p: Tensor, site: int) -> Self:
        """The matrix with dropout, applied when it is multiplied."""
        assert self.dropout is None, "dropout on a matrix that has it already"
        return dataclasses.replace(self, dropout=(stream, p, site))

    def __matmul__(self, dense: Tensor) -> Tensor:
        if self.dropout is None:
            return self.values @ dense
        stream, p, site = self.dropout
        if kernels.usable(self.values) and self.dtype == torch.float32:
            return _DroppedDense.apply(self.values, stream, p, dense, site)
        like = self.values.new_empty(1).expand(_even(self.values))
        mask = noise.keep_mask(stream, p, like, site)[:, : self.shape[1]]
        return (self.values * mask) @ dense


def check_operand(matrix: SparseMatrix, dense: Tensor) -> None:
    """Raise unless ``matrix @ dense`` makes sense."""
    if dense.dim() != 2 or dense.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"Expected a signal of shape ({matrix.shape[1]}, channels) (got {tuple(dense.shape)})"
        )
    if accumulate_dtype(dense.dtype) != matrix.dtype:
        raise TypeError(
            f"Expected a signal of type {matrix.dtype} (got {dense.dtype}); convert one of the "
            f"two, e.g. operator.to({dense.dtype})"
        )


@dataclasses.dataclass(frozen=True, eq=False)
class LiftedMatrix:
    r"""Features on two copies of every node: :math:`\mathrm{diag}(X, X)`, without its zeros.

    With weights :math:`W = (W_1; W_2)`, of shape (2 features, channels), the product is
    :math:`(X W_1; X W_2)`: each copy has weights of its own. X is multiplied once, by both side by
    side, and dropout takes a feature from both copies of a node. It has the interface of
    :class:`SparseMatrix`.

    >>> lifted = LiftedMatrix(DenseMatrix(torch.tensor([[1.0, 2.0]])))
    >>> lifted.shape
    torch.Size([2, 4])
    >>> lifted @ torch.tensor([[1.0], [1.0], [10.0], [0.0]])
    tensor([[ 3.], [10.]])
    """

    matrix: SparseMatrix | DenseMatrix  # (rows, columns)

    @property
    def shape(self) -> torch.Size:
        """Rows and columns: twice those of the matrix."""
        rows, columns = self.matrix.shape
        return torch.Size((2 * rows, 2 * columns))

    @property
    def dtype(self) -> torch.dtype:
        """The type of the values."""
        return self.matrix.dtype

    @property
    def device(self) -> torch.device:
        """Where the values are."""
        return self.matrix.device

    @property
    def values(self) -> Tensor:
        """The values of the matrix, stored once."""
        return self.matrix.values

    def with_values(self, values: Tensor) -> Self:
        """The same with other values of the matrix."""
        return type(self)(self.matrix.with_values(values))

    def dropped(self, stream: Tensor, p: Tensor, site: int) -> Self:
        """The same with dropout, applied when it is multiplied."""
        return type(self)(self.matrix.dropped(stream, p, site))

    def __matmul__(self, dense: Tensor) -> Tensor:
        first, second = dense.chunk(2, dim=0)  # each (columns, channels)
        side_by_side = self.matrix @ torch.cat([first, second], dim=1)
        return torch.cat(side_by_side.chunk(2, dim=1), dim=0)

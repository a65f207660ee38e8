"""A matrix of values as a plain torch tensor, dense or sparse: the two forms, and ways between.

Dense is a strided tensor. Sparse is CSR in canonical form: columns sorted within a row, none
twice, no stored zero. Products with derivatives are :mod:`longnn.matrices._sparse`'s; here is the
one on a CPU by whichever of torch's two ways is quicker: a row of the product is a weighted sum of
rows of the dense matrix, and that is what an embedding bag is. torch has it in vector instructions,
and with many channels it takes less time than the product by its sparse library.
"""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

#: Channels from which on a row is summed by vector instructions.
WIDE = 32


_SUM = 0  # of the modes of an embedding bag


def csr(crow: Tensor, col: Tensor, values: Tensor, columns: int) -> Tensor:
    """The CSR arrays as a torch tensor; no copy, no check."""
    shape = (crow.shape[0] - 1, columns)
    return torch.sparse_csr_tensor(crow, col, values, shape, check_invariants=False)


def is_wide(crow: Tensor, col: Tensor, values: Tensor, dense: Tensor) -> bool:
    """Whether the product is quicker as sums of rows."""
    return (
        dense.shape[1] >= WIDE
        and values.device.type == "cpu"
        and values.dtype == dense.dtype == torch.float32
        and crow.dtype == col.dtype
        and len(col) > 0
    )


def multiply(crow: Tensor, col: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    """``matrix @ dense`` of CSR arrays, shape (rows, channels), without a derivative.

    >>> crow, col = torch.tensor([0, 1, 3]), torch.tensor([1, 0, 1])
    >>> multiply(crow, col, torch.tensor([2.0, 1.0, 1.0]), torch.ones(2, 40))[:, 0]
    tensor([2., 2.])
    """
    if not is_wide(crow, col, values, dense):
        return csr(crow, col, values, dense.shape[0]) @ dense
    return sum_rows(crow, col, values.detach(), dense.detach().contiguous())


def sum_rows(crow: Tensor, col: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    """The same where it is known to be quicker, of tensors that nothing depends on."""
    return torch.embedding_bag(dense, col, crow, False, _SUM, False, values, True)[0]


#: Share of nonzeros up to which values count as sparse. Up to here a CPU multiplies them faster
#: sparse, and they need less than half the memory (8 bytes per nonzero, not 4 per value).
SPARSE_SHARE = 1 / 5


def check_compressed(
    pointers: np.ndarray, indices: np.ndarray, entries: int, shape: tuple[int, int]
) -> None:
    """Raise unless these are the arrays of a CSR matrix: compiled code trusts them blindly.

    Args:
        pointers: (rows + 1,), where each row begins among the entries, and the end.
        indices: (entries,), the column of each entry.
        entries: the number of values.
        shape: rows and columns; those of the transpose for a CSC matrix.

    Raises:
        ValueError: naming the first number that is wrong.

    >>> check_compressed(np.array([0, 1]), np.array([5]), 1, (1, 3))
    Traceback (most recent call last):
    ValueError: Expected indices in 0..2 (got 5 at position 0)
    """
    rows, columns = shape
    for name, array in (("pointers", pointers), ("indices", indices)):
        if array.dtype.kind not in "iu" or array.ndim != 1:
            raise ValueError(
                f"Expected {name} as a list of whole numbers (got {array.dtype} {array.shape})"
            )
    if min(shape) < 0 or len(pointers) != rows + 1 or len(indices) != entries:
        raise ValueError(
            f"Expected {rows + 1} pointers and {entries} indices for {rows} rows and {entries} "
            f"values (got {len(pointers)} and {len(indices)})"
        )
    falls = np.flatnonzero(pointers[1:] < pointers[:-1])
    if int(pointers[0]) != 0 or int(pointers[-1]) != entries or len(falls):
        at = int(falls[0]) + 1 if len(falls) else 0 if int(pointers[0]) else rows
        raise ValueError(
            f"Expected pointers that rise from 0 to {entries} (got {int(pointers[at])} at "
            f"position {at})"
        )
    wrong = np.flatnonzero((indices < 0) | (indices >= columns))
    if len(wrong):
        at = int(wrong[0])
        raise ValueError(
            f"Expected indices in 0..{columns - 1} (got {int(indices[at])} at position {at})"
        )


def check_sparse(x: Tensor) -> None:
    """Raise unless a torch sparse matrix of any layout is what it says; torch does not look.

    Raises:
        ValueError: naming the first number that is wrong, or a layout that is not known.

    >>> check_sparse(torch.eye(2).to_sparse_csr())
    """
    if x.layout is torch.sparse_coo:
        index, values = x._indices().cpu(), x._values()
        if tuple(index.shape) != (x.sparse_dim(), len(values)) or index.dtype != torch.int64:
            raise ValueError(
                f"Expected indices of shape ({x.sparse_dim()}, {len(values)}) (got "
                f"{tuple(index.shape)})"
            )
        sizes = torch.tensor(x.shape[: x.sparse_dim()])[:, None]
        wrong = ((index < 0) | (index >= sizes)).any(dim=0).nonzero()
        if len(wrong):
            at = int(wrong[0])
            raise ValueError(
                f"Expected indices below {tuple(x.shape)} (got {tuple(index[:, at].tolist())} at "
                f"entry {at})"
            )
        return
    by_row = x.layout is torch.sparse_csr
    if x.dim() != 2 or x.dense_dim() or not (by_row or x.layout is torch.sparse_csc):
        raise ValueError(
            f"Expected a matrix of layout sparse_coo, sparse_csr or sparse_csc (got {x.layout}, "
            f"shape {tuple(x.shape)})"
        )
    pointers, indices = (
        (x.crow_indices(), x.col_indices()) if by_row else (x.ccol_indices(), x.row_indices())
    )
    rows, columns = x.shape if by_row else x.shape[::-1]
    check_compressed(
        pointers.cpu().numpy(), indices.cpu().numpy(), x.values().shape[0], (rows, columns)
    )


def csr_from_scipy(
    matrix: sp.sparray | sp.spmatrix, dtype: torch.dtype = torch.float32
) -> Tensor:  # (rows, columns)
    """A SciPy matrix of any format as a canonical CSR tensor; repeated entries are added.

    Args:
        matrix: left as it is.
        dtype: of the result; sums are taken in float64.

    >>> matrix = sp.coo_array(([1.0, 2.0, 0.0], ([1, 1, 0], [0, 0, 1])))
    >>> csr_from_scipy(matrix).values()
    tensor([3.])
    """
    rows = matrix
    if matrix.format != "csr" or not matrix.has_canonical_format:
        rows = sp.csr_array(matrix.astype(np.float64))  # before they are added: flags are numbers
        rows.sum_duplicates()
    values = torch.tensor(rows.data, dtype=dtype).numpy()  # a copy; a tiny value may become 0
    index = np.int32 if max(rows.nnz, *rows.shape) < 2**31 else np.int64
    indices, indptr = rows.indices.astype(index), rows.indptr.astype(index)
    if not values.all():
        rows = sp.csr_array((values, indices, indptr), shape=rows.shape)
        rows.eliminate_zeros()
        values, indices, indptr = rows.data, rows.indices, rows.indptr
    crow, col, kept = (torch.from_numpy(array) for array in (indptr, indices, values))
    return csr(crow, col, kept, matrix.shape[1])


def csr_to_scipy(x: Tensor) -> sp.csr_array:  # (rows, columns)
    """A CSR tensor for SciPy: a view of the same arrays where they are on the CPU.

    >>> csr_to_scipy(torch.eye(2).to_sparse_csr()).indices.tolist()
    [0, 1]
    """
    arrays = (x.values(), x.col_indices(), x.crow_indices())
    data, indices, indptr = (a.detach().cpu().numpy() for a in arrays)
    return sp.csr_array((data, indices, indptr), shape=tuple(x.shape))


def is_canonical(x: Tensor) -> bool:
    """Whether a CSR tensor has its columns sorted, none twice, and no stored zero.

    >>> is_canonical(torch.eye(2).to_sparse_csr())
    True
    """
    return bool(csr_to_scipy(x).has_canonical_format) and bool(x.values().all())


def compact(x: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """A tensor of any layout in one of the two forms, of type ``dtype``.

    A sparse one stays sparse where at most :data:`SPARSE_SHARE` of its values are nonzero; a dense
    one stays dense, for making it sparse would need a second copy.

    >>> compact(torch.eye(5).to_sparse()).layout, compact(torch.eye(4).to_sparse()).layout
    (torch.sparse_csr, torch.strided)
    """
    if x.layout is torch.strided:
        return x.to(dtype)
    if x.dim() != 2 or x.dense_dim():  # a vector, or rows that are whole or absent
        return x.to_dense().to(dtype)
    if x.layout is torch.sparse_csr:
        if x.dtype == dtype and is_canonical(x) and nonzero_share(x) <= SPARSE_SHARE:
            return x
        matrix = csr_to_scipy(x)
    else:
        entries = x.to_sparse_coo().double().coalesce()
        row, col = entries.indices().numpy()
        matrix = sp.coo_array((entries.values().numpy(), (row, col)), shape=tuple(x.shape))
    sparse = csr_from_scipy(matrix, dtype)
    return sparse if nonzero_share(sparse) <= SPARSE_SHARE else sparse.to_dense()


def nonzero_share(x: Tensor) -> float:
    """The share of the values that are not zero, of a tensor in one of the two forms.

    >>> nonzero_share(torch.eye(4)), nonzero_share(torch.eye(5).to_sparse_csr())
    (0.25, 0.2)
    """
    nonzeros = x.values().numel() if x.layout is torch.sparse_csr else int(x.count_nonzero())
    return nonzeros / max(x.numel(), 1)


def take_columns(x: Tensor, columns: Sequence[int]) -> Tensor:
    """Some columns, in the order given; -1 stands for a column of zeros. Keeps the form.

    >>> take_columns(torch.tensor([[1.0, 2.0]]), [1, -1, 0])
    tensor([[2., 0., 1.]])
    """
    wanted = np.asarray(columns, dtype=np.int64)
    kept = np.flatnonzero(wanted >= 0)
    if x.layout is torch.strided:
        out = x.new_zeros(len(x), len(wanted))
        out[:, torch.from_numpy(kept)] = x[:, torch.from_numpy(wanted[kept])]
        return out
    # X S with the 0/1 matrix S that has a 1 in row `wanted[k]` of column k.
    ones = np.ones(len(kept), dtype=np.float64)
    choice = sp.csr_array((ones, (wanted[kept], kept)), shape=(x.shape[1], len(wanted)))
    return csr_from_scipy(csr_to_scipy(x) @ choice, x.dtype)

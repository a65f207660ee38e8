"""The features of the nodes, float32 (nodes, features): dense, or CSR where most are zero.

What has to be known of the two forms to check, hash and normalise them. No function here makes
sparse features dense. Knows nothing of graphs.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from longnn.data._errors import DataError, require_memory
from longnn.matrices import check_sparse, csr, csr_from_scipy, csr_to_scipy, is_canonical

#: Names of the features that are made of degrees: undirected; of arcs out and of arcs in.
DEGREES = ("log_degree", "log_out_degree", "log_in_degree")


def is_sparse(x: Tensor) -> bool:
    """Whether features are in the sparse one of the two forms."""
    return x.layout is torch.sparse_csr


def row_normalize(x: Tensor) -> Tensor:  # (nodes, features) -> (nodes, features)
    """Divide each row by the sum of its absolute values; a zero row stays zero.

    The usual treatment of bag-of-words features. Summed in float64, so that the result does not
    depend on how a machine orders the sum. Sparse features stay sparse.

    >>> row_normalize(torch.tensor([[1.0, 3.0], [0.0, 0.0]]))
    tensor([[0.2500, 0.7500],
            [0.0000, 0.0000]])
    """
    if not is_sparse(x):
        total = x.abs().sum(dim=1, keepdim=True, dtype=torch.float64)
        return (x / total.masked_fill(total == 0, 1.0)).to(x.dtype)
    row, values = rows_of(x), x.values()
    sums = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    sums.index_add_(0, row, values.abs().double())
    return with_values(x, (values / sums[row]).to(x.dtype))  # a row with an entry has a sum > 0


def rows_of(x: Tensor) -> Tensor:  # (nonzeros,)
    """The row of each stored value of a sparse ``x``."""
    return torch.repeat_interleave(torch.arange(len(x), device=x.device), x.crow_indices().diff())


def with_values(x: Tensor, values: Tensor) -> Tensor:
    """A sparse ``x`` with other stored values, shape (nonzeros,); new zeros are dropped."""
    made = csr(x.crow_indices(), x.col_indices(), values, x.shape[1])
    return made if bool(values.all()) else csr_from_scipy(csr_to_scipy(made), made.dtype)


def side_by_side(left: Tensor, right: Tensor) -> Tensor:
    """The columns of one after those of the other; sparse if one of them is."""
    if right.shape[1] == 0:
        return left
    if not is_sparse(left) and not is_sparse(right):
        return torch.cat([left, right], dim=1)
    blocks = [csr_to_scipy(x) if is_sparse(x) else sp.csr_array(x.numpy()) for x in (left, right)]
    return csr_from_scipy(sp.hstack(blocks, format="csr"))


def feature_arrays(x: Tensor) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays that make up the features, each with a name: what a fingerprint hashes."""
    if not is_sparse(x):
        yield "x", x.detach().cpu().numpy()
        return
    yield "x.shape", np.array(x.shape, dtype=np.int64)
    yield "x.crow", x.crow_indices().cpu().numpy().astype(np.int64)
    yield "x.col", x.col_indices().cpu().numpy().astype(np.int64)
    yield "x.values", x.values().detach().cpu().numpy()


def check_features(x: object, names: Sequence[str]) -> None:
    """Raise unless ``x`` is finite, float32, of two dimensions and in one of the two forms."""
    if not isinstance(x, Tensor) or x.dim() != 2 or x.dtype != torch.float32:
        raise DataError(f"Expected features `x` to be float32 (nodes, features) (got {form(x)}).")
    if x.layout not in (torch.strided, torch.sparse_csr):
        raise DataError(
            f"Expected features `x` dense or sparse_csr (got {x.layout}); see from_data."
        )
    if 0 in x.shape:
        raise DataError(
            f"Expected at least one node and one feature (got {tuple(x.shape)}); without "
            "features use features='degree' or 'identity'."
        )
    if names and len(names) != x.shape[1]:
        raise DataError(f"Expected {x.shape[1]} feature names (got {len(names)}).")
    if is_sparse(x):
        col = x.col_indices()
        if col.numel() and (int(col.min()) < 0 or int(col.max()) >= x.shape[1]):
            raise DataError(f"Expected columns of `x` within 0..{x.shape[1] - 1} (got others).")
        if not is_canonical(x):
            raise DataError(
                "Expected sparse features `x` with sorted columns, none twice, and no stored "
                "zero; see `from_data`."
            )
    values = x.values() if is_sparse(x) else x
    bad = (~torch.isfinite(values)).nonzero()
    if len(bad):
        first = bad[0].tolist()
        row, column = (
            (int(rows_of(x)[first]), int(x.col_indices()[first])) if is_sparse(x) else first
        )
        value = float(values[tuple(first)])
        raise DataError(
            f"Expected finite features (got {value} at node {row}, {len(bad)} such in all); "
            "fill the gaps or drop the column.",
            row=row + 1,
            column=names[column] if names else column,
            value=value,
        )


def plain_tensor(value: Tensor, key: str, path: Path | None = None) -> Tensor:
    """A tensor of numbers in main memory that can be computed with, or an error.

    Sparse ones are checked, since compiled code trusts their indices; one that is a view of fewer
    numbers than it shows (an expanded one) must fit into memory.
    """
    if value.is_meta or value.is_quantized or value.is_nested or value.is_complex():
        kind = "no numbers" if value.is_meta else "a nested" if value.is_nested else value.dtype
        raise DataError(f"Expected `{key}` to be real numbers (got {kind}).", path=path)
    if value.dtype in (torch.uint16, torch.uint32, torch.uint64):
        value = value.to(torch.int64)
    if value.is_floating_point() and value.element_size() == 1:  # torch computes nothing with it
        value = value.to(torch.float32)
    if value.layout is torch.strided:
        size = 2.0 * value.numel() * value.element_size()
    else:
        try:
            check_sparse(value)
        except ValueError as error:
            raise DataError(f"Expected sparse `{key}` ({error}).", path=path) from error
        size = 64.0 * len(value)
    require_memory(size, f"`{key}` of shape {tuple(value.shape)}", path=path)
    return value.detach().cpu()


def form(value: object) -> str:
    """What a value is, in an error message."""
    if isinstance(value, Tensor):
        return f"{value.dtype} {tuple(value.shape)}"
    return type(value).__name__

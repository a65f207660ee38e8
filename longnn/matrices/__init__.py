"""Matrix products with dropout inside them: the base of graphs and of node features."""

from longnn.matrices._layout import (
    SPARSE_SHARE,
    check_compressed,
    check_sparse,
    compact,
    csr,
    csr_from_scipy,
    csr_to_scipy,
    is_canonical,
    is_wide,
    nonzero_share,
    sum_rows,
    take_columns,
)
from longnn.matrices._noise import drop_, dropout
from longnn.matrices._sparse import (
    DenseMatrix,
    LiftedMatrix,
    SparseMatrix,
    accumulate_dtype,
    check_operand,
    csr_matmul,
    csr_product,
)

__all__ = [
    "SPARSE_SHARE",
    "DenseMatrix",
    "LiftedMatrix",
    "SparseMatrix",
    "accumulate_dtype",
    "check_compressed",
    "check_operand",
    "check_sparse",
    "compact",
    "csr",
    "csr_from_scipy",
    "csr_matmul",
    "csr_product",
    "csr_to_scipy",
    "drop_",
    "dropout",
    "is_canonical",
    "is_wide",
    "nonzero_share",
    "sum_rows",
    "take_columns",
]

"""Matrix products with dropout inside them: what graphs and node features both stand on."""

from longnn.matrices._noise import dropout
from longnn.matrices._sparse import (
    DenseMatrix,
    SparseMatrix,
    accumulate_dtype,
    check_operand,
    csr,
    csr_matmul,
    csr_product,
)

__all__ = [
    "DenseMatrix",
    "SparseMatrix",
    "accumulate_dtype",
    "check_operand",
    "csr",
    "csr_matmul",
    "csr_product",
    "dropout",
]

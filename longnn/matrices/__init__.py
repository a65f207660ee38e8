"""Matrix products with dropout inside them: the base of graphs and of node features."""

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

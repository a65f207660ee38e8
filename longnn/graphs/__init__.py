"""Graphs as operators: checked and normalised once, applied by one loop, described by spectra."""

from longnn.graphs._edges import EdgeOperator
from longnn.graphs._operator import GraphOperator, directed_operator, typed_operator
from longnn.graphs._propagate import apply_filter
from longnn.graphs._spectrum import extreme_eigenvalues, spectral_density

#: What a model's ``scores`` multiplies by.
Operator = GraphOperator | EdgeOperator

__all__ = [
    "GraphOperator",
    "apply_filter",
    "directed_operator",
    "extreme_eigenvalues",
    "spectral_density",
    "typed_operator",
]

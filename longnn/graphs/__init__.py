"""Graphs as operators: checked and normalised once, applied by one loop, described by spectra."""

from longnn.graphs._adjacency import SelfLoops, check_self_loops, edge_weight_of
from longnn.graphs._arcs import directed_operator
from longnn.graphs._edges import EdgeOperator
from longnn.graphs._lanczos import lanczos_basis
from longnn.graphs._operator import Direction, GraphOperator, as_operator
from longnn.graphs._outliers import outlying_eigenvalues
from longnn.graphs._propagate import apply_filter, chebyshev_stack
from longnn.graphs._spectrum import SpectralDensity, extreme_eigenvalues, spectral_density
from longnn.graphs._types import typed_operator

#: What a model's ``scores`` multiplies by.
Operator = GraphOperator | EdgeOperator

__all__ = [
    "Direction",
    "EdgeOperator",
    "GraphOperator",
    "Operator",
    "SelfLoops",
    "SpectralDensity",
    "apply_filter",
    "as_operator",
    "chebyshev_stack",
    "check_self_loops",
    "directed_operator",
    "edge_weight_of",
    "extreme_eigenvalues",
    "lanczos_basis",
    "outlying_eigenvalues",
    "spectral_density",
    "typed_operator",
]

"""Graphs as operators: checked and normalised once, applied by one loop, described by spectra."""

from longnn.graphs._lanczos import lanczos_basis
from longnn.graphs._operator import (
    GraphOperator,
    SelfLoops,
    as_operator,
    check_self_loops,
    edge_weight_of,
)
from longnn.graphs._propagate import apply_filter, chebyshev_stack
from longnn.graphs._spectrum import SpectralDensity, extreme_eigenvalues, spectral_density

__all__ = [
    "GraphOperator",
    "SelfLoops",
    "SpectralDensity",
    "apply_filter",
    "as_operator",
    "chebyshev_stack",
    "check_self_loops",
    "edge_weight_of",
    "extreme_eigenvalues",
    "lanczos_basis",
    "spectral_density",
]

"""Learnable polynomial graph filters: coefficients, the filter, its fit and truncation."""

from longnn.filters._coefficients import PARAMETRIZATIONS, Parametrization
from longnn.filters._filter import Fit, Init, PolynomialFilter, Truncation

__all__ = [
    "PARAMETRIZATIONS",
    "Fit",
    "Init",
    "Parametrization",
    "PolynomialFilter",
    "Truncation",
]

"""Learnable polynomial graph filters: coefficients, the filter, its fit and truncation."""

from longnn.filters._filter import PolynomialFilter

__all__ = [
    "PolynomialFilter",
]

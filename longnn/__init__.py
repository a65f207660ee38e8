"""Graph neural networks that learn their own filter.

Spectral GNNs with a learnable orthonormal Jacobi basis (LON-GNN), every baseline it is compared
with, and the means to see what was learned. Start with :class:`LONConv` in a PyTorch Geometric
model, or with :class:`LONGNN`, a whole model.
"""

from typing import Any

from longnn import polynomials
from longnn.filters import PolynomialFilter
from longnn.graph import GraphOperator
from longnn.nn import (
    APPNP,
    ARMA,
    GCN,
    GPRGNN,
    LONGNN,
    MLP,
    SGC,
    BernNet,
    ChebNet,
    ChebNetII,
    EvenNet,
    FavardGNN,
    JacobiConv,
    JacobiLearnable,
    JacobiOrthNorm,
    LONConv,
    OptBasisGNN,
    PolynomialConv,
    get_model,
)
from longnn.propagate import apply_filter
from longnn.sparse import SparseMatrix
from longnn.spectrum import extreme_eigenvalues, spectral_density
from longnn.version import __version__

__all__ = [
    "APPNP",
    "ARMA",
    "GCN",
    "GPRGNN",
    "LONGNN",
    "MLP",
    "SGC",
    "BernNet",
    "ChebNet",
    "ChebNetII",
    "EvenNet",
    "FavardGNN",
    "GraphOperator",
    "JacobiConv",
    "JacobiLearnable",
    "JacobiOrthNorm",
    "LONConv",
    "LONGNNClassifier",
    "LONGNNRegressor",
    "OptBasisGNN",
    "PolynomialConv",
    "PolynomialFilter",
    "SparseMatrix",
    "__version__",
    "apply_filter",
    "extreme_eigenvalues",
    "get_model",
    "polynomials",
    "spectral_density",
]


def __getattr__(name: str) -> Any:
    """The estimators, loaded when first asked for: scikit-learn takes a while."""
    if name in ("LONGNNClassifier", "LONGNNRegressor"):
        from longnn import estimator

        return getattr(estimator, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Graph neural networks that learn their own filter.

Spectral GNNs with a learnable orthonormal Jacobi basis (LON-GNN), every baseline it is compared
with, and the means to see what was learned. Start with :func:`train`, which does what the command
``longnn train`` does, with :class:`LONGNNClassifier`, scikit-learn style, or with :class:`LONConv`,
a layer for a PyTorch Geometric model.
"""

import importlib
from typing import TYPE_CHECKING, Any

from longnn._base.version import __version__

if TYPE_CHECKING:
    from longnn import (
        config,
        data,
        estimator,
        explain,
        explorer,
        filters,
        graphs,
        nn,
        polynomials,
        recipes,
        records,
        registry,
        report,
        runs,
        store,
        training,
        tuning,
    )
    from longnn.config import Config
    from longnn.data import Source
    from longnn.estimator import LONGNNClassifier, LONGNNRegressor
    from longnn.filters import PolynomialFilter
    from longnn.graphs import GraphOperator, apply_filter, extreme_eigenvalues, spectral_density
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
    )
    from longnn.registry import get_model
    from longnn.runs import Run, load_run, train

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
    "Config",
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
    "Run",
    "Source",
    "__version__",
    "apply_filter",
    "config",
    "data",
    "estimator",
    "explain",
    "explorer",
    "extreme_eigenvalues",
    "filters",
    "get_model",
    "graphs",
    "load_run",
    "nn",
    "polynomials",
    "recipes",
    "records",
    "registry",
    "report",
    "runs",
    "spectral_density",
    "store",
    "train",
    "training",
    "tuning",
]

#: Where each name is found. Modules are loaded when first used: a user of a layer does not
#: wait for scikit-learn, and the command line can settle OpenMP before torch is loaded.
_HOMES = {
    "config": ("Config",),
    "data": ("Source",),
    "estimator": ("LONGNNClassifier", "LONGNNRegressor"),
    "filters": ("PolynomialFilter",),
    "graphs": ("GraphOperator", "apply_filter", "extreme_eigenvalues", "spectral_density"),
    "registry": ("get_model",),
    "runs": ("Run", "load_run", "train"),
}
_MODULES = {name for name in __all__ if name.islower()} - {
    name for names in _HOMES.values() for name in names
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"longnn.{name}")
    if name in __all__:
        home = next((home for home, names in _HOMES.items() if name in names), "nn")
        return getattr(importlib.import_module(f"longnn.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

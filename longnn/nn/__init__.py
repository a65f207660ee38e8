"""PyG-style layers, and the models: LON-GNN and every baseline, behind one interface.

:mod:`longnn.registry` lists the models by name.
"""

from longnn.nn._conv import LONConv, PolynomialConv
from longnn.nn._deep import DeepGAT, DeepGCN, DeepLONGNN, DeepSAGE
from longnn.nn._directed import Directed
from longnn.nn._model import Model
from longnn.nn._nonpolynomial import ARMA, GCN, MLP, ChebNet, OptBasisGNN
from longnn.nn._polynomial import (
    APPNP,
    GPRGNN,
    LONGNN,
    SGC,
    BernNet,
    ChebNetII,
    EvenNet,
    FavardGNN,
    JacobiConv,
    JacobiLearnable,
    JacobiOrthNorm,
)
from longnn.nn._truncate import truncate_filters

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
    "DeepGAT",
    "DeepGCN",
    "DeepLONGNN",
    "DeepSAGE",
    "Directed",
    "EvenNet",
    "FavardGNN",
    "JacobiConv",
    "JacobiLearnable",
    "JacobiOrthNorm",
    "LONConv",
    "Model",
    "OptBasisGNN",
    "PolynomialConv",
    "truncate_filters",
]

"""PyG-style layers, and the models: LON-GNN and every baseline, behind one interface.

:mod:`longnn.registry` lists the models by name.
"""

from longnn.nn._conv import LONConv, PolynomialConv
from longnn.nn._draw import seeded
from longnn.nn._ensemble import Ensemble
from longnn.nn._model import PLACEMENTS, Model, SpectralGNN
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
    personalized_pagerank,
)
from longnn.nn._terms import OnRows, Terms

__all__ = [
    "APPNP",
    "ARMA",
    "GCN",
    "GPRGNN",
    "LONGNN",
    "MLP",
    "PLACEMENTS",
    "SGC",
    "BernNet",
    "ChebNet",
    "ChebNetII",
    "Ensemble",
    "EvenNet",
    "FavardGNN",
    "JacobiConv",
    "JacobiLearnable",
    "JacobiOrthNorm",
    "LONConv",
    "Model",
    "OnRows",
    "OptBasisGNN",
    "PolynomialConv",
    "SpectralGNN",
    "Terms",
    "personalized_pagerank",
    "seeded",
]

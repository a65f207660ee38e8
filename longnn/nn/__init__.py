"""PyG-style layers, and the models: LON-GNN and every baseline, behind one interface.

:mod:`longnn.registry` lists the models by name.
"""

from longnn.nn._conv import LONConv, PolynomialConv
from longnn.nn._deep import Block, DeepGAT, DeepGCN, DeepGNN, DeepLONGNN, DeepSAGE
from longnn.nn._directed import Directed
from longnn.nn._draw import seeded
from longnn.nn._ensemble import TOGETHER, Ensemble, call_each, scores_together
from longnn.nn._messages import Hop, Mean
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
from longnn.nn._truncate import count_products, truncate_filters
from longnn.nn._typed import TypedFilter, hears_types

__all__ = [
    "APPNP",
    "ARMA",
    "GCN",
    "GPRGNN",
    "LONGNN",
    "MLP",
    "PLACEMENTS",
    "SGC",
    "TOGETHER",
    "BernNet",
    "Block",
    "ChebNet",
    "ChebNetII",
    "DeepGAT",
    "DeepGCN",
    "DeepGNN",
    "DeepLONGNN",
    "DeepSAGE",
    "Directed",
    "Ensemble",
    "EvenNet",
    "FavardGNN",
    "Hop",
    "JacobiConv",
    "JacobiLearnable",
    "JacobiOrthNorm",
    "LONConv",
    "Mean",
    "Model",
    "OnRows",
    "OptBasisGNN",
    "PolynomialConv",
    "SpectralGNN",
    "Terms",
    "TypedFilter",
    "call_each",
    "count_products",
    "hears_types",
    "personalized_pagerank",
    "scores_together",
    "seeded",
    "truncate_filters",
]

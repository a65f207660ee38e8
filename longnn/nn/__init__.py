"""PyG-style layers, and the models: LON-GNN and every baseline, behind one interface.

``MODELS`` maps a short name to each model; :func:`get_model` builds one.
"""

import functools
import inspect
from typing import Any

from longnn.nn.conv import LONConv, PolynomialConv
from longnn.nn.model import Model, SpectralGNN
from longnn.nn.nonpolynomial import ARMA, GCN, MLP, ChebNet, OptBasisGNN
from longnn.nn.polynomial import (
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

MODELS: dict[str, type[Model]] = {
    "lon": LONGNN,
    "jacobi-orthnorm": JacobiOrthNorm,
    "jacobi-learnable": JacobiLearnable,
    "jacobi": JacobiConv,
    "bern": BernNet,
    "gpr": GPRGNN,
    "cheb": ChebNet,
    "cheb2": ChebNetII,
    "even": EvenNet,
    "appnp": APPNP,
    "sgc": SGC,
    "gcn": GCN,
    "arma": ARMA,
    "favard": FavardGNN,
    "optbasis": OptBasisGNN,
    "mlp": MLP,
}


def model_options(name: str) -> dict[str, Any]:
    """The keyword options of a model and their defaults, by its short name.

    >>> model_options("gcn")
    {'input_dropout': 0.5, 'dropout': 0.5}
    """
    return dict(_options(name))


@functools.cache
def _options(name: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for cls in MODELS[name].__mro__:
        if "__init__" not in vars(cls) or cls is Model:
            continue
        parameters = inspect.signature(vars(cls)["__init__"]).parameters.values()
        for p in parameters:
            if p.name in options or p.name in _NOT_OPTIONS:
                continue
            if p.default is not p.empty:
                options[p.name] = p.default
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return {**options, **MODELS[name].defaults}


#: Arguments that take objects, not values.
_NOT_OPTIONS = ("filter", "output_filter", "filter_options")


def get_model(
    name: str, in_channels: int, hidden_channels: int, out_channels: int, **options: Any
) -> Model:
    """A model by its short name."""
    if name not in MODELS:
        raise ValueError(f"Expected `model` to be one of {sorted(MODELS)} (got {name!r})")
    return MODELS[name](in_channels, hidden_channels, out_channels, **options)


__all__ = [
    "APPNP",
    "ARMA",
    "GCN",
    "GPRGNN",
    "LONGNN",
    "MLP",
    "MODELS",
    "SGC",
    "BernNet",
    "ChebNet",
    "ChebNetII",
    "EvenNet",
    "FavardGNN",
    "JacobiConv",
    "JacobiLearnable",
    "JacobiOrthNorm",
    "LONConv",
    "Model",
    "OptBasisGNN",
    "PolynomialConv",
    "SpectralGNN",
    "get_model",
    "model_options",
    "personalized_pagerank",
]

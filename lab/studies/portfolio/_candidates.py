"""The candidates: recipes of single graphs, and random rates and dropouts for some forms.

Only rates, dropouts, a, b and the start of the filter differ within a form, so that all candidates
of a form train in one population. A recipe was chosen on one graph: :func:`tuned_on` says on which,
so that it can be kept from the choice where that graph is left out.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from lab.studies._training import as_trained
from longnn.config import Config
from longnn.recipes import known_recipes, load_recipe
from longnn.registry import model_options

#: What all candidates share: short trainings, stopped by the loss, which averages like.
COMMON: dict[str, Any] = {"monitor": "loss", "hidden_channels": 64}
#: Form -> what is fixed, and how many candidates are drawn.
FORMS: dict[str, tuple[dict[str, Any], int]] = {
    "scores": ({"placement": "output", "shared": True}, 7),
    "scores, one filter per class": (
        {"placement": "output", "shared": False, "coefficients": "pcd"},
        5,
    ),
    "hidden": ({"placement": "hidden", "shared": True}, 7),
    "hidden, one filter per unit": ({"placement": "hidden", "shared": False}, 5),
    "features": ({"placement": "features", "normalize": True}, 6),
    "features and scores": ({"placement": "both", "normalize": True}, 4),
    "mlp": ({"model": "mlp"}, 4),
}
#: Families beside LON-GNN, each with its recipes of some graphs that are unlike.
FAMILIES = ("gcn", "gpr", "appnp", "cheb2", "bern", "arma", "favard", "jacobi", "mlp")
UNLIKE = ("cora", "computers", "chameleon", "texas")
#: What is drawn; a name that a model does not have is left out.
DRAWN: dict[str, tuple[float, ...]] = {
    "lr_transform": (0.005, 0.01, 0.02, 0.05),
    "lr_coefficients": (0.002, 0.005, 0.01, 0.02),
    "lr_factors": (0.01, 0.05),
    "lr_basis": (0.002, 0.01),
    "wd_transform": (0.0, 5e-5, 2e-4, 1e-3),
    "input_dropout": (0.0, 0.1, 0.3, 0.5, 0.7),
    "dropout": (0.0, 0.2, 0.4, 0.6),
    "filter_dropout": (0.0, 0.0, 0.2, 0.5),
    "restart": (0.1, 0.2, 0.5, 1.0),
    "degree_penalty": (0.0, 0.0, 0.003, 0.01),
    "a": (-0.5, 0.0, 0.5, 1.0),
    "b": (-0.5, 0.0, 0.5, 1.0),
}
#: Beside the drawn ones: today's defaults, for words and for tables.
KNOWN: dict[str, dict[str, Any]] = {
    "default": {},
    "table, classes": {
        "placement": "hidden",
        "shared": True,
        "lr_transform": 0.02,
        "lr_coefficients": 0.01,
        "input_dropout": 0.1,
        "dropout": 0.4,
        "filter_dropout": 0.0,
        "degree_penalty": 0.01,
        **COMMON,
    },
    "table, numbers": {
        "placement": "hidden",
        "shared": False,
        "lr_transform": 0.02,
        "lr_coefficients": 0.01,
        "input_dropout": 0.0,
        "dropout": 0.1,
        "filter_dropout": 0.0,
        "degree_penalty": 0.003,
        **COMMON,
    },
}


def candidates(limits: Mapping[str, Any]) -> dict[str, Config]:
    """Every candidate by name, with these epochs and patience.

    >>> found = candidates({"epochs": 10})
    >>> found["scores 0"].options["placement"], found["gcn cora"].model
    ('output', 'gcn')
    """
    rng = np.random.default_rng(1000)
    tables = {name: {**table} for name, table in KNOWN.items()}
    for form, (fixed, count) in FORMS.items():
        for i in range(count):
            tables[f"{form} {i}"] = {**COMMON, **fixed, **_draw(rng, fixed)}
    for name, (model, graph) in _recipes().items():
        tables[name] = load_recipe(model, graph)
    made = {name: Config.from_dict({**table, **limits}) for name, table in tables.items()}
    return {name: as_trained(config) for name, config in made.items()}


def tuned_on() -> dict[str, str]:
    """Candidate -> the graph it was tuned on, for those that are recipes.

    >>> found = tuned_on()
    >>> found["recipe cora"], found["gcn texas"], "scores 0" in found
    ('cora', 'texas', False)
    """
    return {name: graph for name, (_, graph) in _recipes().items()}


def _recipes() -> dict[str, tuple[str, str]]:
    """Candidate -> model and graph of its recipe; that of the bundled ``csbm`` stays out."""
    own = [graph for model, graph in known_recipes() if model == "lon" and graph != "csbm"]
    found = {f"recipe {graph}": ("lon", graph) for graph in own}
    others = {f"{model} {graph}": (model, graph) for model in FAMILIES for graph in UNLIKE}
    return {**found, **others}


def _draw(rng: np.random.Generator, fixed: Mapping[str, Any]) -> dict[str, Any]:
    drawn = {name: float(rng.choice(choices)) for name, choices in DRAWN.items()}
    options = model_options(fixed.get("model", "lon"))
    known = {*options, *Config.from_dict({}).settings.__dict__}
    if not options.get("orthonormal", False):
        known.discard("degree_penalty")  # defined for orthonormal bases only
    if fixed.get("coefficients") == "pcd":
        known.discard("restart")  # PCD starts in its own way
    return {name: value for name, value in drawn.items() if name in known}

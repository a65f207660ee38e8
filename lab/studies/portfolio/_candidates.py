"""The candidates: recipes of single graphs, and random rates and dropouts for some forms.

Only rates, dropouts, a, b and the start of the filter differ within a form, so that all candidates
of a form train in one population. A recipe was chosen on one graph: :func:`tuned_on` says on which,
so that it can be kept from the choice where that graph is left out. The data is in
``candidates.toml``.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lab.studies._training import as_trained
from longnn.config import Config
from longnn.recipes import known_recipes, load_recipe
from longnn.registry import model_options

_DATA = tomllib.loads(Path(__file__).with_name("candidates.toml").read_text(encoding="utf-8"))
COMMON, FORMS, DRAWN, KNOWN = (_DATA[table] for table in ("common", "forms", "drawn", "known"))
#: Families beside LON-GNN, each with its recipes of some graphs that are unlike.
FAMILIES = ("gcn", "gpr", "appnp", "cheb2", "bern", "arma", "favard", "jacobi", "mlp")
UNLIKE = ("cora", "computers", "chameleon", "texas")


def candidates(limits: Mapping[str, Any]) -> dict[str, Config]:
    """Every candidate by name, with these epochs and patience.

    >>> found = candidates({"epochs": 10})
    >>> found["scores 0"].options["placement"], found["gcn cora"].model
    ('output', 'gcn')
    """
    rng = np.random.default_rng(1000)
    tables = {name: {**table} for name, table in KNOWN.items()}
    for form, entries in FORMS.items():
        fixed = {key: value for key, value in entries.items() if key != "count"}
        for i in range(entries["count"]):
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

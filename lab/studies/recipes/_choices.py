"""Candidates for a recipe: what is known of LON-GNN and its relatives, random draws, and children;
and the choices among them, as the records have them.
"""

import dataclasses
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.records import ConfigTable, Values, config_of
from lab.studies import accuracy
from lab.studies._engine import read_records
from lab.studies._printed import PAPER, QUICK_DATASETS
from lab.studies._search import Space
from longnn.config import Config
from longnn.nn._model import PLACEMENTS
from longnn.registry import FEATURES_FORM, MODELS, PAPER_FORM, model_options
from longnn.tuning import load_space
from longnn.tuning._space import draw_random
from longnn.tuning._start import ONLY, STEPS

#: Rows of ``accuracy`` that are LON-GNN.
OWN_ROWS = ("lon", "lon-full", "lon-paper", "lon-default")
#: The winner of the paper's search, and the current recipe of the package.
OTHERS = ("search", "recipe")
#: Relatives with one filter for all channels; LON-GNN learns its basis instead of theirs.
RELATIVES = ("gpr", "appnp", "even", "bern", "cheb2")
#: What is drawn for every form.
SPACE: Space = {
    **PAPER_FORM,
    "weight": "probability",
    "monitor": {"choices": ["score", "loss"]},
    "lr_transform": {"choices": [0.005, 0.01, 0.02, 0.05]},
    "lr_coefficients": {"choices": [1e-4, 5e-4, 2e-3, 0.01]},
    "lr_factors": {"choices": [5e-4, 5e-3, 0.05]},
    "lr_basis": {"choices": [5e-4, 2e-3, 0.01]},
    "wd_transform": {"choices": [0.0, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3]},
    "wd_coefficients": {"choices": [0.0, 5e-5, 5e-4]},
    "input_dropout": {"low": 0.0, "high": 0.8, "step": 0.1},
    "dropout": {"low": 0.0, "high": 0.8, "step": 0.1},
    "filter_dropout": {"choices": [0.0, 0.2, 0.4, 0.6]},
    "a": {"choices": [-0.5, 0.0, 0.5, 1.0, 1.5]},
    "b": {"choices": [-0.5, 0.0, 0.5, 1.0, 1.5]},
}
_SHARED: Space = {
    "coefficients": "free",
    "shared": True,
    "restart": {"choices": [0.1, 0.3, 0.6, 1.0]},
}
_PCD: Space = {"gamma": {"choices": [0.5, 0.75, 1.0, 1.25, 1.5]}}
#: The forms, in equal shares: one filter for all class channels, without and with self loops, and
#: after normalised hidden units; one for each class, after an MLP or a linear map; one for each
#: hidden channel; filtered features, normalised, before an MLP, by one filter (then also with more
#: hidden units) or by one for each; and a filter at either place.
FORMS: tuple[Space, ...] = (
    _SHARED,
    {**_SHARED, "self_loops": "add"},
    {**_SHARED, "normalize": True},
    _PCD,
    {**_PCD, "transform": "linear"},
    {**_PCD, "placement": "hidden"},
    {**_SHARED, **FEATURES_FORM},
    {**_SHARED, **FEATURES_FORM, "hidden_channels": 256},
    {**_PCD, **FEATURES_FORM},
    {**_SHARED, **FEATURES_FORM, "placement": "both"},
)
#: What a child may change besides :data:`~longnn.tuning.STEPS`: to another of these.
SWITCHES: dict[str, tuple[str | bool, ...]] = {
    "monitor": ("score", "loss"),
    "weight": ("probability", "paper"),
    "self_loops": ("keep", "add"),
    "transform": ("mlp", "linear", "residual"),
    "placement": PLACEMENTS,
    "normalize": (False, True),
}
#: Orthonormal polynomials are large at the ends of the spectrum (at the default a and b the tenth
#: is 9 and 28 there), so a rate that suits the coefficients of monomials makes the filter jump:
#: every candidate is also tried at slower filter rates. The last ones hold a filter almost where
#: it starts, as APPNP does.
SLOWER: dict[str, dict[str, float]] = {
    "slow": {"lr_coefficients": 5e-4, "lr_factors": 5e-4, "lr_basis": 2e-3},
    "still": {"lr_coefficients": 1e-6, "lr_factors": 1e-6, "lr_basis": 1e-6},
}


def candidates(known: Mapping[str, ConfigTable]) -> dict[str, Config]:
    """Configurations of LON-GNN, each as it was found and with slower filter rates.

    ``known`` has them by the row of ``accuracy`` that they come from, or ``search``, or ``recipe``.
    """
    found = {key: config_of(known[key]) for key in (*OWN_ROWS, *OTHERS) if key in known}
    for key in (*RELATIVES, "jacobi"):
        if key in known:
            found[key] = _carry_over(key, known[key])
    slower = {
        f"{key}, {word}": config.replace(**rates)
        for word, rates in SLOWER.items()
        for key, config in found.items()
    }
    return {**found, **slower}


def _carry_over(key: str, keys: ConfigTable) -> Config:
    """The rates, decays and dropouts of a relative, in the form of LON-GNN nearest to it."""
    form: dict[str, object] = {**PAPER_FORM, "weight": "probability"}
    if key == "jacobi":
        form["transform"] = "linear"
    else:
        form |= {"coefficients": "free", "shared": True, "restart": keys.get("restart", 1.0)}
        form["self_loops"] = MODELS[key].model.self_loops
    known = model_options("lon")
    own = {k: v for k, v in keys.items() if k not in model_options(key) or k in known}
    return Config.from_dict({**own, **form, "model": "lon"})


def random_candidates(count: int, epochs: int) -> dict[str, Config]:
    """Random configurations, the forms in turn, in a fixed order."""
    spaces = [load_space({**SPACE, "epochs": epochs, **form}, "lon") for form in FORMS]
    return {
        f"random {i}": spaces[i % len(spaces)].config(values)
        for i, values in enumerate(draw_random(spaces, count))
    }


def children_of(kept: Mapping[str, Config], count: int, generation: int) -> dict[str, Config]:
    """Each kept configuration in turn has a child that differs in one to three values."""
    generator, names = random.Random(generation), list(kept)
    children = {}
    for i in range(count):
        name = names[i % len(names)]
        child = vary(kept[name], generator)
        children[f"{name.split(' > ')[0]} > {generation}.{i}"] = child
    return children


def vary(config: Config, generator: random.Random) -> Config:
    """A configuration that differs in one to three values that matter to it."""
    keys = config.to_dict()
    known = [
        key
        for key in (*STEPS, *SWITCHES)
        if ONLY.get(key, keys["coefficients"]) == keys["coefficients"]
    ]
    changed: dict[str, str | bool | float] = {}
    for key in generator.sample(known, generator.choice((1, 2, 3))):
        if key in SWITCHES:
            changed[key] = generator.choice([v for v in SWITCHES[key] if v != keys[key]])
        else:
            changed[key] = _step(STEPS[key], keys[key], generator)
    return config.replace(**changed)


def _step(values: Sequence[float], now: float, generator: random.Random) -> float:
    """A value one or two places from the one nearest to the present, never the same."""
    at = min(range(len(values)), key=lambda i: abs(values[i] - now))
    near = [i for i in range(len(values)) if i != at and abs(i - at) <= 2]
    return values[generator.choice(near)]


@dataclasses.dataclass(frozen=True)
class Choice:
    """The recipe of LON-GNN on one graph; without a selection no round and no final."""

    chosen: str  # name of the winner
    cell: Values  # its configuration, and what it reached
    #: Candidate -> mean score of the first round.
    first: Mapping[str, float] = dataclasses.field(default_factory=dict)
    #: Finalist -> scores of the final.
    holdout: Mapping[str, list[float]] = dataclasses.field(default_factory=dict)


def read_choices(results: Path) -> dict[str, Choice]:
    """Graph -> the recipe of LON-GNN; without a selection, the row of the longest search."""
    selections = read_records(results / "recipes", (*PAPER, *QUICK_DATASETS))
    choices = {}
    for name, rows in accuracy.read(results / "accuracy").items():
        record = selections.get(name)
        if record is not None and "lon" in record:
            cell, first = record["lon"], record["round 1"]["means"]
            choices[name] = Choice(cell["chosen"], cell, first, cell["holdout"])
        else:
            key = next((k for k in ("lon-full", "lon") if k in rows), None)
            if key is not None:
                choices[name] = Choice(key, rows[key])
    return choices

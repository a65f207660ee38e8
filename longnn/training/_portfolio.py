"""Portfolios: lists of complementary configurations that are trained side by side and joined.

They are data, in ``portfolio.toml``: one table per preset and member.
``python -m lab study portfolio`` chooses them and writes the file. What
they leave open (seed, split, device, ...) is the user's.
"""

import functools
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from longnn.config import AFTERWARDS, Config
from longnn.data import NodeDataset
from longnn.recipes import known_recipes, load_recipe

#: Seeds of each member.
SEEDS = {"default": 1, "best": 2}
#: Seeds of the recipe of a named dataset in the preset ``best``.
RECIPE_SEEDS = 4
#: Between the seeds of one member; repeats have the seeds seed, seed + 1, ...
SEED_STEP = 1000
#: Epochs without improvement before a member of a portfolio stops.
PATIENCE = 100
#: What a user may set beside a preset of several models.
FREE = frozenset(
    [
        "preset",
        "split",
        "seed",
        "repeat",
        "scale",
        "device",
        "precision",
        "time_limit",
        *AFTERWARDS,
        "epochs",
        "patience",
        "batch_rows",
        "class_weight",
        "direction",
    ]
)


@functools.cache
def portfolio(preset: str) -> dict[str, dict[str, Any]]:
    """The members of a preset by name, as flat tables without what is the user's.

    >>> len(portfolio("default"))
    8
    """
    text = resources.files(__package__).joinpath("portfolio.toml").read_text(encoding="utf-8")
    return dict(tomllib.loads(text)[preset])


def members_of(config: Config, dataset: NodeDataset) -> dict[str, Config]:
    """The configurations that a preset of several models stands for, by name.

    Args:
        config: with a preset other than ``"fast"``; it gives what :data:`FREE` names.
        dataset: to train on. For a named one that has a recipe, ``"best"`` trains that too.
    """
    own = {key: value for key, value in config.to_dict().items() if key in FREE}
    # The whole follows the frequencies of validation nodes, not each member.
    own |= {"preset": "fast", "repeat": 1, "frequencies": "train"}
    tables: dict[str, tuple[Mapping[str, Any], int]] = {
        name: (table, SEEDS[config.preset]) for name, table in portfolio(config.preset).items()
    }
    if config.preset == "best":
        tables |= _recipe(dataset)
    found = {}
    for name, (table, seeds) in tables.items():
        for k in range(seeds):
            label = name if k == 0 else f"{name}, seed {k + 1}"
            seed = config.seed + k * SEED_STEP
            found[label] = Config.from_dict({**table, **own, "seed": seed})
    return found


def _recipe(dataset: NodeDataset) -> dict[str, tuple[Mapping[str, Any], int]]:
    """The recipe of a named dataset, if it has one."""
    source = dataset.source
    if source is None or not source.is_named or ("lon", source.graph) not in known_recipes():
        return {}
    return {f"recipe for {source.graph}": (load_recipe("lon", source.graph), RECIPE_SEEDS)}

"""Tuned configurations that come with the package, one TOML file per model.

``MODEL.toml`` in this folder has one table per dataset: values of a
:class:`~longnn.config.Config`, and above it, in comment lines, where it comes from. A recipe says
how to train, and not on what machine or how often: ``seed``, ``repeat``, ``device``, ``scale`` and
``split`` are left to whoever uses it.
"""

import functools
import tomllib
from importlib import resources
from typing import Any

__all__ = ["known_recipes", "load_recipe"]

_HERE = resources.files(__name__)


def load_recipe(model: str, dataset: str) -> dict[str, Any]:
    """The values of a recipe, for :meth:`Config.from_dict <longnn.config.Config.from_dict>`.

    Args:
        model: short name of the model.
        dataset: name of the dataset.

    Returns:
        a flat table, the model's name included. Its score was measured without a shift towards the
        class frequencies of validation nodes, and so it is to be repeated.

    Raises:
        ValueError: if there is none; the message names the datasets that have one.

    >>> load_recipe("lon", "csbm")["model"]
    'lon'
    """
    recipes = known_recipes()
    if (model, dataset) not in recipes:
        of_model = [(of, name) for of, name in recipes if of == model]
        models = ", ".join(dict(of_model or recipes))
        datasets = ", ".join(dict.fromkeys(name for _, name in of_model or recipes))
        raise ValueError(
            f"Expected a dataset with a recipe for model {model!r} (got {dataset!r}); "
            f"there are recipes of {models} for {datasets}"
        )
    return {"frequencies": "train", **_read()[model][dataset]}


def known_recipes() -> list[tuple[str, str]]:
    """Every (model, dataset) that has a recipe, in order.

    >>> ("lon", "csbm") in known_recipes()
    True
    """
    return sorted((model, dataset) for model, tables in _read().items() for dataset in tables)


@functools.cache
def _read() -> dict[str, dict[str, dict[str, Any]]]:
    """Model -> dataset -> values."""
    files = [file for file in _HERE.iterdir() if file.name.endswith(".toml")]
    return {
        file.name.removesuffix(".toml"): tomllib.loads(file.read_text(encoding="utf-8"))
        for file in files
    }

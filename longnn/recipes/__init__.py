"""Tuned configurations that come with the package, one TOML file a model and dataset.

A recipe is ``MODEL/DATASET.toml`` in this folder: flat keys of :class:`~longnn.config.Config`, and
at its top, in comment lines, where it comes from. It says how to train and not on what machine or
how often: ``seed``, ``repeat``, ``device`` and ``scale`` are left to whoever uses it.
"""

import tomllib
from importlib import resources
from typing import Any

_HERE = resources.files(__name__)


def load_recipe(model: str, dataset: str) -> dict[str, Any]:
    """The keys of a recipe, for :meth:`Config.from_dict <longnn.config.Config.from_dict>`.

    Raises:
        ValueError: where there is none, naming the datasets that have one.

    >>> load_recipe("lon", "csbm")["model"]
    'lon'
    """
    known = known_recipes()
    if (model, dataset) not in known:
        of_model = [(of, name) for of, name in known if of == model]
        models = ", ".join(dict(of_model or known))
        datasets = ", ".join(dict.fromkeys(name for _, name in of_model or known))
        raise ValueError(
            f"Expected a dataset with a recipe for model {model!r} (got {dataset!r}); "
            f"there are recipes of {models} for {datasets}"
        )
    text = _HERE.joinpath(model, f"{dataset}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def known_recipes() -> list[tuple[str, str]]:
    """Every (model, dataset) that has a recipe, in order."""
    return sorted(
        (folder.name, file.name.removesuffix(".toml"))
        for folder in _HERE.iterdir()
        if folder.is_dir()
        for file in folder.iterdir()
        if file.name.endswith(".toml")
    )

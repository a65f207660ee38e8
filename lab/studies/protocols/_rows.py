"""The rows: single models with what Table 3 chose for them, LON-GNN's recipe, and ensembles.

To add an ensemble, add an entry to :data:`ENSEMBLES`: a label, a function that gives its members on
a graph, and how they are joined. The next run trains this row alone, beside what is recorded. A
list of configurations that the package ships is such an ensemble, joined by ``"votes"``.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from lab.records import StudyRecord
from lab.studies import accuracy
from lab.studies._core._context import record_path
from lab.studies._core._protocol import ModelCell, Row
from lab.studies.portfolio._graphs import GRAPHS as COLLECTION
from lab.studies.portfolio._run import SELECTION
from lab.studies.portfolio._select import Selection
from lab.studies.protocols._train import Entry, Join
from lab.studies.recipes._candidates import complete
from longnn.config import Config
from longnn.recipes import known_recipes, load_recipe
from longnn.registry import FEATURES_FORM
from longnn.training import PATIENCE
from longnn.training import SEEDS as PRESET_SEEDS

#: The key of LON-GNN's recipe as a single model.
RECIPE = "lon-recipe"
#: Seeds of an ensemble of one configuration, and how far they are apart.
SEEDS, STRIDE = 8, 1000
#: Most epochs of a member of a portfolio.
MOST = 1000


@dataclasses.dataclass(frozen=True)
class Ensemble:
    """A row whose predictions are those of several trained members.

    Args:
        label: as tables name it; it says that this is an ensemble.
        members: the configurations on a graph, by its name and the folder that holds one folder
            per study; none leaves the row out. A configuration's own seed is added to that of the
            split.
        join: ``"average"``, or ``"votes"`` on the validation nodes
            (:func:`longnn.training.ensemble_weights`).
    """

    label: str
    members: Callable[[str, Path], Sequence[Config]]
    join: Join


def recipe_of(name: str) -> Config | None:
    """LON-GNN's recipe for a graph, if there is one.

    >>> recipe_of("csbm").model
    'lon'
    """
    return complete(load_recipe("lon", name)) if ("lon", name) in known_recipes() else None


def _seeds_of_recipe(name: str, results: Path) -> list[Config]:
    recipe = recipe_of(name)
    return [] if recipe is None else [recipe.replace(seed=STRIDE * k) for k in range(SEEDS)]


def _portfolio(preset: str, name: str, results: Path) -> list[Config]:
    """The portfolio that was chosen without the graph, or without all of its kind where no recipe
    is of this graph alone; nothing where it was not left out.
    """
    path = record_path(results / "portfolio", SELECTION)
    if not path.is_file():
        return []
    selection = StudyRecord.load(path).get(SELECTION, Selection)
    limits = {"epochs": MOST, "patience": PATIENCE}
    portfolio = selection.portfolios[preset]
    members = portfolio.without_graph.get(name, [])
    if not members and name in COLLECTION:
        members = portfolio.without_kind[COLLECTION[name].kind]
    configs = [selection.config(member, limits) for member in members]
    seeds = range(PRESET_SEEDS[preset])
    return [c.replace(seed=c.seed + STRIDE * k) for k in seeds for c in configs]


ENSEMBLES: dict[str, Ensemble] = {
    "lon-recipe-seeds": Ensemble(
        f"ensemble: LON-GNN's recipe, {SEEDS} seeds averaged", _seeds_of_recipe, "average"
    ),
    "portfolio": Ensemble(
        "ensemble: portfolio chosen without the graph", partial(_portfolio, "default"), "votes"
    ),
    "portfolio-best": Ensemble(
        "ensemble: portfolio of best, without the graph",
        partial(_portfolio, "best"),
        "votes",
    ),
}
#: Single models: the rows of Table 3, and the recipe.
SINGLE = {**accuracy.LABELS, RECIPE: "LON-GNN's recipe"}
#: Single row -> the model that it is a variant of.
MODELS = {**{key: row.model for key, row in accuracy.ROWS.items()}, RECIPE: "lon"}
LABELS = {**SINGLE, **{key: ensemble.label for key, ensemble in ENSEMBLES.items()}}
#: What a quick run looks at.
QUICK_ROWS = ("lon", "gpr", "gcn", RECIPE, "lon-recipe-seeds")
#: One row per model, all with the same budget of search: what the order of models is taken from.
EQUAL = tuple(key for key, row in accuracy.ROWS.items() if key == "lon" or row.model != "lon")
#: What is searched on Minesweeper and Tolokers: the same models, LON-GNN also on filtered features.
FAMILIES: dict[str, Row] = {
    **{key: accuracy.ROWS[key] for key in EQUAL},
    "lon": dataclasses.replace(
        accuracy.ROWS["lon"], forms=(*accuracy.FORMS, {**accuracy.FORMS[0], **FEATURES_FORM})
    ),
}


def chosen_configs(results: Path, name: str) -> dict[str, Config]:
    """Row -> what the equal-budget search of ``accuracy`` chose on a graph, and the recipe.

    Args:
        results: the folder that holds one folder per study.
        name: of the graph.

    Raises:
        ValueError: if ``accuracy`` has no record of the graph.
    """
    path = record_path(results / "accuracy", name)
    if not path.is_file():
        raise ValueError(
            f"Expected the record of `accuracy` for {name!r} (there is no {path}); run "
            f"`python -m lab study accuracy --dataset {name}` first, or choose its folder by "
            "--output"
        )
    cells = StudyRecord.load(path).all(ModelCell)
    found = {key: complete(cells[key].config) for key in accuracy.ROWS if key in cells}
    return _with_recipe(found, name)


def default_configs(name: str) -> dict[str, Config]:
    """Row -> the default configuration of its model: for a quick look before any search.

    >>> default_configs("csbm")["gcn"].model
    'gcn'
    """
    found = {
        key: Config.from_dict({"model": row.model, **row.fixed})
        for key, row in accuracy.ROWS.items()
    }
    return _with_recipe(found, name)


def _with_recipe(found: Mapping[str, Config], name: str) -> dict[str, Config]:
    recipe = recipe_of(name)
    return {**found} if recipe is None else {**found, RECIPE: recipe}


def entries(
    configs: Mapping[str, Config], name: str, results: Path, *, epochs: int, members: int = 0
) -> dict[str, Entry]:
    """All rows on one graph: the single models, then the ensembles.

    Args:
        configs: of the single models.
        name: of the graph.
        results: the folder that holds one folder per study.
        epochs: most epochs of a training.
        members: most members of an ensemble; 0 is all.
    """
    made = {key: Entry([config]) for key, config in configs.items()}
    for key, ensemble in ENSEMBLES.items():
        found = list(ensemble.members(name, results))
        if found:
            made[key] = Entry(found[: members or None], ensemble.join)
    return {key: entry.limited(epochs) for key, entry in made.items()}

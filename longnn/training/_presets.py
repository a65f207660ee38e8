"""What a configuration is filled up with: defaults by the data, and the models of a preset.

The defaults of :class:`~longnn.config.Config` were chosen on graphs of papers and pages, with words
as features: hundreds of sparse columns, of which half may be dropped. A table of few columns loses
what it has by that. The values here were chosen on development tables, by nodes that stopped no
training (docs/results/presets.md), and tested on other tables (docs/results/tables.md).

A portfolio is a list of complementary configurations that are trained side by side and joined:
data, in ``portfolio.toml``, one table per preset and member, chosen by validation nodes
(docs/results/portfolio.md). What they leave open (seed, split, device, ...) is the user's.
"""

import functools
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from longnn.config import Config
from longnn.config._config import AFTERWARDS, RARE, Settings
from longnn.data import NodeDataset
from longnn.recipes import known_recipes, load_recipe
from longnn.registry import FEATURES_FORM, find_model, model_options
from longnn.training._fit import decide_direction
from longnn.training._problem import row_degree_of

#: Seeds of each member.
SEEDS = {"default": 1, "best": 2}
#: Seeds of the recipe of a named dataset in the preset ``best``.
RECIPE_SEEDS = 4
#: Between the seeds of one member; repeats have the seeds seed, seed + 1, ...
SEED_STEP = 1000
#: Epochs without improvement before a member of a portfolio stops.
PATIENCE = 100
#: Trees take longer than filters where columns times outputs are more than that.
MOST_COLUMNS = 1000
#: Spread and extremes of neighbours double the time of trees: of more columns, averages will do.
MOST_AROUND = 100
#: What a user may set beside a preset of several models.
FREE = frozenset(
    [
        "preset",
        "members",
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


def portfolio(
    preset: str,
    *,
    words: bool = True,
    by_rows: bool = False,
    numbers: bool = False,
    many: bool = False,
) -> dict[str, dict[str, Any]]:
    """The members of a preset by name, as flat tables without what is the user's.

    Args:
        preset: ``"default"`` or ``"best"``.
        words: for a graph with words as features, or too many columns: filters alone. On a table
            fewer of them stand beside trees and stacks of filters. Trees come first: they are
            trained in a second.
        by_rows: for a graph on disk: all filters, since few of them have a form there, and one
            with the settings of ``"fast"``, since those that have were chosen for words.
        numbers: for numbers to predict, not classes.
        many: for many columns: trees see averages of neighbours alone, as they do on disk.

    >>> len(portfolio("default"))
    8
    >>> list(portfolio("default", words=False))[:2]
    ['trees, own columns', 'trees, around']
    """
    filters = _read("portfolio.toml")[preset]
    if words:
        return dict(filters)
    composition = _read("composition.toml")
    names = composition[preset]["numbers" if numbers else "classes"]
    if by_rows or preset == "best":
        names = [*(name for name in names if name not in filters), *filters]
    if by_rows:
        names.insert(names.index(next(iter(filters))), "table, features")
    known = {**composition["members"], "table, features": _ROWS_OF_TABLE, **filters}
    if by_rows or many:
        names = [known[name].get("averages", name) for name in names]
    return {name: _as_its_model(known[name]) for name in names}


def _as_its_model(table: Mapping[str, Any]) -> dict[str, Any]:
    """A member, filled up with the member of the preset ``"default"`` that it is ``like``; the one
    that sees averages alone is no option."""
    own = dict(table)
    like, _ = own.pop("like", None), own.pop("averages", None)
    return {**_read("portfolio.toml")["default"].get(like, {}), **own}


@functools.cache
def _read(name: str) -> dict[str, Any]:
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    return tomllib.loads(text)


def is_for_trees(dataset: NodeDataset) -> bool:
    """Whether trees are worth their time: not on words, nor on very many columns or outputs."""
    cells = dataset.num_features * dataset.outputs
    return cells <= MOST_COLUMNS and not dataset.backing.has_words()


def members_of(config: Config, dataset: NodeDataset, *, every: bool = False) -> dict[str, Config]:
    """The configurations that a preset of several models stands for, by name.

    Args:
        config: with a preset other than ``"fast"``; it gives what :data:`FREE` names, and perhaps
            members of its own.
        dataset: to train on. For a named one that has a recipe, ``"best"`` trains that too.
        every: those that have no form on disk too, where the graph is there.
    """
    own = {key: value for key, value in config.to_dict().items() if key in FREE}
    # The whole follows the frequencies of validation nodes, not each member.
    own |= {"preset": "fast", "repeat": 1, "frequencies": "train", "known_answers": "none"}
    backing = dataset.backing
    chosen = config.members or portfolio(
        config.preset,
        words=not is_for_trees(dataset),
        by_rows=backing.by_rows,
        numbers=dataset.task == "regression",
        many=dataset.num_features > MOST_AROUND,
    )
    seeds = SEEDS[config.preset]
    tables: dict[str, tuple[Mapping[str, Any], int]] = {
        name: (table, seeds) for name, table in chosen.items()
    }
    if config.preset == "best":
        tables |= _recipe(dataset)
    found = {}
    for name, (table, seeds) in tables.items():
        for k in range(seeds):
            label = name if k == 0 else f"{name}, seed {k + 1}"
            seed = config.seed + k * SEED_STEP
            found[label] = Config.from_dict({**table, **own, "seed": seed})
    if dataset.backing.by_rows and not every:
        return {name: own for name, own in found.items() if row_degree_of(own) is not None}
    return found


def left_out_note(config: Config, dataset: NodeDataset) -> str:
    """Which models of a preset have no form on disk, in a sentence; empty where all have one."""
    if config.preset == "fast":
        return ""
    everyone, kept = members_of(config, dataset, every=True), members_of(config, dataset)
    absent = [name for name in everyone if name not in kept]
    if not absent:
        return ""
    return (
        f"{len(kept)} of the {len(everyone)} models of preset {config.preset!r} can be trained "
        f"from disk, and are; left out: {'; '.join(absent)}."
    )


def _recipe(dataset: NodeDataset) -> dict[str, tuple[Mapping[str, Any], int]]:
    """The recipe of a named dataset, if it has one."""
    source = dataset.source
    if source is None or not source.is_named or ("lon", source.graph) not in known_recipes():
        return {}
    return {f"recipe for {source.graph}": (load_recipe("lon", source.graph), RECIPE_SEEDS)}


#: Epochs without improvement before a training on rows stops, where they have many steps.
ROW_PATIENCE = 10

#: What all tables have in common: the filter acts on hidden units and learns quickly. A penalty on
#: high degrees pulls it to the identity, so that the graph counts as far as it pays. The study
#: shows no clear gain of it: one point on one of three graphs that mean nothing. It is a sum over
#: all filters, so the weight is lower where each hidden unit has its own: three times as much costs
#: two points on prices that vary smoothly over a map.
_TABLE = {"placement": "hidden", "lr_transform": 0.02, "lr_coefficients": 0.01}
#: The neighbours' columns may mean something else than a node's own: one filter per hidden unit.
#: Dropped columns are wrong values, of which no smooth function can be learned.
_REGRESSION = {
    **_TABLE,
    "shared": False,
    "input_dropout": 0.0,
    "dropout": 0.1,
    "filter_dropout": 0.0,
    "degree_penalty": 0.003,
}
#: Few labels carry much noise: more dropout. The loss decides; the study shows no clear difference.
_CLASSIFICATION = {
    **_TABLE,
    "input_dropout": 0.1,
    "dropout": 0.4,
    "filter_dropout": 0.0,
    "degree_penalty": 0.01,
    "monitor": "loss",
}


#: A graph that is trained on rows: an MLP of filtered features, which has rows, in small steps.
_ROWS = {
    **FEATURES_FORM,
    "lr_transform": 0.005,
    "lr_coefficients": 0.005,
    "lr_basis": 0.005,
    "input_dropout": 0.0,
    "dropout": 0.2,
    "filter_dropout": 0.0,
    "monitor": "loss",
}
#: Of a table, beside the filters of a portfolio: one per hidden unit, so that units can ask for a
#: node's own columns or its neighbours', of each type of edges, and of low degree.
_ROWS_OF_TABLE = {**_ROWS, "shared": False, "degree": 4}


def _row_patience(dataset: NodeDataset) -> int:
    """As many steps as in memory, where an epoch is one step; but some epochs at least."""
    steps = -(-dataset.asked.num_nodes // Settings().batch_rows)
    return max(ROW_PATIENCE, PATIENCE // max(steps, 1))


def data_defaults(dataset: NodeDataset) -> dict[str, Any]:
    """What own data ask for, as keys of a configuration; nothing for data that are ready to use.

    - Named and bundled datasets, and own ones with words as features (over 200 columns, at most a
      tenth of the values nonzero): the defaults.
    - Regression on a table: one filter per hidden unit, and hardly any dropout.
    - Classification on a table: one filter for all hidden units, and some dropout.
    - A graph that is trained on rows: a filter on the features, small steps.

    >>> import torch
    >>> from longnn.data import from_data
    >>> ring = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    >>> houses = from_data({"x": torch.rand(4, 3), "edge_index": ring, "y": torch.rand(4)})
    >>> data_defaults(houses)["placement"], data_defaults(houses)["input_dropout"]
    ('hidden', 0.0)
    """
    backing = dataset.backing
    if backing.by_rows:
        return {**_ROWS, "patience": _row_patience(dataset)}
    if dataset.ready or backing.has_words():
        return {}
    return dict(_REGRESSION if dataset.task == "regression" else _CLASSIFICATION)


def keys_of_one(table: Mapping[str, Any]) -> list[str]:
    """What is set that each member of a portfolio has of its own.

    >>> keys_of_one({"epochs": 10, "dropout": 0.1})
    ['dropout']
    """
    return [key for key in table if key not in FREE]


def preset_of(table: Mapping[str, Any]) -> str:
    """The preset that is set, or that follows from what else is.

    >>> preset_of({"epochs": 10}), preset_of({"model": "gcn"})
    ('default', 'fast')
    """
    return str(table.get("preset", "fast" if keys_of_one(table) else "default"))


def complete(table: Mapping[str, Any], dataset: NodeDataset) -> Config:
    """A configuration: what was set, else what the data ask for, else the defaults.

    Where no preset is set, it is ``"default"``, unless something is set that each member of a
    portfolio has of its own, such as the model or a learning rate: that asks for one model.

    Args:
        table: what the user has set, as :meth:`~longnn.config.Config.from_dict` takes it. An option
            of LON-GNN that the chosen model does not have is not filled in, and no penalty on the
            degree where the basis is not orthonormal.
        dataset: to train on.

    Raises:
        ValueError: for a preset of several models with something that they have of their own.
    """
    own = keys_of_one(table)
    preset = preset_of(table)
    model = table.get("model", "lon")
    known = model_options(model)
    foreign = {*model_options("lon"), *find_model(model).settings} - set(known)
    if not {**known, **table}.get("orthonormal", False):
        foreign.add("degree_penalty")  # defined for orthonormal bases only
    filled = {key: value for key, value in data_defaults(dataset).items() if key not in foreign}
    # Who says nothing has all answers known. A configuration that was written down says what is
    # done after training, and leaves out only what means none.
    if not {*AFTERWARDS} - {*RARE} <= table.keys():
        filled = {"known_answers": "all", **filled}
    config = Config.from_dict({**filled, **table, "preset": preset})
    config = decide_direction(config, dataset)
    if preset == "fast":
        return config
    # A configuration that was written down names every key. One that says what this data would get
    # unasked is no wish of the user, so it may stand beside a portfolio.
    usual = Config.from_dict(data_defaults(dataset)).to_dict()
    asked = config.to_dict()
    for key in own:
        if asked[key] != usual.get(key):
            raise ValueError(
                f"Expected no `{key}` beside preset={preset!r}, whose models have their own (got "
                f"{table[key]!r}); use preset='fast' to train one model"
            )
    patience = data_defaults(dataset).get("patience", PATIENCE)
    return config if "patience" in table else config.replace(patience=patience)

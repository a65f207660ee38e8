"""Searches: a row is a model with a space, and validation nodes alone choose its configuration.

*The protocol*, the same for every model of a table:

1. A search of a fixed budget in one space, on tuning splits (seeds from 1000).
2. Its best few trials again on further tuning splits: the best of many trials on few splits is
   partly luck. The best mean over these further splits wins.
3. The winner on the published splits, seeds 0 to 9. Test nodes are looked at here only.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lab.studies._engine import Cell, Cells, Context
from lab.studies._printed import QUICK_DATASETS, read_toml
from lab.studies._training import make_splits, train_config
from longnn.config import Config
from longnn.data import NodeDataset
from longnn.registry import FEATURES_FORM, PAPER_FORM
from longnn.tuning import SearchSpace, confirm, load_space, tune
from longnn.tuning._splits import tuning_seeds

#: Settings that say nothing about what was chosen.
_PASSING = ("seed", "repeat", "device", "split", "scale", "precision")
#: Entries of a search space, as its TOML has them: a value, or a table of choices or a range.
Space = Mapping[str, object]
Plan = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of a table: a model, what is fixed of it, and what else is searched."""

    label: str
    model: str
    fixed: Space = dataclasses.field(default_factory=dict)
    #: Variants of the model between which the search decides too; each gets its share of the
    #: trials. A value may be fixed, or searched as in a space's TOML.
    forms: Sequence[Space] = ({},)
    #: Entries that replace or extend those of the space, as its TOML has them.
    searched: Space = dataclasses.field(default_factory=dict)
    #: A multiple of the trials. Above one, twice as many finalists are confirmed on twice as many
    #: further splits.
    budget: int = 1
    tuned: bool = True  # or the default configuration without any search
    leave_dropout_on: bool = False  # also score with the hidden dropout left on


def read_rows(study: str) -> dict[str, Row]:
    """The rows of a study, from ``rows.toml``.

    >>> read_rows("ablation")["free"].fixed["coefficients"]
    'free'
    """
    every = read_toml("rows")
    tables = {**every["tables"], "paper": PAPER_FORM, "features": FEATURES_FORM}

    def merged(names: Sequence[str]) -> Space:
        return {key: value for name in names for key, value in tables[name].items()}

    rows = {}
    for key, entry in every[study].items():
        entries = {"label": entry, "model": key} if isinstance(entry, str) else {**entry}
        fixed, forms = merged(entries.pop("fixed", ())), entries.pop("forms", ((),))
        rows[key] = Row(**entries, fixed=fixed, forms=tuple(map(merged, forms)))
    return rows


#: What is spent on a row, the same for every row: trials of the search, tuning splits of each
#: (repeats), best trials that are confirmed and further splits of each, and reported splits.
PROTOCOL: Plan = {
    "trials": 64,
    "repeats": 2,
    "finalists": 5,
    "confirmations": 5,
    "splits": 10,
    "space": "compact",
    "epochs": 1000,
}
QUICK: Plan = {
    **PROTOCOL,
    "trials": 4,
    "repeats": 1,
    "finalists": 2,
    "confirmations": 1,
    "splits": 2,
    "epochs": 60,
}


def row_cells(
    context: Context, rows: Mapping[str, Row], datasets: Sequence[str], *, borrow: str = ""
) -> Cells:
    """A cell for every row on every graph, one record per graph."""
    plan = QUICK if context.quick else PROTOCOL
    chosen = context.choose("models", list(rows))
    for name in context.choose("datasets", QUICK_DATASETS if context.quick else datasets):
        load = functools.cache(functools.partial(context.load, name))
        for key in chosen:
            compute = functools.partial(run_row, load, rows[key], plan, context.device)
            yield Cell(name, plan, key, compute, borrow=borrow)


def run_row(load: Callable[[], NodeDataset], row: Row, plan: Plan, device: str) -> dict[str, Any]:
    """Search, confirm and report one row on one graph."""
    dataset = load()
    if row.tuned:
        config, search = _choose(dataset, row, plan, device)
    else:
        config, search = Config.from_dict({"model": row.model, **row.fixed}), None
        config = config.replace(epochs=min(config.settings.epochs, plan["epochs"]))
    splits = make_splits(dataset, "published", plan["splits"])
    options = {"device": device, "leave_dropout_on": row.leave_dropout_on}
    cell = train_config(dataset, config, splits, **options)  # type: ignore[arg-type]
    kept = {k: v for k, v in config.to_dict().items() if k not in _PASSING}
    return {**cell, "config": kept, "search": search}


def _choose(
    dataset: NodeDataset, row: Row, plan: Plan, device: str
) -> tuple[Config, dict[str, Any]]:
    """The configuration that validation prefers, and how it was found."""
    candidates: list[tuple[float, Config]] = []
    trials, seconds = 0, 0.0
    for form in row.forms:
        space = search_space(row, form, plan)
        result = tune(
            dataset,
            space,
            model=row.model,
            trials=max(1, row.budget * plan["trials"] // len(row.forms)),
            repeats=plan["repeats"],
            batch=plan["trials"],
            split="published",
            scale="none",
            default=False,  # the sampler alone, as in the paper
            folder=None,
            finalists=0,  # they are confirmed below, over all forms
            device=device,
        )
        trials += result.record.finished
        seconds += result.record.seconds
        candidates += [
            (trial.value, space.config(trial.params, scale="none"))
            for trial in result.record.with_state("complete")
            if trial.value is not None
        ]
    twice = 1 if row.budget == 1 else 2
    candidates = sorted(candidates, key=lambda c: -c[0])[: twice * plan["finalists"]]
    configs = [config for _, config in candidates]
    repeats = plan["repeats"]
    further = tuning_seeds(repeats + twice * plan["confirmations"])[repeats:]
    confirmed = confirm(dataset, configs, further, split="published", device=device)
    best = max(range(len(configs)), key=lambda i: (sum(confirmed[i]), -i))
    finalists = [
        {"search": round(value, 6), "confirmed": [round(score, 6) for score in again]}
        for (value, _), again in zip(candidates, confirmed, strict=True)
    ]
    spent = {"trials": trials, "seconds": round(seconds, 2)}
    return configs[best], {**spent, "finalists": finalists, "chosen": best}


def search_space(row: Row, form: Space, plan: Plan) -> SearchSpace:
    """The plan's space with what the row fixes or adds."""
    table = {**load_space(plan["space"], row.model).source, "epochs": plan["epochs"]}
    models = table.get("models", {})
    entries = {**models.get(row.model, {}), **row.searched, **row.fixed, **form}
    return load_space({**table, "models": {**models, row.model: entries}}, row.model)

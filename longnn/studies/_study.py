"""One protocol for every model: search on validation, confirm the finalists, report ten splits.

1. A search of a fixed budget in one space, on tuning splits (seeds from 1000).
2. Its best few trials again on further tuning splits: the best of many trials on few splits is
   partly luck. The best mean over these further splits wins.
3. The winner on the published splits, seeds 0 to 9. Test nodes are looked at here only.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from longnn import data
from longnn.bench import DATASETS
from longnn.config import Config
from longnn.data import NodeDataset
from longnn.studies._evaluation import train_splits
from longnn.studies._paper import Context
from longnn.studies._record import Record, read_record
from longnn.tuning import SearchSpace, confirm, load_space, tune, tuning_seeds

TEN = DATASETS
#: Keys of a configuration that say nothing about what was chosen.
_PASSING = ("seed", "repeat", "device", "split", "scale", "precision")


@dataclasses.dataclass(frozen=True)
class Entry:
    """A row: a model, what is fixed of it, and what else is searched.

    Args:
        label: as tables name it.
        model: its short name.
        fixed: keys that are not searched.
        forms: variants of the model between which the search decides too; each gets its share of
            the trials. A value may be fixed, or searched as in a space's TOML.
        searched: entries that the space has not or has otherwise, as a space's TOML has them.
        effort: how many times the trials; where it is above one, twice the finalists on twice the
            further splits.
        tuned: False trains the default configuration without any search.
        leave_dropout_on: also score with the hidden dropout left on.
    """

    label: str
    model: str
    fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    forms: Sequence[Mapping[str, Any]] = ({},)
    searched: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    effort: int = 1
    tuned: bool = True
    leave_dropout_on: bool = False


@dataclasses.dataclass(frozen=True)
class Budget:
    """How much is spent on a row; the same for every row."""

    trials: int = 64
    repeats: int = 2
    finalists: int = 5
    confirmations: int = 5
    splits: int = 10
    space: str = "compact"
    epochs: int = 1000


QUICK = Budget(trials=4, repeats=1, finalists=2, confirmations=1, splits=2, epochs=60)
#: What --quick looks at: bundled, so that it needs no files.
QUICK_DATASETS = ("csbm",)


def run_entries(
    context: Context, entries: Mapping[str, Entry], datasets: Sequence[str], *, borrow: str = ""
) -> None:
    """Compute what the records, one a dataset, lack; ``borrow`` names an experiment beside this
    one whose parts of the same budget are taken over instead of being computed again."""
    budget = QUICK if context.quick else Budget()
    known = QUICK_DATASETS if context.quick else datasets
    chosen = context.choose("models", list(entries))
    for name in context.choose("datasets", known):
        record = Record(
            context.folder / f"{name}.json", dataclasses.asdict(budget), commit=context.commit
        )
        missing = [key for key in chosen if key not in record.parts]
        _borrow(record, missing, context.folder.parent / borrow / f"{name}.json")
        missing = [key for key in missing if key not in record.parts]
        dataset = _load(name, context) if missing else None
        for key in missing:
            assert dataset is not None
            compute = functools.partial(run_entry, dataset, entries[key], budget, context.device)
            part = record.part(key, compute, device=context.device)
            test = part["test"]
            mean = 100 * sum(test) / len(test)
            context.tell(f"{name}, {entries[key].label}: {mean:.2f} % on {len(test)} splits")


def _load(name: str, context: Context) -> NodeDataset:
    return data.load(name, data_dir=context.data_dir)


def _borrow(record: Record, keys: Sequence[str], path: Path) -> None:
    if path == record.path or not path.is_file():
        return
    other = read_record(path)
    if other["settings"] == record.settings:
        for key in keys:
            if key in other["parts"]:
                part = other["parts"][key]
                record.take(key, part, other["machines"][part["made"]["machine"]])


def run_entry(dataset: NodeDataset, entry: Entry, budget: Budget, device: str) -> dict[str, Any]:
    """Search, confirm, report; plain data."""
    if entry.tuned:
        config, search = _choose(dataset, entry, budget, device)
    else:
        config, search = _default(entry, budget), None
    (scores,) = train_splits(
        dataset,
        [config],
        range(budget.splits),
        device=device,
        leave_dropout_on=entry.leave_dropout_on,
    )
    kept = {k: v for k, v in config.to_dict().items() if k not in _PASSING}
    return {"fingerprint": dataset.fingerprint(), "config": kept, "search": search, **scores}


def _default(entry: Entry, budget: Budget) -> Config:
    config = Config.from_dict({"model": entry.model, **entry.fixed})
    epochs = min(config.settings.epochs, budget.epochs)
    return config.replace(epochs=epochs)


def _choose(
    dataset: NodeDataset, entry: Entry, budget: Budget, device: str
) -> tuple[Config, dict[str, Any]]:
    """The configuration that validation prefers, and how it came to that."""
    candidates: list[tuple[float, Config]] = []
    trials = seconds = 0.0
    for form in entry.forms:
        space = _space(entry, form, budget)
        result = tune(
            dataset,
            space,
            model=entry.model,
            trials=entry.effort * budget.trials // len(entry.forms),
            repeats=budget.repeats,
            batch=budget.trials,
            split="published",
            scale="none",
            folder=None,
            finalists=0,  # they are held between the forms, below
            device=device,
        )
        trials += result.record["finished"]
        seconds += result.record["seconds"]
        candidates += [
            (trial["value"], space.config(trial["params"], scale="none"))
            for trial in result.record["trials"]
            if trial["state"] == "complete" and trial["value"] is not None
        ]
    twice = 1 if entry.effort == 1 else 2
    candidates = sorted(candidates, key=lambda c: -c[0])[: twice * budget.finalists]
    configs = [config for _, config in candidates]
    further = tuning_seeds(budget.repeats + twice * budget.confirmations)[budget.repeats :]
    confirmed = confirm(dataset, configs, further, split="published", device=device)
    best = max(range(len(configs)), key=lambda i: (sum(confirmed[i]), -i))
    return configs[best], {
        "trials": int(trials),
        "seconds": round(seconds, 2),
        "finalists": [
            {"search": round(value, 6), "confirmed": [round(score, 6) for score in again]}
            for (value, _), again in zip(candidates, confirmed, strict=True)
        ],
        "chosen": best,
    }


def _space(entry: Entry, form: Mapping[str, Any], budget: Budget) -> SearchSpace:
    """The budget's space with what the row fixes or adds."""
    table = {**load_space(budget.space, entry.model).source, "epochs": budget.epochs}
    models = table.get("models", {})
    own = {**models.get(entry.model, {}), **entry.searched, **entry.fixed, **form}
    return load_space({**table, "models": {**models, entry.model: own}}, entry.model)


def read_study(folder: Path) -> dict[str, dict[str, Any]]:
    """Dataset -> row -> what was found, of every record of a folder."""
    files = {path.stem: path for path in sorted(folder.glob("*.json"))}
    order = [*TEN, "cornell-legacy", *QUICK_DATASETS]
    return {name: read_record(files[name])["parts"] for name in order if name in files}

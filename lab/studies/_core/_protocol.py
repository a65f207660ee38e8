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

from lab.bench import DATASETS
from lab.records import StudyRecord
from lab.studies._core._context import Context, load_records, record_path
from lab.studies._core._evaluation import Scores, train_splits
from longnn import data
from longnn.config import Config
from longnn.data import NodeDataset
from longnn.tuning import SearchSpace, confirm, load_space, tune
from longnn.tuning._splits import tuning_seeds

#: The graphs of the paper; and with the defective Cornell, which is the one that it has.
TEN = DATASETS
PAPER = (*TEN, "cornell-legacy")
#: What a quick run looks at: bundled, so that it needs no files.
QUICK_DATASETS = ("csbm",)
#: Name of the paper's search space in :func:`longnn.tuning.load_space`.
PAPER_SPACE = "paper"
#: Settings that say nothing about what was chosen.
_PASSING = ("seed", "repeat", "device", "split", "scale", "precision")

#: A :class:`~longnn.config.Config` as a flat table, whole or some of it.
ConfigTable = Mapping[str, bool | int | float | str | None]
#: Entries of a search space, as its TOML has them: a value, or a table of choices or a range.
Space = Mapping[str, object]


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of a table: a model, what is fixed of it, and what else is searched.

    Args:
        label: as tables name it.
        model: its short name.
        fixed: entries that are not searched.
        forms: variants of the model between which the search decides too; each gets its share of
            the trials. A value may be fixed, or searched as in a space's TOML.
        searched: entries that replace or extend those of the space, as its TOML has them.
        budget: a multiple of the trials. Above one, twice as many finalists are confirmed on twice
            as many further splits.
        tuned: False trains the default configuration without any search.
        leave_dropout_on: also score with the hidden dropout left on.

    >>> Row("GCN", "gcn").budget
    1
    """

    label: str
    model: str
    fixed: Space = dataclasses.field(default_factory=dict)
    forms: Sequence[Space] = ({},)
    searched: Space = dataclasses.field(default_factory=dict)
    budget: int = 1
    tuned: bool = True
    leave_dropout_on: bool = False


@dataclasses.dataclass(frozen=True)
class SearchPlan:
    """What is spent on a row; the same for every row.

    Args:
        trials: of the search.
        repeats: tuning splits of each trial.
        finalists: best trials that are confirmed.
        confirmations: further tuning splits of each finalist.
        splits: published splits that are reported.
        space: name of the search space.
        epochs: most epochs of a training.
    """

    trials: int = 64
    repeats: int = 2
    finalists: int = 5
    confirmations: int = 5
    splits: int = 10
    space: str = "compact"
    epochs: int = 1000


QUICK = SearchPlan(trials=4, repeats=1, finalists=2, confirmations=1, splits=2, epochs=60)


@dataclasses.dataclass(frozen=True)
class Finalist:
    """A trial that was confirmed: its mean validation accuracy in the search, and the further ones.

    Args:
        search: mean validation accuracy over the splits of the search.
        confirmed: validation accuracy on each further tuning split.
    """

    search: float
    confirmed: list[float]


@dataclasses.dataclass(frozen=True)
class Search:
    """How a configuration was found.

    Args:
        trials: that were finished.
        seconds: that they took.
        finalists: the best trials, best first in the search.
        chosen: number of the winner among the finalists.
    """

    trials: int
    seconds: float
    finalists: list[Finalist]
    chosen: int

    @property
    def winner(self) -> Finalist:
        """The finalist that was chosen."""
        return self.finalists[self.chosen]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelCell(Scores):
    """One row on one graph: the configuration, how it was found, and what it reached.

    Args:
        fingerprint: of the dataset.
        config: as a flat table.
        search: None if the configuration was not searched for.
    """

    fingerprint: str
    config: ConfigTable
    search: Search | None = None


#: Dataset -> row -> what was found.
Results = Mapping[str, Mapping[str, ModelCell]]


def run_rows(
    context: Context, rows: Mapping[str, Row], datasets: Sequence[str], *, borrow: str = ""
) -> None:
    """Compute what the records, one per dataset, lack.

    Args:
        context: how to run.
        rows: to compute, by key.
        datasets: to compute them on.
        borrow: name of a study beside this one; its cells of the same plan are copied instead of
            being computed again.
    """
    plan = QUICK if context.quick else SearchPlan()
    known = QUICK_DATASETS if context.quick else datasets
    chosen = context.choose("models", list(rows))
    for name in context.choose("datasets", known):
        record = context.record(name, plan)
        missing = [key for key in chosen if key not in record]
        if borrow:
            _borrow(record, missing, record_path(context.folder.parent / borrow, name))
        missing = [key for key in missing if key not in record]
        dataset = _load(name, context) if missing else None
        for key in missing:
            assert dataset is not None
            compute = functools.partial(run_row, dataset, rows[key], plan, context.device)
            cell = record.cell(key, ModelCell, compute, machine=context.machine())
            mean = 100 * sum(cell.test) / len(cell.test)
            context.tell(f"{name}, {rows[key].label}: {mean:.2f} % on {len(cell.test)} splits")


def _load(name: str, context: Context) -> NodeDataset:
    return data.load(name, data_dir=context.data_dir)


def _borrow(record: StudyRecord, keys: Sequence[str], path: Path) -> None:
    if not path.is_file():
        return
    other = StudyRecord.load(path)
    if record.has_plan_of(other):
        for key in keys:
            if key in other:
                record.take(key, other)


def run_row(dataset: NodeDataset, row: Row, plan: SearchPlan, device: str) -> ModelCell:
    """Search, confirm and report one row on one graph."""
    if row.tuned:
        config, search = _choose(dataset, row, plan, device)
    else:
        config, search = _default(row, plan), None
    (scores,) = train_splits(
        dataset,
        [config],
        range(plan.splits),
        device=device,
        leave_dropout_on=row.leave_dropout_on,
    )
    kept = {k: v for k, v in config.to_dict().items() if k not in _PASSING}
    return ModelCell(fingerprint=dataset.fingerprint(), config=kept, search=search, **vars(scores))


def _default(row: Row, plan: SearchPlan) -> Config:
    config = Config.from_dict({"model": row.model, **row.fixed})
    epochs = min(config.settings.epochs, plan.epochs)
    return config.replace(epochs=epochs)


def _choose(dataset: NodeDataset, row: Row, plan: SearchPlan, device: str) -> tuple[Config, Search]:
    """The configuration that validation prefers, and how it was found."""
    candidates: list[tuple[float, Config]] = []
    trials = seconds = 0.0
    for form in row.forms:
        space = search_space(row, form, plan)
        result = tune(
            dataset,
            space,
            model=row.model,
            trials=row.budget * plan.trials // len(row.forms),
            repeats=plan.repeats,
            batch=plan.trials,
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
    candidates = sorted(candidates, key=lambda c: -c[0])[: twice * plan.finalists]
    configs = [config for _, config in candidates]
    further = tuning_seeds(plan.repeats + twice * plan.confirmations)[plan.repeats :]
    confirmed = confirm(dataset, configs, further, split="published", device=device)
    best = max(range(len(configs)), key=lambda i: (sum(confirmed[i]), -i))
    finalists = [
        Finalist(round(value, 6), [round(score, 6) for score in again])
        for (value, _), again in zip(candidates, confirmed, strict=True)
    ]
    return configs[best], Search(int(trials), round(seconds, 2), finalists, best)


def search_space(row: Row, form: Space, plan: SearchPlan) -> SearchSpace:
    """The plan's space with what the row fixes or adds."""
    table = {**load_space(plan.space, row.model).source, "epochs": plan.epochs}
    models = table.get("models", {})
    own = {**models.get(row.model, {}), **row.searched, **row.fixed, **form}
    return load_space({**table, "models": {**models, row.model: own}}, row.model)


def read_results(folder: Path) -> dict[str, dict[str, ModelCell]]:
    """Dataset -> row -> what was found, of every record of a study."""
    order = [*PAPER, *QUICK_DATASETS]
    return {name: record.all(ModelCell) for name, record in load_records(folder, order).items()}

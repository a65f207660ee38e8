"""How long it takes to ask the members of an ensemble: one after the other, and alike ones in one
pass.

The weights are as drawn: what they are does not change the time.
"""

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from lab.bench._output import TABLES, aligned, markdown_rows
from lab.bench._record import Code, Formatted, Machine, Spread
from lab.bench._suite import BUDGETS, limited_threads
from lab.bench._tables import Table, number, spread
from lab.bench._timing import Budget, compare, round_robin, summarize
from longnn import data, training
from longnn._base.files import write_json, write_text
from longnn._base.provenance import describe_code, environment
from longnn.data import NodeDataset, Scaling
from longnn.nn import TOGETHER, Model, scores_together
from longnn.records import Schema

FOLDER = "ensembles"
#: What is measured by default, and quickly.
DATASETS, QUICK_DATASETS = ("cora", "pubmed"), ("digits",)
PRESETS = ("default", "best")


@dataclass(frozen=True, kw_only=True)
class EnsembleTime(Schema):
    """One portfolio on one graph; times in ms for all members together."""

    dataset: str
    preset: str
    members: int
    passes: int  # where members of one architecture share one
    apart: Spread
    together: Spread
    ratio: Spread  # apart / together
    difference: float  # the largest between the scores of both ways


@dataclass(frozen=True, kw_only=True)
class EnsembleRecord(Formatted):
    """Everything that :func:`run_ensembles` measured.

    >>> EnsembleRecord.from_dict({"format": "another"})
    Traceback (most recent call last):
    ...
    ValueError: Expected the record of a benchmark of ensembles (got another file)
    """

    FORMAT: ClassVar[str] = "longnn.bench.ensembles/1"
    WHAT: ClassVar[str] = "a benchmark of ensembles"

    created: str
    machine: Machine
    code: Code
    times: list[EnsembleTime]


def run_ensembles(
    datasets: Sequence[str | NodeDataset] | None = None,
    *,
    device: str = "cpu",
    threads: int | None = None,
    quick: bool = False,
    data_dir: str | Path | None = None,
    commit: str | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> EnsembleRecord:
    """Time the portfolios of the presets, all members.

    Args:
        datasets: names or datasets; by default Cora and Pubmed.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``.
        threads: threads of torch on the CPU; by default those torch has.
        quick: bundled data, few rounds.
        data_dir: the folder of the datasets.
        commit: commit to record when the code is not a git checkout.
        on_progress: called with a few words on what is being measured.
    """
    where = training.choose_device(device)
    budget = BUDGETS["quick" if quick else where.type].epochs
    times = []
    with limited_threads(threads):
        for name in datasets or (QUICK_DATASETS if quick else DATASETS):
            dataset = name if isinstance(name, NodeDataset) else data.load(name, data_dir=data_dir)
            for preset in PRESETS:
                if on_progress is not None:
                    on_progress(f"{dataset.name}: {preset}")
                times.append(_measure(dataset, preset, where, budget))
        machine = Machine.from_dict(environment(where))
    return EnsembleRecord(
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        machine=machine,
        code=Code(**describe_code(commit)),
        times=times,
    )


@torch.no_grad()
def _measure(
    dataset: NodeDataset, preset: str, device: torch.device, budget: Budget
) -> EnsembleTime:
    config = training.complete({"preset": preset, "device": device.type}, dataset)
    configs = list(training.members_of(config, dataset).values())
    loops = {training.self_loops_of(own) for own in configs}
    first = configs[0]
    problem = training.make_problem(dataset, first, Scaling("none"), device=device, variants=loops)
    passes: dict[object, list[Model]] = {}
    for own in configs:
        model = training.make_model(own, dataset.num_features, dataset.outputs)
        key = (training.architecture_of(own), model.self_loops)
        passes.setdefault(key, []).append(model.eval().to(device, problem.dtype))

    def ask(groups: Sequence[Sequence[Model]]) -> list[Tensor]:
        return [
            scores
            for models in groups
            for scores in scores_together(
                models, problem.features, problem.variants[models[0].self_loops]
            )
        ]

    together = list(passes.values())
    apart = [[model] for models in together for model in models]
    pairs = zip(ask(apart), ask(together), strict=True)
    difference = max(float((one - other).abs().max()) for one, other in pairs)
    calls = {"apart": lambda: ask(apart), "together": lambda: ask(together)}
    seconds = round_robin(calls, device, budget)
    return EnsembleTime(
        dataset=dataset.name,
        preset=preset,
        members=len(configs),
        passes=sum(1 if len(alike) >= TOGETHER else len(alike) for alike in together),
        apart=summarize(seconds["apart"], scale=1e3),
        together=summarize(seconds["together"], scale=1e3),
        ratio=compare(seconds["apart"], seconds["together"]),
        difference=difference,
    )


def _table(record: EnsembleRecord) -> Table:
    heads = ["graph", "preset", "members", "one by one, ms", "passes", "in passes, ms", "gain"]
    note = "All members of a portfolio; gain: one by one / in passes."
    table = Table("Ensembles", note, [*heads, "difference"])
    for one in record.times:
        row = [one.dataset, one.preset, str(one.members), spread(one.apart, False)]
        row += [str(one.passes), spread(one.together, False), spread(one.ratio, True)]
        table.rows.append([*row, number(one.difference)])
    return table


def ensemble_lines(record: EnsembleRecord) -> list[str]:
    """The record for a terminal."""
    table = _table(record)
    return [f"machine: {record.machine.name}", "", table.note, *aligned(table)]


def write_ensembles(
    record: EnsembleRecord, folder: str | Path, *, name: str | None = None
) -> list[Path]:
    """Write ``ensembles/NAME.json`` and ``tables/NAME.md``.

    Args:
        record: to write.
        folder: of the results.
        name: by default ``"ensembles-cpu"`` or ``"ensembles-cuda"``.
    """
    folder, name = Path(folder), name or f"ensembles-{record.machine.device}"
    for kind in (FOLDER, TABLES):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    file, page = folder / FOLDER / f"{name}.json", folder / TABLES / f"{name}.md"
    write_json(file, record.to_dict())
    table = _table(record)
    text = [f"# Ensembles on {record.machine.name}", ""]
    text += [f"- date: {record.created}; commit: {record.code.commit or 'unknown'}", ""]
    text += [table.note, "", *markdown_rows(table), ""]
    write_text(page, "\n".join(text))
    return [file, page]

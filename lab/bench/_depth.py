"""What depth costs: an epoch of stacked blocks, beside PyG's GCN of the same depth and width."""

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import torch

from lab.bench._deepcontenders import (
    DEEP_DESCRIPTIONS,
    DEEP_LABELS,
    RIVALS,
    Depth,
    make_deep_contender,
)
from lab.bench._grid import QUICK_SIDE, SIDE, minefield
from lab.bench._output import TABLES, aligned, markdown_rows
from lab.bench._record import Code, Formatted, Machine, Spread
from lab.bench._suite import BUDGETS, check_counts, limited_threads
from lab.bench._tables import Table, spread
from lab.bench._timing import Budget, compare, round_robin, summarize
from longnn import data, training
from longnn._base.files import write_json, write_text
from longnn._base.provenance import describe_code, environment
from longnn.data import NodeDataset
from longnn.records import Schema

FOLDER = "depth"
#: Members of the population, by device.
POPULATION = {"cpu": 2, "cuda": 16}
#: Precisions that are measured, by device: a CPU has no TF32.
PRECISIONS = {"cpu": ("float32",), "cuda": ("float32", "tf32")}
#: The work of an epoch, and of a quick one.
WORK, QUICK_WORK = Depth(), Depth(blocks=2, hidden=16)


@dataclass(frozen=True, kw_only=True)
class DepthTime(Schema):
    """One contender on one graph; times in ms per model and epoch."""

    dataset: str
    contender: str
    precision: str
    models: int
    rounds: int  # fewer than the others have, if an epoch is slow
    ms: Spread
    rival: str  # the faster one of PyG's, in this precision
    ratio: Spread  # ms / that of the rival, in the rounds that both have


@dataclass(frozen=True, kw_only=True)
class DepthGraph(Schema):
    """A graph that was measured on."""

    nodes: int
    edges: int
    features: int


@dataclass(frozen=True, kw_only=True)
class DepthSettings(Schema):
    """The work of an epoch, how it was timed, and the contenders with a description."""

    blocks: int
    hidden: int
    degree: int
    dropout: float
    lr: float
    weight_decay: float
    quick: bool
    rounds: int
    seconds: float
    contenders: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class DepthRecord(Formatted):
    """Everything that :func:`run_depth` measured.

    >>> DepthRecord.from_dict({"format": "another"})
    Traceback (most recent call last):
    ...
    ValueError: Expected the record of a benchmark of depth (got another file)
    """

    FORMAT: ClassVar[str] = "longnn.bench.depth/1"
    WHAT: ClassVar[str] = "a benchmark of depth"

    created: str
    machine: Machine
    code: Code
    settings: DepthSettings
    graphs: dict[str, DepthGraph]
    times: list[DepthTime]


def run_depth(
    datasets: Sequence[str | NodeDataset] | None = None,
    *,
    device: str = "cpu",
    threads: int | None = None,
    population: int | None = None,
    quick: bool = False,
    data_dir: str | Path | None = None,
    commit: str | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> DepthRecord:
    """Time an epoch of eight blocks of 128 channels, and of PyG's GCN of eight such layers.

    Args:
        datasets: names or datasets; by default a grid of the size of Minesweeper, made here.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``.
        threads: threads of torch on the CPU; by default those torch has.
        population: models trained at once; by default 2 on a CPU, 16 on a GPU.
        quick: a small grid, two narrow blocks, few rounds.
        data_dir: the folder of the datasets.
        commit: commit to record when the code is not a git checkout.
        on_progress: called with a few words on what is being measured.

    Raises:
        ValueError: for an unknown device, or a number below one.
    """
    where = training.choose_device(device)
    members = POPULATION[where.type] if population is None else population
    check_counts(members, threads)
    budget = BUDGETS["quick" if quick else where.type].epochs
    work = QUICK_WORK if quick else WORK
    graphs, times = {}, []
    with limited_threads(threads):
        machine = Machine.from_dict(environment(where))
        for name in datasets or (minefield(QUICK_SIDE if quick else SIDE),):
            dataset = name if isinstance(name, NodeDataset) else data.load(name, data_dir=data_dir)
            tell = _teller(dataset.name, on_progress)
            times += _measure(dataset, work, where, members, budget, tell)
            graphs[dataset.name] = DepthGraph(
                nodes=dataset.num_nodes, edges=dataset.num_edges, features=dataset.num_features
            )
    return DepthRecord(
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        machine=machine,
        code=Code(**describe_code(commit)),
        settings=_settings(work, budget, quick=quick),
        graphs=graphs,
        times=times,
    )


def _teller(dataset: str, on_progress: Callable[[str], None] | None) -> Callable[[str], None]:
    return lambda text: on_progress(f"{dataset}: {text}") if on_progress is not None else None


def _settings(work: Depth, budget: Budget, *, quick: bool) -> DepthSettings:
    return DepthSettings(
        blocks=work.blocks,
        hidden=work.hidden,
        degree=work.degree,
        dropout=work.dropout,
        lr=work.lr,
        weight_decay=work.weight_decay,
        quick=quick,
        rounds=budget.rounds,
        seconds=budget.seconds,
        contenders=DEEP_DESCRIPTIONS,
    )


def _measure(
    dataset: NodeDataset,
    work: Depth,
    device: torch.device,
    members: int,
    budget: Budget,
    tell: Callable[[str], None],
) -> list[DepthTime]:
    """All contenders in turn, in every precision that the device has."""
    made = {}
    for precision in PRECISIONS[device.type]:
        own = replace(work, precision=precision)
        for key in DEEP_LABELS:
            tell(f"building {DEEP_LABELS[key]}, {precision}")
            made[key, precision] = make_deep_contender(
                key, dataset, own, device, population=members
            )
    names = {f"{key} {precision}": (key, precision) for key, precision in made}
    seconds = round_robin(
        {name: made[which].epoch for name, which in names.items()},
        device,
        budget,
        on_round=lambda i: tell(f"round {i + 1} of {budget.rounds}"),
    )
    each = {  # seconds per model and epoch in each round
        which: [value / made[which].models for value in seconds[name]]
        for name, which in names.items()
    }
    return [_time(dataset.name, which, each, made[which].models) for which in made]


def _time(
    dataset: str,
    which: tuple[str, str],
    each: Mapping[tuple[str, str], Sequence[float]],
    models: int,
) -> DepthTime:
    key, precision = which
    rival = min(RIVALS, key=lambda name: summarize(each[name, precision]).median)
    return DepthTime(
        dataset=dataset,
        contender=key,
        precision=precision,
        models=models,
        rounds=len(each[which]),
        ms=summarize(each[which], scale=1e3),
        rival=rival,
        ratio=compare(each[which], each[rival, precision]),
    )


def _table(record: DepthRecord) -> Table:
    work = record.settings
    note = (
        f"{work.blocks} blocks or layers of {work.hidden} channels, degree {work.degree} in "
        f"lon-deep, dropout {work.dropout:g}. Milliseconds per model and epoch, training and "
        "evaluation: median [quartiles] over the rounds, in which all take turns. Ratio: to the "
        "faster PyG GCN of the same precision, over the rounds that both have."
    )
    if work.quick:
        note += " A quick benchmark: these numbers mean little."
    heads = ["contender", "graph", "precision", "models", "rounds", "ms", "ratio"]
    table = Table("Depth", note, heads)
    for one in record.times:
        row = [DEEP_LABELS[one.contender], one.dataset, one.precision, str(one.models)]
        row.append(str(one.rounds))
        table.rows.append([*row, spread(one.ms, False), spread(one.ratio, False)])
    return table


def _graphs(record: DepthRecord) -> list[str]:
    return [
        f"{name}: {graph.nodes:,} nodes, {graph.edges:,} edges, {graph.features:,} features"
        for name, graph in record.graphs.items()
    ]


def depth_lines(record: DepthRecord) -> list[str]:
    """The record for a terminal."""
    table = _table(record)
    head = [f"machine: {record.machine.name}", *_graphs(record)]
    return [*head, "", table.note, *aligned(table)]


def write_depth(record: DepthRecord, folder: str | Path, *, name: str | None = None) -> list[Path]:
    """Write ``depth/NAME.json`` and ``tables/NAME.md``.

    Args:
        record: to write.
        folder: of the results.
        name: by default ``"depth-cpu"`` or ``"depth-cuda"``.
    """
    folder, name = Path(folder), name or f"depth-{record.machine.device}"
    for kind in (FOLDER, TABLES):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    file, page = folder / FOLDER / f"{name}.json", folder / TABLES / f"{name}.md"
    write_json(file, record.to_dict())
    table = _table(record)
    text = [f"# Depth on {record.machine.name}", ""]
    changed = " with local changes" if record.code.dirty else ""
    text += [f"- date: {record.created}; commit: {record.code.commit or 'unknown'}{changed}"]
    text += [f"- {line}" for line in _graphs(record)]
    text += [f"- {DEEP_LABELS[key]}: {what}" for key, what in record.settings.contenders.items()]
    text += ["", table.note, "", *markdown_rows(table), ""]
    write_text(page, "\n".join(text))
    return [file, page]

"""Table 5: time per epoch and in total, model by model, ours and the textbook's.

Each model is trained once on published split 0 with the package's rates until it stops early;
LON-GNN is in the paper's form. An epoch is a training step and an evaluation. The textbook's
LON-GNN (:mod:`lab.bench`) is timed over a few epochs, and its total is that times the epochs
that ours took: it is the same model. A CPU and a GPU have separate records. Times were measured
once; for comparisons with quartiles and rivals see ``python -m lab bench``.
"""

import dataclasses
import functools
import itertools
import statistics
import time
from collections.abc import Mapping
from pathlib import Path

import torch
from matplotlib.figure import Figure

from lab.bench import Workload, make_contender, plan, time_calls
from lab.records import StudyRecord
from lab.studies._core._context import Context, record_path, save_figure
from lab.studies._core._printed import EPOCH_MS, TOTAL_S
from lab.studies._core._protocol import QUICK_DATASETS, TEN, ConfigTable
from lab.studies._core._table import ResultTable
from longnn import data, training
from longnn.config import Config
from longnn.data import NodeDataset
from longnn.data._scaling import Scaling
from longnn.registry import PAPER_FORM
from longnn.report import ORANGE, colours, in_style, new_figure

TITLE = "Table 5: time per epoch and in total"
ORDER = 50

LABELS = {
    "gcn": "GCN",
    "appnp": "APPNP",
    "cheb": "ChebNet",
    "gpr": "GPRGNN",
    "bern": "BernNet",
    "jacobi": "JacobiConv",
    "lon": "LON-GNN",
    "textbook": "LON-GNN, textbook",
}
#: ChebNet has one weight matrix per degree: degree 10 would be another model.
OPTIONS: dict[str, ConfigTable] = {"lon": PAPER_FORM, "cheb": {"degree": 2}}
EPOCHS = {True: 30, False: 1000}
#: Kinds of devices, and the table of each.
KINDS = {"cpu": "time", "cuda": "time-gpu"}
#: Seconds of timing for the textbook's epoch.
TURN = 1.0


@dataclasses.dataclass(frozen=True)
class Plan:
    """Most epochs of a training, and threads of the CPU."""

    epochs: int
    threads: int


@dataclasses.dataclass(frozen=True)
class TimeCell:
    """What one training took.

    Args:
        epoch_ms: milliseconds per epoch, the median.
        total_s: seconds in total; None for the textbook, which is not trained to the end.
        epochs: that were trained, likewise.
    """

    epoch_ms: float
    total_s: float | None = None
    epochs: int | None = None


def run(context: Context) -> None:
    """Train and time every model on every graph, as far as the records lack it."""
    kind = training.choose_device(context.device).type
    for name in context.choose("datasets", QUICK_DATASETS if context.quick else TEN):
        plan = Plan(EPOCHS[context.quick], torch.get_num_threads())
        record = context.record(_record_name(name, kind), plan)
        missing = [k for k in context.choose("models", list(LABELS)) if k not in record]
        dataset = data.load(name, data_dir=context.data_dir) if missing else None
        for key in missing:
            assert dataset is not None
            measure = _time_textbook if key == "textbook" else functools.partial(_time_model, key)
            compute = functools.partial(measure, dataset, context)
            cell = record.cell(key, TimeCell, compute, machine=context.machine())
            context.tell(f"{name}, {LABELS[key]}: {cell.epoch_ms:.2f} ms per epoch")


def _time_model(key: str, dataset: NodeDataset, context: Context) -> TimeCell:
    device = training.choose_device(context.device)
    epochs = EPOCHS[context.quick]
    config = Config.from_dict({"model": key, "epochs": epochs, **OPTIONS.get(key, {})})
    problem = training.make_problem(dataset, config, Scaling("none"), device=device)
    split = data.make_split(dataset, "published", 0)
    population = training.make_population([config], problem, [split])
    marks = [time.perf_counter()]
    (result,) = population.run(lambda p: marks.append(time.perf_counter()))
    seconds = marks[-1] - marks[0]
    # On a GPU a mark is set every ten epochs, and the first ones compile and capture.
    gaps = [b - a for a, b in itertools.pairwise(marks)]
    interval = max(1, round(result.epochs / len(gaps)))
    epoch = statistics.median(gaps) / interval
    return TimeCell(round(1e3 * epoch, 4), round(seconds, 3), result.epochs)


def _time_textbook(dataset: NodeDataset, context: Context) -> TimeCell:
    device = training.choose_device(context.device)
    contender = make_contender("textbook", dataset, Workload(), device, population=1)
    count, _ = plan(contender.epoch, TURN, 1, device)
    return TimeCell(round(1e3 * time_calls(contender.epoch, count, device), 3))


def _record_name(name: str, kind: str) -> str:
    """The name of the record of a graph on a kind of device.

    >>> _record_name("cora", "cpu"), _record_name("cora", "cuda")
    ('cora', 'cora-cuda')
    """
    return name if kind == "cpu" else f"{name}-{kind}"


def _read(folder: Path, kind: str) -> dict[str, StudyRecord]:
    """Dataset -> the record of a kind of device."""
    names = (*TEN, *QUICK_DATASETS)
    files = {name: record_path(folder, _record_name(name, kind)) for name in names}
    return {name: StudyRecord.load(path) for name, path in files.items() if path.is_file()}


def tables(folder: Path) -> list[ResultTable]:
    """Measured times of each kind of device, and the printed ones."""
    found = {kind: _read(folder, kind) for kind in KINDS}
    known = [d for d in (*TEN, *QUICK_DATASETS) if any(d in records for records in found.values())]
    measured = [_measured(kind, records) for kind, records in found.items() if records]
    printed = [
        [LABELS[key], *(_printed(key, d) if d in TEN else "" for d in known)] for key in EPOCH_MS
    ]
    caption = "The same as printed in the paper's Table 5, on a V100."
    return [*measured, ResultTable("time-paper", caption, ["model", *known], printed)]


def _measured(kind: str, records: Mapping[str, StudyRecord]) -> ResultTable:
    cells = {name: record.all(TimeCell) for name, record in records.items()}
    rows = [
        [label, *(_shown(key, of) for of in cells.values())]
        for key, label in LABELS.items()
        if any(key in of for of in cells.values())
    ]
    machines = {
        str(m["gpu"] or f"{m['cpu']}, {record.plan(Plan).threads} threads")
        for record in records.values()
        for m in record.machines
    }
    return ResultTable(
        KINDS[kind],
        "Milliseconds per epoch / seconds in total, one training on published split 0 until it "
        f"stops. Measured on {'; '.join(sorted(machines))}. The textbook's total is its epoch "
        "times the epochs of LON-GNN.",
        ["model", *cells],
        rows,
    )


def _printed(key: str, name: str) -> str:
    return f"{EPOCH_MS[key][name]:.1f} / {TOTAL_S[key][name]:.1f}"


def _shown(key: str, cells: Mapping[str, TimeCell]) -> str:
    if key not in cells:
        return ""
    cell = cells[key]
    total = cell.total_s
    if total is None and "lon" in cells:
        epochs = cells["lon"].epochs
        total = None if epochs is None else epochs * cell.epoch_ms / 1e3
    return f"{cell.epoch_ms:.2f}" + ("" if total is None else f" / {total:.1f}")


@in_style
def _figure(found: Mapping[str, Mapping[str, StudyRecord]]) -> Figure:
    title, count = "Time per epoch: training step and evaluation", len(found)
    figure, grid = new_figure(title, height=1.0 + 3.0 * count, rows=count)
    markers = ("o", "D", "s", "^", "v", "<", "P", "X")
    shades = colours(len(LABELS))
    for axes, (kind, records) in zip(grid[:, 0], found.items(), strict=True):
        for (key, label), marker, shade in zip(LABELS.items(), markers, shades, strict=True):
            times = [
                (i, record.get(key, TimeCell).epoch_ms)
                for i, record in enumerate(records.values())
                if key in record
            ]
            if times:
                colour = ORANGE if key == "lon" else shade
                axes.plot(*zip(*times, strict=True), marker, color=colour, label=label, ms=6)
        axes.set_yscale("log")
        axes.set_title({"cpu": "on a CPU", "cuda": "on a GPU"}[kind])
        axes.set_ylabel("milliseconds per epoch")
        axes.set_xticks(range(len(records)), list(records), rotation=30, ha="right")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, ncols=4, loc="outside lower center")
    return figure


def draw(folder: Path) -> list[Path]:
    """Time per epoch of every model on every graph."""
    found = {kind: records for kind in KINDS if (records := _read(folder, kind))}
    if not found:
        return []
    return [save_figure(folder, "time", _figure(found))]

"""Table 5: time an epoch and in all, model by model, ours and the textbook's.

Each model is trained once on published split 0 with the package's rates until it stops by itself;
LON-GNN is in the paper's form. An epoch is a training step and an evaluation. The textbook's
LON-GNN (:mod:`longnn.bench`) is timed over a few epochs, and its total is that times the epochs
that ours took: it is the same model. A CPU and a GPU have records of their own. Times are what the
machine gave, once; for comparisons with quartiles and rivals see ``longnn bench``.
"""

import functools
import itertools
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from longnn import data, training
from longnn.bench import Workload, make_contender, plan, time_calls
from longnn.config import Config
from longnn.data import NodeDataset
from longnn.registry import PAPER_FORM
from longnn.report import ORANGE, colours, in_style, new_figure, to_png, write_atomically
from longnn.studies._paper import Context
from longnn.studies._published import EPOCH_MS, TOTAL_S
from longnn.studies._record import Record, read_record
from longnn.studies._study import QUICK_DATASETS, TEN
from longnn.studies._table import Table

TITLE = "Table 5: time an epoch and in all"

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
#: ChebNet has a weight matrix a degree: degree 10 would be another model.
OPTIONS: dict[str, dict[str, Any]] = {"lon": PAPER_FORM, "cheb": {"degree": 2}}
EPOCHS = {True: 30, False: 1000}
#: Kinds of devices, and the table of each.
KINDS = {"cpu": "time", "cuda": "time-gpu"}
#: Seconds of timing for the textbook's epoch.
TURN = 1.0


def run(context: Context) -> None:
    """Train and time every model on every graph, as far as not done."""
    kind = training.choose_device(context.device).type
    for name in context.choose("datasets", QUICK_DATASETS if context.quick else TEN):
        settings = {"epochs": EPOCHS[context.quick], "threads": torch.get_num_threads()}
        record = Record(_path(context.folder, name, kind), settings, commit=context.commit)
        missing = [k for k in context.choose("models", list(LABELS)) if k not in record.parts]
        dataset = data.load(name, data_dir=context.data_dir) if missing else None
        for key in missing:
            assert dataset is not None
            measure = _time_textbook if key == "textbook" else functools.partial(_time_model, key)
            compute = functools.partial(measure, dataset, context)
            part = record.part(key, compute, device=context.device)
            context.tell(f"{name}, {LABELS[key]}: {part['epoch_ms']:.2f} ms an epoch")


def _time_model(key: str, dataset: NodeDataset, context: Context) -> dict[str, Any]:
    device = training.choose_device(context.device)
    epochs = EPOCHS[context.quick]
    config = Config.from_dict({"model": key, "epochs": epochs, **OPTIONS.get(key, {})})
    problem = training.make_problem(dataset, config, training.Scaling("none"), device=device)
    split = data.make_split(dataset, "published", 0)
    population = training.make_population([config], problem, [split])
    marks = [time.perf_counter()]
    (result,) = population.run(lambda p: marks.append(time.perf_counter()))
    seconds = marks[-1] - marks[0]
    # On a GPU a mark is set every ten epochs, and the first ones compile and capture.
    gaps = [b - a for a, b in itertools.pairwise(marks)]
    interval = max(1, round(result.epochs / len(gaps)))
    epoch = statistics.median(gaps) / interval
    return {
        "epoch_ms": round(1e3 * epoch, 4),
        "total_s": round(seconds, 3),
        "epochs": result.epochs,
    }


def _time_textbook(dataset: NodeDataset, context: Context) -> dict[str, Any]:
    device = training.choose_device(context.device)
    contender = make_contender("textbook", dataset, Workload(), device, population=1)
    count, _ = plan(contender.epoch, TURN, 1, device)
    return {"epoch_ms": round(1e3 * time_calls(contender.epoch, count, device), 3)}


def _path(folder: Path, name: str, kind: str) -> Path:
    """The record of a graph on a kind of device."""
    return folder / (f"{name}.json" if kind == "cpu" else f"{name}-{kind}.json")


def _read(folder: Path, kind: str) -> dict[str, dict[str, Any]]:
    """Dataset -> the record of a kind of device."""
    files = {name: _path(folder, name, kind) for name in (*TEN, *QUICK_DATASETS)}
    return {name: read_record(path) for name, path in files.items() if path.is_file()}


def tables(folder: Path) -> list[Table]:
    found = {kind: _read(folder, kind) for kind in KINDS}
    known = [d for d in (*TEN, *QUICK_DATASETS) if any(d in records for records in found.values())]
    measured = [_measured(kind, records) for kind, records in found.items() if records]
    printed = [
        [LABELS[key], *(_printed(key, d) if d in TEN else "" for d in known)] for key in EPOCH_MS
    ]
    caption = "The same as printed in the paper's Table 5, on a V100."
    return [*measured, Table("time-paper", caption, ["model", *known], printed)]


def _measured(kind: str, records: Mapping[str, Any]) -> Table:
    parts = {name: record["parts"] for name, record in records.items()}
    rows = [
        [label, *(_cell(key, p) for p in parts.values())]
        for key, label in LABELS.items()
        if any(key in p for p in parts.values())
    ]
    machines = {
        m["gpu"] or f"{m['cpu']}, {record['settings']['threads']} threads"
        for record in records.values()
        for m in record["machines"]
    }
    return Table(
        KINDS[kind],
        "Milliseconds an epoch / seconds in all, one training on published split 0 until it "
        f"stops. Measured on {'; '.join(sorted(machines))}. The textbook's total is its epoch "
        "times the epochs of LON-GNN.",
        ["model", *parts],
        rows,
    )


def _printed(key: str, name: str) -> str:
    return f"{EPOCH_MS[key][name]:.1f} / {TOTAL_S[key][name]:.1f}"


def _cell(key: str, parts: dict[str, Any]) -> str:
    if key not in parts:
        return ""
    part = parts[key]
    total = part.get("total_s")
    if total is None:
        epochs = parts.get("lon", {}).get("epochs")
        total = None if epochs is None else epochs * part["epoch_ms"] / 1e3
    return f"{part['epoch_ms']:.2f}" + ("" if total is None else f" / {total:.1f}")


@in_style
def _figure(found: Mapping[str, Mapping[str, Any]]) -> Figure:
    title, count = "Time an epoch: training step and evaluation", len(found)
    figure, grid = new_figure(title, height=1.0 + 3.0 * count, rows=count)
    markers = ("o", "D", "s", "^", "v", "<", "P", "X")
    shades = colours(len(LABELS))
    for axes, (kind, records) in zip(grid[:, 0], found.items(), strict=True):
        for (key, label), marker, shade in zip(LABELS.items(), markers, shades, strict=True):
            times = [
                (i, record["parts"][key]["epoch_ms"])
                for i, record in enumerate(records.values())
                if key in record["parts"]
            ]
            if times:
                colour = ORANGE if key == "lon" else shade
                axes.plot(*zip(*times, strict=True), marker, color=colour, label=label, ms=6)
        axes.set_yscale("log")
        axes.set_title({"cpu": "on a CPU", "cuda": "on a GPU"}[kind])
        axes.set_ylabel("milliseconds an epoch")
        axes.set_xticks(range(len(records)), list(records), rotation=30, ha="right")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, ncols=4, loc="outside lower center")
    return figure


def draw(folder: Path) -> list[Path]:
    found = {kind: records for kind in KINDS if (records := _read(folder, kind))}
    if not found:
        return []
    return [write_atomically(folder / "time.png", to_png(_figure(found)))]

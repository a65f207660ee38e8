"""Table 5: time per epoch and in total, model by model, ours and the textbook's.

Each model is trained once on published split 0 with the package's rates until it stops early;
LON-GNN is in the paper's form. An epoch is a training step and an evaluation. The textbook's
LON-GNN (:mod:`lab.bench`) is timed over a few epochs, and its total is that times the epochs
that ours took: it is the same model. A CPU and a GPU have separate records. Times were measured
once; for comparisons with quartiles and rivals see ``python -m lab bench``.
"""

import itertools
import statistics
import time
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from lab.bench import Workload, make_contender, plan, time_calls
from lab.records import ConfigTable, Record
from lab.studies._engine import Cell, Cells, Context, read_records
from lab.studies._printed import EPOCH_MS, QUICK_DATASETS, TEN, TOTAL_S
from lab.studies._views import CAPTIONS, ResultTable
from longnn import data, training
from longnn.config import Config
from longnn.data import NodeDataset
from longnn.data._scaling import Scaling
from longnn.registry import PAPER_FORM
from longnn.report._style import ORANGE, colours, in_style, new_figure

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


def cells(context: Context) -> Cells:
    """Train and time every model on every graph; a GPU has records of its own."""
    kind = training.choose_device(context.device).type
    settings = {"epochs": EPOCHS[context.quick], "threads": torch.get_num_threads()}
    for name in context.choose("datasets", QUICK_DATASETS if context.quick else TEN):
        load = cache(partial(context.load, name))
        for key in context.choose("models", list(LABELS)):
            yield Cell(_record_name(name, kind), settings, key, partial(_time, key, load, context))


def _time(key: str, load: Any, context: Context) -> dict[str, Any]:
    """Milliseconds per epoch, the median; seconds in total and epochs, if trained to the end."""
    dataset: NodeDataset = load()
    device = training.choose_device(context.device)
    if key == "textbook":
        contender = make_contender("textbook", dataset, Workload(), device, population=1)
        count, _ = plan(contender.epoch, TURN, 1, device)
        return {"epoch_ms": round(1e3 * time_calls(contender.epoch, count, device), 3)}
    config = Config.from_dict(
        {"model": key, "epochs": EPOCHS[context.quick], **OPTIONS.get(key, {})}
    )
    problem = training.make_problem(dataset, config, Scaling("none"), device=device)
    split = data.make_split(dataset, "published", 0)
    population = training.make_population([config], problem, [split])
    marks = [time.perf_counter()]
    (result,) = population.run(lambda p: marks.append(time.perf_counter()))
    # On a GPU a mark is set every ten epochs, and the first ones compile and capture.
    gaps = [b - a for a, b in itertools.pairwise(marks)]
    epoch = statistics.median(gaps) / max(1, round(result.epochs / len(gaps)))
    total = round(marks[-1] - marks[0], 3)
    return {"epoch_ms": round(1e3 * epoch, 4), "total_s": total, "epochs": result.epochs}


def _record_name(name: str, kind: str) -> str:
    """The name of the record of a graph on a kind of device."""
    return name if kind == "cpu" else f"{name}-{kind}"


def read(folder: Path, kind: str) -> dict[str, Record]:
    """Graph -> the record of a kind of device."""
    names = {_record_name(name, kind): name for name in (*TEN, *QUICK_DATASETS)}
    return {names[key]: record for key, record in read_records(folder, list(names)).items()}


def tables(folder: Path) -> list[ResultTable]:
    """Measured times of each kind of device, and the printed ones."""
    found = {kind: records for kind in KINDS if (records := read(folder, kind))}
    graphs = [g for g in (*TEN, *QUICK_DATASETS) if any(g in of for of in found.values())]

    def both(key: str, graph: str) -> str:
        return f"{EPOCH_MS[key][graph]:.1f} / {TOTAL_S[key][graph]:.1f}" if graph in TEN else ""

    printed = [[LABELS[key], *(both(key, graph) for graph in graphs)] for key in EPOCH_MS]
    return [
        *(_measured(kind, records) for kind, records in found.items()),
        ResultTable("time-paper", CAPTIONS["time"]["time-paper"], ["model", *graphs], printed),
    ]


def _measured(kind: str, records: Mapping[str, Record]) -> ResultTable:
    rows = [
        [label, *(_shown(key, record) for record in records.values())]
        for key, label in LABELS.items()
        if any(key in record for record in records.values())
    ]
    machines = {
        str(m["gpu"] or f"{m['cpu']}, {record.plan['threads']} threads")
        for record in records.values()
        for m in record.machines
    }
    caption = CAPTIONS["time"]["measured"].format(machines="; ".join(sorted(machines)))
    return ResultTable(KINDS[kind], caption, ["model", *records], rows)


def _shown(key: str, record: Record) -> str:
    if key not in record:
        return ""
    epoch, total = record[key]["epoch_ms"], record[key].get("total_s")
    if total is None and "lon" in record:
        total = record["lon"]["epochs"] * epoch / 1e3
    return f"{epoch:.2f}" + ("" if total is None else f" / {total:.1f}")


@in_style
def _figure(found: Mapping[str, Mapping[str, Record]]) -> Figure:
    title, count = "Time per epoch: training step and evaluation", len(found)
    figure, grid = new_figure(title, height=1.0 + 3.0 * count, rows=count)
    markers = ("o", "D", "s", "^", "v", "<", "P", "X")
    shades = colours(len(LABELS))
    for axes, (kind, records) in zip(grid[:, 0], found.items(), strict=True):
        for (key, label), marker, shade in zip(LABELS.items(), markers, shades, strict=True):
            times = [
                (i, record[key]["epoch_ms"])
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


def figures(folder: Path) -> dict[str, Figure]:
    """Time per epoch of every model on every graph."""
    found = {kind: records for kind in KINDS if (records := read(folder, kind))}
    return {"time": _figure(found)} if found else {}


def facts(folder: Path) -> dict[str, Any]:
    """How many times LON-GNN's epoch is faster than the textbook's, and the longest training."""
    records = {kind: list(read(folder, kind).values()) for kind in KINDS}
    ratios = {
        kind: [record["textbook"]["epoch_ms"] / record["lon"]["epoch_ms"] for record in of]
        for kind, of in records.items()
    }
    return {
        "least": {kind: min(of) for kind, of in ratios.items()},
        "most": {kind: max(of) for kind, of in ratios.items()},
        "threads": records["cpu"][0].plan["threads"],
        "longest": max(record["lon"]["total_s"] for record in records["cuda"]),
    }

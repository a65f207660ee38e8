r"""What follows from a record, by arithmetic alone: goals, sentences, and a graph that was not run.

The worst dataset decides a goal over several datasets. The goal is *met* only when all of them are
measured as the goal asks; until then it is *partial* (or *missed*, when one dataset misses it).

A graph that is too large to run here is computed from the rates of one that was run. Propagation
has two costs: products, per number gathered, and writing, per byte of the terms.

.. math:: t = r_g \cdot E\, c\, K + r_w \cdot N\, c\, (K+1)\, 2, \qquad
    r_g = t_\text{products} / (E\, c\, K),\quad r_w = (t - t_\text{products}) / \text{bytes}

The other stages grow with the bytes that they read and write. On a GPU a gather of the same rows
stands for the products.
"""

import math
import statistics
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.bench._record import Record, cells, hardware
from lab.bench._tables import Table
from longnn._base.memory import in_words

#: The ten graphs of the paper.
DATASETS = (
    *("cora", "citeseer", "pubmed", "computers", "photo"),
    *("chameleon", "squirrel", "actor", "texas", "cornell"),
)
#: Datasets whose populations have the tighter limit on a GPU.
SMALL = ("cora", "citeseer", "texas", "cornell", "chameleon", "actor")
LARGE = tuple(name for name in DATASETS if name not in SMALL)
#: Bytes of a number of the terms, in float16; and columns of a block on a CPU.
HALF, BLOCK = 2, 16


@dataclass(frozen=True)
class Goal:
    """A limit on one number per dataset, of one contender on one kind of device.

    In ``"x"``, the ratio to one LON-GNN model is at least the limit; in ``"ms"``, the time is at
    most the limit. Where the ``mean`` decides, it is the geometric one over the datasets. Where a
    goal names a ``population``, it must have so many members.
    """

    name: str
    device: str
    datasets: tuple[str, ...]
    contender: str
    limit: float
    unit: str
    mean: bool = False
    population: int | None = None


def _read_goals() -> dict[str, Goal]:
    """Every goal by its text, from ``goals.toml``."""
    groups = {"ten": DATASETS, "small": SMALL, "large": LARGE}
    goals = {}
    path = Path(__file__).with_name("goals.toml")
    for name, entries in tomllib.loads(path.read_text(encoding="utf-8")).items():
        text, datasets = entries.pop("text"), entries.pop("datasets")
        goals[text] = Goal(name, datasets=groups.get(datasets, (datasets,)), **entries)
    return goals


GOALS = _read_goals()


def check_goals(record: Record) -> list[dict[str, Any]]:
    """The goals for the device of the record, each with the number that decides it and its status.

    ``factor`` is at least 1 where the goal is reached: 1.2 is met with a fifth to spare, 0.8 is
    missed by a fifth.
    """
    device = record["machine"]["device"]
    return [_check(text, goal, record) for text, goal in GOALS.items() if goal.device == device]


def _check(text: str, goal: Goal, record: Record) -> dict[str, Any]:
    what, metric = ("ratios", "ratios") if goal.unit == "x" else ("contenders", "ms")
    found = cells(record, what)
    measured = {}
    if goal.population in (None, record["settings"]["population"]):
        for name in goal.datasets:
            if (name, goal.contender) in found:
                measured[name] = found[name, goal.contender][metric]["value"]
    worst = value = factor = None
    if goal.mean and measured:
        value = math.exp(sum(map(math.log, measured.values())) / len(measured))
    elif measured:
        worst = (min if goal.unit == "x" else max)(measured, key=lambda name: measured[name])
        value = measured[worst]
    status = "not measured"
    if value is not None:
        factor = value / goal.limit if goal.unit == "x" else goal.limit / value
        status = "met" if factor >= 1 else "missed"
        if len(measured) < len(goal.datasets) and (factor >= 1 or goal.mean):
            status = "partial"
    return {
        "name": goal.name,
        "text": text,
        "unit": goal.unit,
        "limit": goal.limit,
        "value": value,
        "factor": factor,
        "dataset": worst,
        "measured": len(measured),
        "datasets": len(goal.datasets),
        "status": status,
    }


def scale_words(record: Record) -> list[str]:
    """A sentence or two on each part that the record of large graphs has."""
    machine, load = record["machine"], record["machine"]["load"]
    busy = "" if load is None else f", load {load:.1f} on {machine['cores']} cores"
    text = [f"Measured on {hardware(record)}{busy}. Other work on the machine makes times longer."]
    seconds = {key: spread["median"] for key, spread in record["seconds"].items()}
    if "products" in seconds:
        text.append(
            f"On {record['size']}, products run at {seconds['gather'] / seconds['products']:.0%} "
            "of the rate of a plain gather of the same rows in memory; with the terms written to "
            f"disk, {seconds['gather'] / seconds['propagate']:.0%}."
        )
    rivals, memory = [], record["memory_mib"]
    for key, name in (("sign", "PyG's SIGN transform"), ("sgc", "the loop of PyG's SGConv")):
        if key in record["ratios"]:
            told = f"{name} takes {record['ratios'][key]['median']:.2f} times as long"
            if memory.get(key) and memory.get("propagate"):
                told += f" and {memory[key] / memory['propagate']:.1f} times the memory"
            rivals.append(told)
    if rivals:
        joined = ", ".join(rivals)
        text.append(f"{joined[0].upper()}{joined[1:]}; both write nothing to disk.")
    if record["sweeps"]:
        most = max(record["sweeps"], key=lambda sweep: sweep["exponent"])
        text.append(
            "Over all stages and sizes the largest exponent of growth is "
            f"{most['exponent']:.2f} ({most['what']} with {most['axis']})."
        )
    if "ranks" in record:
        times = record["ranks"]["ratio"]["median"]
        text.append(
            f"Two ranks on two cores are {times:.2f} times as fast as one rank on one core."
        )
    orders = [_tell_order(graph, orders) for graph, orders in record["orders"].items()]
    return [*text, *filter(None, [" ".join(orders), " ".join(_tell_contests(record))])]


def _tell_order(graph: str, orders: Mapping[str, Mapping[str, float]]) -> str:
    name, best = min(orders.items(), key=lambda item: item[1]["product_s"])
    if name == "as it is":
        return f"On {graph} no order of the nodes makes a product faster."
    first = orders["as it is"]["product_s"]
    gain, pays = first / best["product_s"], best["find_s"] / (first - best["product_s"])
    return (
        f"On {graph} the best order of the nodes ({name}) makes a product {gain:.2f} times as fast "
        f"and pays after {pays:,.0f} products of 16 columns."
    )


def _tell_contests(record: Record) -> list[str]:
    """For each kind of labels: what learned filters have beside their rivals, and in what time."""
    told: dict[str, dict[str, str]] = {}
    for one in record["contests"]:
        score, seconds = statistics.mean(one["scores"]), statistics.mean(one["seconds"])
        told.setdefault(one["graph"], {})[one["model"]] = f"{100 * score:.1f} % in {seconds:.1f} s"
    return [
        f"On {graph} one learned filter has {by_model['learned filter']}, one per hidden unit "
        f"{by_model['learned filter per unit']}, SGC {by_model['SGC']} and SIGN {by_model['SIGN']}."
        for graph, by_model in told.items()
    ]


@dataclass(frozen=True)
class Shape:
    """What is to be run: edges count once, ``labelled`` rows are trained on."""

    name: str
    nodes: int
    edges: int
    features: int
    degree: int
    labelled: int

    @property
    def graph_bytes(self) -> int:
        """Neighbours in both directions, and offsets."""
        return 4 * 2 * self.edges + 8 * self.nodes

    @property
    def prepared_bytes(self) -> int:
        """On disk: the graph, float32 features, labels."""
        return self.graph_bytes + 4 * self.nodes * self.features + 4 * self.nodes

    def terms_bytes(self, rows: int) -> int:
        """On disk: all terms of some rows."""
        return rows * self.features * (self.degree + 1) * HALF

    @property
    def memory(self) -> int:
        """The graph, the degrees and two arrays of a block of columns; the terms of the block go
        to a scratch file."""
        return self.graph_bytes + 4 * self.nodes + 8 * BLOCK * self.nodes


PAPERS = Shape("ogbn-papers100M", 111_059_956, 1_615_685_872, 128, 10, 1_546_782)


def propagate_seconds(shape: Shape, record: Record) -> float:
    """Seconds for all terms of all rows, at the rates of a record."""
    seconds, columns, steps = record["seconds"], record["columns"], record["steps"]
    nodes = int(record["size"].split()[0].replace(",", ""))
    products = seconds.get("products", seconds["gather"])["median"]
    per_number = products / (record["entries"] * columns * steps)
    written = nodes * columns * (steps + 1) * HALF
    per_byte = max(seconds["propagate"]["median"] - products, 0.0) / written
    numbers = 2 * shape.edges * shape.features * shape.degree
    return per_number * numbers + per_byte * shape.terms_bytes(shape.nodes)


def stage_seconds(shape: Shape, name: str, stage: Mapping[str, float]) -> float:
    """Seconds of another stage, in proportion to its bytes."""
    if name == "ingest":
        return stage["seconds"] * shape.prepared_bytes / stage["written"]
    rows = {"train": shape.labelled, "predict": shape.nodes}[name]
    return stage["seconds"] * shape.terms_bytes(rows) / stage["read"]


def forecast_table(shape: Shape, cpu: Record, gpu: Record | None = None) -> Table:
    """Memory, disk and time of a shape on this CPU, on a GPU, and on four machines like this.

    Args:
        shape: what is to be run.
        cpu: the record of a CPU, with stages.
        gpu: the record of a GPU; None leaves its column empty.
    """
    note = (
        f"{shape.nodes:,} nodes, {shape.edges:,} edges, {shape.features} features, degree "
        f"{shape.degree}, terms in float16. Computed from the rates of these records; not run. "
        "Four machines share the columns of propagation, each with a disk of its own; the other "
        "stages run on one of them."
    )
    heads = ["", hardware(cpu), hardware(gpu) if gpu else "GPU", "four machines"]
    memory, terms = in_words(shape.memory), shape.terms_bytes(shape.nodes)
    labelled = in_words(shape.terms_bytes(shape.labelled))
    seconds = propagate_seconds(shape, cpu)
    on_gpu = duration(propagate_seconds(shape, gpu)) if gpu else "-"
    rows = [
        ["memory to propagate", memory, "the same, of the GPU", f"{memory} each"],
        ["disk, graph and features", *[in_words(shape.prepared_bytes)] * 3],
        ["disk, terms of all rows", *[in_words(terms)] * 2, f"{in_words(terms / 4)} each"],
        ["disk, terms of labelled rows alone", *[labelled] * 3],
        ["propagate", duration(seconds), on_gpu, duration(seconds / 4)],
    ]
    words = {"ingest": "ingest", "train": "one epoch on labelled rows", "predict": "predict all"}
    for name, text in words.items():
        took = duration(stage_seconds(shape, name, cpu["stages"][name]))
        rows.append([text, took, "-", took])
    return Table(f"{shape.name}, on paper", note, heads, rows, words=True)


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(42), duration(600), duration(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"

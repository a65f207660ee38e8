"""A record of a benchmark: plain data as in its JSON file, and the long table of what it measured.

Each measurement is a row, a plain dict: ``what`` was measured, on which ``graph``, of which
``contender``, which ``metric`` and its ``value`` (``low`` and ``high`` are its quartiles, if it has
any), and on which ``hardware``. Tables, figures and comparisons are views of the rows. The metric
of a measurement that failed is ``error``, its value the reason.
"""

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from lab.records import describe_code
from longnn._base.provenance import environment

Record = dict[str, Any]
Row = dict[str, Any]

#: The kind of a record by its format; only epochs are still measured, the others are history.
KINDS = {
    "longnn.bench/1": "epochs",
    "longnn.bench.depth/1": "depth",
    "longnn.bench.ensembles/1": "ensembles",
    "longnn.bench.scale/1": "scale",
}

#: Keys of a record that measure nothing.
_ABOUT = ("format", "created", "machine", "code", "settings")
#: Sections whose keys are graphs, and sections whose keys (below the graph) are contenders.
_BY_GRAPH = ("datasets", "graphs", "orders")
_BY_CONTENDER = [
    "contenders",
    "ratios",
    "memory_mib",
    "failed",
    "seconds",
    "stages",
    "orders",
    "ranks",
]
#: Fields of an entry of a list that name its graph, and its contender.
_GRAPH_FIELDS = ("dataset", "graph", "axis")
_CONTENDER_FIELDS = ("contender", "precision", "preset", "model", "what", "name")


def begin(device: torch.device, commit: str | None) -> Record:
    """A record of epochs without measurements: when, where and by which code they are made."""
    return {
        "format": "longnn.bench/1",
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": environment(device),
        "code": describe_code(commit),
    }


def read_bench(path: str | Path) -> Record:
    """Read a record of any kind.

    Raises:
        ValueError: if the file is not the record of a benchmark.
    """
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: Expected the record of a benchmark as JSON ({error})") from error
    if not isinstance(record, dict) or record.get("format") not in KINDS:
        raise ValueError(f"{path}: Expected the record of a benchmark (got another file)")
    return record


def folder_of(kind: str) -> str:
    """The folder of the records of a kind in a folder of results."""
    return "records" if kind == "epochs" else kind


def hardware(record: Record) -> str:
    """The GPU, or the CPU with its number of threads."""
    machine = record["machine"]
    return machine["gpu"] or f"{machine['cpu']}, {machine['threads']} thread(s)"


def rows(record: Record) -> Iterator[Row]:
    """Every measurement of a record, in its order.

    >>> record = {"machine": {"gpu": "a GPU"}, "orders": {"ring": {"random": {"find_s": 2.0}}}}
    >>> next(rows(record)) == {
    ...     "what": "orders", "graph": "ring", "contender": "random", "metric": "find_s",
    ...     "value": 2.0, "low": None, "high": None, "hardware": "a GPU"}
    True
    """
    for what, section in record.items():
        if what not in _ABOUT:
            for row in _rows(what, section):
                yield {**row, "hardware": hardware(record)}


def _rows(
    what: str, node: Any, graph: str | None = None, contender: str | None = None, metric: str = ""
) -> Iterator[Row]:
    if isinstance(node, list) and all(isinstance(entry, dict) for entry in node):
        for entry in node:
            graphs, contenders = (
                [entry[field] for field in fields if entry.get(field)]
                for fields in (_GRAPH_FIELDS, _CONTENDER_FIELDS)
            )
            yield from _rows(what, entry, graphs[0] if graphs else graph, " ".join(contenders))
    elif isinstance(node, dict) and not {"median", "error"} & set(node):
        for key, value in node.items():
            if what in _BY_GRAPH and graph is None:
                yield from _rows(what, value, key)
            elif what in _BY_CONTENDER and contender is None:
                yield from _rows(what, value, graph, key)
            elif what == "datasets" and isinstance(value, dict | list):
                yield from _rows(key, value, graph)
            else:
                path = f"{metric}.{key}" if metric else key
                yield from _rows(what, value, graph, contender, path)
    else:
        row = {"what": what, "graph": graph, "contender": contender, "metric": metric or what}
        quartiles = {"value": node, "low": None, "high": None}
        if isinstance(node, dict) and "error" in node:
            row["metric"], quartiles["value"] = "error", node["error"]
        elif isinstance(node, dict):
            quartiles = {"value": node["median"], "low": node["low"], "high": node["high"]}
        yield {**row, **quartiles}


Cells = dict[tuple[Any, Any], dict[str, Row]]


def cells(record: Record, what: str) -> Cells:
    """The rows of one kind of measurement by graph and contender, then by metric."""
    found: Cells = {}
    for row in rows(record):
        if row["what"] == what and row["metric"] != "error":
            found.setdefault((row["graph"], row["contender"]), {})[row["metric"]] = row
    return found


def values(record: Record, what: str) -> list[dict[str, Any]]:
    """The same without quartiles: one dict of values by metric per graph and contender."""
    return [
        {"graph": graph, "contender": contender, **{k: row["value"] for k, row in cell.items()}}
        for (graph, contender), cell in cells(record, what).items()
    ]


def facts(folder: Path) -> dict[str, Any]:
    """The numbers of sentences about times, from the committed records."""
    cpu, gpu, ensembles, scale = (
        read_bench(folder / path)
        for path in (
            "depth/depth-cpu.json",
            "depth/depth-h200.json",
            "ensembles/ensembles-h200.json",
            "scale/scale-h200.json",
        )
    )
    deep = {(time["contender"], time["precision"]): time for time in gpu["times"]}
    together: dict[str, list[float]] = {}
    for time in ensembles["times"]:
        together.setdefault(time["preset"], []).append(time["ratio"]["median"])
    slower = [100 * (1 / ratio - 1) for ratio in together["default"]]
    return {
        "cpu": next(t["ratio"]["median"] for t in cpu["times"] if t["contender"] == "deep"),
        "ms": {
            precision: deep["deep", precision]["ms"]["median"] for precision in ("float32", "tf32")
        },
        "faster": 1 / deep["deep", "tf32"]["ratio"]["median"],
        "shared": deep["deep_population", "tf32"],
        "best": [min(together["best"]), max(together["best"])],
        "slower": [min(slower), max(slower)],
        "scale_s": scale["seconds"]["propagate"]["median"],
    }

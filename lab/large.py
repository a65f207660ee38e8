"""What a graph larger than memory takes: seconds and peak memory of every command, on one machine.

Each command runs in a process of its own, as a user would start it, and the kernel tells what it
took. The record is written after each command, so that an interruption loses one.
"""

import json
import math
import os
import shutil
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from lab.bench._record import Record
from lab.bench._tables import Table
from lab.records import describe_code
from longnn._base.files import write_json, write_text
from longnn._base.provenance import environment

RECORD, PAGE = "large.json", "large.md"
#: Of every graph; a tenth of its nodes has a label.
EDGES, FEATURES, CLASSES, HOMOPHILY, DEGREE, DTYPE = 10, 64, 10, 0.3, 10, "float16"
#: The commands that count, and one for comparison; the files are made, not measured.
STAGES = ("prepare", "propagate", "train", "predict")
PLAIN = "train without known answers"
SETUP = (
    "Graphs of `python -m lab generate` with {edges} edges per node, {features} features, "
    "{classes} classes, homophily {homophily}, a tenth of the nodes labelled; degree {degree}, "
    "terms in {dtype}, `--preset fast`, each command a process of its own. On {cpu}, {cores} "
    "cores, longnn {longnn}. Made by `python -m lab large`."
)


def measure(
    sizes: list[int],
    folder: Path,
    file: Path,
    *,
    memory: str,
    epochs: int | None = None,
    plain: bool = False,
    commit: str | None = None,
) -> Record:
    """Run every command on a random graph of each size.

    Args:
        sizes: numbers of nodes.
        folder: where graphs are made, and deleted.
        file: of the record, which is gone on with if it exists.
        memory: of each command.
        epochs: of training; by default it ends by patience. Growth is told of graphs with a limit.
        plain: train without known answers, too: the difference is what they take.
        commit: of the code, where it is not a git checkout.
    """
    record: Record = {"format": "longnn.large/1", "graphs": []}
    if file.exists():
        record = json.loads(file.read_text(encoding="utf-8"))
    for nodes in sizes:
        graph: dict[str, Any] = {
            "nodes": nodes,
            "memory": memory,
            "epochs": epochs,
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": environment(torch.device("cpu")),
            "code": describe_code(commit),
            "stages": {},
        }
        record["graphs"].append(graph)
        place = folder / str(nodes)
        for stage, command in _commands(graph, place, plain).items():
            graph["stages"][stage] = _run(stage, command, place)
            print(nodes, stage, graph["stages"][stage], flush=True)
            if stage == "propagate":
                files = (f for f in Path(place, "prepared").rglob("*") if f.is_file())
                graph["disk_gb"] = round(sum(f.stat().st_size for f in files) / 1e9, 3)
            if stage == "train":
                graph["run"] = _result(Path(place, "run", "record.json"))
            write_json(file, record)
        shutil.rmtree(place)
    return record


def _commands(graph: dict[str, Any], place: Path, plain: bool) -> dict[str, list[str]]:
    """The commands of a graph, as typed."""
    made, prepared, run = (str(place / name) for name in ("graph", "prepared", "run"))
    nodes = graph["nodes"]
    generate = {
        "nodes": nodes,
        "edges": EDGES * nodes,
        "labelled": nodes // 10,
        "features": FEATURES,
        "classes": CLASSES,
        "homophily": HOMOPHILY,
        "output": made,
    }
    flags = [text for key, value in generate.items() for text in (f"--{key}", str(value))]
    settings = {"degree": DEGREE, "epochs": graph["epochs"]}
    train = ["train", prepared, "--preset", "fast", "--quiet"]
    for key, value in settings.items():
        train += [] if value is None else ["--set", f"{key}={value}"]
    longnn = {
        "prepare": ["prepare", made, "--output", prepared, "--quiet"],
        "propagate": ["propagate", prepared, "--degree", str(DEGREE), "--dtype", DTYPE, "--json"],
        "train": [*train, "--output", run],
        "predict": ["predict", run, "--output", str(place / "predictions.parquet")],
        PLAIN: [*train, "--set", "known_answers=none", "--output", str(place / "plain")],
    }
    if not plain:
        del longnn[PLAIN]
    python = [sys.executable, "-m"]
    every = {"generate": [*python, "lab", "generate", *flags, "--quiet"]}
    memory = ["--memory", graph["memory"]]
    return every | {stage: [*python, "longnn", *c, *memory] for stage, c in longnn.items()}


def _run(stage: str, command: list[str], place: Path) -> dict[str, float]:
    """Seconds, seconds of all processors, and the peak memory of a process."""
    place.mkdir(parents=True, exist_ok=True)
    log, started = place / "log", time.perf_counter()
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(f"{stage} failed ({' '.join(command)}):\n{log.read_text()[-4000:]}")
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_gb": round(used.ru_maxrss * 1024 / 1e9, 2),
        "load": round(os.getloadavg()[0], 1),
    }


def _result(file: Path) -> dict[str, Any]:
    """What the record of a run says of its score, its epochs and of where the time went."""
    record = json.loads(file.read_text(encoding="utf-8"))
    repeat = record["repeats"][0]
    kept = {key: repeat[key] for key in ("epochs", "best_epoch", "scores")}
    return {"seconds": record["seconds"], **kept}


def exponents(graphs: list[dict[str, Any]], what: str) -> dict[str, list[float]]:
    """By stage, the power of the number of nodes by which a cost grows from size to size."""
    return {
        stage: [
            math.log(large["stages"][stage][what] / small["stages"][stage][what])
            / math.log(large["nodes"] / small["nodes"])
            for small, large in pairwise(graphs)
        ]
        for stage in STAGES
    }


def page(record: Record) -> str:
    """What all graphs took, and how that grows over those with one limit of epochs."""
    heads = ["nodes", "edges", "`--memory`", *STAGES, "together", "epochs"]
    heads += ["most memory", "on disk", "test accuracy", "load"]
    note = (
        "Wall seconds, in brackets processor seconds of all threads. Load: processes that ran or "
        "waited, these among them; more of them than cores make all slower."
    )
    table = Table("Large graphs, every command", note, heads)
    for graph in record["graphs"]:
        there = {stage: graph["stages"][stage] for stage in STAGES if stage in graph["stages"]}
        costs = {stage: (s["seconds"], s["cpu_seconds"]) for stage, s in there.items()}
        total = [sum(cost) for cost in zip(*costs.values(), strict=True)]
        row = [f"{graph['nodes']:,}", f"{EDGES * graph['nodes']:,}", graph["memory"]]
        for wall, busy in (*(costs.get(stage, (None, None)) for stage in STAGES), total):
            row.append("-" if wall is None else f"{wall:.0f} ({busy:.0f})")
        run, loads = graph.get("run"), [s["load"] for s in there.values()]
        limit = ", all" if graph["epochs"] else ""
        row.append("-" if run is None else f"{run['epochs']}{limit}")
        row += [f"{max(s['peak_gb'] for s in there.values()):.2f} GB", f"{graph['disk_gb']:.1f} GB"]
        row.append("-" if run is None else f"{100 * run['scores']['test']['accuracy']:.1f} %")
        row.append(f"{min(loads):.0f} to {max(loads):.0f}")
        table.rows.append(row)
    setup: dict[str, Any] = {
        "edges": EDGES,
        "features": FEATURES,
        "classes": CLASSES,
        "homophily": HOMOPHILY,
    }
    setup |= {"degree": DEGREE, "dtype": DTYPE, **record["graphs"][0]["machine"]}
    lines = [*table.markdown(), "", SETUP.format(**setup), ""]
    for graph in record["graphs"]:
        lines += [graph["note"], ""] if graph.get("note") else []
        if PLAIN in graph["stages"]:
            known, less = (graph["stages"][stage] for stage in ("train", PLAIN))
            wall, busy = (known[key] - less[key] for key in ("seconds", "cpu_seconds"))
            lines += [
                f"Known answers take {wall:.0f} s ({busy:.0f} s) of the training of "
                f"{graph['nodes']:,} nodes: so much longer it takes than without them.",
                "",
            ]
    alike = [graph for graph in record["graphs"] if graph["epochs"] is not None]
    if len(alike) < 2:
        return "\n".join(lines).rstrip() + "\n"
    note = "Time grows like the number of nodes to this power; in brackets processor time."
    sizes = [f"{a['nodes']:,} to {b['nodes']:,}" for a, b in pairwise(alike)]
    growth = Table("Growth", note, ["stage", *sizes])
    wall, busy = (exponents(alike, what) for what in ("seconds", "cpu_seconds"))
    for stage in STAGES:
        both = zip(wall[stage], busy[stage], strict=True)
        growth.rows.append([stage, *(f"{w:.2f} ({b:.2f})" for w, b in both)])
    return "\n".join([*lines, *growth.markdown()]).rstrip() + "\n"


def rebuild(folder: Path) -> None:
    """Write the page of the record in a folder again, if there is one."""
    if not (folder / RECORD).exists():
        return
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    write_text(folder / PAGE, page(record))

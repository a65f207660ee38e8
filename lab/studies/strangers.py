"""Tables that played no part in any choice; and the default beside that of version 0.11.

The tables are those of :mod:`lab.strangers`. For the column of version 0.11, on the same splits,
its package must lie in the data folder:

    mkdir DATA/former && git archive bb6fa6e longnn | tar x -C DATA/former
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from lab.strangers import TABLES as BUILDERS
from lab.strangers import write_table
from lab.studies import practice
from lab.studies._engine import Cell, Cells, Context, read_records
from lab.studies._training import make_splits
from lab.studies._views import (
    CAPTIONS,
    ResultTable,
    gain,
    is_clear,
    listed,
    metric_words,
    percent,
    points,
    signed_interval,
)
from longnn import data
from longnn.data import NodeDataset
from longnn.metrics import headline

TITLE = "Tables that played no part in any choice, and version 0.11 beside this one"
ORDER = 110
AFTER = ("practice",)

TABLES = tuple(BUILDERS)
FULL, QUICK = {"splits": 3, "epochs": 0}, {"splits": 2, "epochs": 10}
#: Points by which rounding and chance may differ.
NOISE = 0.3
#: What version 0.11 is asked to do, by itself: it reads masks, and writes scores.
_FORMER = """
import json, sys, torch
from longnn import data
from longnn.data import Split
from longnn.training import complete, fit, score
folder, spec = sys.argv[1], json.load(open(sys.argv[1] + "/spec.json"))
dataset = data.load(spec["path"], **spec["options"])
held = torch.load(folder + "/masks.pt", weights_only=True)
known = [y.double().nan_to_num(nan=-7) for y in (dataset.data.y, held["y"])]
assert torch.equal(*known)
splits = [Split(*masks, protocol="stratified", seed=k) for k, masks in enumerate(held["masks"])]
config = complete({"preset": "default", **spec["limit"]}, dataset)
configs = [config.replace(seed=config.seed + k) for k in range(len(splits))]
fitted = fit(dataset, configs, splits, device=spec["device"])
test = [score(f.predicted, dataset, f.split.test, f.readout)[spec["metric"]] for f in fitted]
json.dump({"test": test}, open(folder + "/said.json", "w"))
"""


def cells(context: Context) -> Cells:
    """The default, its rivals and the former default on all tables; the latter on those of the
    study ``practice``, too."""
    plan = QUICK if context.quick else FULL
    former = Path(context.data_dir or ".") / "former"
    usual = ["diabetes"] if context.quick else [*TABLES, *practice.TABLES, *practice.GRAPHS]
    for name in context.choose("datasets", usual):
        if name in TABLES:
            load = cache(partial(_load, context, name))
            compute = partial(practice.compute_default, load, plan, context.device)
            yield Cell(name, plan, "default", compute)
            for rival in ("boosting",) if context.quick else practice.RIVALS:
                compute = partial(practice.compute_rival, rival, load, plan, context.device)
                yield Cell(name, plan, rival, compute)
        if former.is_dir() and not context.quick and name != "threshold":
            own = plan if name in TABLES else practice.FULL
            yield Cell(name, own, "former", partial(_former, context, name, former, own))


def _source(context: Context, name: str) -> tuple[str, dict[str, str]]:
    """What to load, with which options."""
    folder = Path(context.data_dir or tempfile.gettempdir())
    if name in practice.GRAPHS:
        return name, {"data_dir": str(folder)}
    if name in practice.TABLES:
        return str(folder / "tables" / name), {}
    path = folder / "strangers" / name
    write_table(name, path)
    return str(path), {"label_column": BUILDERS[name][1]}


def _load(context: Context, name: str) -> NodeDataset:
    path, options = _source(context, name)
    return data.load(path, **options)


def _former(
    context: Context, name: str, package: Path, plan: Mapping[str, int]
) -> dict[str, list[float]]:
    """Scores of the default preset of version 0.11 on the same splits."""
    dataset, (path, options) = _load(context, name), _source(context, name)
    y, splits = dataset.data.y, make_splits(dataset, "stratified", plan["splits"])
    metric, _ = headline(y, dataset.task)
    spec = {"path": path, "options": options, "device": context.device, "metric": metric}
    spec["limit"] = {"epochs": plan["epochs"]} if plan["epochs"] else {}
    with tempfile.TemporaryDirectory() as folder:
        masks = [(split.train, split.val, split.test) for split in splits]
        torch.save({"y": y, "masks": masks}, Path(folder, "masks.pt"))
        Path(folder, "spec.json").write_text(json.dumps(spec))
        environment = {**os.environ, "PYTHONPATH": str(package)}
        command = [sys.executable, "-c", _FORMER, folder]
        subprocess.run(command, env=environment, cwd=folder, check=True)
        said: dict[str, list[float]] = json.loads(Path(folder, "said.json").read_text())
    return said


def tables(folder: Path) -> list[ResultTable]:
    """Scores beside rivals' on the tables of strangers, and beside version 0.11 on all."""
    scores, former = [], []
    for name, record, now in _all(folder):
        if "former" in record:
            apart = signed_interval(points(now["test"], record["former"]["test"]))
            both = [f"{percent(v['test']):.1f}" for v in (record["former"], now)]
            former.append([name, metric_words(now["metric"]), *both, apart])
        if name not in TABLES:
            continue
        tests = {rival: record[rival]["test"] for rival in practice.RIVALS if rival in record}
        best = max(tests, key=lambda rival: percent(tests[rival]))
        each = [f"{percent(tests[r]):.1f}" if r in tests else "" for r in practice.RIVALS]
        ahead = signed_interval(points(now["test"], tests[best]))
        row = [name, metric_words(now["metric"]), *each, f"{percent(now['test']):.1f}", ahead]
        scores.append(row)
    says, rivals = CAPTIONS["strangers"], practice.RIVALS.values()
    columns = ["table", "score", *rivals, "default", "to the best of them"]
    versions = ["graph", "score", "version 0.11", "default", "difference"]
    return [
        ResultTable("scores", says["scores"], columns, scores),
        ResultTable("former", says["former"], versions, former),
    ]


def _all(folder: Path) -> list[tuple[str, Any, Any]]:
    """Name, record, and the values of the default, which ``practice`` may hold."""
    names = [*TABLES, *practice.TABLES, *practice.GRAPHS]
    own, beside = read_records(folder, names), read_records(folder.parent / "practice", names)
    return [(n, r, (r if n in TABLES else beside[n])["default"]) for n, r in own.items()]


def facts(folder: Path) -> dict[str, Any]:
    """How often the default is ahead and behind of rivals, and of version 0.11."""
    ahead, since, clear = dict[str, float](), dict[str, float](), []
    for name, record, now in _all(folder):
        if "former" in record:
            since[name] = gain(now["test"], record["former"]["test"])
        if name in TABLES:
            tests = [record[rival]["test"] for rival in practice.RIVALS if rival in record]
            best = max(tests, key=percent)
            ahead[name] = gain(now["test"], best)
            if ahead[name] < 0 and is_clear(points(now["test"], best)):
                clear.append(name)
    return {
        "tables": len(ahead),
        "ahead": sum(v > 0 for v in ahead.values()),
        "by_a_point": sum(v >= 1 for v in ahead.values()),
        "behind": listed((n for n, v in ahead.items() if v <= 0), plain=True) or "none",
        "clearly_behind": listed(clear, plain=True) or "none",
        "worst": min(ahead.values(), default=0.0),
        "best": max(ahead.values(), default=0.0),
        "compared": len(since),
        "since_mean": sum(since.values()) / max(len(since), 1),
        "since_worst": min(since.values(), default=0.0),
        "lower": sum(v < -NOISE for v in since.values()),
    }

"""Weights of classes: when do they help?

Four invented tables with unequal classes, five stratified splits, nothing set but ``class_weight``:
one model (the preset ``fast``), and the eight of the preset ``default``. Three scores, for a weight
may help one and harm another: average precision asks for an order, balanced accuracy and macro F1
ask for classes.
"""

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from lab.studies._engine import Cell, Cells, Context, read_records
from lab.studies._invented import as_dataset, fraud, fraud_rings, nearest, patients
from lab.studies._training import fit_all, make_splits
from lab.studies._views import (
    CAPTIONS,
    ResultTable,
    is_clear,
    listed,
    metric_words,
    percent,
    points,
    signed_interval,
    verdict,
)
from longnn.data import NodeDataset
from longnn.training import complete
from longnn.training._fit import score

TITLE = "Weights of classes: what they do where classes are unequal (not in the paper)"
ORDER = 107

WEIGHTS = ("none", "balanced")
PRESETS = ("fast", "default")
METRICS = ("average_precision", "balanced_accuracy", "macro_f1")
FULL, QUICK = {"splits": 5, "epochs": 0}, {"splits": 2, "epochs": 10}


def threshold(nodes: int = 3000) -> NodeDataset:
    """Three nodes in a hundred: those above a threshold of one column, most of the time."""
    rng = np.random.default_rng(2031)
    x = rng.normal(size=(nodes, 6))
    y = ((x[:, 2] > 1.9) & (rng.random(nodes) < 0.95)).astype(np.int64)
    return as_dataset("threshold", x, nearest(x[:, :2] + rng.normal(size=(nodes, 2)), 4), y)


TABLES = {"fraud": fraud, "rings": fraud_rings, "threshold": threshold, "patients": patients}


def cells(context: Context) -> Cells:
    """Every preset with and without weights on every table; one record per table."""
    plan = QUICK if context.quick else FULL
    for name in context.choose("datasets", ["rings"] if context.quick else list(TABLES)):
        load = cache(TABLES[name])
        for preset in PRESETS[: 1 if context.quick else 2]:
            for weight in WEIGHTS:
                compute = partial(_compute, load, preset, weight, plan, context.device)
                yield Cell(name, plan, f"{preset}, {weight}", compute)


def _compute(
    load: Any, preset: str, weight: str, plan: Mapping[str, int], device: str
) -> dict[str, Any]:
    dataset = load()
    limit = {"epochs": plan["epochs"]} if plan["epochs"] else {}
    config = complete({"preset": preset, "class_weight": weight, **limit}, dataset)
    splits = make_splits(dataset, "stratified", plan["splits"])
    (fitted,) = fit_all(dataset, [config], splits, device=device)
    tests = [score(f.predicted, dataset, f.split.test, f.readout) for f in fitted]
    names = [name for name in METRICS if name in tests[0]]
    return {"scores": {name: [test[name] for test in tests] for name in names}}


def tables(folder: Path) -> list[ResultTable]:
    """Scores without weights, and what weights add."""
    rows = []
    for name, record in read_records(folder, list(TABLES)).items():
        for metric in METRICS:
            row = [name, metric_words(metric)]
            for preset in PRESETS:
                keys = [f"{preset}, {weight}" for weight in WEIGHTS]
                both = [record[key]["scores"] if key in record else {} for key in keys]
                plain, weighted = (scores.get(metric) for scores in both)
                row.append("" if plain is None else f"{percent(plain):.1f}")
                row.append(signed_interval(points(weighted, plain)) if plain and weighted else "")
            rows += [row] if any(row[2:]) else []
    columns = ["table", "score", "fast", "weights add", "default", "weights add"]
    return [ResultTable("weights", CAPTIONS["weights"]["weights"], columns, rows)]


def facts(folder: Path) -> dict[str, Any]:
    """What weights add on each table, in points, and where they clearly gain or lose."""
    added: dict[str, dict[str, list[float]]] = {}
    for name, record in read_records(folder, list(TABLES)).items():
        for preset in PRESETS:
            plain, weighted = (record[f"{preset}, {weight}"]["scores"] for weight in WEIGHTS)
            for metric in plain:
                both = points(weighted[metric], plain[metric])
                added.setdefault(metric, {})[f"{name} ({preset})"] = both
    of_two = [
        float(np.mean(values))
        for of in added.values()
        for key, values in of.items()
        if not key.startswith("patients")
    ]
    precision = {k: v for k, v in added["average_precision"].items() if is_clear(v)}
    return {
        "patients": [np.mean(added["balanced_accuracy"][f"patients ({p})"]) for p in PRESETS],
        "f1": " and ".join(
            sorted({verdict(added["macro_f1"][f"patients ({preset})"]) for preset in PRESETS})
        ),
        "most": max(of_two),
        "least": min(of_two),
        "precision_gains": sum(np.mean(v) > 0 for v in precision.values()),
        "precision_losses": listed((k for k, v in precision.items() if np.mean(v) < 0), plain=True),
    }

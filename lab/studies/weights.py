"""Weights of classes: when do they help?

Four invented tables with unequal classes, each drawn from a fixed seed, five stratified splits,
nothing set but ``class_weight``: one model (the preset ``fast``), and the eight of the preset
``default``. Three scores, for a weight may help one and harm another: average precision asks for an
order, balanced accuracy and macro F1 ask for classes.
"""

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.impute import SimpleImputer
from sklearn.neighbors import kneighbors_graph
from torch_geometric.data import Data

from lab.studies._engine import Cell, Cells, Context, read_records
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
from longnn.data import NodeDataset, from_data
from longnn.training import complete
from longnn.training._fit import score

TITLE = "Weights of classes: what they do where classes are unequal (not in the paper)"
ORDER = 107

WEIGHTS = ("none", "balanced")
PRESETS = ("fast", "default")
METRICS = ("average_precision", "balanced_accuracy", "macro_f1")
FULL, QUICK = {"splits": 5, "epochs": 0}, {"splits": 2, "epochs": 10}


def as_dataset(
    name: str,
    x: np.ndarray,  # (nodes, columns); NaN where a value is missing
    edges: np.ndarray,  # (2, arcs)
    y: np.ndarray,  # (nodes,) integers: classes; else numbers
    weight: np.ndarray | None = None,  # (arcs,)
) -> NodeDataset:
    """The table as any own data: gaps are filled by the median, with a column that marks them.

    Edges are made two-way.

    >>> x = np.array([[1.0, 0.0], [np.nan, 1.0], [3.0, 0.0]])
    >>> as_dataset("three", x, np.array([[0, 1], [1, 2]]), np.array([0, 1, 0])).data.x[1]
    tensor([2., 1., 1.])
    """
    if np.isnan(x).any():
        x = SimpleImputer(strategy="median", add_indicator=True).fit_transform(x)
    labels = y.astype(np.int64 if y.dtype.kind in "iu" else np.float32)
    data = Data(
        x=torch.from_numpy(np.asarray(x, dtype=np.float32)),
        edge_index=torch.from_numpy(np.asarray(edges, dtype=np.int64)),
        y=torch.from_numpy(labels),
    )
    if weight is not None:
        data.edge_weight = torch.from_numpy(weight.astype(np.float32))
    return from_data(data, name=name)


def nearest(z: np.ndarray, k: int) -> np.ndarray:
    """Arcs from each row of ``z`` to its k nearest ones, columns brought to one deviation."""
    deviation = z.std(0)
    graph = kneighbors_graph(z / np.where(deviation > 0, deviation, 1), k).tocoo()
    return np.stack([graph.row, graph.col])


def fraud_rings(nodes: int = 1200) -> NodeDataset:
    """One account in twenty is a fraud, in rings of eight; gaps in every column."""
    rng = np.random.default_rng(12)
    y = (rng.random(nodes) < 0.05).astype(np.int64)
    x = np.stack(
        [
            rng.lognormal(3 + 0.5 * y, 1),  # amount
            rng.gamma(2, 20, nodes) * np.where(y == 1, 0.7, 1),  # age of the account
            rng.beta(2 + y, 5),  # share at night
            rng.poisson(5 + 2 * y).astype(float),  # logins
            rng.normal(0.6 * y, 1),  # a score
        ],
        1,
    )
    x = np.concatenate([x, rng.normal(size=(nodes, 2))], 1)
    x[rng.random(x.shape) < 0.08] = np.nan
    arcs = [rng.integers(0, nodes, (2, 4 * nodes))]
    frauds = rng.permutation(np.flatnonzero(y))
    for first in range(0, len(frauds), 8):
        ring = frauds[first : first + 8]
        pairs = [(u, v) for u in ring for v in ring if u != v and rng.random() < 0.4]
        arcs.append(np.array(pairs, dtype=np.int64).reshape(-1, 2).T)
    edges = np.concatenate(arcs, 1)
    edges = edges[:, edges[0] != edges[1]]
    weight = rng.gamma(2, 1, edges.shape[1]) * np.where(y[edges[0]] & y[edges[1]], 2, 1)
    return as_dataset("fraud", x, edges, y, weight)


def fraud(nodes: int = 3000) -> NodeDataset:
    """One account in twenty is a fraud that pays into a few mules; gaps in every column."""
    rng = np.random.default_rng(2002)
    y = np.zeros(nodes, dtype=np.int64)
    y[rng.choice(nodes, nodes // 20, replace=False)] = 1
    x = np.stack(
        [
            rng.gamma(2, 400, nodes) * np.where(y == 1, 0.75, 1),  # age of the account in days
            rng.poisson(np.where(y == 1, 9, 7)).astype(float),  # payments per week
            rng.lognormal(3.5 + 0.25 * y, 0.8),  # their mean amount
            rng.beta(1.5 + 0.6 * y, 6),  # share at night
            rng.normal(45 - 3 * y, 14),  # age of the owner
            (rng.random(nodes) < 0.3 + 0.1 * y).astype(float),  # is the address new?
        ],
        1,
    )
    x[rng.random(x.shape) < 0.1] = np.nan
    usual = rng.integers(0, nodes, (2, 5 * nodes))
    frauds = np.flatnonzero(y)
    mules = frauds[:: len(frauds) // 25]
    paying = np.repeat(frauds, 2)
    ring = np.stack([paying, rng.choice(mules, len(paying))])
    arcs = np.concatenate([usual, ring], 1)
    amount = np.concatenate([rng.gamma(1, 1, usual.shape[1]), rng.gamma(3, 1, ring.shape[1])])
    kept = arcs[0] != arcs[1]
    return as_dataset("fraud", x, arcs[:, kept], y, amount[kept])


def patients(nodes: int = 2000) -> NodeDataset:
    """Three diagnoses, 85, 10 and 5 %; neighbours have like complaints, one column in ten gaps."""
    rng = np.random.default_rng(2008)
    y = rng.choice(3, nodes, p=[0.85, 0.10, 0.05])
    shift = np.array([[0, 0, 0, 0], [1.0, 0.6, 0, -0.5], [0.5, -0.8, 1.0, 0.6]])
    x = shift[y] + rng.normal(size=(nodes, 4))
    complaints = shift[y] + rng.normal(0, 0.8, (nodes, 4))
    clinic = np.eye(6)[rng.integers(0, 6, nodes)]
    x[rng.random(x.shape) < 0.1] = np.nan
    return as_dataset("patients", np.concatenate([x, clinic], 1), nearest(complaints, 6), y)


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

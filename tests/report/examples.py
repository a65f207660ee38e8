"""Run folders as the trainer leaves them, made up from a seed.

RunRecord it to have them all, with their reports: `python -m tests.report.examples FOLDER`.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from longnn.records import RunRecord
from longnn.report import describe_filter, write_comparison, write_report

DEGREE = 10
COLUMNS = ("repeat", "epoch", "train_loss", "val_loss", "val_score", "amplitude", "a", "b")
FILTERLESS = ("gcn", "mlp")


def write_run(
    folder: Path,
    *,
    seed: int = 0,
    repeats: int = 1,
    channels: int = 7,
    layers: int = 1,
    model: str = "lon",
    dataset: str = "cora",
    task: str = "classification",
    classes: tuple[str, ...] = tuple("0123456"),
    notes: tuple[str, ...] = ("Features are the bag of words, each row summing to 1.",),
    epochs: int = 320,
    confusion: bool = False,
    shift: float = 0.0,
) -> Path:
    """Write a run folder; `shift` moves the filter's peak and the score."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    filterless = model in FILTERLESS
    learnable = model == "lon"
    rows: list[list[float | str]] = []
    done = []
    for index in range(repeats):
        start = np.array([0.0, 0.0])
        end = np.array([0.35, -0.55]) + rng.normal(0, 0.08, 2)
        length = int(epochs * rng.uniform(0.8, 1.2))
        repeat = _repeat(rng, index, length, task, len(classes), shift)
        betas = [_beta(rng, channels, shift) for _ in range(layers)]
        if not filterless:
            points = {"learned": end, "start": start} if learnable else {}
            repeat["filters"] = [_filter(beta, **points) for beta in betas]
        if confusion:
            repeat["confusion"] = _confusion(rng, len(classes)).tolist()
        rows += _history(rng, index, length, repeat, task, start, end, learnable, filterless)
        if index == 0 and not filterless:
            _write_path(folder, rng, betas[0], length)
        done.append(repeat)
    _write_history(folder, rows)
    metric = "accuracy" if task == "classification" else "r2"
    record = {
        "longnn": "0.1.0",
        "created": "2026-11-15T08:40:00+00:00",
        "command": f"longnn train {dataset} --model {model} --repeat {repeats}",
        "config": _config(model),
        "environment": _environment(),
        "data": _data(dataset, task, classes, notes),
        "metric": metric,
        "seconds": {"loading": 0.4, "training": sum(r.pop("seconds") for r in done)},
        "repeats": done,
        "summary": {part: _summary(done, part) for part in ("test", "val")},
    }
    (folder / "record.json").write_text(json.dumps(record, indent=1), encoding="utf-8")
    return folder


def edit_record(folder: Path, change: Any) -> None:
    """Apply `change` to the record of a run folder."""
    file = folder / "record.json"
    record = json.loads(file.read_text(encoding="utf-8"))
    change(record)
    file.write_text(json.dumps(record), encoding="utf-8")


def _beta(rng: np.random.Generator, channels: int, shift: float) -> np.ndarray:
    """Chebyshev coefficients, (degree + 1, channels), of bumps near `0.15 + shift`."""
    nodes = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
    lam = 1 - nodes
    centre = 0.15 + shift + rng.normal(0, 0.05, channels)
    bump = np.exp(-3 * (lam[:, None] - centre) ** 2) * rng.uniform(0.5, 1.1, channels)
    bump -= 0.25 * rng.uniform(0, 1, channels) * (lam[:, None] > 1.4)
    terms = np.cos(np.arange(DEGREE + 1)[:, None] * np.arccos(nodes))  # (degree + 1, nodes)
    beta = 2 / (DEGREE + 1) * terms @ bump
    beta[0] /= 2
    return np.asarray(beta)


def _response(beta: np.ndarray, lam: np.ndarray) -> np.ndarray:
    terms = np.cos(np.arange(len(beta))[:, None] * np.arccos(np.clip(1 - lam, -1, 1)))
    return np.asarray(beta.T @ terms)


def _filter(
    beta: np.ndarray, learned: np.ndarray | None = None, start: np.ndarray | None = None
) -> dict[str, Any]:
    lam = np.linspace(0, 2, 101)
    response = _response(beta, lam)
    return {
        "basis": "chebyshev" if learned is None else "jacobi",
        "degree": DEGREE,
        "channels": response.shape[0],
        "learned": {} if learned is None else {"a": learned[0], "b": learned[1]},
        "start": {} if start is None else {"a": start[0], "b": start[1]},
        "eigenvalues": lam.tolist(),
        "response": response.tolist(),
        "norm": np.sqrt((response**2).mean(axis=1)).tolist(),
        "words": describe_filter(lam, response),
    }


def _repeat(
    rng: np.random.Generator, index: int, length: int, task: str, classes: int, shift: float
) -> dict[str, Any]:
    base = (0.886 if task == "classification" else 0.71) - abs(shift) / 20
    val, test = base + 0.004 + rng.normal(0, 0.008), base + rng.normal(0, 0.008)

    def scores(value: float) -> dict[str, float]:
        if task == "regression":
            return {"r2": value, "mae": 0.3 + (1 - value) / 2}
        found = {"accuracy": value, "macro_f1": value - 0.01}
        return found | {"roc_auc": min(1.0, value + 0.05)} if classes == 2 else found

    return {
        "seed": index,
        "split": {
            "protocol": "published",
            "seed": index,
            "train": 1624,
            "val": 542,
            "test": 542,
            "notes": [],
        },
        "epochs": length,
        "best_epoch": length - 100,
        "stopped": "patience",
        "seconds": round(2 + rng.uniform(0, 2), 2),
        "scores": {"train": scores(0.985), "val": scores(val), "test": scores(test)},
        "filters": [],
    }


def _history(
    rng: np.random.Generator,
    index: int,
    length: int,
    repeat: dict[str, Any],
    task: str,
    start: np.ndarray,
    end: np.ndarray,
    learnable: bool,
    filterless: bool,
) -> list[list[float | str]]:
    metric = "accuracy" if task == "classification" else "r2"
    top = repeat["scores"]["val"][metric]
    rows: list[list[float | str]] = []
    for epoch in range(1, length + 1):
        done = 1 - np.exp(-epoch / 40)
        wobble = start + (end - start) * done + 0.02 * np.sin(epoch / 17) * np.array([1, -1])
        rows.append(
            [
                index,
                epoch,
                1.95 * (1 - done) + 0.12 + 0.03 * abs(rng.normal()),
                1.95 * (1 - done) + 0.38 + 0.0005 * epoch + 0.01 * rng.normal(),
                top * (0.3 + 0.7 * done) - 0.005 * abs(rng.normal()),
                "" if filterless else 0.4 + 0.5 * done + epoch / 600,
                wobble[0] if learnable else "",
                wobble[1] if learnable else "",
            ]
        )
    return rows


def _write_history(folder: Path, rows: list[list[float | str]]) -> None:
    with (folder / "history.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        writer.writerows(rows)


def _write_path(folder: Path, rng: np.random.Generator, beta: np.ndarray, length: int) -> None:
    epochs = np.arange(1, length + 1, 5)
    start = beta * 0
    start[0] = 0.5
    done = 1 - np.exp(-epochs / 40)[:, None, None]
    amplitude = 1 + epochs[:, None, None] / 300
    path = amplitude * (start * (1 - done) + beta * done)
    np.savez(folder / "filter_path.npz", epochs=epochs, beta=path)


def _confusion(rng: np.random.Generator, classes: int) -> np.ndarray:
    counts = rng.integers(0, 6, (classes, classes))
    return np.asarray(counts + np.diag(rng.integers(40, 160, classes)))


def _summary(done: list[dict[str, Any]], part: str) -> dict[str, Any]:
    found = {}
    for metric in done[0]["scores"][part]:
        values = np.array([repeat["scores"][part][metric] for repeat in done])
        std = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        half = 2.26 * std / np.sqrt(len(values))
        mean = float(values.mean())
        found[metric] = {
            "mean": mean,
            "low": mean - half,
            "high": mean + half,
            "std": std,
            "count": len(values),
        }
    return found


def _config(model: str) -> dict[str, Any]:
    return {
        "model": model,
        "hidden_channels": 64,
        "degree": DEGREE,
        "dropout": 0.5,
        "lr": 0.01,
        "coefficient_lr": 0.05,
        "basis_lr": 0.01,
        "weight_decay": 5e-4,
        "epochs": 1000,
        "patience": 100,
        "norm_penalty": 0.0,
        "split": None,
        "seed": 0,
    }


def _environment() -> dict[str, Any]:
    return {
        "python": "3.11.9",
        "torch": "2.13.0+cpu",
        "torch_geometric": "2.8.0",
        "platform": "Linux-6.1-x86_64",
        "cpu": "AMD EPYC 7B13",
        "threads": 2,
        "device": "cpu",
        "gpu": None,
    }


def _data(name: str, task: str, classes: tuple[str, ...], notes: tuple[str, ...]) -> dict[str, Any]:
    lam = np.linspace(0, 2, 201)
    peaks = 0.3 * np.exp(-400 * lam**2) + 0.9 * np.exp(-12 * (lam - 1) ** 2)
    density = peaks + 0.35 * np.exp(-3 * (lam - 0.9) ** 2)
    density /= density.sum() * 0.01
    labelled = task == "classification"
    counts = [351, 217, 418, 818, 426, 298, 180]
    card = {
        "name": name,
        "task": task,
        "nodes": 2708,
        "edges": 5278,
        "features": 1433,
        "weighted": False,
        "degree_min": 1,
        "degree_median": 3.0,
        "degree_mean": 3.898,
        "degree_max": 168,
        "components": 78,
        "largest_component_share": 0.9177,
        "isolated_nodes": 0,
        "class_counts": {c: counts[i % 7] for i, c in enumerate(classes)} if labelled else {},
        "imbalance": 4.54 if labelled else None,
        "labelled_share": 1.0,
        "edge_homophily": 0.81 if labelled else None,
        "node_homophily": 0.825 if labelled else None,
        "adjusted_homophily": 0.771 if labelled else None,
        "feature_density": 0.0127,
        "duplicate_rows": 12,
        "zero_rows": 0,
        "notes": list(notes),
        "warnings": ["The graph falls into 78 components; the largest holds 92% of the nodes."],
        "fingerprint": hashlib.sha256(name.encode(errors="replace")).hexdigest(),
        "density": None,
        "density_grid": None,
    }
    return {
        "name": name,
        "fingerprint": hashlib.sha256(name.encode(errors="replace")).hexdigest(),
        "notes": list(notes),
        "task": task,
        "classes": list(classes) if labelled else [],
        "card": card,
        "density": {"eigenvalues": lam.tolist(), "density": density.tolist()},
    }


def write_all(folder: Path) -> list[Path]:
    """One run folder of each kind."""
    return [
        write_run(folder / "single", confusion=True),
        write_run(folder / "ten", seed=1, repeats=10, confusion=True),
        write_run(folder / "wide", seed=2, channels=64, repeats=3, dataset="chameleon", shift=1.2),
        write_run(folder / "gcn", seed=3, model="gcn", repeats=10, shift=0.1),
        write_run(folder / "regression", seed=4, task="regression", repeats=2, channels=1),
        write_run(folder / "bern", seed=5, model="bern", repeats=10, layers=2, shift=0.4),
    ]


def read_all(folders: Iterable[Path]) -> list[RunRecord]:
    """The records of some run folders."""
    return [RunRecord.read(folder) for folder in folders]


if __name__ == "__main__":
    folders = write_all(Path(sys.argv[1]))
    for made in folders:
        print(write_report(RunRecord.read(made)))
    print(
        write_comparison(
            [RunRecord.read(f) for f in folders], Path(sys.argv[1]) / "comparison.html"
        )
    )

"""Run folders as the trainer leaves them, made up from a seed.

To see them all with their reports: `python -m tests.report.examples FOLDER`.
"""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from longnn.records import RunRecord
from longnn.report import describe_filter, write_comparison, write_report

DEGREE = 10
COLUMNS = ("repeat", "epoch", "train_loss", "val_loss", "val_score", "amplitude", "a", "b")
#: Where basis parameters begin.
START = np.zeros(2)


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
    filters, learned = model not in ("gcn", "mlp"), model == "lon"
    rows: list[list[float | str]] = []
    done = []
    for index in range(repeats):
        end = np.array([0.35, -0.55]) + rng.normal(0, 0.08, 2)
        length = int(epochs * rng.uniform(0.8, 1.2))
        repeat = _repeat(rng, index, length, task, shift)
        betas = [_beta(rng, channels, shift) for _ in range(layers)]
        if filters:
            repeat["filters"] = [_filter(beta, end if learned else None) for beta in betas]
        if confusion:
            counts = rng.integers(0, 6, (len(classes),) * 2)
            counts += np.diag(rng.integers(40, 160, len(classes)))
            repeat["confusion"] = counts.tolist()
        top = next(iter(repeat["scores"]["val"].values()))
        for epoch in range(1, length + 1):
            grown = 1 - np.exp(-epoch / 40)
            a, b = START + (end - START) * grown + 0.02 * np.sin(epoch / 17) * np.array([1, -1])
            losses = [1.95 * (1 - grown) + 0.12, 1.95 * (1 - grown) + 0.38 + 0.0005 * epoch]
            amplitude = 0.4 + 0.5 * grown + epoch / 600 if filters else ""
            basis = [a, b] if learned else ["", ""]
            rows.append([index, epoch, *losses, top * (0.3 + 0.7 * grown), amplitude, *basis])
        if index == 0 and filters:
            at = np.arange(1, length + 1, 5)
            grown = 1 - np.exp(-at / 40)[:, None, None]
            first = np.zeros_like(betas[0])
            first[0] = 0.5
            path = (1 + at[:, None, None] / 300) * (first * (1 - grown) + betas[0] * grown)
            np.savez(folder / "filter_path.npz", epochs=at, beta=path)
        done.append(repeat)
    with (folder / "history.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([COLUMNS, *rows])
    record = {
        "longnn": "0.1.0",
        "created": "2026-11-15T08:40:00+00:00",
        "command": f"longnn train {dataset} --model {model} --repeat {repeats}",
        "config": {"model": model, "degree": DEGREE, "epochs": 1000, "split": None, "lr": 5e-4},
        "environment": {"python": "3.11.9", "threads": 2, "gpu": None},
        "data": _data(dataset, task, classes, notes),
        "metric": "accuracy" if task == "classification" else "r2",
        "seconds": {"loading": 0.4, "training": 3.1},
        "repeats": done,
        "summary": {part: _summary(done, part) for part in ("test", "val")},
    }
    (folder / "record.json").write_text(json.dumps(record, indent=1), encoding="utf-8")
    return folder


def edit_record(folder: Path, change: Any) -> RunRecord:
    """Apply `change` to the record of a run folder, and read it."""
    file = folder / "record.json"
    record = json.loads(file.read_text(encoding="utf-8"))
    change(record)
    file.write_text(json.dumps(record), encoding="utf-8")
    return RunRecord.read(folder)


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


def _filter(beta: np.ndarray, end: np.ndarray | None) -> dict[str, Any]:
    lam = np.linspace(0, 2, 101)
    response = np.polynomial.chebyshev.chebval(1 - lam, beta)
    learned, start = ({} if end is None else {"a": v[0], "b": v[1]} for v in (end, START))
    return {
        "basis": "chebyshev" if end is None else "jacobi",
        "degree": DEGREE,
        "channels": response.shape[0],
        "learned": learned,
        "start": start,
        "eigenvalues": lam.tolist(),
        "response": response.tolist(),
        "norm": np.sqrt((response**2).mean(axis=1)).tolist(),
        "words": describe_filter(lam, response),
    }


def _repeat(
    rng: np.random.Generator, index: int, length: int, task: str, shift: float
) -> dict[str, Any]:
    base = (0.886 if task == "classification" else 0.71) - abs(shift) / 20
    each = {"train": 0.985, "val": base + 0.004 + rng.normal(0, 0.008)}
    each["test"] = base + rng.normal(0, 0.008)

    def scores(value: float) -> dict[str, float]:
        if task == "regression":
            return {"r2": value, "mae": 0.3 + (1 - value) / 2}
        return {"accuracy": value, "macro_f1": value - 0.01}

    split = {"protocol": "published", "seed": index, "train": 1624, "val": 542, "test": 542}
    return {
        "seed": index,
        "split": split | {"notes": []},
        "epochs": length,
        "best_epoch": length - 100,
        "stopped": "patience",
        "scores": {part: scores(value) for part, value in each.items()},
        "filters": [],
    }


def _summary(done: list[dict[str, Any]], part: str) -> dict[str, Any]:
    summary = {}
    for metric in done[0]["scores"][part]:
        values = np.array([repeat["scores"][part][metric] for repeat in done])
        std = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        half, mean = 2.26 * std / np.sqrt(len(values)), float(values.mean())
        summary[metric] = {"mean": mean, "low": mean - half, "high": mean + half}
        summary[metric] |= {"std": std, "count": len(values)}
    return summary


def _data(name: str, task: str, classes: tuple[str, ...], notes: tuple[str, ...]) -> dict[str, Any]:
    lam = np.linspace(0, 2, 201)
    peaks = 0.3 * np.exp(-400 * lam**2) + 0.9 * np.exp(-12 * (lam - 1) ** 2)
    density = peaks + 0.35 * np.exp(-3 * (lam - 0.9) ** 2)
    density /= density.sum() * 0.01
    counts = [351, 217, 418, 818, 426, 298, 180]
    labelled = classes if task == "classification" else ()
    card = {
        "task": task,
        "nodes": 2708,
        "degree_min": 1,
        "degree_median": 3.0,
        "degree_mean": 3.898,
        "degree_max": 168,
        "class_counts": {c: counts[i % 7] for i, c in enumerate(labelled)},
        "edge_homophily": 0.81 if labelled else None,
        "warnings": ["The graph falls into 78 components; the largest holds 92% of the nodes."],
    }
    return {
        "name": name,
        "fingerprint": (name.encode(errors="replace").hex() + 64 * "0")[:64],
        "notes": list(notes),
        "task": task,
        "classes": list(labelled),
        "card": card,
        "density": {"eigenvalues": lam.tolist(), "density": density.tolist()},
    }


def write_all(folder: Path) -> dict[str, Path]:
    """One run folder of each kind, by name."""
    kinds: dict[str, dict[str, Any]] = {
        "single": {"confusion": True},
        "ten": {"seed": 1, "repeats": 10, "confusion": True},
        "wide": {"seed": 2, "channels": 64, "repeats": 3, "dataset": "chameleon", "shift": 1.2},
        "gcn": {"seed": 3, "model": "gcn", "repeats": 10, "shift": 0.1},
        "regression": {"seed": 4, "task": "regression", "repeats": 2, "channels": 1},
        "bern": {"seed": 5, "model": "bern", "repeats": 10, "layers": 2, "shift": 0.4},
        "deep": {"layers": 5, "channels": 16},
    }
    return {name: write_run(folder / name, **options) for name, options in kinds.items()}


if __name__ == "__main__":
    records = [RunRecord.read(f) for f in write_all(Path(sys.argv[1])).values()]
    for record in records:
        print(write_report(record))
    print(write_comparison(records, Path(sys.argv[1]) / "comparison.html"))

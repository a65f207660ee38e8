"""Run folders as the trainer leaves them, made up from a seed."""

import csv
import json
from pathlib import Path

import numpy as np

from longnn.metrics import summarize
from longnn.records import RunRecord
from longnn.report._filters import describe_filter

DEGREE = 10
COLUMNS = ("repeat", "epoch", "train_loss", "val_loss", "val_score", "amplitude", "a", "b")
#: One run folder of each kind: what differs from the default.
KINDS = {
    "single": {"confusion": True},
    "ten": {"seed": 1, "repeats": 10, "confusion": True},
    "wide": {"seed": 2, "channels": 64, "repeats": 3, "dataset": "chameleon", "shift": 1.2},
    "gcn": {"seed": 3, "model": "gcn", "repeats": 10, "shift": 0.1},
    "regression": {"seed": 4, "task": "regression", "repeats": 2, "channels": 1},
    "bern": {"seed": 5, "model": "bern", "repeats": 10, "layers": 2, "shift": 0.4},
    "deep": {"layers": 5, "channels": 16},
}


def write_run(
    folder,
    *,
    seed=0,
    repeats=1,
    channels=7,
    layers=1,
    model="lon",
    dataset="cora",
    task="classification",
    classes=tuple("0123456"),
    notes=("Features are the bag of words, each row summing to 1.",),
    epochs=320,
    confusion=False,
    shift=0.0,
):
    """Write a run folder; `shift` moves the filter's peak and the score."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    metric = "r2" if task == "regression" else "accuracy"
    base = (0.71 if task == "regression" else 0.886) - abs(shift) / 20
    done, rows = [], []
    for index in range(repeats):
        end = np.array([0.35, -0.55]) + rng.normal(0, 0.08, 2)
        length = int(epochs * rng.uniform(0.8, 1.2))
        val, test = base + 0.004 + rng.normal(0, 0.008), base + rng.normal(0, 0.008)
        betas = [_beta(rng, channels, shift) for _ in range(layers)] if model != "gcn" else []
        other = {"mae": 0.4} if task == "regression" else {"macro_f1": 0.87}
        nodes = {"train": 1624, "val": 542, "test": 542}
        repeat = {
            "seed": index,
            "split": {"protocol": "published", "seed": index, **nodes, "notes": []},
            "epochs": length,
            "best_epoch": length - 100,
            "stopped": "patience",
            "scores": {
                part: {metric: value, **other}
                for part, value in (("train", 0.985), ("val", val), ("test", test))
            },
            "filters": [_filter(beta, end if model == "lon" else None) for beta in betas],
        }
        if confusion:
            counts = rng.integers(0, 6, (len(classes),) * 2)
            counts += np.diag(rng.integers(40, 160, len(classes)))
            repeat["confusion"] = counts.tolist()
        done.append(repeat)
        epoch = np.arange(1, length + 1)
        grown = 1 - np.exp(-epoch / 40)
        a, b = end[:, None] * grown + 0.02 * np.sin(epoch / 17) * np.array([[1], [-1]])
        losses = 1.95 * (1 - grown) + 0.12, 1.95 * (1 - grown) + 0.38 + 0.0005 * epoch
        nothing = [""] * length
        amplitude = 0.4 + 0.5 * grown + epoch / 600 if betas else nothing
        basis = (a, b) if model == "lon" else (nothing, nothing)
        columns = ([index] * length, epoch, *losses, val * (0.3 + 0.7 * grown), amplitude, *basis)
        rows += zip(*columns, strict=True)
        if index == 0 and betas:
            grown = grown[::5, None, None]
            first = np.zeros_like(betas[0])
            first[0] = 0.5
            path = (1 + epoch[::5, None, None] / 300) * (first * (1 - grown) + betas[0] * grown)
            np.savez(folder / "filter_path.npz", epochs=epoch[::5], beta=path)
    with (folder / "history.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([COLUMNS, *rows])
    record = {
        "longnn": "0.1.0",
        "created": "2026-11-15T08:40:00+00:00",
        "command": f"longnn train {dataset} --model {model} --repeat {repeats}",
        "config": {"model": model, "degree": DEGREE, "epochs": 1000, "split": None, "lr": 5e-4},
        "environment": {"python": "3.11.9", "threads": 2, "gpu": None},
        "data": _data(dataset, task, classes, notes),
        "metric": metric,
        "seconds": {"loading": 0.4, "training": 3.1},
        "repeats": done,
        "summary": {
            part: {m: summarize([r["scores"][part][m] for r in done]) for m in (metric, *other)}
            for part in ("test", "val")
        },
    }
    (folder / "record.json").write_text(json.dumps(record, indent=1), encoding="utf-8")
    return folder


def edit_record(folder: Path, change) -> RunRecord:
    """Apply `change` to the record of a run folder, and read it."""
    file = folder / "record.json"
    record = json.loads(file.read_text(encoding="utf-8"))
    change(record)
    file.write_text(json.dumps(record), encoding="utf-8")
    return RunRecord.read(folder)


def _beta(rng, channels, shift):
    """Chebyshev coefficients, (degree + 1, channels), of bumps near `0.15 + shift`."""
    lam = 1 - np.polynomial.chebyshev.chebpts1(DEGREE + 1)[:, None]
    bump = np.exp(-3 * (lam - 0.15 - shift - rng.normal(0, 0.05, channels)) ** 2)
    bump = bump * rng.uniform(0.5, 1.1, channels) - 0.25 * rng.uniform(0, 1, channels) * (lam > 1.4)
    return np.polynomial.chebyshev.chebfit(1 - lam[:, 0], bump, DEGREE)


def _filter(beta, end):
    lam = np.linspace(0, 2, 101)
    response = np.polynomial.chebyshev.chebval(1 - lam, beta)
    return {
        "basis": "chebyshev" if end is None else "jacobi",
        "degree": DEGREE,
        "channels": len(response),
        "learned": {} if end is None else {"a": end[0], "b": end[1]},
        "start": {} if end is None else {"a": 0.0, "b": 0.0},
        "eigenvalues": lam.tolist(),
        "response": response.tolist(),
        "norm": np.sqrt((response**2).mean(axis=1)).tolist(),
        "words": describe_filter(lam, response),
    }


def _data(name, task, classes, notes):
    lam = np.linspace(0, 2, 201)
    density = 0.3 * np.exp(-400 * lam**2) + 0.9 * np.exp(-12 * (lam - 1) ** 2)
    counts = [351, 217, 418, 818, 426, 298, 180]
    labelled = () if task == "regression" else classes
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

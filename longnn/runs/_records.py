"""What a record says of a run: scores, splits, filters in numbers and words.

Plain values, ready for JSON. Knows nothing of folders and files.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longnn import data, report
from longnn import training
from longnn.config import Config
from longnn.data import NodeDataset, Split
from longnn.graphs import spectral_density
from longnn.training import Problem, Result, summarize

SETS = ("train", "val", "test")


def masks_of(split: Split) -> dict[str, Tensor]:
    """The three sets of a split by name."""
    return {"train": split.train, "val": split.val, "test": split.test}


def score_sets(predicted: Tensor, dataset: NodeDataset, split: Split) -> dict[str, Any]:
    """Scores of predictions on each of the three sets."""
    return {
        name: training.score(predicted, dataset, mask) for name, mask in masks_of(split).items()
    }


def describe_data(
    dataset: NodeDataset, problem: Problem, asked: dict[str, Any], scaling: str
) -> dict[str, Any]:
    """The graph: where it is from, what it is like, and its spectrum."""
    density = spectral_density(problem.operator)
    return {
        "name": dataset.name,
        "source": asked["source"],
        "fingerprint": asked["fingerprint"],
        "task": dataset.task,
        "classes": list(dataset.classes),
        "notes": list(dataset.notes),
        "scaling": scaling,
        "card": data.describe(dataset).to_dict(),
        "density": {
            "eigenvalues": density.eigenvalues.tolist(),
            "density": density.density.tolist(),
        },
    }


def describe_repeat(
    dataset: NodeDataset,
    config: Config,
    split: Split,
    result: Result,
    predicted: Tensor,
    filters: list[dict[str, Any]],
) -> dict[str, Any]:
    """One repeat: its split, how training went, scores and filters."""
    described: dict[str, Any] = {
        "seed": config.seed,
        "split": {
            "protocol": split.protocol,
            "seed": split.seed,
            **dict(zip(SETS, split.sizes, strict=True)),
            "notes": list(split.notes),
        },
        "epochs": result.epochs,
        "best_epoch": result.best_epoch,
        "stopped": result.stopped,
        "offset": result.offset,
        "scale": result.scale,
        "scores": score_sets(predicted, dataset, split),
        "filters": filters,
    }
    if dataset.task == "classification":
        described["confusion"] = _confusion(predicted, dataset, split.test)
    return described


def put_in_words(described: dict[str, Any], largest: float) -> str:
    """A filter in words, judged where the graph has frequencies.

    Beyond the graph's largest eigenvalue a polynomial may do as it likes: no signal is there.
    """
    grid = np.asarray(described["eigenvalues"])
    inside = grid <= max(largest, grid[1]) + 1e-6
    return report.describe_filter(grid[inside], np.asarray(described["response"])[:, inside])


def _confusion(predicted: Tensor, dataset: NodeDataset, mask: Tensor) -> list[list[int]]:
    """Counts of test nodes, rows = true class, columns = predicted class."""
    size = dataset.num_classes
    pairs = dataset.data.y[mask] * size + predicted.argmax(1)[mask]
    counts: list[list[int]] = torch.bincount(pairs, minlength=size * size).view(size, size).tolist()
    return counts


def summarize_repeats(repeats: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mean and interval of each score of each set over the repeats that have it."""
    summary: dict[str, Any] = {}
    for name in SETS:
        metrics = {metric for r in repeats for metric in r["scores"][name]}
        summary[name] = {
            metric: summarize(
                [r["scores"][name][metric] for r in repeats if metric in r["scores"][name]]
            )
            for metric in sorted(metrics)
        }
    return summary

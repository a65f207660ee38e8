"""A finished run put to use: predictions on its own graph or another, scores from its weights."""

import copy
import dataclasses
from pathlib import Path
from typing import Any

from torch import Tensor

from longnn.runs import _records as records
from longnn import training
from longnn.runs._artifacts import read_weights
from longnn.config import Config
from longnn.data import DataError, NodeDataset
from longnn.runs._runs import WEIGHTS, find_run, make_splits, require_record


def predict_run(
    folder: Path, dataset: NodeDataset, *, repeat: int = 0
) -> tuple[Tensor, dict[str, Any]]:
    """Predictions of a finished run on a graph, the same or another; and the run's record."""
    record, asked = require_record(folder), find_run(folder)
    dataset = _match_features(dataset, asked)
    config = Config.from_dict(record["config"])
    if config.device != "cpu":  # trained on a GPU, it may be used without one
        config = config.replace(device="auto")
    state, scaling = read_weights(folder / WEIGHTS, repeat)
    if repeat >= len(record["repeats"]):
        raise DataError(f"Expected a repeat below {len(record['repeats'])} (got {repeat})")
    problem = training.make_problem(dataset, config, scaling)
    problem = dataclasses.replace(problem, task=asked["task"])
    outputs = len(asked["classes"]) if asked["task"] == "classification" else 1
    try:
        model = training.trained_model(config, asked["features"], outputs, state)
    except ValueError as error:
        raise DataError(f"Expected {folder / WEIGHTS} to fit the run's model ({error})") from error
    described = record["repeats"][repeat]
    predicted = training.predict(
        model, problem, offset=described["offset"], scale=described["scale"]
    )
    return predicted, record


def evaluate_run(folder: Path, dataset: NodeDataset) -> list[dict[str, Any]]:
    """Scores of every repeat of a finished run, computed again from its weights."""
    config = Config.from_dict(require_record(folder)["config"])
    repeats = []
    for i, split in enumerate(make_splits(dataset, config)):
        predicted, _ = predict_run(folder, dataset, repeat=i)
        scores = records.score_sets(predicted, dataset, split)
        repeats.append({"seed": split.seed, "scores": scores})
    return repeats


def _match_features(dataset: NodeDataset, asked: dict[str, Any]) -> NodeDataset:
    """The dataset with its feature columns in the order the run was trained with."""
    names, given = asked["feature_names"], list(dataset.feature_names)
    if names and given and names != given:
        missing = [name for name in names if name not in given]
        if missing:
            raise DataError(
                f"Expected the features the run was trained with (missing {missing[0]!r}; "
                f"the graph has {', '.join(given[:8])}{', ...' if len(given) > 8 else ''})"
            )
        extra = [name for name in given if name not in names]
        if extra:
            raise DataError(
                f"Expected {len(names)} features as the run was trained with (got {len(given)}; "
                f"not known: {extra[0]!r}); leave them out with --data feature_columns=..."
            )
        reordered = copy.copy(dataset.data)
        reordered.x = dataset.data.x[:, [given.index(name) for name in names]]
        dataset = dataclasses.replace(dataset, data=reordered, feature_names=tuple(names))
    if dataset.num_features != asked["features"]:
        raise DataError(
            f"Expected {asked['features']} features as the run was trained with "
            f"(got {dataset.num_features})"
        )
    return dataset

"""A small graph and a small space that several tests search."""

import dataclasses
from collections import Counter

import optuna
import pytest
import torch

from longnn.data import csbm, make_split
from longnn.registry import NETWORKS
from longnn.tuning import tune
from longnn.tuning._training import Halving

#: One model of each architecture is quick; all others are slow.
FEW = ("lon", "gpr", "sgc", "mlp", "gcn-deep")
MODELS_ONCE = [n if n in FEW else pytest.param(n, marks=pytest.mark.slow) for n in NETWORKS]
#: Seconds, not minutes: tiny and short, with a learning rate that decides.
SPACE = {
    "hidden_channels": 4,
    "degree": 3,
    "epochs": 12,
    "patience": 12,
    "lr_transform": {"choices": [1e-5, 1e-3, 1e-2, 5e-2]},
    "dropout": {"low": 0.0, "high": 0.8, "step": 0.1},
    "a": {"choices": [-0.5, 0.0, 1.0]},
}
#: The same with a continuous rate: no two draws are alike.
FINE = {**SPACE, "dropout": {"low": 0.0, "high": 0.8}}
#: A search to kill.
KILLED = {"trials": 12, "batch": 4, "halving": Halving((3, 6), keep=1)}


def graph(**options):
    return csbm(**{"num_nodes": 120, "num_features": 30, "seed": 3, **options})


def with_masks(dataset, splits):
    """The same graph with masks of its own."""
    made = [make_split(dataset, "stratified", seed) for seed in range(splits)]
    data = dataset.data.clone()
    for name in ("train", "val", "test"):
        masks = torch.stack([getattr(s, name) for s in made], 1)
        data[f"{name}_mask"] = masks if splits > 1 else masks[:, 0]
    return dataclasses.replace(dataset, data=data, default_split="fixed")


def turn_over(masked):
    """The same graph with other labels of the test nodes."""
    data = masked.data.clone()
    data.y = torch.where(data.test_mask, 1 - data.y, data.y)
    assert not torch.equal(data.y, masked.data.y)
    return dataclasses.replace(masked, data=data)


def draw_values(spaces, count, *, seed=0):
    """Random values for every entry, from the spaces in turn; equal seeds give equal values."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    return [spaces[i % len(spaces)].suggest(study.ask()) for i in range(count)]


def search(dataset, folder, space=SPACE, **options):
    """A search in memory unless a storage is given; without a folder it is quicker: no figures."""
    options = {
        "trials": 6,
        "repeats": 2,
        "batch": 3,
        "finalists": 0,
        "device": "cpu",
        "storage": optuna.storages.InMemoryStorage(),
        **options,
    }
    return tune(dataset, space, folder=folder, **options)


def values(result):
    """What is the same when a search is repeated exactly."""
    keys = ("number", "state", "params", "value", "intermediate", "epochs", "best_epochs")
    return [{key: getattr(trial, key) for key in keys} for trial in result.record.trials]


def finished(result):
    """The finished trials by their places: every place has exactly one, whatever was killed."""
    trials = [t for t in result.record.trials if t.state in ("complete", "pruned")]
    assert sorted(t.place for t in trials) == list(range(result.record.finished))
    assert not [t for t in result.record.trials if t.state == "running"]
    lost = {t.place: t.params for t in reversed(result.record.trials) if t.state == "fail"}
    found = {trial.place: trial for trial in trials}
    assert all(found[place].params == params for place, params in lost.items())
    draws = Counter(str(trial.params) for trial in trials)
    assert max(draws.values()) == 1, "a trial was drawn twice"
    return found

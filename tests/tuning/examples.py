"""A small graph and a small space that several tests search."""

import optuna

from longnn.data import csbm
from longnn.tuning import tune

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
#: The same with a continuous rate: workers that draw for themselves never draw the same trial.
FINE = {**SPACE, "dropout": {"low": 0.0, "high": 0.8}}


def graph(**options):
    return csbm(**{"num_nodes": 120, "num_features": 30, "seed": 3, **options})


def search(dataset, folder, space=SPACE, **options):
    """A search in memory unless a storage is given."""
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
    return [{key: trial.to_dict()[key] for key in keys} for trial in result.trials]

"""A small graph and a small space that several tests search."""

import optuna

from longnn.data import csbm
from longnn.tuning import Halving, tune

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


#: A search to kill: halving stops trials, so results depend on what is trained together.
KILLED = {"trials": 12, "batch": 4, "halving": Halving((3, 6), keep=1)}


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


def drawn(result):
    """What is the same in a search that was interrupted and continued: its draws in their order."""
    roots, found = {}, {}
    for trial in result.trials:
        roots[trial.number] = roots.get(trial.retry_of, trial.number)
        if trial.state in ("complete", "pruned"):
            shown = trial.to_dict()
            for key in ("number", "retry_of", "worker", "seconds"):
                del shown[key]
            assert roots[trial.number] not in found, "trained twice"
            found[roots[trial.number]] = shown
    return [found[root] for root in sorted(found)]

"""The candidates: the preset, the preset with one choice undone, and references."""

from collections.abc import Mapping
from typing import Any

from longnn.config import Config
from longnn.data import NodeDataset
from longnn.training import complete, data_defaults

#: The preset with one choice undone, by label.
CHANGES = {
    "no-penalty": "no degree penalty",
    "triple-penalty": "three times the degree penalty",
    "half-dropout": "dropout 0.5 of columns and of hidden units",
    "usual-dropout": "dropouts of the usual defaults",
    "output": "filter on the scores",
    "other-sharing": "one filter for all units (regression), one per unit (classes)",
    "slow-filter": "filter's learning rate 0.002",
    "no-dropout": "dropout 0 of hidden units",
    "some-dropout": "dropout 0.2 of hidden units",
    "other-monitor": "stopped by the score (classes)",
}
#: Models of scikit-learn, which see the columns alone.
COLUMNS = {"linear": "linear", "histogram-boosting": "histogram boosting"}
LABELS = {
    "preset": "preset",
    "defaults": "usual defaults",
    **CHANGES,
    "mlp": "MLP",
    **COLUMNS,
}


def candidates(dataset: NodeDataset, given: Mapping[str, Any]) -> dict[str, Config]:
    """The configurations to train on a table, by name.

    Args:
        dataset: a table.
        given: keys that all of them share, such as the number of epochs.

    >>> from longnn.data import csbm
    >>> list(candidates(csbm(num_nodes=40, num_features=3), {}))[:3]
    ['preset', 'defaults', 'no-penalty']
    """
    chosen, usual = complete({"preset": "fast", **given}, dataset).to_dict(), Config().to_dict()
    dropouts = ("input_dropout", "dropout", "filter_dropout")
    changes: dict[str, dict[str, Any]] = {
        "no-penalty": {"degree_penalty": 0.0},
        "triple-penalty": {"degree_penalty": 3 * chosen["degree_penalty"]},
        "half-dropout": {"input_dropout": 0.5, "dropout": 0.5},
        "usual-dropout": {key: usual[key] for key in dropouts},
        "output": {"placement": "output"},
        "other-sharing": {"shared": not chosen["shared"]},
        "slow-filter": {"lr_coefficients": 0.002},
        "no-dropout": {"dropout": 0.0},
        "some-dropout": {"dropout": 0.2},
    }
    if "monitor" in data_defaults(dataset):  # for regression, loss and score are the same choice
        changes["other-monitor"] = {"monitor": "score"}
    return {
        "preset": complete({"preset": "fast", **given}, dataset),
        "defaults": Config.from_dict(given),
        **{
            name: complete({"preset": "fast", **given, **keys}, dataset)
            for name, keys in changes.items()
        },
        "mlp": complete({"preset": "fast", **given, "model": "mlp"}, dataset),
    }

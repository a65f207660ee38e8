"""What the columns alone give: rivals without a graph, all of scikit-learn.

Each is trained on the training nodes of a split and predicts every node, as our models do.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from longnn.data import NodeDataset, Split


def _ridge() -> Any:
    return make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13)))


def _logistic() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))


REGRESSORS: dict[str, Callable[[], Any]] = {
    "constant": DummyRegressor,
    "linear": _ridge,
    "boosting": GradientBoostingRegressor,
    "histogram-boosting": HistGradientBoostingRegressor,
}
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "constant": DummyClassifier,
    "linear": _logistic,
    "boosting": GradientBoostingClassifier,
    "histogram-boosting": HistGradientBoostingClassifier,
}


def predict_by_columns(name: str, dataset: NodeDataset, split: Split) -> np.ndarray:
    """Values (nodes,) or probabilities (nodes, classes) of a rival without the graph.

    >>> from longnn.data import csbm, make_split
    >>> data = csbm(num_nodes=40, num_features=3)
    >>> predict_by_columns("constant", data, make_split(data, "stratified", 0)).shape
    (40, 2)
    """
    x, y = dataset.data.x.numpy(), dataset.data.y.numpy()
    train = split.train.numpy()
    if dataset.task == "regression":
        model = REGRESSORS[name]().fit(x[train], y[train])
        return np.asarray(model.predict(x))
    model = CLASSIFIERS[name]().fit(x[train], y[train])
    return np.asarray(model.predict_proba(x))

"""What is reached without the graph: the most frequent class or the mean, and linear models.

Fitted by scikit-learn on the training nodes of each split and the features as the models see them.
The third baseline, an MLP, is one of our own models and trained beside the others.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from torch import Tensor

from longnn.config import Config
from longnn.data import NodeDataset, Split
from longnn.description._record import make_summary, read_alike, score_sets
from longnn.matrices import SparseMatrix
from longnn.metrics import Task, summarize
from longnn.records import BaselineRecord, Scores, Summary, summarize_repeats
from longnn.training import Fitted, Problem, RowProblem

#: Steps of logistic regression; more change the score of a baseline by next to nothing.
STEPS = 200


def mlp_config(config: Config) -> Config | None:
    """The configuration of an MLP as like the model as can be; None if the model is one."""
    if config.model == "mlp":
        return None
    mlp = config.replace(model="mlp", preset="fast")
    shared = {k: v for k, v in config.options.items() if k in mlp.options}
    return mlp.replace(**shared)


def simple_baselines(task: Task) -> dict[str, str]:
    """The baselines that are fitted here: name and title.

    >>> simple_baselines("regression")
    {'constant': 'the mean', 'linear': 'ridge regression'}
    """
    if task == "regression":
        return {"constant": "the mean", "linear": "ridge regression"}
    most = "the largest class" if task == "classification" else "each label's frequency"
    return {"constant": most, "linear": "logistic regression"}


def describe_baselines(
    dataset: NodeDataset, problem: Problem, fitted: Sequence[Fitted], mlp: Sequence[Fitted]
) -> list[BaselineRecord]:
    """Each baseline on each split, scored as the models are, and compared with them.

    Args:
        dataset, problem: what was learned.
        fitted: the repeats of the run.
        mlp: the MLPs trained beside them, if any.
    """

    def describe(name: str, title: str, scores: Sequence[Scores]) -> BaselineRecord:
        ours = [score_sets(one.predicted, dataset, one.split, one.readout) for one in fitted]
        summary = summarize_repeats(scores, summarize)["test"]
        return BaselineRecord(name, title, tuple(scores), summary, _ahead(ours, scores))

    records = []
    for name, title in simple_baselines(dataset.task).items():
        if name == "linear" and isinstance(problem, RowProblem):
            continue  # it would need all features in memory
        predicted = [
            read_alike(predict_baseline(name, problem, o.split), dataset, o) for o in fitted
        ]
        scores = [
            score_sets(p, dataset, one.split) for p, one in zip(predicted, fitted, strict=True)
        ]
        records.append(describe(name, title, scores))
    if mlp:
        scores = [score_sets(one.predicted, dataset, one.split, one.readout) for one in mlp]
        records.append(describe("mlp", "an MLP without the graph", scores))
    return records


def _ahead(ours: Sequence[Scores], theirs: Sequence[Scores]) -> dict[str, Summary]:
    """The differences of test scores, paired by repeat."""
    differences: dict[str, list[float]] = {}
    for one, other in zip(ours, theirs, strict=True):
        for metric in one["test"].keys() & other["test"].keys():
            found = one["test"][metric] - other["test"][metric]
            differences.setdefault(metric, []).append(found)
    return {metric: make_summary(values) for metric, values in sorted(differences.items())}


def predict_baseline(name: str, problem: Problem, split: Split) -> Tensor:
    """What a baseline predicts for every node, as a model would: probabilities or values.

    >>> from longnn.graphs import GraphOperator
    >>> P = GraphOperator.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
    >>> problem = Problem.make(torch.eye(2), P, torch.tensor([0, 1]))
    >>> first = torch.tensor([True, False])
    >>> predict_baseline("constant", problem, Split(first, ~first, ~first, "own", 0))
    tensor([[1., 0.],
            [1., 0.]])
    """
    features = problem.features
    y, train = problem.labels.cpu().numpy(), split.train.cpu().numpy()
    x: Any
    if name == "constant":
        x = np.zeros((len(y), 1))
    elif isinstance(features, SparseMatrix):
        x = features.to_scipy()
    else:
        x = features.values.cpu().numpy()
    predicted = {
        "classification": _classify,
        "multilabel": _label,
        "regression": _regress,
    }[problem.task](name, x, y, train, problem.outputs)
    return torch.from_numpy(predicted).to(problem.dtype)


def _classify(name: str, x: Any, y: np.ndarray, train: np.ndarray, outputs: int) -> np.ndarray:
    """Probabilities (nodes, classes); a class without training node has none."""
    train = train & (y >= 0)
    model = _fit(_classifier(name), x[train], y[train])
    predicted = np.zeros((len(y), outputs))
    predicted[:, model.classes_] = model.predict_proba(x)
    return predicted


def _label(name: str, x: Any, y: np.ndarray, train: np.ndarray, outputs: int) -> np.ndarray:
    """Probabilities (nodes, labels), each label for itself."""
    columns = []
    for k in range(outputs):
        rows = train & ~np.isnan(y[:, k])
        known = y[rows, k].astype(int)
        if len(np.unique(known)) < 2:
            columns.append(np.full(len(y), float(known[0]) if len(known) else 0.0))
        elif name == "constant":
            columns.append(np.full(len(y), known.mean()))
        else:
            columns.append(_fit(_classifier(name), x[rows], known).predict_proba(x)[:, 1])
    return np.stack(columns, axis=1)


def _regress(name: str, x: Any, y: np.ndarray, train: np.ndarray, outputs: int) -> np.ndarray:
    """Values (nodes,) or (nodes, targets), each target for itself."""
    make: Callable[[], Any] = DummyRegressor if name == "constant" else Ridge
    columns = []
    for values in y.reshape(len(y), -1).T:
        rows = train & ~np.isnan(values)
        columns.append(_fit(make(), x[rows], values[rows].astype(np.float64)).predict(x))
    return columns[0] if outputs == 1 and y.ndim == 1 else np.stack(columns, axis=1)


def _classifier(name: str) -> Any:
    if name == "constant":
        return DummyClassifier(strategy="prior")
    return LogisticRegression(max_iter=STEPS, tol=1e-3)


def _fit(model: Any, x: Any, y: np.ndarray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # near enough for a baseline
        if isinstance(model, LogisticRegression) and len(np.unique(y)) < 2:
            model = DummyClassifier(strategy="most_frequent")
        return model.fit(x, y)

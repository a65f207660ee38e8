"""What a run is compared with: answers without the graph, and trees with neighbours' averages.

Baselines are what is reached without the graph: the most frequent class or the mean, and linear
models, fitted by scikit-learn on the training nodes of each split and the features as the models
see them. An MLP and boosted trees are models of our own, trained beside the others.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longnn.config import Config
from longnn.data import NodeDataset, Split
from longnn.description import drawn_scores, over_nodes, read_alike, score_sets
from longnn.matrices import SparseMatrix
from longnn.metrics import Task
from longnn.records import (
    BaselineRecord,
    Scores,
    Summary,
    summarize_repeats,
)
from longnn.training import (
    FREE,
    Fitted,
    Problem,
    Readout,
    combine,
    ensemble_weights,
    members_of,
    row_degree_of,
    score,
)
from longnn.training._fit import fit_readout
from longnn.training._presets import is_for_trees
from longnn.training._readout import scores_of

#: Steps of logistic regression; more change the score of a baseline by next to nothing.
STEPS = 200


def simple_baselines(task: Task) -> dict[str, str]:
    """The baselines that are fitted here: name and title.

    >>> simple_baselines("regression")
    {'constant': 'the mean', 'linear': 'ridge regression'}
    """
    if task == "regression":
        return {"constant": "the mean", "linear": "ridge regression"}
    most = "the largest class" if task == "classification" else "each label's frequency"
    return {"constant": most, "linear": "logistic regression"}


#: Rivals that are trained like models, by name: the title, and the columns of trees.
RIVALS = {
    "mlp": ("an MLP without the graph", ""),
    "trees": ("boosted trees without the graph", "alone"),
    "neighbours": ("boosted trees with neighbours' averages", "neighbours"),
}


def rival_configs(config: Config, dataset: NodeDataset) -> dict[str, Config]:
    """What is trained beside a run to compare it with, by name; members of its own are not.

    Trees are among it where they are worth their time.
    """
    rivals = {}
    if config.model != "mlp":  # as like the model as can be
        mlp = config.replace(model="mlp", preset="fast", known_answers="none")
        rivals["mlp"] = mlp.replace(**{k: v for k, v in config.options.items() if k in mlp.options})
    if not is_for_trees(dataset):
        return rivals
    given = {key: value for key, value in config.to_dict().items() if key in FREE}
    members = {} if config.preset == "fast" else members_of(config, dataset)
    there = [_columns(member) for member in (config, *members.values())]
    for name, (_, columns) in RIVALS.items():
        if columns and columns not in there:
            table = {**given, "preset": "fast", "model": "trees", "columns": columns}
            table["known_answers"] = "none"
            rival = Config.from_dict(table)
            if not dataset.backing.by_rows or row_degree_of(rival) is not None:
                rivals[name] = rival
    return rivals


def _columns(config: Config) -> str:
    """What the trees of a configuration see; nothing for another model."""
    return str(config.options["columns"]) if config.model == "trees" else ""


def describe_baselines(
    dataset: NodeDataset,
    problem: Problem,
    fitted: Sequence[Fitted],
    rivals: Mapping[str, Sequence[Fitted]],
) -> list[BaselineRecord]:
    """Each baseline on each split, scored as the models are, and compared with them.

    Where several models are joined, so are the baselines without the graph, by the same votes: the
    difference is what the graph adds.

    Args:
        dataset, problem: what was learned.
        fitted: the repeats of the run.
        rivals: what was trained beside them, by name; trees may be members instead.
    """
    ours = [score_sets(fit.predicted, dataset, fit.split, fit.readout) for fit in fitted]
    drawn = drawn_scores([(fit.predicted, fit.readout) for fit in fitted], dataset, fitted)

    def describe(
        name: str, title: str, each: Sequence[tuple[Tensor, Readout | None]], graph: bool = False
    ) -> BaselineRecord:
        pairs = list(zip(each, fitted, strict=True))
        scores = [score_sets(p, dataset, fit.split, readout) for (p, readout), fit in pairs]
        draws = drawn_scores(each, dataset, fitted)
        differences = [
            {metric: our[metric] - their[metric] for metric in our.keys() & their.keys()}
            for our, their in zip(drawn, draws, strict=True)
        ]
        ahead = over_nodes(_ahead(ours, scores), differences)
        summary = over_nodes(summarize_repeats(scores)["test"], draws)
        return BaselineRecord(name, title, tuple(scores), summary, ahead, graph)

    records: list[BaselineRecord] = []
    bare: list[list[Tensor]] = []  # without the graph, by repeat
    for name, title in simple_baselines(dataset.task).items():
        if name == "linear" and problem.by_rows:
            continue  # it would need all features in memory
        plain = [predict_baseline(name, problem, fit.split) for fit in fitted]
        each = [(read_alike(p, dataset, fit), None) for p, fit in zip(plain, fitted, strict=True)]
        records.append(describe(name, title, each))
        bare += [plain] if name == "linear" else []
    for name, (title, columns) in RIVALS.items():
        found = rivals.get(name) or [
            m.fitted
            for fit in fitted
            for m in fit.members
            if columns
            and _columns(m.fitted.config) == columns
            and m.fitted.config.seed == fit.config.seed
        ]
        if len(found) != len(fitted) or not all(one.is_sound for one in found):
            continue
        graph = columns == "neighbours"
        records.append(describe(name, title, [(o.predicted, o.readout) for o in found], graph))
        bare += [] if graph else [[one.predicted for one in found]]
    if any(fit.plain is not None for fit in fitted):
        untold = [(f.predicted if f.plain is None else f.plain, f.readout) for f in fitted]
        records.append(describe("plain", "the same without known answers", untold, True))
    if len(bare) > 1 and any(fit.members for fit in fitted):
        joined = [_join([one[k] for one in bare], problem, fit) for k, fit in enumerate(fitted)]
        records.append(describe("joined", "the joined models without the graph", joined))
    return records


def _join(said: Sequence[Tensor], problem: Problem, fit: Fitted) -> tuple[Tensor, Readout | None]:
    """The average of predictions by votes of the validation nodes, read as the run's are."""
    every, val = torch.stack(list(said)), fit.split.val.cpu()
    weight = None if problem.weight is None else problem.weight.cpu()[val]
    votes = ensemble_weights(every[:, val], problem.labels.cpu()[val], problem.task, weight)
    predicted = combine(every, votes)
    if problem.task == "regression":
        return predicted, None
    scores = scores_of(predicted, problem.task)
    readout = fit_readout(fit.config, problem, fit.result, scores, fit.split)
    return readout.predict(scores), readout


def ahead_on_nodes(
    fit: Fitted, other: Tensor, readout: Readout | None, dataset: NodeDataset, metric: str
) -> Summary:
    """The difference of a score on one split, with an interval by a bootstrap over its test nodes.

    Args:
        fit: what was trained; its split has the nodes.
        other, readout: what is predicted by what it is compared with, and how it chooses.
        dataset: whose nodes these are.
        metric: that is compared.
    """
    either = [(fit.predicted, fit.readout), (other, readout)]
    whole = [score(p, dataset, fit.split.test, r).get(metric, math.nan) for p, r in either]
    draws = zip(*(drawn_scores([pair], dataset, [fit]) for pair in either), strict=True)
    differences = [{metric: a[metric] - b[metric]} for a, b in draws if metric in a and metric in b]
    return over_nodes({metric: Summary.of([whole[0] - whole[1]])}, differences)[metric]


def _ahead(ours: Sequence[Scores], theirs: Sequence[Scores]) -> dict[str, Summary]:
    """The differences of test scores, paired by repeat."""
    differences: dict[str, list[float]] = {}
    for repeat, other in zip(ours, theirs, strict=True):
        for metric in repeat["test"].keys() & other["test"].keys():
            ahead = repeat["test"][metric] - other["test"][metric]
            differences.setdefault(metric, []).append(ahead)
    return {metric: Summary.of(values) for metric, values in sorted(differences.items())}


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
    y, train = problem.labels.cpu().numpy(), split.train.cpu().numpy()
    x: Any = None  # which the constant does not need: on disk there are terms in its place
    if name != "constant":
        sparse = isinstance(problem.features, SparseMatrix)
        x = problem.features.to_scipy() if sparse else problem.features.values.cpu().numpy()
    weight = np.ones(len(y)) if problem.weight is None else problem.weight.cpu().double().numpy()
    predicted = np.zeros((len(y), problem.outputs))
    if problem.task == "classification":
        classes, p = _classify(name, x, y, train & (y >= 0), weight)
        predicted[:, classes] = p  # a class without training node has none
        return torch.from_numpy(predicted).to(problem.dtype)
    for k, column in enumerate(y.reshape(len(y), -1).T.astype(np.float64)):
        rows = train & ~np.isnan(column)
        if problem.task == "multilabel":
            classes, p = _classify(name, x, column > 0.5, rows, weight)
            predicted[:, k] = p @ classes
        elif name == "constant":
            predicted[:, k] = np.average(column[rows], weights=weight[rows])
        else:
            from sklearn.linear_model import Ridge

            predicted[:, k] = Ridge().fit(x[rows], column[rows], weight[rows]).predict(x)
    return torch.from_numpy(predicted.reshape(y.shape)).to(problem.dtype)


def _classify(
    name: str, x: Any, y: np.ndarray, rows: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The classes among some rows, and the probability of each for every node."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    classes, codes = np.unique(y[rows], return_inverse=True)
    counts = np.bincount(codes, weight[rows])
    if name == "constant" or len(classes) < 2:
        return classes, counts / counts.sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # near enough for a baseline
        model = LogisticRegression(max_iter=STEPS, tol=1e-3).fit(x[rows], y[rows], weight[rows])
    return classes, model.predict_proba(x)

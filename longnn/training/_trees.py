"""Boosted trees among the members of a job: trained one by one, and not by steps of a gradient.

:class:`TreeGroup` stands beside :class:`~longnn.training._group.Group`. A round, one more tree per
output, is an epoch: rounds are counted, stopped by validation nodes and written down like those.
There is no checkpoint: a training that goes on trains them again, to the same trees.
"""

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longnn.metrics import metric_of, score_classes, score_labels, score_numbers
from longnn.nn._directed import Directed
from longnn.nn._trees import BoostedTrees, lightgbm
from longnn.training._history import FIELDS
from longnn.training._population import Member, Result
from longnn.training._problem import Problem
from longnn.training._readout import Readout
from longnn.training._watcher import StopTraining, Watcher

#: Rounds without improvement after which trees stop, where more epochs are allowed: a round is
#: worth more than an epoch.
PATIENCE = 50
#: Rows of stored terms that a training reads at most, and rows x columns x outputs: trees need them
#: all at once, and pass over all for every tree. Without the second limit a million labelled nodes
#: of ten classes took longer than the filter that they are compared with.
MOST_ROWS, MOST_WORK = 500_000, 50_000_000
#: Of wider tables a column has fewer bins: the time of a round goes into the bins of all columns.
WIDE, FEW_BINS = 400, {"max_bin": 63}
#: The same on every machine, with any number of threads.
_FIXED = {
    "deterministic": True,
    "force_row_wise": True,
    "use_missing": False,
    "verbose": -1,
    "feature_pre_filter": False,
    "min_data_in_leaf": 5,
    "lambda_l2": 1.0,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
}


@dataclasses.dataclass
class _Output:
    """One model of LightGBM: of all classes, of one label or of one target."""

    booster: Any
    losses: list[tuple[float, float]] = dataclasses.field(default_factory=list)  # train, val
    best: int = 0

    @property
    def least(self) -> float:
        return self.losses[self.best - 1][1] if self.best else np.inf


class TreeGroup:
    """Boosted trees of one shape, with the interface of :class:`~longnn.training._group.Group`.

    Args:
        places: the numbers of the members among all of a job.
        members: the members.
        problem: what they learn.

    >>> from longnn.config import Settings
    >>> from longnn.graphs import GraphOperator
    >>> P = GraphOperator.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
    >>> every = torch.ones(2, dtype=torch.bool)
    >>> member = Member(BoostedTrees(2, 1, 2), Settings(epochs=3), 0, every, every)
    >>> group = TreeGroup([7], [member], Problem.make(torch.eye(2), P, torch.tensor([0, 1])))
    >>> group.train(3, Watcher())
    >>> group.results[7].epochs <= 3
    True
    """

    def __init__(self, places: Sequence[int], members: Sequence[Member], problem: Problem) -> None:
        self.places, self.members, self.problem = places, members, problem
        self.before, self.total = 0, len(members)
        self.results: dict[int, Result] = {}

    def expect(self, begun: Mapping[int, int]) -> None:
        """Nothing: they are trained again."""

    def train(self, until: int, watcher: Watcher) -> None:
        """Train all members to their end, whatever the epoch."""
        for number, member in zip(self.places, self.members, strict=True):
            if number in self.results:
                continue
            boosting = Boosting(member, self.problem)
            try:
                boosting.run(watcher)
            except StopTraining as stop:
                self.results[number] = boosting.result(stop.reason)
                watcher.unfinished()
                raise
            self.results[number] = boosting.result()

    def stop(self, why: str) -> None:
        """Nothing: they are stopped where they are trained."""

    @property
    def epochs_done(self) -> int:
        """Rounds of all members."""
        return sum(result.epochs for result in self.results.values())

    def epochs_left(self, number: int) -> int:
        """They come to their end in their first turn."""
        return 0

    def loss(self, number: int, until: int) -> float:
        """The least validation loss of a member."""
        return float(self.results[number].history["val_loss"].min())

    def was_running(self, number: int, until: int) -> bool:
        """They have ended before the others."""
        return False

    def halve(self, number: int) -> None:
        """Nothing: they have ended."""


class Boosting:
    """Trees of one member in training.

    Args:
        member: its model is one of boosted trees.
        problem: what it learns.
    """

    def __init__(self, member: Member, problem: Problem) -> None:
        model = member.model.model if isinstance(member.model, Directed) else member.model
        assert isinstance(model, BoostedTrees)
        self.member, self.problem, self.model = member, problem, model
        self.stopped = "epochs"
        train, val = (mask.cpu() for mask in (member.train, member.val))
        self.rows = [mask.nonzero()[:, 0].numpy() for mask in (train, val)]
        self.outputs: list[_Output] = []
        self._targets()

    def _targets(self) -> None:
        """Of every output its labels (nodes,), NaN where unknown, and weights (nodes,)."""
        problem, y = self.problem, self.problem.labels.cpu()
        weight = None if self.member.weight is None else self.member.weight.cpu().double().numpy()
        if problem.weight is not None:
            nodes = problem.weight.cpu().double().numpy()
            nodes = nodes / nodes[self.rows[0]].mean()  # the penalty on leaves is in their unit
            weight = nodes if weight is None else (weight.T * nodes).T
        self.offset: tuple[float, ...] = (0.0,)
        self.scale: tuple[float, ...] = (1.0,)
        if problem.task == "classification":
            columns = [np.where(y.numpy() < 0, np.nan, y.numpy().astype(np.float64))]
        else:
            values = y.double().reshape(len(y), -1).numpy()
            columns = list(values.T)
        if problem.task == "regression":
            known = [c[self.rows[0]] for c in columns]
            known = [k[~np.isnan(k)] for k in known]
            self.offset = tuple(float(k.mean()) if len(k) else 0.0 for k in known)
            self.scale = tuple(float(k.std()) if len(k) and k.std() > 0 else 1.0 for k in known)
            columns = [
                (c - m) / s for c, m, s in zip(columns, self.offset, self.scale, strict=True)
            ]
        self.labels = columns
        several = weight is not None and weight.ndim == 2
        self.weights = [
            weight[:, k] if several and weight is not None else weight for k in range(len(columns))
        ]

    def run(self, watcher: Watcher) -> None:
        """Train every output to its end.

        Raises:
            StopTraining: where the watcher wants so.
        """
        train, self.val = self._read()
        val = self.val
        patience = min(self.member.settings.patience, PATIENCE)
        for labels, weight in zip(self.labels, self.weights, strict=True):
            output = self._begin(labels, weight, train, val)
            self.outputs.append(output)
            for number in range(1, self.member.settings.epochs + 1):
                ended = output.booster.update()
                said = (*output.booster.eval_train(), *output.booster.eval_valid())
                losses = [float(loss) for _, _, loss, _ in said]
                output.losses.append((losses[0], losses[-1]))
                if losses[-1] < output.least or not output.best:
                    output.best = number
                if ended or number - output.best >= patience:
                    self.stopped = "patience"
                    break
                watcher.check()

    def _read(self) -> tuple[np.ndarray, np.ndarray]:
        """What the trees see of training and validation nodes, (rows, width)."""
        problem = self.problem
        if not problem.by_rows:
            table = self.model.table(problem.features, problem.operator).cpu().numpy()
            return table[self.rows[0]], table[self.rows[1]]
        found = []
        most = min(MOST_ROWS, MOST_WORK // (self.model.width * problem.outputs))
        for k, rows in enumerate(self.rows):
            if len(rows) > most:
                rows = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
                self.rows[k] = rows
            parts = problem.features.in_order(rows, 8192)
            tables = [self.model.table(terms, problem.operator).cpu().numpy() for _, terms in parts]
            found.append(np.concatenate(tables))
        return found[0], found[1]

    def _begin(
        self, labels: np.ndarray, weight: np.ndarray | None, train: np.ndarray, val: np.ndarray
    ) -> _Output:
        """The booster of an output; where no validation node has a label, training nodes judge."""
        library = lightgbm()
        sets: list[Any] = []
        params = self._params()
        for table, rows in zip((train, val), self.rows, strict=True):
            known = ~np.isnan(labels[rows])
            sets.append(
                library.Dataset(
                    table[known].astype(np.float64),
                    labels[rows][known],
                    weight=None if weight is None else weight[rows][known],
                    reference=sets[0] if sets else None,
                    params=params,
                    free_raw_data=False,
                )
            )
        booster = library.Booster(params, sets[0])
        if len(sets[1].label):
            booster.add_valid(sets[1], "val")
        return _Output(booster)

    def _params(self) -> dict[str, Any]:
        task, outputs, settings = self.problem.task, self.problem.outputs, self.member.settings
        several = task == "classification" and outputs > 2
        objective = {"regression": "regression", "multilabel": "binary"}.get(task, "binary")
        aim = (
            {"objective": "multiclass", "num_class": outputs, "metric": "multi_logloss"}
            if several
            else {
                "objective": objective,
                "metric": "l2" if task == "regression" else "binary_logloss",
            }
        )
        return {
            **_FIXED,
            **aim,
            **(FEW_BINS if self.model.width > WIDE else {}),
            "seed": self.member.seed % 2**31,
            "num_threads": torch.get_num_threads(),
            "num_leaves": self.model.leaves,
            "feature_fraction": self.model.share,
            "learning_rate": settings.lr_transform,
        }

    def result(self, stopped: str = "") -> Result:
        """What came of it, up to the best rounds."""
        texts = [
            # What follows the trees says how they were made, and differs between machines.
            output.booster.model_to_string(num_iteration=output.best).partition(
                "\nfeature_importances"
            )[0]
            for output in self.outputs
            if output.best
        ]
        done = len(texts) == len(self.labels)
        content = bytearray("".join(texts).encode() if done else b"")
        text = torch.frombuffer(content, dtype=torch.uint8) if content else torch.zeros(0).byte()
        epochs = max((len(o.losses) for o in self.outputs), default=0)
        history = {field: torch.full((epochs,), torch.nan) for field in FIELDS}
        for column, field in enumerate(("train_loss", "val_loss")):
            each = [_longer([pair[column] for pair in o.losses], epochs) for o in self.outputs]
            if each:
                history[field] = torch.tensor(np.mean(each, axis=0), dtype=torch.float32)
        best = max(o.best for o in self.outputs) if done else 0
        falling = False
        if best:
            metric = self.problem.watched(self.member.settings.monitor)
            falling = not metric_of(metric).higher
            history["val_score"][best - 1] = self._score(text, metric)
        prefix = "model." if isinstance(self.member.model, Directed) else ""
        return Result(
            state={f"{prefix}text": text},
            best_epoch=best,
            epochs=epochs,
            stopped=stopped or self.stopped,
            history=history,
            filter_path=None,
            offset=self.offset,
            scale=self.scale,
            falling=falling,
        )

    def _score(self, text: Tensor, metric: str) -> float:
        """On the validation nodes, of the best trees."""
        problem, judge = self.problem, copy.deepcopy(self.model)
        judge.text.data = text
        readout = Readout(problem.task, offset=self.offset, scale=self.scale)
        said = readout.predict(judge.read(torch.from_numpy(self.val)))
        rows = torch.from_numpy(self.rows[1])
        y, weight = problem.labels.cpu()[rows], problem.weight
        weight = None if weight is None else weight.cpu()[rows]
        if problem.task == "classification":
            scores = score_classes(said, y, positive=problem.positive, weight=weight)
        else:
            of = score_numbers if problem.task == "regression" else score_labels
            scores = of(said, y, weight=weight)
        return scores.get(metric, float("nan"))


def _longer(values: list[float], count: int) -> list[float]:
    """As many numbers, the last one again."""
    return values + values[-1:] * (count - len(values))

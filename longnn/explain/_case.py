"""A trained model on one graph, in float64, ready to be asked why."""

import collections
import copy
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longnn._base.suggestions import did_you_mean
from longnn.data import DataError, NodeDataset
from longnn.explain._exact import ExactForm, has_exact_form
from longnn.explain._integrated import IntegratedForm
from longnn.explain._part import Form
from longnn.explain._question import Question
from longnn.explain._rings import neighbours
from longnn.explain._shift import Shift
from longnn.training import Problem, Readout, Trained, mean_prediction

#: Ids among which the nearest to an unknown one is looked for.
ALIKE = 20_000


class Case:
    """Models and a graph, with all that explanations of it share.

    Args:
        trained: the models.
        dataset: the graph, the same or another with the same features.
        repeat: one repeat alone; by default all, whose predictions are averaged.

    Raises:
        DataError: where the features are not those of the models, there is no such repeat, or the
            graph is on disk.
    """

    def __init__(self, trained: Trained, dataset: NodeDataset, repeat: int | None = None) -> None:
        if repeat is not None and not 0 <= repeat < trained.repeats:
            raise DataError(f"Expected a repeat below {trained.repeats} (got {repeat})")
        _check_explainable(trained, dataset)
        self.trained, self.ids = trained, dataset.ids
        kept = range(trained.repeats) if repeat is None else [repeat]
        problem = trained.problem(dataset)
        each = [trained.predict(problem, repeat=k) for k in kept]
        self.predicted = mean_prediction(each)
        self.chosen = trained.choose(self.predicted, repeat=repeat)
        self.shift = Shift(trained, each, kept) if trained.task == "classification" else None
        self.question = Question(
            trained.task,
            [copy.deepcopy(trained.models[k]).cpu().double().eval() for k in kept],
            [trained.readouts[k] for k in kept],
        )
        self.problem = _double(trained, dataset)
        self.forms: list[Form] = []
        for model in self.question.models:
            kind: Callable[..., Form] = ExactForm if has_exact_form(model) else IntegratedForm
            operator = self.problem.variants.get(model.self_loops, self.problem.operator)
            self.forms.append(kind(model, self.problem.features, operator))
        operator = self.problem.operator
        self.direction = operator.direction
        self.adjacency = neighbours(operator)

    @property
    def outputs(self) -> list[str]:
        """Names of the classes, labels or targets."""
        t, count = self.trained, self.forms[0].scores.shape[1]
        numbered = ["value"] if count == 1 else [str(k) for k in range(count)]
        return list(t.classes or t.targets or numbered)

    @property
    def feature_names(self) -> list[str]:
        """Names of the features; by number where they have none."""
        t = self.trained
        return list(t.feature_names or (f"feature {k}" for k in range(t.features)))

    @property
    def exact(self) -> bool:
        """Whether the parts of every model add up but for rounding."""
        return all(form.exact for form in self.forms)

    @property
    def hops(self) -> int | None:
        """How far a node sees, or None for the whole graph."""
        each = [form.hops for form in self.forms]
        known = [hops for hops in each if hops is not None]
        return max(known) if len(known) == len(each) else None

    @property
    def scores(self) -> list[Tensor]:
        """Of every single model, (nodes, outputs)."""
        return [form.scores for form in self.forms]

    def number_of(self, name: Any) -> int:
        """The place of an output.

        Raises:
            ValueError: where there is none of that name; names the nearest.
        """
        known = self.outputs
        if str(name) not in known:
            what = {"classification": "class", "multilabel": "label"}.get(
                self.trained.task, "target"
            )
            listed = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
            hint = did_you_mean(str(name), known)
            raise ValueError(f"Expected a {what} of {listed} (got {str(name)!r}){hint}")
        return known.index(str(name))

    def default_outputs(self, places: np.ndarray) -> Tensor:
        """What is explained where nothing is said: the predicted class, the likeliest label."""
        if self.trained.task == "classification":
            return self.chosen[places]
        if self.trained.task == "multilabel":
            return self.predicted[places].argmax(1)
        return torch.zeros(len(places), dtype=torch.int64)

    def describe(self) -> tuple[str, str, list[str]]:
        """What is explained, how, and what a reader should know."""
        counts = collections.Counter(form.method for form in self.forms)
        methods = [
            m if len(counts) == 1 else f"{n} model{'s' if n > 1 else ''} {m}"
            for m, n in counts.items()
        ]
        return self._what(), "; ".join(methods), self._notes()

    def _what(self) -> str:
        task, joint = self.trained.task, self.question.is_joint
        if task == "regression":
            return "predicted value"
        kind, log = ("class", "log") if task == "classification" else ("label", "logit")
        if not joint:
            return f"{kind} score"
        own = self.question.readouts  # those of one ensemble are not in its scores
        before = ", before calibration" if len(own) == 1 and own[0] != Readout(task) else ""
        return f"{log} of the probability, averaged over {len(self.forms)} models{before}"

    def _notes(self) -> list[str]:
        notes = []
        if self.question.is_joint:
            notes.append(
                "several models vote by averaged probabilities: each model's scores count with "
                "their integrated gradient in the average"
            )
        if self.shift is not None and self.shift.there:
            single = len(self.question.repeats) == 1
            notes.append(
                "probabilities follow the class frequencies of the validation nodes: a shift is "
                + (
                    "added to the scores afterwards and is no part of what is explained"
                    if single
                    else "added to the scores, and is part of the constant here"
                )
            )
        loops = {
            form: m.self_loops for form, m in zip(self.forms, self.question.models, strict=True)
        }
        if "add" in loops.values():
            notes.append("self loops are added to the graph, so a node's own weight includes them")
        if self.direction != "none":
            notes.append(
                "arcs are kept: a node contributes as a source and as a target, and the two are "
                "added; distances count arcs along and against"
            )
        if not self.exact:
            notes.append(
                "integrated gradients start at a graph without features; the gap is what the "
                "numerical integral misses"
            )
        return notes


def _double(trained: Trained, dataset: NodeDataset) -> Problem:
    """The graph as the models want it, in float64 on the CPU."""
    config = trained.config.replace(precision="float64", device="cpu")
    return dataclasses.replace(trained, config=config).problem(dataset)


def find_ids(ids: Sequence[Any], given: Sequence[str]) -> np.ndarray:
    """The places of nodes by their ids as text, int64 (given,).

    Raises:
        ValueError: where there is no such node; names the nearest.

    >>> find_ids(["ann", "bob"], ["bob"]), find_ids(range(5), ["3"])
    (array([1]), array([3]))
    """
    place = {str(value): k for k, value in enumerate(ids)}
    for word in given:
        if word not in place:
            first = word[:1].casefold()
            alike = [text for text in place if text[:1].casefold() == first][:ALIKE]
            hint = did_you_mean(word, alike) or f"; the first is {str(ids[0])!r}"
            raise ValueError(f"Expected ids of nodes of the graph (got {word!r}){hint}")
    return np.array([place[word] for word in given], dtype=np.int64)


def _check_explainable(trained: Trained, dataset: NodeDataset) -> None:
    dataset.require_whole("to explain a run on it")
    if trained.edge_types:
        raise DataError(
            "Expected a run whose edges are all alike, to explain it (got "
            f"{len(trained.edge_types)} types of edges); train without type_column"
        )

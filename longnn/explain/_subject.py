r"""Trained models on one graph, ready to be asked why; and the number that is explained.

One model is asked for a score, or for the difference of two. An ensemble, or several repeats,
predict with averaged probabilities: there the number is the logarithm of the average, a smooth
function f of all scores z. It is split over them along the straight way from zero,

.. math:: f(z) = f(0) + \sum_m \sum_k A_{mk} z_{mk}, \qquad
          A = \int_0^1 \nabla f(\tau z)\,d\tau,

an integral of one variable, found to rounding. The rest of the explanation is linear in z: each
model m is asked for :math:`\sum_k A_{mk} z_{mk}`, and the parts add up.
"""

import collections
import copy
import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
import torch
import torch.nn.functional as F
from torch import Tensor

from longnn._base.suggestions import did_you_mean
from longnn.data import DataError, NodeDataset
from longnn.explain._exact import ExactForm, has_exact_form
from longnn.explain._forms import STEPS, Form, IntegratedForm, TreesForm, is_trees
from longnn.graphs import GraphOperator
from longnn.metrics import Task
from longnn.nn import Model
from longnn.nn._ensemble import Ensemble
from longnn.training import Readout, Trained, mean_prediction
from longnn.training._process import COVARIANCES

#: Points of the integral over the joint of several models.
POINTS = 256
#: Numbers that a block of explained nodes may take.
BLOCK = 2**24
_LEAST, _ROUNDING = 1e-300, 1e-16  # of a probability, so that its logarithm is finite
#: Ids among which the nearest to an unknown one is looked for.
ALIKE = 20_000
#: Distance of a node that cannot be reached.
FAR = -1


class Subject:
    """Models and a graph, with all that explanations of it share.

    Args:
        trained: the models.
        dataset: the graph, the same or another with the same features.
        repeat: one repeat alone; by default all, whose predictions are averaged.
        nodes: those that are asked about, (some,); of a graph on disk no more is read than they
            need. By default all.
        known: whose answers are known, see :meth:`~longnn.training.Trained.problem`.
        steps: points of integrated gradients.

    Raises:
        DataError: where the features are not those of the models, there is no such repeat, or the
            graph is on disk and too large.
    """

    def __init__(
        self,
        trained: Trained,
        dataset: NodeDataset,
        repeat: int | None = None,
        *,
        nodes: np.ndarray | None = None,
        known: str = "auto",
        steps: int = STEPS,
    ) -> None:
        if repeat is not None and not 0 <= repeat < trained.repeats:
            raise DataError(f"Expected a repeat below {trained.repeats} (got {repeat})")
        if trained.edge_types:
            raise DataError(
                "Expected a run whose edges are all alike, to explain it (got "
                f"{len(trained.edge_types)} types of edges); train without type_column"
            )
        whole, hops = dataset, None if nodes is None else trained.row_degree
        nodes = np.arange(whole.num_nodes) if nodes is None else nodes
        #: The ids of all nodes, and which of them are seen.
        self.everyone = whole.ids
        dataset, self.inside = whole.backing.neighbourhood(whole, nodes, hops)
        if dataset is not whole:  # known answers are heard of in the whole graph
            heard = trained.problem(whole, known=known).known
            heard = heard and heard.part(torch.from_numpy(self.inside))
            trained = dataclasses.replace(trained, heard=heard)
        self.trained, self.dataset, self.ids = trained, dataset, dataset.ids
        kept = range(trained.repeats) if repeat is None else [repeat]
        problem = trained.problem(dataset, known=known)
        heard = problem.known
        #: What known answers change, or None; and in the predictions of which repeats.
        self.known, self.kept = heard if heard is not None and heard.changes else None, kept
        #: What these repeats say of the nodes that are seen.
        self.opinions = trained.opinions(problem, kept)
        each = [opinion.predicted for opinion in self.opinions]
        self.predicted = mean_prediction(each)
        self.chosen = trained.choose(self.predicted, repeat=repeat)
        self.shift = Shift(trained, each, kept) if trained.task == "classification" else None
        self.question = Question(
            trained.task,
            [copy.deepcopy(trained.models[k]).cpu().double().eval() for k in kept],
            [trained.readouts[k] for k in kept],
        )
        double = trained.config.replace(precision="float64", device="cpu")
        self.problem = dataclasses.replace(trained, config=double).problem(dataset, known="none")
        self.forms: list[Form] = []
        for model in self.question.models:
            operator = self.problem.variants.get(model.self_loops, self.problem.operator)
            asked = model, self.problem.features, operator
            if is_trees(model):
                self.forms.append(TreesForm(*asked))
            elif has_exact_form(model):
                self.forms.append(ExactForm(*asked))
            else:
                self.forms.append(IntegratedForm(*asked, steps))
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
        each = [math.inf if form.hops is None else form.hops for form in self.forms]
        return None if math.inf in each else int(max(each))

    @property
    def scores(self) -> list[Tensor]:
        """Of every single model, (nodes, outputs)."""
        return [form.scores for form in self.forms]

    def blocks(self, nodes: np.ndarray) -> list[np.ndarray]:
        """Some nodes, as many at a time as there is room for."""
        pair = max(form.held for form in self.forms)
        if self.known is not None:
            pair = max(pair, (1 + len(COVARIANCES)) * len(self.outputs))
        size = max(1, BLOCK // (len(self.ids) * pair))
        return [nodes[k : k + size] for k in range(0, len(nodes), size)]

    def number_of(self, name: Any) -> int:
        """The place of an output.

        Raises:
            ValueError: where there is none of that name; names the nearest.
        """
        names = self.outputs
        if str(name) not in names:
            what = {"classification": "class", "multilabel": "label"}.get(
                self.trained.task, "target"
            )
            listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            hint = did_you_mean(str(name), names)
            raise ValueError(f"Expected a {what} of {listed} (got {str(name)!r}){hint}")
        return names.index(str(name))

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
            return "predicted value" + ", before known answers" * (self.known is not None)
        kind, log = ("class", "log") if task == "classification" else ("label", "logit")
        if not joint:
            return f"{kind} score"
        readouts = self.question.readouts  # that of one ensemble is not in its scores
        before = len(readouts) == 1 and readouts[0] != Readout(task)
        return f"{log} of the probability, averaged over {len(self.forms)} models" + (
            ", before calibration" * before
        )

    def _notes(self) -> list[str]:
        notes = []
        if self.known is not None:
            size = torch.stack([self.known.changes[k] for k in self.kept]).mean(0).abs().mean()
            notes.append(
                f"known answers ({self.known.text}) change predictions after the models, by "
                f"{float(size):.3g} on average"
                + ("" if self.trained.task == "regression" else ", in logarithms of probabilities")
            )
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
        if any(model.self_loops == "add" for model in self.question.models):
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


@dataclasses.dataclass(frozen=True, eq=False)
class Question:
    """How the scores of single models become the number that is explained.

    Args:
        task: what is predicted.
        repeats: the models of the repeats; an ensemble joins several models.
        readouts: how the outputs of each repeat become predictions.
    """

    task: Task
    repeats: Sequence[Model]
    readouts: Sequence[Readout]

    @property
    def models(self) -> list[Model]:
        """The single models, repeat after repeat."""
        return [single for model in self.repeats for single in self.singles(model)]

    @staticmethod
    def singles(model: Model) -> list[Model]:
        """The members of an ensemble, or the model itself."""
        if not isinstance(model, Ensemble):
            return [model]
        return [m for m in model.members.values() if isinstance(m, Model)]

    @property
    def is_joint(self) -> bool:
        """Whether averaged probabilities are explained, which are not linear in the scores."""
        joined = len(self.repeats) > 1 or any(isinstance(m, Ensemble) for m in self.repeats)
        return self.task != "regression" and joined

    def numbers(self, z: Sequence[Tensor]) -> Tensor:
        """What is explained of each output, (nodes, outputs), of scores z[m] (nodes, outputs)."""
        scores, rest = [], list(z)
        for model in self.repeats:
            count = len(self.singles(model))
            shares, rest = torch.stack(rest[:count]), rest[count:]
            scores.append(model.join(shares) if isinstance(model, Ensemble) else shares[0])
        pairs = list(zip(self.readouts, scores, strict=True))
        if self.task == "regression":
            values = [s.new_tensor(r.offset) + s.new_tensor(r.scale) * s for r, s in pairs]
            return torch.stack(values).mean(0)
        if len(scores) == 1:
            return scores[0]
        p = torch.stack([r.predict(s) for r, s in pairs]).mean(0).clamp(_LEAST, 1 - _ROUNDING)
        return p.log() if self.task == "classification" else torch.logit(p)

    def ask(
        self, z: Sequence[Tensor], output: Tensor, against: int | None = None
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """The number of each node, its value at z = 0, and A[m] (nodes, outputs).

        Args:
            z: scores of every single model, (nodes, outputs).
            output: (nodes,), which output of each node.
            against: an output whose number is subtracted.
        """
        pick = F.one_hot(output, z[0].shape[1]).to(z[0].dtype)  # (nodes, outputs)
        if against is not None:
            pick[:, against] -= 1

        def number(at: Sequence[Tensor]) -> Tensor:
            return (pick * self.numbers(at)).sum(1)

        points, weights = np.polynomial.legendre.leggauss(POINTS if self.is_joint else 1)
        total = [torch.zeros_like(s) for s in z]
        for t, w in zip((points + 1) / 2, weights / 2, strict=True):
            at = [(t * s).requires_grad_() for s in z]
            with torch.enable_grad():
                gradients = torch.autograd.grad(number(at).sum(), at)
            total = [a + w * g for a, g in zip(total, gradients, strict=True)]
        with torch.no_grad():
            return number(list(z)), number([torch.zeros_like(s) for s in z]), total


class Shift:
    """Predictions with and without the shift.

    Args:
        trained: the models.
        each: probabilities (nodes, classes) of the repeats in question, shifted.
        repeats: which these are.

    >>> from longnn import LONGNNClassifier, data
    >>> graph = data.csbm(num_nodes=60, num_features=8)
    >>> trained = LONGNNClassifier(preset="fast", epochs=5).fit(graph).trained_
    >>> Shift(trained, [trained.predict(trained.problem(graph))], [0]).there
    False
    """

    def __init__(self, trained: Trained, each: Sequence[Tensor], repeats: Sequence[int]) -> None:
        readouts = [trained.readouts[k] for k in repeats]
        self.there = any(r.shift for r in readouts)
        #: Whether a class can be another with it: a threshold that was fitted makes up for it.
        self.decides = self.there and (bool(trained.config.threshold) or not readouts[0].threshold)
        self._shifted = mean_prediction(each).double()
        pairs = zip(readouts, each, strict=True)
        self._plain = mean_prediction([r.without_shift(p) for r, p in pairs]).double()
        choose = Readout.mean(readouts).choose
        self.chosen = choose(self._shifted)
        #: (nodes,) classes that the scores alone would give.
        self.without = choose(self._plain) if self.decides else self.chosen

    def log_odds(self, node: int) -> float:
        """What it adds to the log-odds of the predicted class against that without it."""
        ours, other = int(self.chosen[node]), int(self.without[node])
        shifted, plain = (
            torch.log(p[node, [ours, other]].clamp_min(_LEAST))
            for p in (self._shifted, self._plain)
        )
        return float((shifted[0] - shifted[1]) - (plain[0] - plain[1]))


def neighbours(operator: GraphOperator) -> scipy.sparse.csr_matrix:
    """Who is one hop from whom, (nodes, nodes); on arcs a hop goes along an arc or against it.

    >>> import torch
    >>> from longnn.graphs import directed_operator
    >>> neighbours(directed_operator(torch.tensor([[0], [1]]))).toarray().tolist()
    [[False, True], [True, False]]
    """
    matrix, nodes = operator.matrix.to_scipy(), operator.num_nodes
    if operator.copies == 1:
        return matrix
    entries = matrix.tocoo()
    pairs = (entries.row % nodes, entries.col % nodes)
    is_first = np.ones(len(pairs[0]), dtype=bool)
    return scipy.sparse.csr_matrix((is_first, pairs), shape=(nodes, nodes))


def distances(
    adjacency: scipy.sparse.csr_matrix, nodes: np.ndarray, limit: int | None = None
) -> np.ndarray:
    """Hops from each of some nodes to every node, int64 (len(nodes), nodes); -1 where none lead.

    Args:
        adjacency: its nonzero entries are the edges.
        nodes: where to start, (starts,).
        limit: the most hops; nodes farther away count as not reached.

    >>> path = scipy.sparse.csr_matrix(np.eye(4, k=1) + np.eye(4, k=-1))
    >>> distances(path, np.array([0, 2]), limit=2).tolist()
    [[0, 1, 2, -1], [2, 1, 0, 1]]
    """
    edges = scipy.sparse.csr_matrix(
        (np.ones(adjacency.nnz, np.float32), adjacency.indices, adjacency.indptr), adjacency.shape
    )
    distance = np.full((edges.shape[0], len(nodes)), FAR, dtype=np.int64)
    distance[nodes, np.arange(len(nodes))] = 0
    front, hops = (distance == 0).astype(np.float32), 0
    while front.any() and (limit is None or hops < limit):
        hops += 1
        front = ((edges @ front > 0) & (distance == FAR)).astype(np.float32)
        distance[front > 0] = hops
    return distance.T


def find_ids(ids: Sequence[Any], given: Sequence[Any]) -> np.ndarray:
    """The positions of nodes in a graph, by their ids, int64 (given,).

    Ids are compared as text: 3 and "3" name the same node.

    Raises:
        DataError: where there is no such node; names the nearest.

    >>> find_ids(["ann", "bob"], ["bob"]), find_ids(range(5), ["3"])
    (array([1]), array([3]))
    """
    position = {str(value): k for k, value in enumerate(ids)}
    for value in given:
        word = str(value)
        if word not in position:
            first = word[:1].casefold()
            alike = [text for text in position if text[:1].casefold() == first][:ALIKE]
            hint = did_you_mean(word, alike) or f"; the first is {str(ids[0])!r}"
            raise DataError(f"Expected ids of nodes of the graph (got {value!r}){hint}")
    return np.array([position[str(value)] for value in given], dtype=np.int64)

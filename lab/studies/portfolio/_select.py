"""The choice: greedy selection of the set of candidates that loses least.

A set is judged as it is used: joined by votes on the validation nodes and scored on the selection
holdout, quickly, for every candidate that may come next. A portfolio is chosen on all graphs,
without each kind of graph, and without each graph that a candidate was tuned on. What is left out
has no say, and candidates that were tuned on it are not there to be chosen.
"""

import dataclasses
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lab.records import ConfigTable, config_of
from lab.studies._training import as_trained
from lab.studies.portfolio._graphs import related
from lab.studies.portfolio._members import Part, Predictions, evaluate
from longnn.config import Config
from longnn.training import ROUNDS

#: The key of the cell, and of the record, of the choice.
SELECTION = "selection"
#: A graph counts with at most this regret, in points: beyond, it is lost either way.
CAP = 5.0
#: On large graphs a fixed sample of so many nodes decides.
NODES = 1000
_LEAST = 1e-12  # of a probability, so that its logarithm is finite


class Judge:
    """Regrets of sets of candidates on one graph, against its best single candidate.

    Args:
        p: what all candidates predict.
        nodes: most of each part of a split that are looked at.
    """

    def __init__(self, p: Predictions, nodes: int = NODES) -> None:
        self._p = p.sample(nodes)
        parts = self._p.holdout
        alone = [self._p.scores(part.predicted.float(), part.labels) for part in parts]
        self._oracle = float(np.max(np.mean(alone, axis=0)))
        self._said = [_said(part, p.task == "regression") for part in self._p.val]

    def regrets(self, chosen: Sequence[int], rest: Sequence[int]) -> np.ndarray:
        """The regret in points of the chosen ones and one more, for each of the rest."""
        found = np.mean([self._scores(s, chosen, rest) for s in range(len(self._said))], axis=0)
        regrets: np.ndarray = np.minimum(100 * (self._oracle - found), CAP)
        return regrets

    def _scores(self, split: int, chosen: Sequence[int], rest: Sequence[int]) -> np.ndarray:
        """Holdout scores of the sets, joined by votes."""
        part = self._p.holdout[split]
        sets = torch.tensor([[*chosen, i] for i in rest])  # (sets, members)
        shares = self._votes(split, sets)
        rows = torch.zeros(len(rest), len(part.predicted)).scatter_add(1, sets, shares)
        flat = torch.nan_to_num(part.predicted.float()).flatten(1)  # without a vote it has no say
        joined = (rows @ flat).reshape(len(rest), *part.predicted.shape[1:])
        return self._p.scores(joined, part.labels)

    def _votes(self, split: int, sets: Tensor) -> Tensor:
        """The share of votes of each member in each set, (sets, members)."""
        said, true = self._said[split]
        place = torch.arange(len(sets))
        total = said.new_zeros(len(sets), said.shape[1])  # (sets, nodes)
        votes = torch.zeros(sets.shape)
        for r in range(1, ROUNDS + 1):
            losses = torch.stack(
                [_loss((total + said[own]) / r, true) for own in sets.T]
            )  # (members, sets)
            best = losses.argmin(0)
            total = total + said[sets[place, best]]
            votes[place, best] += 1 / ROUNDS
        return votes


def _said(part: Part, values: bool) -> tuple[Tensor, Tensor | None]:
    """What each candidate says of the truth, (candidates, nodes), and the truth of values.

    One that diverged says what is as wrong as can be.
    """
    if values:
        return torch.nan_to_num(part.predicted.double(), nan=1e6), part.labels.double()
    own = part.labels.expand(len(part.predicted), -1)[..., None]
    said = part.predicted.double().gather(2, own)[..., 0]
    return torch.nan_to_num(said, nan=0.0), None


def _loss(said: Tensor, true: Tensor | None) -> Tensor:
    """The squared error of values, or the log loss of what is said of the true class, (sets,)."""
    if true is not None:
        return (said - true).square().mean(1)
    return -said.clamp_min(_LEAST).log().mean(1)


@dataclasses.dataclass(frozen=True)
class Limits:
    """How large a portfolio may be.

    Args:
        size: members.
        shapes: different shapes of members; those of one shape train in one population, so this is
            about what the portfolio costs.
        only_own: only LON-GNN, and the MLP that it is without a graph.
    """

    size: int
    shapes: int
    only_own: bool


@dataclasses.dataclass(frozen=True)
class Candidate:
    """What the choice knows of a candidate beside what it predicts.

    Args:
        shape: equal for candidates that train in one population.
        is_own: whether it is LON-GNN, or an MLP.
        graph: it was tuned on, if any.
        kind: of that graph.
    """

    shape: Hashable
    is_own: bool = True
    graph: str | None = None
    kind: str | None = None


def member_config(
    selection: Mapping[str, Any], name: str, limits: ConfigTable | None = None
) -> Config:
    """The configuration of a member, with these epochs and patience.

    It is that of the record of the choice: recipes may change after it.
    """
    return as_trained(config_of({**selection["configs"][name], **(limits or {})}))


def members_of(portfolio: Mapping[str, Any]) -> set[str]:
    """The members of all choices of a portfolio."""
    others = (portfolio["without_kind"], portfolio["without_graph"])
    return {*portfolio["members"], *(m for of in others for chosen in of.values() for m in chosen)}


def choose_all(
    known: Mapping[str, Candidate],  # in the order of the predictions
    graphs: Mapping[str, Predictions],
    kinds: Mapping[str, str],  # of the graphs
    limits: Mapping[str, Limits],  # by portfolio
) -> dict[str, Any]:
    """Choose every portfolio on all graphs, on all but each kind, and on all but each graph.

    Returns:
        ``oracle``: the mean holdout score of the best single candidate of each graph; and
        ``portfolios`` by name: ``members`` in the order of the choice; ``without_kind`` and
        ``without_graph``, the same, chosen without a kind or without a graph that has a recipe;
        and graph -> strategy -> holdout scores of the members (``inside``), and of those that were
        chosen without its kind or without it (``outside_kind``, ``outside_graph``).
    """
    judges = {name: Judge(p) for name, p in graphs.items()}
    found = {name: _choose(known, graphs, judges, kinds, own) for name, own in limits.items()}
    oracle = {
        name: float(np.mean([p.scores(q.predicted, q.labels) for q in p.holdout], axis=0).max())
        for name, p in graphs.items()
    }
    return {"portfolios": found, "oracle": oracle}


def _choose(
    known: Mapping[str, Candidate],
    graphs: Mapping[str, Predictions],
    judges: Mapping[str, Judge],
    kinds: Mapping[str, str],
    limits: Limits,
) -> dict[str, Any]:
    names, every = list(known), list(known.values())

    def without(out: Collection[str]) -> list[str]:
        """Neither these graphs nor what was tuned on them."""
        pool = [
            i
            for i, own in enumerate(every)
            if own.graph not in out and (own.is_own or not limits.only_own)
        ]
        by_kind: dict[str, list[Judge]] = {}
        for name, judge in judges.items():
            if name not in out:
                by_kind.setdefault(kinds[name], []).append(judge)
        shapes = [own.shape for own in every]
        return [names[i] for i in _greedy(pool, list(by_kind.values()), shapes, limits)]

    tuned = {own.graph: own.kind for own in every if own.graph is not None}
    kind_of = {**tuned, **kinds}
    without_kind = {
        kind: without([name for name, own in kind_of.items() if own == kind])
        for kind in dict.fromkeys(kinds.values())
    }
    without_graph = {graph: without(related(graph)) for graph in tuned}
    members = without(())

    def worth(p: Predictions, of: Sequence[str]) -> dict[str, list[float]]:
        return evaluate(p, [names.index(name) for name in of])

    return {
        "members": members,
        "without_kind": without_kind,
        "without_graph": without_graph,
        "inside": {name: worth(p, members) for name, p in graphs.items()},
        "outside_kind": {name: worth(p, without_kind[kinds[name]]) for name, p in graphs.items()},
        "outside_graph": {
            name: worth(p, without_graph[name])
            for name, p in graphs.items()
            if name in without_graph
        },
    }


def _greedy(
    pool: Sequence[int],
    kinds: Sequence[Sequence[Judge]],
    shapes: Sequence[Hashable],
    limits: Limits,
) -> list[int]:
    """Candidates, each the one that lowers the mean regret of the set most; kinds count alike."""
    chosen: list[int] = []
    while len(chosen) < limits.size:
        rest = _allowed(chosen, pool, shapes, limits)
        if not rest:
            break
        by_kind = [np.mean([judge.regrets(chosen, rest) for judge in own], 0) for own in kinds]
        chosen.append(rest[int(np.argmin(np.mean(by_kind, 0)))] if by_kind else rest[0])
    return chosen


def _allowed(
    chosen: Sequence[int], pool: Sequence[int], shapes: Sequence[Hashable], limits: Limits
) -> list[int]:
    """Who may come next: not too many shapes, and enough members left to fill the portfolio."""
    count = Counter(shapes[i] for i in pool)
    full = min(limits.size, sum(n for _, n in count.most_common(limits.shapes)))
    used = {shapes[i] for i in chosen}

    def fills(shape: Hashable) -> bool:
        own = used | {shape}
        left = limits.shapes - len(own)
        others = sorted((n for s, n in count.items() if s not in own), reverse=True)
        return left >= 0 and sum(count[s] for s in own) + sum(others[:left]) >= full

    may = {shape for shape in count if fills(shape)}
    return [i for i in pool if i not in chosen and shapes[i] in may]

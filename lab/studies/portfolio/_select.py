"""The choice: greedy selection of the set of candidates that loses least.

A portfolio is chosen on all graphs, without each kind of graph, and without each graph that a
candidate was tuned on. What is left out has no say, and candidates that were tuned on it are not
there to be chosen.
"""

import dataclasses
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence

import numpy as np

from lab.studies._core._evaluation import as_trained
from lab.studies._core._protocol import ConfigTable
from lab.studies.portfolio._graphs import related
from lab.studies.portfolio._join import evaluate
from lab.studies.portfolio._judge import Judge
from lab.studies.portfolio._predictions import Predictions
from longnn.config import Config


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


@dataclasses.dataclass(frozen=True)
class Portfolio:
    """What was chosen, and what it is worth.

    Args:
        members: candidates in the order in which they were chosen, on all graphs.
        without_kind: kind -> the same, chosen without the graphs of that kind.
        without_graph: graph with a recipe -> the same, chosen without it.
        inside: graph -> strategy -> holdout scores over the splits, of the members.
        outside_kind: the same, each graph with the members that were chosen without its kind.
        outside_graph: the same, each graph with the members that were chosen without it.
    """

    members: list[str]
    without_kind: dict[str, list[str]]
    without_graph: dict[str, list[str]]
    inside: dict[str, dict[str, list[float]]]
    outside_kind: dict[str, dict[str, list[float]]]
    outside_graph: dict[str, dict[str, list[float]]]

    def everyone(self) -> set[str]:
        """The members of all these choices."""
        others = (self.without_kind, self.without_graph)
        return {*self.members, *(m for of in others for chosen in of.values() for m in chosen)}


@dataclasses.dataclass(frozen=True)
class Selection:
    """The portfolios by name.

    Args:
        portfolios: what was chosen.
        oracle: graph -> the mean holdout score of its best single candidate.
        configs: of every candidate that was chosen; recipes may change after the choice.
    """

    portfolios: dict[str, Portfolio]
    oracle: dict[str, float]
    configs: dict[str, ConfigTable] = dataclasses.field(default_factory=dict)

    def config(self, name: str, limits: ConfigTable | None = None) -> Config:
        """The configuration of a member, with these epochs and patience."""
        return as_trained(Config.from_dict({**self.configs[name], **(limits or {})}))


def choose_all(
    known: Mapping[str, Candidate],
    graphs: Mapping[str, Predictions],
    kinds: Mapping[str, str],
    limits: Mapping[str, Limits],
) -> Selection:
    """Choose every portfolio on all graphs, on all but each kind, and on all but each graph.

    Args:
        known: the candidates, in the order of the predictions.
        graphs: what they predict.
        kinds: of the graphs.
        limits: of the portfolios, by name.
    """
    judges = {name: Judge(p) for name, p in graphs.items()}
    found = {name: _choose(known, graphs, judges, kinds, own) for name, own in limits.items()}
    oracle = {name: float(np.max(_alone(p))) for name, p in graphs.items()}
    return Selection(found, oracle)


def _choose(
    known: Mapping[str, Candidate],
    graphs: Mapping[str, Predictions],
    judges: Mapping[str, Judge],
    kinds: Mapping[str, str],
    limits: Limits,
) -> Portfolio:
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

    return Portfolio(
        members=members,
        without_kind=without_kind,
        without_graph=without_graph,
        inside={name: worth(p, members) for name, p in graphs.items()},
        outside_kind={name: worth(p, without_kind[kinds[name]]) for name, p in graphs.items()},
        outside_graph={
            name: worth(p, without_graph[name])
            for name, p in graphs.items()
            if name in without_graph
        },
    )


def _alone(p: Predictions) -> np.ndarray:
    """The mean holdout score of each candidate."""
    return np.mean([p.scores(part.predicted, part.labels) for part in p.holdout], axis=0)


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

"""Few validation nodes: how members are joined best where there is little to go by.

The votes of a portfolio are taken on draws of few of the validation nodes of every graph, with the
portfolio that was chosen without its kind, and scored on the selection holdout. What is compared is
how many nodes the plain average of the better half should count as.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from lab.studies.portfolio._predictions import Part, Predictions
from longnn.training import combine, ensemble_weights

#: Validation nodes that are left, draws of them, and what is compared.
LEFT, DRAWS, PRIORS = (10, 20, 40, 100, 300), 4, (0, 10, 20, 40)
#: A graph counts with at most this difference: where values are predicted it can be any.
CAP = 0.1


@dataclasses.dataclass(frozen=True)
class FewCell:
    """Mean holdout scores by validation nodes, prior and graph; a graph with fewer is left out.

    Args:
        scores: nodes -> prior -> graph -> score.
    """

    scores: dict[str, dict[str, dict[str, float]]]

    def gains(self, nodes: str, prior: str) -> list[float]:
        """Over no prior, in points, graph by graph."""
        found, none = self.scores[nodes][prior], self.scores[nodes]["0"]
        return [100 * float(np.clip(found[g] - none[g], -CAP, CAP)) for g in found]


def compare_priors(
    graphs: Mapping[str, Predictions], chosen: Mapping[str, Sequence[int]]
) -> FewCell:
    """Train nothing: join what is stored.

    Args:
        graphs: what all candidates predict.
        chosen: the members on each graph.
    """
    scores: dict[str, dict[str, dict[str, float]]] = {}
    for nodes in LEFT:
        for name, p in graphs.items():
            if min(len(part.labels) for part in p.val) < nodes:
                continue
            for prior in PRIORS:
                found = [
                    _score(_take(val, nodes, draw), p, holdout, chosen[name], prior)
                    for val, holdout in zip(p.val, p.holdout, strict=True)
                    for draw in range(DRAWS)
                ]
                own = scores.setdefault(str(nodes), {}).setdefault(str(prior), {})
                own[name] = float(np.mean(found))
    return FewCell(scores)


def _take(part: Part, nodes: int, draw: int) -> Part:
    order = torch.randperm(len(part.labels), generator=torch.Generator().manual_seed(draw))[:nodes]
    return Part(part.predicted[:, order], part.labels[order])


def _score(val: Part, p: Predictions, holdout: Part, chosen: Sequence[int], prior: int) -> float:
    weights = ensemble_weights(val.take(chosen), val.labels, p.task, prior=prior)
    return p.score(combine(holdout.take(chosen), weights), holdout.labels)

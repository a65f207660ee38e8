"""A small search, the same for every model family: random configurations, judged by validation.

The candidates of all families are trained by one call on the first splits. Test nodes are dropped
here. The best mean validation score wins.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from lab.studies._core._protocol import ConfigTable, Row, SearchPlan, search_space
from lab.studies.protocols._plan import Plan
from lab.studies.protocols._train import fit_all, score_of
from longnn.config import Config
from longnn.data import NodeDataset, make_split
from longnn.tuning._space import draw_random


@dataclasses.dataclass(frozen=True)
class DrawsCell:
    """The search of one family.

    Args:
        fingerprint: of the dataset.
        configs: the candidates, as flat tables.
        val: score of each candidate on the validation nodes of each split of the search.
        chosen: number of the winner.
    """

    fingerprint: str
    configs: list[ConfigTable]
    val: list[list[float]]
    chosen: int


def draw_candidates(row: Row, plan: Plan, precision: str = "float32") -> list[Config]:
    """Random configurations of a row, its forms in turn.

    Trainings are stopped by the metric of the plan, unless the row says by what.

    >>> from lab.studies.protocols._plan import PLANS, SEARCHED
    >>> from lab.studies.protocols._rows import FAMILIES
    >>> len(draw_candidates(FAMILIES["mlp"], PLANS[SEARCHED]))
    16
    """
    assert plan.draws is not None
    spaces = [search_space(row, form, SearchPlan(epochs=plan.epochs)) for form in row.forms]
    values = draw_random(spaces, plan.draws.candidates)
    settings = {"precision": precision}
    if "monitor" not in row.searched:
        settings["monitor"] = plan.metric
    return [
        spaces[i % len(spaces)].config(drawn, scale="none").replace(**settings)
        for i, drawn in enumerate(values)
    ]


def search_families(
    dataset: NodeDataset,
    families: Mapping[str, Row],
    plan: Plan,
    *,
    device: str,
    precision: str = "float32",
) -> dict[str, DrawsCell]:
    """The winner of every family, by the validation nodes of the first splits.

    Args:
        dataset: what is learned.
        families: row by key.
        plan: with draws.
        device: where to train.
        precision: of training.
    """
    assert plan.draws is not None
    splits = [
        make_split(dataset, plan.protocol, s).without_test() for s in range(plan.draws.splits)
    ]
    drawn = {key: draw_candidates(row, plan, precision) for key, row in families.items()}
    limits = {"epochs": plan.draws.epochs, "patience": plan.draws.patience}
    shortened = [config.replace(**limits) for configs in drawn.values() for config in configs]
    fitted = iter(fit_all(dataset, shortened, splits, device=device))
    found = {}
    for key, configs in drawn.items():
        val = [
            [score_of(one.predicted, dataset, one.split.val, plan.metric) for one in next(fitted)]
            for _ in configs
        ]
        best = int(np.argmax([np.mean(scores) for scores in val]))
        tables: list[ConfigTable] = [config.to_dict() for config in configs]
        found[key] = DrawsCell(dataset.fingerprint(), tables, val, best)
    return found

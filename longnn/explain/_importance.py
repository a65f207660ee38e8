"""Which columns count: what the score of test nodes loses where a column is shuffled.

All features of a column of the user's table are shuffled together over the nodes. The whole
portfolio then predicts the changed graph: filters propagate what was shuffled, and known answers
correct as they do in the run. Nothing but the draw is by chance, and nothing is chosen by it.
"""

import copy
import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from longnn.data import NodeDataset, Split
from longnn.data._features import is_sparse
from longnn.matrices import csr_from_scipy, csr_to_scipy
from longnn.metrics import metric_of
from longnn.records import Summary
from longnn.training import Trained, score
from longnn.training._trained import match_features

#: Draws of each column, and what all may cost: nodes and stored edges of all passes of all models,
#: about five seconds on two cores.
DRAWS, BUDGET = 3, 2_000_000
#: Test nodes that are scored where the graph is on disk, with all nodes that their filters see.
SAMPLE = 1000
#: Columns beyond which they are words, of which none counts for much.
COLUMNS = 200


def column_importance(
    trained: Trained,
    dataset: NodeDataset,
    splits: Sequence[Split],
    metric: str,
    *,
    draws: int | None = None,
) -> Mapping[str, Summary]:
    """What a score loses without each column, over the draws; the most important first.

    Args:
        trained: the models.
        dataset: the graph of the run.
        splits: of each repeat; draws go through the repeats in turn.
        metric: the score.
        draws: how often each column is shuffled; by default as often as takes seconds, perhaps
            never: then there is no column.
    """
    columns, tests = columns_of(trained), [split.test.numpy().nonzero()[0] for split in splits]
    if not columns or len(columns) > COLUMNS or not all(map(len, tests)):
        return {}
    if dataset.backing.by_rows:
        tests = [np.random.default_rng(0).permutation(test)[:SAMPLE] for test in tests]
    asked = np.unique(np.concatenate(tests))
    near, inside = dataset.backing.neighbourhood(dataset, asked, trained.row_degree)
    near = trained.encode(near).with_columns(None, near.encoding)
    near = match_features(near, trained.feature_names, trained.features, trained.open_features)
    if draws is None:  # by size and not by the clock: a record is the same on a slower machine
        size = trained.problem(near, known="none").size * max(len(trained.members), 1)
        draws = min(DRAWS, BUDGET // (size * len(columns)))
    if draws < 1:
        return {}
    known = trained.problem(dataset, known="run").known  # as it is, whatever is shuffled
    known = known and known.part(torch.from_numpy(inside))
    masks = [torch.from_numpy(np.isin(inside, test)) for test in tests]

    def scored(x: Tensor, repeat: int) -> float:
        data = copy.copy(near.data)
        data.x = x
        problem = trained.problem(dataclasses.replace(near, data=data), known="none")
        (said,) = trained.opinions(dataclasses.replace(problem, known=known), [repeat])
        return score(said.predicted, near, masks[repeat], trained.readouts[repeat])[metric]

    x, sign, rng = near.data.x, metric_of(metric).sign, np.random.default_rng(0)
    before = {repeat: scored(x, repeat) for repeat in range(min(draws, trained.repeats))}
    lost: dict[str, list[float]] = {name: [] for name in columns}
    for draw in range(draws):
        repeat, order = draw % trained.repeats, rng.permutation(len(inside))
        for name, places in columns.items():
            after = scored(shuffled(x, places, order), repeat)
            lost[name].append(sign * (before[repeat] - after))
    found = {name: Summary.of(each) for name, each in lost.items()}
    return dict(sorted(found.items(), key=lambda item: -item[1].mean))


def columns_of(trained: Trained) -> dict[str, list[int]]:
    """The features of each column of the user's table; without one, each feature is a column."""
    names = trained.feature_names or [f"feature {k}" for k in range(trained.features)]
    encoded = () if trained.encoding is None else trained.encoding.columns
    of = [column.column for column in encoded for _ in column.names]
    rest = ["(feature file)" if of else name for name in names[len(of) :]]
    columns: dict[str, list[int]] = {}
    for place, name in enumerate([*of, *rest]):
        columns.setdefault(name, []).append(place)
    return columns


def shuffled(x: Tensor, places: Sequence[int], order: np.ndarray) -> Tensor:
    """Features (nodes, features), some of which each node has from another.

    >>> shuffled(torch.tensor([[1.0, 5.0], [2.0, 6.0]]), [1], np.array([1, 0]))
    tensor([[1., 6.],
            [2., 5.]])
    """
    if is_sparse(x):
        matrix, taken = csr_to_scipy(x), np.isin(np.arange(x.shape[1]), places)
        return csr_from_scipy(matrix.multiply(~taken) + matrix[order].multiply(taken))
    mixed = x.clone()
    mixed[:, list(places)] = x[torch.from_numpy(order)][:, list(places)]
    return mixed

"""The best trials of a search, trained again on splits that the search did not use.

The highest of 400 means over three splits owes much to luck. Further splits draw luck anew, so the
winner among a few finalists is the better one, not the luckier one.
"""

from collections.abc import Callable, Sequence

from optuna.trial import FrozenTrial

from longnn.config import Config
from longnn.data import NodeDataset, Split
from longnn.training import (
    Population,
    Result,
    choose_device,
    make_problem,
    run_chunked,
    shape_of,
)
from longnn.tuning._ranking import describe_trial
from longnn.tuning._scaling import Scaling
from longnn.tuning._splits import seeded_splits, tuning_seeds
from longnn.tuning._training import best_score
from longnn.tuning._trials import FinalistRecord, Finalists, finite

#: Further splits for each finalist.
FURTHER = 5

OnEpoch = Callable[[Population], None]


def confirm(
    dataset: NodeDataset,
    configs: Sequence[Config],
    seeds: Sequence[int],
    *,
    split: str | None = None,
    device: str = "auto",
    on_epoch: OnEpoch | None = None,
) -> list[list[float]]:
    """The best validation score of each configuration on one tuning split per seed.

    Configurations of one shape are trained together, as many at once as fit into memory. No test
    node is used.

    Args:
        dataset: the graph, its features and labels.
        configs: what to train, of any models. Their own seeds are ignored.
        seeds: of splits, weights and dropout. The seeds of reports are refused.
        split: the split protocol; None for the dataset's own.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``.
        on_epoch: called with a population after each of its epochs.

    Returns:
        Scores (configs, seeds); -inf where training diverged at once.

    >>> from longnn.data import csbm
    >>> graph = csbm(num_nodes=60, num_features=8)
    >>> scores = confirm(graph, [Config().replace(epochs=2)], [1000, 1001], device="cpu")
    >>> [len(row) for row in scores]
    [2]
    """
    splits, _ = seeded_splits(dataset, split, seeds)
    members = [config.replace(seed=s.seed) for config in configs for s in splits]
    results = _fit(dataset, members, [*splits] * len(configs), device=device, on_epoch=on_epoch)
    scores = [best_score(result) for result in results]
    return [scores[i : i + len(splits)] for i in range(0, len(scores), len(splits))]


def _fit(
    dataset: NodeDataset,
    configs: Sequence[Config],
    splits: Sequence[Split],
    *,
    device: str,
    on_epoch: OnEpoch | None,
) -> list[Result]:
    """Train members group by group of equal shape; results in the order of the members."""
    where = choose_device(device)
    groups: dict[object, list[int]] = {}
    for i, config in enumerate(configs):
        groups.setdefault(shape_of(config), []).append(i)
    results: dict[int, Result] = {}
    for group in groups.values():
        first = configs[group[0]]
        trained = run_chunked(
            [configs[i] for i in group],
            make_problem(dataset, first, Scaling.fit(first.scale, dataset), device=where),
            [splits[i] for i in group],
            run=lambda population, _: population.run(on_epoch),
        )
        results |= zip(group, trained, strict=True)
    return [results[i] for i in range(len(configs))]


def train_finalists(
    dataset: NodeDataset,
    trials: Sequence[FrozenTrial],
    configs: Sequence[Config],
    *,
    repeats: int,
    split: str | None,
    device: str,
    on_epoch: OnEpoch | None = None,
) -> Finalists:
    """Train finalists on the splits that come after the ``repeats`` of their search.

    Args:
        trials: the finalists, the best of the search first.
        configs: of the finalists.
        repeats: splits that the search used.

    Returns:
        The finalists, the best mean over all splits first; of equals in the order of the search.
    """
    if not trials:
        return Finalists()
    seeds = tuning_seeds(repeats + FURTHER)[repeats:]
    scores = confirm(dataset, configs, seeds, split=split, device=device, on_epoch=on_epoch)
    ranked = []
    for trial, confirmed in zip(map(describe_trial, trials), scores, strict=True):
        assert trial.value is not None, "finalists were trained to the end"
        every = [s for s in trial.outcome.scores if s is not None] + confirmed
        mean = sum(every) / len(every)
        final = FinalistRecord(trial.number, trial.value, finite(confirmed), finite([mean])[0])
        ranked.append((mean, final))
    ranked.sort(key=lambda pair: -pair[0])
    return Finalists(tuple(seeds), tuple(final for _, final in ranked))

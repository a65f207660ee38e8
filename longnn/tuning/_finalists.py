"""The best few of a search, trained again on splits that the search did not choose them by.

The highest of 400 means over three splits owes much to luck. On further splits luck is drawn
anew, so that the winner among a few finalists is the better one, not the luckier one.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from optuna.trial import FrozenTrial

from longnn.config import SCALINGS, Config
from longnn.data import NodeDataset, known_names
from longnn.training import Population, Scaling, choose_device, make_problem, run_chunked
from longnn.tuning._space import architecture
from longnn.tuning._splits import seeded_splits, tuning_seeds
from longnn.tuning._training import best_score

#: Further splits for each finalist.
FURTHER = 5


def confirm(
    dataset: NodeDataset,
    configs: Sequence[Config],
    seeds: Sequence[int],
    *,
    split: str | None = None,
    device: str = "auto",
    on_epoch: Callable[[Population], None] | None = None,
) -> list[list[float]]:
    """The best validation score of each configuration on a tuning split of each seed.

    Members of one shape are trained together, as many at once as fit into memory. No test node is
    used.

    Args:
        dataset: what to learn.
        configs: what to train with, of any models; their own seeds do not count.
        seeds: of splits, weights and dropout; those of reports are refused.
        split: the protocol, or None for the dataset's own.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``.
        on_epoch: called with a population after each of its epochs.

    Returns:
        scores (configs, seeds); -inf where training diverged at once.
    """
    splits, _ = seeded_splits(dataset, split, seeds)
    where = choose_device(device)
    groups: dict[Any, list[int]] = {}
    for i, config in enumerate(configs):
        key = (config.model, config.precision, config.scale, architecture(config))
        groups.setdefault(key, []).append(i)
    scores: list[list[float]] = [[] for _ in configs]
    for places in groups.values():
        first = configs[places[0]]
        scaling = Scaling.fit(resolve_scale(first.scale, dataset), dataset.data.x)
        results = run_chunked(
            [configs[i].replace(seed=s.seed) for i in places for s in splits],
            make_problem(dataset, first, scaling, device=where),
            [*splits] * len(places),
            run=lambda population, _: population.run(on_epoch),
        )
        for n, i in enumerate(places):
            part = results[n * len(splits) : (n + 1) * len(splits)]
            scores[i] = [best_score(result) for result in part]
    return scores


def hold_final(
    dataset: NodeDataset,
    trials: Sequence[FrozenTrial],
    configs: Sequence[Config],
    *,
    repeats: int,
    **options: Any,
) -> dict[str, Any]:
    """Train finalists on the splits that come after the ``repeats`` of their search.

    Returns:
        Plain data: the further ``seeds``, and ``trials``, the best first by its ``value``, the
        mean over the splits of the search and the further ones.
    """
    if not trials:
        return {"seeds": [], "trials": []}
    seeds = tuning_seeds(repeats + FURTHER)[repeats:]
    rows = []
    for trial, scores in zip(trials, confirm(dataset, configs, seeds, **options), strict=True):
        every = [*trial.user_attrs["result"]["scores"], *scores]
        rows.append((sum(every) / len(every), trial, scores))
    rows.sort(key=lambda row: -row[0])  # of equals the one that the search put first
    finite = lambda value: value if math.isfinite(value) else None  # noqa: E731
    final = [
        {
            "number": trial.number,
            "searched": trial.values[0],
            "confirmed": [finite(score) for score in scores],
            "value": finite(mean),
        }
        for mean, trial, scores in rows
    ]
    return {"seeds": seeds, "trials": final}


def resolve_scale(scale: str, dataset: NodeDataset) -> str:
    """``auto``: published and bundled features are ready to use, a user's columns are not."""
    if scale not in SCALINGS:
        raise ValueError(f"Expected `scale` to be one of {', '.join(SCALINGS)} (got {scale!r})")
    if scale != "auto":
        return scale
    return "none" if dataset.name in known_names() else "standard"

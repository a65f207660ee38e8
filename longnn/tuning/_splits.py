"""The splits of a search: its own random ones, so that no reported split was tuned on.

A search trains on ``train`` and chooses by ``val``. Test nodes are dropped here, and nothing after
this module knows them. The highest of 400 means over three splits owes much to luck, so the best
trials are trained again on further splits, where the winner is the better one and not the luckier.
"""

import dataclasses
from collections.abc import Callable, Sequence

from longnn.config import Config
from longnn.data import NodeDataset, Split, make_split
from longnn.data._splits import SHIPPED
from longnn.training import Population, fit
from longnn.tuning._record import FinalistRecord, Finalists, TrialRecord
from longnn.tuning._training import best_score, finite

#: Results are reported on splits with these seeds.
REPORTING_SEEDS = range(100)
#: The first seed of a search; repeat r uses the r-th from here.
FIRST_SEED = 1000
#: Further splits for each finalist.
FURTHER = 5

OnEpoch = Callable[[Population], None]


def tuning_seeds(repeats: int) -> list[int]:
    """The seeds of splits, weights and dropout in a search; reports use other ones.

    >>> tuning_seeds(3)
    [1000, 1001, 1002]
    """
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        raise ValueError(f"Expected `repeats` to be an integer >= 1 (got {repeats!r})")
    return [FIRST_SEED + r for r in range(repeats)]


def tuning_splits(
    dataset: NodeDataset, protocol: str | None, seeds: Sequence[int]
) -> tuple[list[Split], list[str]]:
    """One split per seed without its test nodes, and notes for the user.

    If the data comes with one set of masks, it is used, and its test nodes are ignored. If it comes
    with several, the test nodes of one are training nodes of another and would leak: random splits
    are drawn instead.

    Raises:
        ValueError: for a seed of reports.
    """
    for seed in set(seeds) & set(REPORTING_SEEDS):
        raise ValueError(
            f"Expected tuning seeds from {FIRST_SEED} on (got {seed}, a seed of reports)"
        )
    protocol = protocol or dataset.default_split
    notes: list[str] = []
    if protocol in SHIPPED and dataset.num_splits == 1:
        notes.append(
            f"The search uses the {protocol} training and validation nodes; repeats differ in "
            "their seed. The test nodes are not used."
        )
    elif protocol in SHIPPED and dataset.num_splits > 1:
        notes.append(
            f"The {dataset.num_splits} {protocol} splits share their nodes: a choice made on one "
            "would use test nodes of another. The search uses random splits of the published "
            "protocol."
        )
        protocol = "published"
    splits = [make_split(dataset, protocol, seed).without_test() for seed in seeds]
    if dataset.backing.by_rows and len({*splits}) > 1:  # one read of the disk serves all members
        splits = [dataclasses.replace(splits[0], seed=seed) for seed in seeds]
        notes.append("The repeats share one split, since the graph is on disk.")
    notes += dict.fromkeys(note for split in splits for note in split.notes)
    return splits, notes


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
        configs: what to train, of any models. Their own seeds are ignored.
        seeds: of splits, weights and dropout. The seeds of reports are refused.
        split: the split protocol; None for the dataset's own.
        on_epoch: called with a population after each of its epochs.

    Returns:
        Scores (configs, seeds), negative of an error; -inf where training diverged at once.
    """
    splits, _ = tuning_splits(dataset, split, seeds)
    members = [config.replace(seed=s.seed) for config in configs for s in splits]
    fitted = fit(dataset, members, [*splits] * len(configs), device=device, on_epoch=on_epoch)
    scores = [best_score(member.result) for member in fitted]
    return [scores[i : i + len(splits)] for i in range(0, len(scores), len(splits))]


def train_finalists(
    dataset: NodeDataset,
    trials: Sequence[TrialRecord],
    configs: Sequence[Config],
    *,
    repeats: int,
    split: str | None,
    device: str,
    on_epoch: OnEpoch,
) -> Finalists:
    """Train finalists, the best first, on the splits after the ``repeats`` of their search.

    Returns them with the best mean over all splits first; equals keep their order.
    """
    if not trials:
        return Finalists()
    seeds = tuning_seeds(repeats + FURTHER)[repeats:]
    scores = confirm(dataset, configs, seeds, split=split, device=device, on_epoch=on_epoch)
    ranked = []
    for trial, confirmed in zip(trials, scores, strict=True):
        assert trial.value is not None, "finalists were trained to the end"
        every = [s for s in trial.scores if s is not None] + confirmed
        mean = sum(every) / len(every)
        final = FinalistRecord(trial.number, trial.value, finite(confirmed), finite([mean])[0])
        ranked.append((mean, final))
    ranked.sort(key=lambda pair: -pair[0])
    return Finalists(tuple(seeds), tuple(final for _, final in ranked))

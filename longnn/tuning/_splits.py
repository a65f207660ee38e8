"""The splits of a search: its own random ones, so that no reported split was tuned on.

A search trains on ``train`` and chooses by ``val``. Test nodes are dropped here, and nothing after
this module knows them.
"""

from collections.abc import Sequence

from longnn.data import NodeDataset, Split, make_split
from longnn.store import StoredDataset

#: Results are reported on splits with these seeds.
REPORTING_SEEDS = range(100)
#: The first seed of a search; repeat r uses the r-th from here.
FIRST_SEED = 1000
#: Protocols whose splits came with the data.
SHIPPED = ("geom-gcn", "fixed", "own")


def tuning_seeds(repeats: int) -> list[int]:
    """The seeds of splits, weights and dropout in a search; reports use other ones.

    >>> tuning_seeds(3)
    [1000, 1001, 1002]
    """
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        raise ValueError(f"Expected `repeats` to be an integer >= 1 (got {repeats!r})")
    seeds = [FIRST_SEED + r for r in range(repeats)]
    assert not set(seeds) & set(REPORTING_SEEDS)
    return seeds


def tuning_splits(
    dataset: NodeDataset, protocol: str | None, repeats: int
) -> tuple[list[Split], list[str]]:
    """The splits of a search, one per repeat; see :func:`seeded_splits`."""
    return seeded_splits(dataset, protocol, tuning_seeds(repeats))


def seeded_splits(
    dataset: NodeDataset, protocol: str | None, seeds: Sequence[int]
) -> tuple[list[Split], list[str]]:
    """One split per seed without its test nodes, and notes for the user.

    If the data comes with one set of masks, it is used, and its test nodes are ignored. If it comes
    with several, the test nodes of one are training nodes of another and would leak: random splits
    are drawn instead.

    Args:
        dataset: the graph.
        protocol: the split protocol; None for the dataset's own.
        seeds: one per split, not those of reports.

    Returns:
        The splits, and sentences that the user ought to read.

    Raises:
        ValueError: for a seed of reports, or a graph that stays on disk.
    """
    if isinstance(dataset, StoredDataset):
        raise ValueError(
            f"Expected a graph in memory to search on (got {dataset.name}, which stays on disk); "
            "give more --memory, or search on a part of the graph and train on the whole with the "
            "recipe: longnn train GRAPH --config recipe.toml"
        )
    for seed in seeds:
        if seed in REPORTING_SEEDS:
            raise ValueError(
                f"Expected tuning seeds from {FIRST_SEED} on (got {seed}, a seed of reports)"
            )
    chosen = protocol or dataset.default_split
    notes: list[str] = []
    if chosen in SHIPPED and dataset.num_splits == 1:
        notes.append(
            f"The search uses the {chosen} training and validation nodes; repeats differ in their "
            "seed. The test nodes are not used."
        )
    elif chosen in SHIPPED and dataset.num_splits > 1:
        notes.append(
            f"The {dataset.num_splits} {chosen} splits share their nodes: a choice made on one "
            "would use test nodes of another. The search uses random splits of the published "
            "protocol."
        )
        chosen = "published"
    splits = [make_split(dataset, chosen, seed).without_test() for seed in seeds]
    notes += dict.fromkeys(note for split in splits for note in split.notes)
    return splits, notes

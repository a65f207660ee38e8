"""Scores of members that were joined, and the record of LON-GNN's recipes joined: one place for
what the studies ``portfolio`` and ``ensembles`` both show.
"""

import dataclasses
from pathlib import Path

from lab.studies._core._context import load_records
from lab.studies._core._protocol import PAPER

#: The key of the cell of a record of ``ensembles``.
ENSEMBLES = "ensembles"
#: Its rows: one model, several seeds of it, the same of the recipe with blocks, and all together.
ONE, SEEDS, BLOCK, BLOCKS, TOGETHER = "one", "seeds", "block", "blocks", "together"


@dataclasses.dataclass(frozen=True)
class Scored:
    """Scores of one model, or of several joined, over the splits.

    Args:
        val: on the validation nodes; these chose the epoch and the weights.
        test: on nodes that chose nothing: the selection holdout, or the test nodes.
    """

    val: list[float]
    test: list[float]


@dataclasses.dataclass(frozen=True)
class EnsemblesCell:
    """What the recipes of one graph reach.

    Args:
        fingerprint: of the dataset.
        rows: row -> way to join -> scores over the splits. Rows with blocks are there if ``depth``
            has a recipe with blocks for the graph.
    """

    fingerprint: str
    rows: dict[str, dict[str, Scored]]


def read_ensembles(folder: Path) -> dict[str, EnsemblesCell]:
    """Graph -> what its recipes reach, of the records that exist.

    Args:
        folder: of the study ``ensembles``.
    """
    found = load_records(folder, PAPER)
    return {
        name: record.get(ENSEMBLES, EnsemblesCell)
        for name, record in found.items()
        if ENSEMBLES in record
    }

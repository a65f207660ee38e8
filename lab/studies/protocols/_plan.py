"""What is run: three parts, each with its graphs, its splits and its score. Data only."""

import dataclasses

from lab.studies._core._protocol import QUICK_DATASETS
from lab.studies.accuracy import DATASETS

#: The parts, by name: protocols B and C, and the graphs that are searched here.
STRATIFIED, GEOM_GCN, SEARCHED = "stratified", "geom-gcn", "searched"


@dataclasses.dataclass(frozen=True)
class Draws:
    """The random search that every model family has.

    Args:
        candidates: random configurations of each family.
        splits: the first splits, on whose validation nodes the candidates are compared.
        epochs: most epochs of a candidate.
        patience: of a candidate.
    """

    candidates: int
    splits: int
    epochs: int
    patience: int


@dataclasses.dataclass(frozen=True)
class Plan:
    """What the rows of one record share.

    Args:
        protocol: of the splits, their seeds from 0 on.
        metric: of the scores.
        splits: that are reported.
        epochs: most epochs of a training.
        members: most members of an ensemble; 0 is all.
        draws: the search; None where the configurations come from ``accuracy``.

    >>> PLANS[STRATIFIED].splits
    10
    """

    protocol: str
    metric: str
    splits: int
    epochs: int
    members: int = 0
    draws: Draws | None = None


PLANS = {
    STRATIFIED: Plan("stratified", "accuracy", splits=10, epochs=1000),
    GEOM_GCN: Plan("geom-gcn", "accuracy", splits=10, epochs=1000),
    SEARCHED: Plan(
        "fixed",
        "roc_auc",
        splits=10,
        epochs=1000,
        draws=Draws(16, splits=2, epochs=500, patience=100),
    ),
}
#: Graphs of each part. Cora, Citeseer and Pubmed are read from files that have no geom-gcn masks,
#: and there are none for Computers and Photo.
GRAPHS = {
    STRATIFIED: DATASETS,
    GEOM_GCN: ("chameleon", "squirrel", "actor", "texas", "cornell", "cornell-legacy"),
    SEARCHED: ("minesweeper", "tolokers"),
}
#: A look at bundled data, which come without masks.
QUICK_PLANS = {
    STRATIFIED: Plan("stratified", "accuracy", splits=2, epochs=5, members=2),
    SEARCHED: Plan(
        "stratified",
        "roc_auc",
        splits=2,
        epochs=5,
        members=2,
        draws=Draws(2, 1, epochs=5, patience=5),
    ),
}
QUICK_GRAPHS = dict.fromkeys(QUICK_PLANS, QUICK_DATASETS)


def record_name(graph: str, part: str) -> str:
    """The name of the record of one graph in one part.

    >>> record_name("cora", STRATIFIED)
    'cora-stratified'
    """
    return f"{graph}-{part}"

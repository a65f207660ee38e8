"""Rows trained together on all splits of one graph: shared populations, each training once."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal, Self

import torch
from torch import Tensor

from lab.studies._core._evaluation import Scores, as_trained
from lab.studies._core._protocol import ConfigTable
from longnn.config import Config
from longnn.data import NodeDataset, Split
from longnn.training import Fitted, combine, ensemble_weights, fit, score

#: How the predictions of several members become one: all alike, or by votes on validation nodes.
Join = Literal["average", "votes"]


@dataclasses.dataclass(frozen=True)
class Entry:
    """What one row trains on every split: one configuration, or the members of an ensemble.

    Args:
        configs: each with a seed that is added to that of the split.
        join: of several.

    >>> Entry([Config()]).limited(5).configs[0].settings.epochs
    5
    """

    configs: Sequence[Config]
    join: Join = "average"

    def limited(self, epochs: int) -> Self:
        """The same with at most so many epochs."""
        configs = [c.replace(epochs=min(c.settings.epochs, epochs)) for c in self.configs]
        return dataclasses.replace(self, configs=configs)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowCell(Scores):
    """One row on one graph under one protocol; of an ensemble, the scores of the whole.

    Rows are trained together: the first that a run wrote took the time of all. The epochs of an
    ensemble are the sum over its members, its best epochs those of its first.

    Args:
        fingerprint: of the dataset.
        metric: of the scores.
        configs: as flat tables, one per member.
        weights: of the members of an ensemble, by split.
    """

    fingerprint: str
    metric: str
    configs: list[ConfigTable]
    weights: list[list[float]] | None = None


def train_rows(
    dataset: NodeDataset,
    rows: Mapping[str, Entry],
    splits: Sequence[Split],
    *,
    metric: str = "accuracy",
    device: str = "auto",
) -> dict[str, RowCell]:
    """Train all rows on all splits by one call; what two rows share is trained once.

    >>> from longnn.data import csbm, make_split
    >>> data = csbm(num_nodes=60, num_features=4)
    >>> row = Entry([Config(model="mlp").replace(epochs=2)])
    >>> train_rows(data, {"mlp": row}, [make_split(data, "stratified", 0)])["mlp"].epochs
    [2]
    """
    wanted = {_key(c): c for entry in rows.values() for c in entry.configs}
    fitted = fit_all(dataset, list(wanted.values()), splits, device=device)
    found = dict(zip(wanted, fitted, strict=True))
    return {
        key: _cell(dataset, entry, [found[_key(c)] for c in entry.configs], splits, metric)
        for key, entry in rows.items()
    }


def fit_all(
    dataset: NodeDataset, configs: Sequence[Config], splits: Sequence[Split], *, device: str
) -> list[list[Fitted]]:
    """Each configuration on each split, (configs, splits), by one call."""
    # Features of named datasets are ready to use, whatever a configuration says of scaling.
    configs = [as_trained(c) for c in configs]
    members = [c.replace(seed=c.seed + s.seed, scale="none") for c in configs for s in splits]
    fitted = fit(dataset, members, [*splits] * len(configs), device=device)
    return [fitted[i : i + len(splits)] for i in range(0, len(fitted), len(splits))]


def score_of(predicted: Tensor, dataset: NodeDataset, mask: Tensor, metric: str) -> float:
    """The metric over some nodes; zero where a training diverged."""
    if not bool(torch.isfinite(predicted[mask]).all()):
        return 0.0
    return round(score(predicted, dataset, mask)[metric], 6)


def join_weights(
    predicted: Tensor,  # (members, nodes, classes)
    dataset: NodeDataset,
    val: Tensor,  # (nodes,) bool
    join: Join,
) -> Tensor:
    """Weights (members,) with sum 1; a member that diverged has none."""
    if join == "votes":
        return ensemble_weights(predicted[:, val], dataset.data.y[val], dataset.task)
    sound = torch.isfinite(predicted).flatten(1).all(1).double()
    return sound / sound.sum().clamp_min(1)


def _key(config: Config) -> str:
    return repr(sorted(config.to_dict().items()))


def _cell(
    dataset: NodeDataset,
    entry: Entry,
    fitted: Sequence[Sequence[Fitted]],  # (members, splits)
    splits: Sequence[Split],
    metric: str,
) -> RowCell:
    weights = None
    predicted = [one.predicted for one in fitted[0]]
    if len(fitted) > 1:
        stacked = [torch.stack([runs[s].predicted for runs in fitted]) for s in range(len(splits))]
        pairs = list(zip(stacked, splits, strict=True))
        chosen = [join_weights(p, dataset, split.val, entry.join) for p, split in pairs]
        predicted = [combine(p, w) for p, w in zip(stacked, chosen, strict=True)]
        weights = [[round(float(v), 6) for v in w] for w in chosen]
    return RowCell(
        val=[score_of(p, dataset, s.val, metric) for p, s in zip(predicted, splits, strict=True)],
        test=[score_of(p, dataset, s.test, metric) for p, s in zip(predicted, splits, strict=True)],
        epochs=[sum(runs[s].result.epochs for runs in fitted) for s in range(len(splits))],
        best_epochs=[one.result.best_epoch for one in fitted[0]],
        fingerprint=dataset.fingerprint(),
        metric=metric,
        configs=[c.to_dict() for c in entry.configs],
        weights=weights,
    )

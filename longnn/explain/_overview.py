"""A model over its whole graph: from how far scores come, by which features, through which nodes.

Distances are counted over nodes that are explained one by one. Influence and features are sums over
all predictions, each by one pass: a filter is its own adjoint.
"""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import pyarrow
import torch
from torch import Tensor

from longnn.data import NodeDataset
from longnn.explain._forms import Form, Overall, join
from longnn.explain._nodes import Explained, frame, to_table
from longnn.explain._presentation import ring_name, signed
from longnn.explain._subject import Subject, distances
from longnn.records import Summary
from longnn.training import Trained

#: Nodes that are explained one by one: of an exact form, and by integrated gradients.
SAMPLE, INTEGRATED = 1000, 20
#: Points of integrated gradients: the drawn nodes leave more open than the integral does.
STEPS = 16
ALL = "all"
#: Distances that have a share of their own in a sentence.
NEAR = 4
AGREEMENT = "mean rank correlation, "


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Overview(Explained):
    """What a model's predictions come from; made by :func:`explain_model`.

    Args:
        explained: how many nodes the distances were counted over.
        tables: ``distances`` (output, distance, contribution per node, share of the absolute
            contributions of rings), ``features`` (output, feature, contribution per node, and its
            mean size over the explained nodes, whatever the sign),
            ``influence`` (node, sum of its contributions to all predictions) and ``stability``
            (measure, value; empty for a single model), as Arrow tables; of a run also
            ``importance`` (column, what the test score loses without it: see
            ``run.column_importance``).
    """

    explained: int
    tables: Mapping[str, pyarrow.Table]

    distances = frame("distances", "By output and distance.")
    features = frame("features", "By output and feature, the largest first.")
    influence = frame("influence", "By node, the largest first.")
    stability = frame("stability", "How alike the explanations of several repeats or members are.")
    importance = frame("importance", "By column of a run's table, that which counts most first.")

    def __repr__(self) -> str:
        return f"Overview(model={self.model!r}, method={self.method!r})"

    def arrow(self) -> Mapping[str, pyarrow.Table]:
        """All tables by name."""
        return self.tables

    def about(self) -> dict[str, Any]:
        """What is explained and how, as plain data."""
        return {**super().about(), "explained": self.explained}

    def lines(self, names: int = 5) -> list[str]:
        """The lines that matter, with so many names of features and of nodes in each."""
        rows = {name: table.to_pylist() for name, table in self.tables.items()}
        rings = [row for row in rows["distances"] if row["output"] == ALL]
        shares = [(ring_name(-1 if r["distance"] is None else r["distance"]), r) for r in rings]
        if len(shares) > NEAR + 1:
            rest = {"share": sum(row["share"] for _, row in shares[NEAR:])}
            shares = [*shares[:NEAR], ("farther away", rest)]
        features = [row for row in rows["features"] if row["output"] == ALL][:names]
        alike = [row for row in rows["stability"] if row["measure"].startswith(AGREEMENT)]
        parts = {
            "columns that count, by what the test score loses where they are shuffled": [
                f"{row['column']} {row['lost']:.3f}" for row in rows.get("importance", [])[:names]
            ],
            "by distance": [f"{name} {100 * row['share']:.0f} %" for name, row in shares],
            "largest features, mean size": [
                f"{row['feature']} {row['size']:.3f} (mean {signed(row['contribution'])})"
                for row in features
            ],
            "most influential nodes, on all scores": [
                f"{row['node']} {signed(row['influence'])}" for row in rows["influence"][:names]
            ],
            "agreement of models, rank correlation": [
                f"{row['measure'].removeprefix(AGREEMENT)} {row['value']:.2f}" for row in alike
            ],
        }
        explained = f"explained: {self.what}, of {self.explained} nodes"
        return [explained, *(f"{name}: {', '.join(each)}" for name, each in parts.items() if each)]

    def with_importance(self, columns: Mapping[str, Summary]) -> Self:
        """The same, with what the test score loses without each column, over some draws."""
        rows = [(name, lost.mean, lost.low, lost.high) for name, lost in columns.items()]
        table = to_table(["column", "lost", "low", "high"], rows)
        return dataclasses.replace(self, tables={**self.tables, "importance": table})


def explain_model(
    trained: Trained,
    dataset: NodeDataset,
    *,
    sample: int | None = None,
    repeat: int | None = None,
    features: bool = True,
    seed: int = 0,
    known: str = "auto",
    on_progress: Callable[[str, float], None] | None = None,
) -> Overview:
    """Explain all predictions of a model on a graph at once.

    Args:
        trained: the models.
        dataset: the graph.
        sample: nodes that distances are counted over, drawn at random; by default 1000, and 20
            where every node takes an integral.
        repeat: one repeat alone.
        features: split by feature, too.
        seed: of the draw.
        known: whose answers are known, see :meth:`~longnn.training.Trained.problem`.
        on_progress: called with the name of a step and the share of all that is done.

    >>> from longnn import LONGNNClassifier, data
    >>> graph = data.csbm(num_nodes=60, num_features=8)
    >>> model = LONGNNClassifier(preset="fast", epochs=5).fit(graph)
    >>> sorted(explain_model(model.trained_, graph).tables)
    ['distances', 'features', 'influence', 'stability']
    """
    if sample is not None and sample < 1:
        raise ValueError(f"Expected `sample` >= 1 (got {sample})")
    subject = Subject(trained, dataset, repeat, known=known, steps=STEPS)
    everyone = np.arange(dataset.num_nodes)
    outputs = subject.default_outputs(everyone)
    _, _, A = subject.question.ask(subject.scores, outputs)
    exact = all(form.method == "exact" for form in subject.forms)
    count = min(len(everyone), sample or (SAMPLE if exact else INTEGRATED))
    drawn = np.sort(np.random.default_rng(seed).choice(everyone, count, replace=False))
    done, steps = itertools.count(1), len(A) * (1 + len(subject.blocks(drawn)))

    def parts(name: str, part: Callable[[Form, Tensor], Any]) -> list[Any]:
        """Of every model, one after the other."""
        found = []
        for form, q in zip(subject.forms, A, strict=True):
            found.append(part(form, q))
            if on_progress is not None:
                on_progress(name, next(done) / steps)
        return found

    groups = _groups(subject, outputs) if features else {}
    masks = [who.double() for who in groups.values()]
    split = parts("all nodes", lambda form, q: form.overall(q, masks))
    rings, each = explain_drawn(subject, drawn, parts, features=features)
    what, method, notes = subject.describe()
    if count < len(everyone):
        notes.append(
            f"distances are counted over {count} nodes of {len(everyone)}, drawn at random"
        )
    influence = np.sum([total for total, _ in split], axis=0)
    order = np.argsort(-np.abs(influence), kind="stable")
    ids = pyarrow.array([subject.ids[int(v)] for v in order])
    return Overview(
        model=trained.config.model if not trained.members else "ensemble",
        what=what,
        method=method,
        exact=subject.exact,
        notes=notes,
        explained=count,
        tables={
            "distances": _distances(subject, rings.sum(0), outputs[drawn].numpy()),
            "features": _features(subject, groups, split, each, drawn),
            "influence": pyarrow.table({"node": ids, "influence": influence[order]}),
            "stability": _stability(_units(subject), rings, split),
        },
    )


def explain_drawn(
    subject: Subject, nodes: np.ndarray, parts: Callable[..., list[Any]], *, features: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Contributions of each model by distance, (models, nodes, distances); the last is beyond.

    And those of all models by feature, (nodes, features), or None.
    """
    blocks, split = [], []
    for block in subject.blocks(nodes):
        hops, places = distances(subject.adjacency, block, subject.hops), torch.from_numpy(block)
        found = parts(
            "nodes one by one",
            lambda form, q, at=places: form.explain(at.numpy(), q[at], features=features),
        )
        blocks.append(np.stack([by_ring(part.contributions, hops) for part in found]))
        split.append(join(found).features)
    most = max(rings.shape[2] for rings in blocks)
    rings = [
        np.insert(r, [r.shape[2] - 1] * (most - r.shape[2]), 0.0, axis=2) for r in blocks
    ]  # (models, nodes, distances)
    kept = [block for block in split if block is not None]
    by_feature = np.concatenate(kept) if len(kept) == len(split) else None
    return np.concatenate(rings, axis=1), by_feature


def by_ring(contributions: np.ndarray, hops: np.ndarray) -> np.ndarray:
    """Sums by distance of (nodes, sources), (nodes, distances); the last is beyond.

    >>> by_ring(np.array([[1.0, 2.0, 4.0]]), np.array([[1, 0, -1]]))
    array([[2., 1., 4.]])
    """
    nodes, rings = len(hops), int(hops.max()) + 2
    at = np.arange(nodes)[:, None] * rings + hops % rings  # -1 is the last
    return np.bincount(at.ravel(), contributions.ravel(), nodes * rings).reshape(nodes, rings)


def _distances(subject: Subject, rings: np.ndarray, chosen: np.ndarray) -> pyarrow.Table:
    """By output: the mean contribution of each ring, and its share of the absolute ones."""
    rows = []
    groups = {ALL: np.ones(len(chosen), dtype=bool)}
    if len(subject.outputs) > 1:
        groups |= {name: chosen == k for k, name in enumerate(subject.outputs)}
    last = rings.shape[1] - 1
    for name, who in groups.items():
        if not who.any():
            continue
        mean, size = rings[who].mean(0), np.abs(rings[who]).sum(0)
        shares = size / max(size.sum(), np.finfo(float).tiny)
        for d in range(rings.shape[1]):
            if d < last or size[d] > 0:
                at = None if d == last else d
                rows.append((name, int(who.sum()), at, float(mean[d]), float(shares[d])))
    return to_table(["output", "nodes", "distance", "contribution", "share"], rows)


def _groups(subject: Subject, outputs: Tensor) -> dict[str, Tensor]:
    """Whose features are looked at: everyone's, and those of nodes with the same output."""
    groups = {ALL: torch.ones_like(outputs, dtype=torch.bool)}
    if subject.exact and len(subject.outputs) > 1:  # elsewhere each would be an integral of its own
        groups |= {name: outputs == k for k, name in enumerate(subject.outputs)}
    return groups


def _features(
    subject: Subject,
    groups: Mapping[str, Tensor],
    split: Sequence[Overall],
    each: np.ndarray | None,  # (drawn, features)
    drawn: np.ndarray,
) -> pyarrow.Table:
    """By output: the mean contribution of each feature to all nodes that are predicted so.

    Contributions of both signs cancel in it, so the size is their mean over the drawn nodes without
    the sign; the largest come first.
    """
    rows: list[tuple[str, str, float, float]] = []
    names = subject.feature_names
    sums = np.sum([by_feature for _, by_feature in split], axis=0)  # (groups, features)
    for (name, who), total in zip(groups.items(), sums, strict=True):
        near = who[torch.from_numpy(drawn)].numpy()
        if each is None or not near.any():
            continue
        mean, size = total / int(who.sum()), np.abs(each[near]).mean(0)
        order = np.argsort(-size, kind="stable")
        rows += [(name, names[f], float(mean[f]), float(size[f])) for f in order if size[f]]
    return to_table(["output", "feature", "contribution", "size"], rows)


def _units(subject: Subject) -> list[list[int]]:
    """What is compared: repeats, each with the numbers of its models, or else members."""
    counts = [len(subject.question.singles(model)) for model in subject.question.repeats]
    if len(counts) == 1:
        return [[k] for k in range(counts[0])]
    ends = np.cumsum(counts)
    return [list(range(end - count, end)) for count, end in zip(counts, ends, strict=True)]


def _stability(
    units: list[list[int]], rings: np.ndarray, split: Sequence[Overall]
) -> pyarrow.Table:
    """How alike units are: spread of the shares of rings, rank correlation of the rest."""
    rows: list[tuple[str, float]] = []
    if len(units) > 1:
        rows.append(("models or repeats compared", float(len(units))))
        size = np.stack([np.abs(rings[unit].sum(0)).sum(0) for unit in units])
        shares = size / np.maximum(size.sum(1, keepdims=True), np.finfo(float).tiny)
        spread = float(shares.std(0, ddof=1).max())
        rows.append(("largest standard deviation of the share of a distance", spread))
        pairs = {"influence of nodes": [total for total, _ in split]}
        if all(len(by_feature) for _, by_feature in split):
            pairs["contributions of features"] = [by_feature[0] for _, by_feature in split]
        for name, vectors in pairs.items():
            each = [np.sum([vectors[k] for k in unit], axis=0) for unit in units]
            rows.append((f"{AGREEMENT}{name}", rank_agreement(each)))
    return to_table(["measure", "value"], rows)


def rank_agreement(vectors: Sequence[np.ndarray]) -> float:
    """The mean rank correlation over all pairs; 0 where one of a pair is constant.

    >>> rank_agreement([np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 40.0])])
    1.0
    """
    from scipy.stats import rankdata  # slow to load, and for this alone

    correlations = []
    for a, b in itertools.combinations([rankdata(v) for v in vectors], 2):
        moving = a.std() > 0 and b.std() > 0
        correlations.append(float(np.corrcoef(a, b)[0, 1]) if moving else 0.0)
    return round(float(np.mean(correlations)), 12)

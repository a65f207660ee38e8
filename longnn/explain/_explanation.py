"""Explanations of single nodes: parts that add up, as tables, figures and pages."""

import dataclasses
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow

from longnn.explain import _figure, _files, _page, _words
from longnn.explain._part import WAYS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Sources that a figure draws one by one.
SHOWN = 40


@dataclasses.dataclass(frozen=True, eq=False)
class NodeExplanation:
    """Why one node has its score: ``constant + contribution.sum() + gap == score``.

    Args:
        node: its id, as the user has it.
        predicted: the predicted class, label or value, as text.
        probability: of the output that is explained; None for values.
        output: name of that output: a class, a label or a target.
        score: the number that is explained.
        constant: what no source gives: biases, offsets, the score without features.
        sources: ids of the nodes that contribute, the node itself too.
        distance: (sources,) hops; -1 where no path leads there.
        contribution: (sources,).
        weight: (sources,) of the filter, where one filter decides, or None.
        says: (sources,) what each source says of itself, or None.
        base: what nodes without features would give; ``constant + base + features.sum()`` is the
            score again.
        features: (features,), or None.
        chebyshev: (degree + 1,) by term of the Chebyshev series, or None.
        terms: (terms,) by term of the filter's own basis, or None.
        ways: (ways,) along arcs, against them, over common targets and sources; None where the
            graph has no arcs, or the model no exact form.
        without: the class that would be predicted without the shift towards the class frequencies
            of the validation nodes, if it is another; else empty.
        shift: what that shift adds to the log-odds of the predicted class against this one.
    """

    node: Any
    predicted: str
    probability: float | None
    output: str
    score: float
    constant: float
    sources: Sequence[Any]
    distance: np.ndarray
    contribution: np.ndarray
    weight: np.ndarray | None
    says: np.ndarray | None
    base: float
    features: np.ndarray | None
    chebyshev: np.ndarray | None
    terms: np.ndarray | None
    ways: np.ndarray | None = None
    without: str = ""
    shift: float = 0.0

    @property
    def gap(self) -> float:
        """What the contributions leave unexplained: rounding, where the method is exact."""
        return self.score - self.constant - float(self.contribution.sum())

    @property
    def feature_gap(self) -> float | None:
        """The same for the split by feature."""
        if self.features is None:
            return None
        return self.score - self.constant - self.base - float(self.features.sum())

    @property
    def rings(self) -> dict[int, tuple[int, float]]:
        """By distance: how many sources, and the sum of their contributions; -1 comes last."""
        found = sorted(set(self.distance.tolist()), key=lambda d: (d < 0, d))
        at = {d: self.distance == d for d in found}
        return {d: (int(m.sum()), float(self.contribution[m].sum())) for d, m in at.items()}

    @property
    def order(self) -> np.ndarray:
        """The sources, the largest contribution first, whatever its sign."""
        return np.argsort(-np.abs(self.contribution), kind="stable")


@dataclasses.dataclass(frozen=True, eq=False)
class Explanation:
    """Why some nodes are predicted so; made by :func:`explain_nodes` or ``estimator.explain``.

    ``explanation[0]`` is that of the first node. Tables are data frames where pandas is installed,
    and Arrow tables else.

    Args:
        nodes: one :class:`NodeExplanation` each.
        model: its name.
        what: what the score is, in words.
        method: how it was split, in words.
        exact: whether all parts add up but for rounding.
        notes: what a reader should know.
        feature_names: one per feature.
        basis: name of the filter's basis, or empty.
    """

    nodes: Sequence[NodeExplanation]
    model: str
    what: str
    method: str
    exact: bool
    notes: Sequence[str]
    feature_names: Sequence[str]
    basis: str = ""

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, place: int) -> NodeExplanation:
        return self.nodes[place]

    def __repr__(self) -> str:
        return f"Explanation({len(self)} nodes, model={self.model!r}, method={self.method!r})"

    def _repeat(self, counts: Sequence[int]) -> list[Any]:
        """The id of each explained node, as often as it has rows."""
        return [e.node for e, n in zip(self.nodes, counts, strict=True) for _ in range(n)]

    def arrow(self) -> dict[str, pyarrow.Table]:
        """All tables by name, as Arrow has them."""
        return {
            "contributions": self._contributions(),
            "rings": self._rings(),
            "features": self._features(),
            "degrees": self._degrees(),
            "ways": self._ways(),
            "summary": self._summary(),
        }

    def _contributions(self) -> pyarrow.Table:
        each = [e.order for e in self.nodes]

        def column(name: str) -> np.ndarray:
            nothing = lambda e: np.full(len(e.sources), np.nan)  # noqa: E731
            values = [getattr(e, name) for e in self.nodes]
            filled = [
                nothing(e) if v is None else v for e, v in zip(self.nodes, values, strict=True)
            ]
            return np.concatenate([v[o] for v, o in zip(filled, each, strict=True)])

        sources = [e.sources[k] for e, order in zip(self.nodes, each, strict=True) for k in order]
        distance = column("distance").astype(np.int64)
        return pyarrow.table(
            {
                "node": pyarrow.array(self._repeat([len(o) for o in each])),
                "source": pyarrow.array(sources),
                "distance": pyarrow.array(distance, mask=distance < 0),
                "weight": pyarrow.array(column("weight"), from_pandas=True),
                "says": pyarrow.array(column("says"), from_pandas=True),
                "contribution": pyarrow.array(column("contribution")),
            }
        )

    def _rings(self) -> pyarrow.Table:
        rows = [
            (e.node, d if d >= 0 else None, count, total)
            for e in self.nodes
            for d, (count, total) in e.rings.items()
        ]
        return _table(["node", "distance", "sources", "contribution"], rows)

    def _features(self) -> pyarrow.Table:
        rows = []
        for e in self.nodes:
            if e.features is None:
                continue
            used = np.flatnonzero(e.features)
            used = used[np.argsort(-np.abs(e.features[used]), kind="stable")]
            rows += [(e.node, self.feature_names[int(f)], float(e.features[f])) for f in used]
        return _table(["node", "feature", "contribution"], rows)

    def _degrees(self) -> pyarrow.Table:
        rows = []
        for e in self.nodes:
            for basis, values in (("chebyshev", e.chebyshev), (self.basis, e.terms)):
                if values is not None:
                    rows += [(e.node, basis, k, float(v)) for k, v in enumerate(values)]
        return _table(["node", "basis", "term", "contribution"], rows)

    def _ways(self) -> pyarrow.Table:
        rows = [
            (e.node, way, float(v))
            for e in self.nodes
            if e.ways is not None
            for way, v in zip(WAYS, e.ways, strict=True)
        ]
        return _table(["node", "way", "contribution"], rows)

    def _summary(self) -> pyarrow.Table:
        columns = ["node", "predicted", "output", "probability", "score", "constant"]
        columns += ["contributions", "gap", "base", "features", "feature_gap"]
        rows = [
            (
                *(e.node, e.predicted, e.output, e.probability, e.score, e.constant),
                *(float(e.contribution.sum()), e.gap, e.base),
                None if e.features is None else float(e.features.sum()),
                e.feature_gap,
            )
            for e in self.nodes
        ]
        return _table(columns, rows)

    @property
    def contributions(self) -> Any:
        """One row per explained node and source, the largest first: distance, weight, says."""
        return to_frame(self._contributions())

    @property
    def rings(self) -> Any:
        """One row per explained node and distance."""
        return to_frame(self._rings())

    @property
    def features(self) -> Any:
        """One row per explained node and feature that counts; empty where there is no split."""
        return to_frame(self._features())

    @property
    def degrees(self) -> Any:
        """One row per explained node and term of the filter, in Chebyshev's and its own basis."""
        return to_frame(self._degrees())

    @property
    def ways(self) -> Any:
        """One row per explained node and way of the arcs to it; empty where there are none."""
        return to_frame(self._ways())

    @property
    def summary(self) -> Any:
        """One row per explained node: its score, and what the parts add up to."""
        return to_frame(self._summary())

    def why(self, place: int = 0) -> str:
        """The explanation of one node in a few sentences."""
        return " ".join(_words.why(self, self.nodes[place]))

    def plot(self, place: int = 0) -> "Figure":
        """Draw the neighbourhood of one node: rings by distance, sources by contribution."""
        return _figure.draw_neighbourhood(self.nodes[place], limit=SHOWN)

    def write_page(self, path: str | Path) -> Path:
        """Write everything as one HTML page that needs no other file."""
        return _page.write_page(self, Path(path))

    def save(self, path: str | Path) -> list[Path]:
        """Write the tables: ``.json`` holds all; ``.csv`` and ``.parquet`` get one file each.

        Returns:
            the files; the first is the one named, with the contributions.

        Raises:
            ValueError: for another ending.
        """
        return _files.save_tables(self.arrow(), self.about(), Path(path))

    def about(self) -> dict[str, Any]:
        """What is explained and how, as plain data."""
        return {
            "model": self.model,
            "what": self.what,
            "method": self.method,
            "exact": self.exact,
            "notes": list(self.notes),
        }


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> pyarrow.Table:
    arrays: Mapping[str, Any] = {
        name: pyarrow.array([row[k] for row in rows]) for k, name in enumerate(columns)
    }
    return pyarrow.table(arrays)


def to_frame(table: pyarrow.Table) -> Any:
    """A data frame of pandas, where it is installed; else the Arrow table itself.

    >>> len(to_frame(pyarrow.table({"x": [1, 2]})))
    2
    """
    return table.to_pandas() if importlib.util.find_spec("pandas") else table

"""Explanations of single nodes: ask every model, add up, sort by source; parts as tables."""

import dataclasses
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow
import torch

from longnn._base.files import write_json, writing
from longnn._base.tables import write_table
from longnn.data import NodeDataset
from longnn.explain import _presentation
from longnn.explain._exact import ExactForm
from longnn.explain._forms import WAYS, join
from longnn.explain._subject import FAR, Subject, distances
from longnn.training import Trained

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Sources that a figure draws one by one.
SHOWN = 40
ENDINGS = (".csv", ".parquet", ".json")


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Shares:
    """What nodes contribute to a number.

    Args:
        sources: ids of the nodes that contribute.
        distance: (sources,) hops; -1 where no path leads there.
        contribution: (sources,).
        weight: (sources,) of the filter, where one filter decides, or None.
        says: (sources,) what each source says of itself, or None.
    """

    sources: Sequence[Any]
    distance: np.ndarray
    contribution: np.ndarray
    weight: np.ndarray | None = None
    says: np.ndarray | None = None

    @property
    def rings(self) -> dict[int, tuple[int, float]]:
        """By distance: how many sources, and the sum of their contributions; -1 comes last."""
        distances = sorted(set(self.distance.tolist()), key=lambda d: (d < 0, d))
        at = {d: self.distance == d for d in distances}
        return {d: (int(m.sum()), float(self.contribution[m].sum())) for d, m in at.items()}

    @property
    def order(self) -> np.ndarray:
        """The sources, the largest contribution first, whatever its sign."""
        return np.argsort(-np.abs(self.contribution), kind="stable")


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class NodeExplanation(Shares):
    """Why one node has its score: ``constant + contribution.sum() + gap == score``. The node itself
    is among the sources.

    Args:
        node: its id, as the user has it.
        predicted: the predicted class, label or value, as text.
        probability: of the output that is explained; None for values.
        output: name of that output: a class, a label or a target.
        score: the number that is explained.
        constant: what no source gives: biases, offsets, the score without features.
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
        change: what known answers add: to a value, or to the logarithm of a probability before all
            are made to add up to 1.
        known: what each of them adds; None where none are used.
    """

    node: Any
    predicted: str
    probability: float | None
    output: str
    score: float
    constant: float
    base: float
    features: np.ndarray | None
    chebyshev: np.ndarray | None
    terms: np.ndarray | None
    ways: np.ndarray | None = None
    without: str = ""
    shift: float = 0.0
    change: float = 0.0
    known: Shares | None = None

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


def frame(name: str, about: str) -> Any:
    """A property: a table as a data frame of pandas, where it is installed, else an Arrow table."""
    return property(lambda self: to_frame(self.arrow()[name]), doc=about)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Explained:
    """What is explained and how, with its tables.

    Args:
        model: its name.
        what: what the score is, in words.
        method: how it was split, in words.
        exact: whether all parts add up but for rounding.
        notes: what a reader should know.
    """

    model: str
    what: str
    method: str
    exact: bool
    notes: Sequence[str]

    def arrow(self) -> Mapping[str, pyarrow.Table]:
        """All tables by name, as Arrow has them."""
        raise NotImplementedError

    def about(self) -> dict[str, Any]:
        """What is explained and how, as plain data."""
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(Explained)}
        return {**plain, "notes": list(self.notes)}

    def save(self, path: str | Path) -> list[Path]:
        """Write the tables: ``.json`` holds all; ``.csv`` and ``.parquet`` get one file each.

        Returns:
            the files; the first is the one named.

        Raises:
            ValueError: for another ending.
        """
        return save_tables(self.arrow(), self.about(), Path(path))


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Explanation(Explained):
    """Why some nodes are predicted so; made by :func:`explain_nodes` or ``estimator.explain``.

    ``explanation[0]`` is that of the first node. Tables are data frames where pandas is installed,
    and Arrow tables else.

    Args:
        nodes: one :class:`NodeExplanation` each.
        feature_names: one per feature.
        basis: name of the filter's basis, or empty.
    """

    nodes: Sequence[NodeExplanation]
    feature_names: Sequence[str]
    basis: str = ""

    contributions = frame(
        "contributions", "One row per explained node and source, the largest first."
    )
    rings = frame("rings", "One row per explained node and distance.")
    features = frame("features", "One row per explained node and feature that counts.")
    degrees = frame(
        "degrees", "One row per explained node and term, in Chebyshev's and the filter's own basis."
    )
    ways = frame("ways", "One row per explained node and way of the arcs to it.")
    known = frame("known", "One row per explained node and known answer, the largest first.")
    summary = frame("summary", "One row per explained node: what the parts add up to.")

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, place: int) -> NodeExplanation:
        return self.nodes[place]

    def __repr__(self) -> str:
        return f"Explanation({len(self)} nodes, model={self.model!r}, method={self.method!r})"

    def _repr_html_(self) -> str:
        return _presentation.short_page(self)

    def arrow(self) -> dict[str, pyarrow.Table]:
        """All tables by name, as Arrow has them."""
        nodes = self.nodes
        rings = [
            (e.node, d if d >= 0 else None, count, total)
            for e in nodes
            for d, (count, total) in e.rings.items()
        ]
        features = [
            (e.node, self.feature_names[int(f)], float(e.features[f]))
            for e in nodes
            if e.features is not None
            for f in np.argsort(-np.abs(e.features), kind="stable")
            if e.features[f]
        ]
        degrees = [
            (e.node, basis, k, float(v))
            for e in nodes
            for basis, values in (("chebyshev", e.chebyshev), (self.basis, e.terms))
            if values is not None
            for k, v in enumerate(values)
        ]
        ways = [
            (e.node, way, float(v))
            for e in nodes
            if e.ways is not None
            for way, v in zip(WAYS, e.ways, strict=True)
        ]
        summary = [
            (
                *(e.node, e.predicted, e.output, e.probability, e.score, e.constant),
                *(float(e.contribution.sum()), e.gap, e.base),
                None if e.features is None else float(e.features.sum()),
                *(e.feature_gap, e.change),
            )
            for e in nodes
        ]
        scores = ["node", "predicted", "output", "probability", "score", "constant"]
        scores += ["contributions", "gap", "base", "features", "feature_gap", "change"]
        told = [
            (e.node, e.known.sources[k], None if d < 0 else int(d), float(value))
            for e in nodes
            if e.known is not None
            for k in e.known.order
            for d, value in [(e.known.distance[k], e.known.contribution[k])]
        ]
        return {
            "contributions": self._contributions(),
            "rings": to_table(["node", "distance", "sources", "contribution"], rings),
            "features": to_table(["node", "feature", "contribution"], features),
            "degrees": to_table(["node", "basis", "term", "contribution"], degrees),
            "ways": to_table(["node", "way", "contribution"], ways),
            "known": to_table(["node", "source", "distance", "contribution"], told),
            "summary": to_table(scores, summary),
        }

    def _contributions(self) -> pyarrow.Table:
        """By columns: there may be millions of rows."""
        orders = [e.order for e in self.nodes]

        def column(name: str) -> np.ndarray:
            values = ((e, getattr(e, name)) for e in self.nodes)
            filled = [np.full(len(e.sources), np.nan) if v is None else v for e, v in values]
            return np.concatenate([v[order] for v, order in zip(filled, orders, strict=True)])

        sources = [e.sources[k] for e, order in zip(self.nodes, orders, strict=True) for k in order]
        distance = column("distance").astype(np.int64)
        return pyarrow.table(
            {
                "node": pyarrow.array([e.node for e in self.nodes for _ in e.sources]),
                "source": pyarrow.array(sources),
                "distance": pyarrow.array(distance, mask=distance < 0),
                "weight": pyarrow.array(column("weight"), from_pandas=True),
                "says": pyarrow.array(column("says"), from_pandas=True),
                "contribution": pyarrow.array(column("contribution")),
            }
        )

    def why(self, place: int = 0) -> str:
        """The explanation of one node in a few sentences."""
        return " ".join(_presentation.why(self, self.nodes[place]))

    def plot(self, place: int = 0) -> "Figure":
        """Draw the neighbourhood of one node: rings by distance, sources by contribution."""
        return _presentation.draw_neighbourhood(self.nodes[place], limit=SHOWN)

    def write_page(self, path: str | Path) -> Path:
        """Write everything as one HTML page that needs no other file."""
        return _presentation.write_page(self, Path(path))


def to_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> pyarrow.Table:
    """An Arrow table of rows.

    >>> to_table(["node", "value"], [("ann", 1.5)]).to_pylist()
    [{'node': 'ann', 'value': 1.5}]
    """
    return pyarrow.table({name: [row[k] for row in rows] for k, name in enumerate(columns)})


def to_frame(table: pyarrow.Table) -> Any:
    """A data frame of pandas, where it is installed, else an Arrow table; without empty columns.

    >>> to_frame(pyarrow.table({"x": [1, 2], "says": [None, None]})).shape
    (2, 1)
    """
    names, most = table.column_names, max(len(table), 1)
    table = table.select([name for name in names if table[name].null_count < most])
    return table.to_pandas() if importlib.util.find_spec("pandas") else table


def check_path(path: Path) -> Path:
    """The path, if a table can be written there.

    Raises:
        ValueError: for another ending, or a folder that does not exist.

    >>> check_path(Path("why.json")).name
    'why.json'
    """
    if path.suffix not in ENDINGS:
        raise ValueError(f"Expected a file that ends in {', '.join(ENDINGS)} (got {path})")
    if not path.parent.is_dir():
        raise ValueError(f"Expected a file in an existing folder (got {path.parent})")
    return path


def save_tables(
    tables: Mapping[str, pyarrow.Table], about: Mapping[str, Any], path: Path
) -> list[Path]:
    """Write tables: the first to the file named, the others beside it; JSON holds all in one.

    In CSV files, texts that a spreadsheet would run as a formula get an apostrophe.
    """
    check_path(path)
    if path.suffix == ".json":
        with writing(path):
            write_json(path, {**about, **{name: t.to_pylist() for name, t in tables.items()}})
        return [path]
    written: list[Path] = []
    for name, table in tables.items():
        target = path if not written else path.with_name(f"{path.stem}-{name}{path.suffix}")
        if written and not len(table):
            continue
        write_table(table, target)
        written.append(target)
    return written


def explain_nodes(
    trained: Trained,
    dataset: NodeDataset,
    places: Sequence[int] | np.ndarray,
    *,
    output: Any = None,
    against: Any = None,
    repeat: int | None = None,
    features: bool = True,
    known: str = "auto",
) -> Explanation:
    r"""Split the scores of nodes into contributions of nodes, distances, terms and features.

    In LON-GNN's own form :math:`score[i, c] = \sum_v g_c(P)[i, v]\,t(x_v)[c]` the split is exact;
    so it is wherever all that follows the filter is linear. Other models are split by integrated
    gradients. ``Explanation.method`` says which was used, and the gap is in the summary.

    Args:
        trained: the models.
        dataset: the graph: the one of training, or another with the same features.
        places: positions of the nodes to explain.
        output: name of the class, label or target; by default the predicted class, the most
            probable label, the first target.
        against: another one, whose score is subtracted: why the first rather than the second.
        repeat: explain one repeat; by default the average over all.
        features: split by feature, too.
        known: whose answers are known, see :meth:`~longnn.training.Trained.problem`.

    Raises:
        ValueError: for nodes or names that are not there.

    >>> from longnn import LONGNNClassifier, data
    >>> graph = data.csbm(num_nodes=60, num_features=8)
    >>> model = LONGNNClassifier(preset="fast", epochs=5).fit(graph)
    >>> found = explain_nodes(model.trained_, graph, [3])
    >>> found.method, abs(found[0].gap) < 1e-9
    ('exact', True)
    """
    nodes = np.asarray(places, dtype=np.int64)
    if nodes.ndim != 1 or not len(nodes):
        raise ValueError(f"Expected at least one node to explain (got shape {nodes.shape})")
    outside = nodes[(nodes < 0) | (nodes >= dataset.num_nodes)]
    if len(outside):
        raise ValueError(f"Expected nodes in 0..{dataset.num_nodes - 1} (got {outside[0]})")
    subject = Subject(trained, dataset, repeat, nodes=nodes, known=known)
    nodes = np.searchsorted(subject.inside, nodes)
    each = [
        e
        for block in subject.blocks(nodes)
        for e in _explain(subject, block, output, against, features)
    ]
    what, method, notes = subject.describe()
    rather = "" if against is None else f", minus that of {against}"
    form, basis = subject.forms[0], ""
    if len(subject.forms) == 1 and isinstance(form, ExactForm) and form.filter is not None:
        basis = form.filter.basis.name
    return Explanation(
        nodes=each,
        model=trained.config.model if not trained.members else "ensemble",
        what=what + rather,
        method=method,
        exact=subject.exact,
        notes=notes,
        feature_names=subject.feature_names,
        basis=basis,
    )


def _explain(
    subject: Subject, nodes: np.ndarray, output: Any, against: Any, features: bool
) -> Iterator[NodeExplanation]:
    outputs = subject.default_outputs(nodes)
    if output is not None:
        outputs = torch.full((len(nodes),), subject.number_of(output))
    other = None if against is None else subject.number_of(against)
    places = torch.from_numpy(nodes)
    z = [scores[places] for scores in subject.scores]
    number, at_zero, A = subject.question.ask(z, outputs, other)
    parts = [
        form.explain(nodes, q, features=features) for form, q in zip(subject.forms, A, strict=True)
    ]
    total = join(parts)
    # Known answers are heard of farther away than features.
    hops = distances(subject.adjacency, nodes, subject.hops if subject.known is None else None)
    names, probable = subject.outputs, subject.trained.task != "regression"
    given = torch.empty(0, len(nodes))
    if subject.known is not None:
        given = subject.known.shares(places, subject.kept)
    for k, node in enumerate(nodes):
        used = np.union1d(np.flatnonzero(total.contributions[k]), node)  # itself at any rate
        at = int(outputs[k])

        def pick(values: np.ndarray | None, k: int = k, used: np.ndarray = used) -> Any:
            return None if values is None else values[k, used]

        yield NodeExplanation(
            node=subject.ids[int(node)],
            predicted=_predicted(subject, int(node)),
            probability=float(subject.predicted[node, at]) if probable else None,
            output=names[at],
            score=float(number[k]),
            constant=float(at_zero[k]) + float(total.constant[k]),
            sources=[subject.ids[int(v)] for v in used],
            distance=hops[k, used],
            contribution=total.contributions[k, used],
            weight=pick(total.weight),
            says=pick(total.says),
            base=float(total.base[k]),
            features=None if total.features is None else total.features[k],
            chebyshev=None if total.chebyshev is None else total.chebyshev[k],
            terms=None if total.terms is None else total.terms[k],
            ways=None if total.ways is None else total.ways[k],
            **_shifted(subject, int(node)),
            **_known(subject, int(node), at, other, given[:, k], hops[k]),
        )


def _known(
    subject: Subject,
    node: int,
    output: int,
    against: int | None,
    given: torch.Tensor,  # (nodes of the whole graph, outputs), where any are used
    hops: np.ndarray,
) -> dict[str, Any]:
    """What known answers add to the score of a node, and which does how much of it."""
    if subject.known is None:
        return {}

    def pick(values: torch.Tensor) -> torch.Tensor:
        return values[..., output] - (0 if against is None else values[..., against])

    changes = torch.stack([subject.known.changes[k][node] for k in subject.kept])
    shares = pick(given).double().numpy()
    used = np.flatnonzero(shares)
    distance = np.full(len(shares), FAR)
    distance[subject.inside] = hops
    ids = [subject.everyone[int(v)] for v in used]
    known = Shares(sources=ids, distance=distance[used], contribution=shares[used])
    return {"change": float(pick(changes).double().mean()), "known": known}


def _shifted(subject: Subject, node: int) -> dict[str, Any]:
    """What the shift of probabilities changes, if it makes the predicted class another."""
    shift = subject.shift
    if shift is None or shift.without[node] == shift.chosen[node]:
        return {}
    return {"without": subject.outputs[int(shift.without[node])], "shift": shift.log_odds(node)}


def _predicted(subject: Subject, node: int) -> str:
    """What is predicted of a node, in words."""
    task, names = subject.trained.task, subject.outputs
    if task == "classification":
        return names[int(subject.chosen[node])]
    if task == "multilabel":
        said = [n for n, yes in zip(names, subject.chosen[node].tolist(), strict=True) if yes]
        return ", ".join(said) or "none"
    return ", ".join(f"{v:.4g}" for v in subject.predicted[node].reshape(-1).tolist())

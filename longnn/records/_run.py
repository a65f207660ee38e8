"""The schema of a run: what was asked and what was found, written and read by the same classes.

A run folder holds ``run.json`` (:class:`Request`, written first), ``record.json``, ``history.csv``
and ``filter_path.npz`` (:class:`RunRecord`, written last). On reading, ``record.json`` must be
there and whole; the other two are optional: one that is absent or damaged is left out, and
:attr:`RunRecord.missing` says so in a sentence. Knows nothing of training, figures or pages.
"""

import csv
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from longnn._base.files import write_json, writing
from longnn._base.node import Node
from longnn.records._history import DAMAGED, FilterPath, History
from longnn.records._members import MemberRecord
from longnn.records._summary import Summary
from longnn.records._trust import BaselineRecord, Calibration, PrecisionRecall, Residuals

RUN, RECORD, HISTORY, FILTER_PATH = "run.json", "record.json", "history.csv", "filter_path.npz"
#: The sets of a split, in their order.
SETS = ("train", "val", "test")

#: Set -> metric -> score.
Scores = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Request:
    """What was asked of a run; ``source`` is None for a graph that was in memory.

    ``config`` is None in requests of earlier versions, whose folders have it in a file of its own.
    """

    version: str
    created: str
    command: str
    source: Mapping[str, Any] | None
    fingerprint: str
    config: Mapping[str, Any] | None = None

    def write(self, folder: Path) -> None:
        """Write ``run.json``: this makes the folder that of the run.

        Raises:
            FileExistsError: it is that of another run.
        """
        asked = dataclasses.asdict(self)
        write_json(folder / RUN, {"longnn": asked.pop("version"), **asked}, new=True)

    @classmethod
    def read(cls, folder: Path) -> "Request":
        """Read ``run.json``.

        Raises:
            ValueError: there is none, or it is damaged; names the file and the place.
        """
        if not (folder / RUN).is_file():
            raise ValueError(f"Expected {RUN} in {folder} (there is none)")
        node = Node.load(folder / RUN)
        source, config = (
            node[key].mapping() if node[key].given else None for key in ("source", "config")
        )
        return cls(
            version=node["longnn"].text(),
            created=node["created"].text(),
            command=node["command"].text(),
            source=source,
            fingerprint=node["fingerprint"].text(),
            config=config,
        )


@dataclass(frozen=True)
class SplitRecord:
    """How many nodes a repeat trained on, selected on and was tested on."""

    protocol: str
    seed: int
    train: int
    val: int
    test: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class FilterRecord:
    """One filter after training.

    ``learned`` and ``start`` are the parameters of its basis (a, b), empty for a fixed basis.
    """

    basis: str
    degree: int
    learned: dict[str, float]
    start: dict[str, float]
    eigenvalues: np.ndarray  # (points,) of the normalised Laplacian
    response: np.ndarray  # (channels, points)
    norm: np.ndarray  # (channels,)
    words: str
    edge_type: str = ""  # the type of edges it is for, if they have types

    @property
    def channels(self) -> int:
        """How many filters there are side by side."""
        return len(self.response)


@dataclass(frozen=True, eq=False)
class RepeatRecord:
    """One training of the repeats."""

    seed: int
    split: SplitRecord
    epochs: int
    best_epoch: int
    stopped: str
    scores: Scores
    filters: tuple[FilterRecord, ...]
    confusion: np.ndarray | None = None  # (classes, classes): rows true, columns predicted
    counts: np.ndarray | None = None  # (labels, 3): nodes with the label, predicted, both
    threshold: float | None = None  # probability from which on the rarer class is predicted
    calibration: Calibration | None = None
    curve: PrecisionRecall | None = None
    residuals: Residuals | None = None
    members: tuple[MemberRecord, ...] = ()  # of an ensemble
    phase: float | None = None  # of arcs, where it was learned; in an ensemble the leader's


#: A density over [0, 2] is larger only where a file is damaged: figures cannot draw that.
LARGEST_DENSITY = 1e9


@dataclass(frozen=True, eq=False)
class GraphRecord:
    """The data a run was made on; ``density`` is (eigenvalues, density).

    ``outliers`` are the eigenvalues outside the bulk; None where they were not computed.
    """

    name: str
    task: str
    fingerprint: str
    classes: tuple[str, ...]
    notes: tuple[str, ...]
    card: dict[str, Any]
    density: tuple[np.ndarray, np.ndarray] | None
    source: Mapping[str, Any] | None = None
    scaling: str = ""
    targets: tuple[str, ...] = ()  # names of several numbers to predict
    columns: tuple[tuple[str, str, str], ...] = ()  # of the node table: name, kind, what was done
    outliers: np.ndarray | None = None  # (count,) increasing


@dataclass(frozen=True, eq=False)
class RunRecord:
    """A finished run: every number of it.

    ``missing`` says in sentences what its folder lacks. ``portfolio`` has the configurations of the
    members of an ensemble by name; then ``config`` tells only what they share.
    """

    version: str
    created: str
    command: str
    config: dict[str, Any]
    environment: dict[str, Any]
    data: GraphRecord
    metric: str
    repeats: tuple[RepeatRecord, ...]
    summary: Mapping[str, Mapping[str, Summary]]  # set -> metric -> summary
    history: History | None
    path: FilterPath | None
    seconds: Mapping[str, float]  # where the time went: step -> seconds, training among them
    folder: Path | None = None
    missing: tuple[str, ...] = ()
    label: str = ""  # in place of the folder's name, where two runs share it
    baselines: tuple[BaselineRecord, ...] = ()
    portfolio: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)

    @property
    def members(self) -> tuple[MemberRecord, ...]:
        """The members of the first repeat; empty where it is a single model."""
        return self.repeats[0].members

    @property
    def name(self) -> str:
        """A short name for titles."""
        if self.label or self.folder is None:
            return self.label or f"{self.data.name}-{self.model}"
        return self.folder.name

    @property
    def model(self) -> str:
        """The name of the model."""
        return str(self.config["model"])

    @property
    def filters(self) -> tuple[FilterRecord, ...]:
        """The filters of the first repeat; empty for a model without."""
        return self.repeats[0].filters

    def score(self, subset: str = "test", metric: str | None = None) -> Summary | None:
        """The summary of a score, or None where there is none."""
        return self.summary.get(subset, {}).get(metric or self.metric)

    def to_dict(self) -> dict[str, Any]:
        """``record.json`` as plain data; no NaN in it."""
        return {
            "longnn": self.version,
            "created": self.created,
            "command": self.command,
            "config": self.config,
            "environment": self.environment,
            "data": _graph_dict(self.data),
            "metric": self.metric,
            "seconds": dict(self.seconds),
            "repeats": [_repeat_dict(repeat) for repeat in self.repeats],
            "summary": summary_dict(self.summary),
            "baselines": [baseline.to_dict() for baseline in self.baselines],
            "portfolio": {name: dict(config) for name, config in self.portfolio.items()},
        }

    def write(self, folder: Path) -> "RunRecord":
        """Write history, filter path and, last, the record; returns the record with its folder."""
        if self.history is not None:
            with writing(folder / HISTORY):
                self.history.write(folder / HISTORY)
        if self.path is not None:
            with writing(folder / FILTER_PATH):
                self.path.write(folder / FILTER_PATH)
        with writing(folder / RECORD):
            write_json(folder / RECORD, self.to_dict())
        return dataclasses.replace(self, folder=folder.resolve())

    @classmethod
    def read(cls, folder: str | Path) -> "RunRecord":
        """Read a run folder.

        Raises:
            FileNotFoundError: the folder holds no record.
            ValueError: the record is damaged or lacks something; names the file and the place.
        """
        folder = Path(folder).resolve()
        file = folder / RECORD
        if not file.is_file():
            raise FileNotFoundError(
                f"{folder}: Expected a run folder, which holds a record.json (got none)."
            )
        record = Node.load(file)
        missing: list[str] = []
        repeats = tuple(_repeat(node) for node in record["repeats"])
        if not repeats:
            record["repeats"].fail("a list of at least one repeat")
        record["config"]["model"].text()
        if record["config"]["epochs"].given:
            record["config"]["epochs"].integer()
        return cls(
            version=_text(record["longnn"]),
            created=_text(record["created"]),
            command=_text(record["command"]),
            config=record["config"].mapping(),
            environment=_mapping(record["environment"]),
            data=_graph(record["data"], missing),
            metric=record["metric"].text(),
            repeats=repeats,
            summary=_summaries(record["summary"]),
            history=_load_history(folder / HISTORY, missing),
            path=_load_path(folder / FILTER_PATH, missing) if repeats[0].filters else None,
            seconds=record["seconds"].numbers() if record["seconds"].given else {},
            folder=folder,
            missing=tuple(missing),
            baselines=_baselines(record["baselines"], len(repeats)),
            portfolio=_portfolio(record["portfolio"]),
        )


def summarize_repeats(scores: Sequence[Scores], summarize: Any) -> dict[str, dict[str, Summary]]:
    """Each score of each set over the repeats that have it.

    Args:
        scores: of each repeat.
        summarize: from values to the numbers of a :class:`Summary`, as a table.

    >>> scores = {"train": {}, "val": {}, "test": {"accuracy": 0.5}}
    >>> numbers = {"mean": 0.5, "low": 0.5, "high": 0.5, "std": 0.0, "count": 1}
    >>> summarize_repeats([scores], lambda values: numbers)["test"]["accuracy"].mean
    0.5
    """
    summary: dict[str, dict[str, Summary]] = {}
    for name in SETS:
        metrics = {metric for found in scores for metric in found[name]}
        summary[name] = {
            metric: Summary(
                **summarize([found[name][metric] for found in scores if metric in found[name]])
            )
            for metric in sorted(metrics)
        }
    return summary


def summary_dict(summary: Mapping[str, Mapping[str, Summary]]) -> dict[str, Any]:
    """Summaries as plain data."""
    return {
        subset: {metric: dataclasses.asdict(value) for metric, value in found.items()}
        for subset, found in summary.items()
    }


def _repeat_dict(repeat: RepeatRecord) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "seed": repeat.seed,
        "split": {**dataclasses.asdict(repeat.split), "notes": list(repeat.split.notes)},
        "epochs": repeat.epochs,
        "best_epoch": repeat.best_epoch,
        "stopped": repeat.stopped,
        "scores": {subset: dict(found) for subset, found in repeat.scores.items()},
        "filters": [_filter_dict(f) for f in repeat.filters],
    }
    if repeat.confusion is not None:
        plain["confusion"] = repeat.confusion.astype(int).tolist()
    if repeat.counts is not None:
        plain["counts"] = repeat.counts.astype(int).tolist()
    if repeat.threshold is not None:
        plain["threshold"] = repeat.threshold
    for name in ("calibration", "curve", "residuals"):
        if getattr(repeat, name) is not None:
            plain[name] = getattr(repeat, name).to_dict()
    if repeat.phase is not None:
        plain["phase"] = repeat.phase
    if repeat.members:
        plain["members"] = [member.to_dict() for member in repeat.members]
    return plain


def _filter_dict(f: FilterRecord) -> dict[str, Any]:
    return {
        "basis": f.basis,
        "degree": f.degree,
        "channels": f.channels,
        "learned": f.learned,
        "start": f.start,
        "eigenvalues": f.eigenvalues.tolist(),
        "response": f.response.tolist(),
        "norm": f.norm.tolist(),
        "words": f.words,
        **({"edge_type": f.edge_type} if f.edge_type else {}),
    }


def _graph_dict(graph: GraphRecord) -> dict[str, Any]:
    plain = {
        "name": graph.name,
        "source": None if graph.source is None else dict(graph.source),
        "fingerprint": graph.fingerprint,
        "task": graph.task,
        "classes": list(graph.classes),
        "notes": list(graph.notes),
        "scaling": graph.scaling,
        "targets": list(graph.targets),
        "columns": [list(row) for row in graph.columns],
        "card": graph.card,
    }
    if graph.density is not None:
        eigenvalues, density = graph.density
        plain["density"] = {"eigenvalues": eigenvalues.tolist(), "density": density.tolist()}
    if graph.outliers is not None:
        plain["outliers"] = graph.outliers.tolist()
    return plain


def _text(node: Node, default: str = "") -> str:
    return node.text() if node.given else default


def _mapping(node: Node) -> dict[str, Any]:
    return node.mapping() if node.given else {}


def _summaries(node: Node) -> dict[str, dict[str, Summary]]:
    return {
        subset: {metric: Summary.read(node[subset][metric]) for metric in node[subset].mapping()}
        for subset in node.mapping()
    }


def _repeat(node: Node) -> RepeatRecord:
    split = node["split"]
    train, val, test = (split[subset].integer() for subset in SETS)
    confusion = None
    if node["confusion"].given:
        confusion = node["confusion"].array(None, None)
        if confusion.shape[0] != confusion.shape[1]:
            node["confusion"].fail("a square table of counts")
    return RepeatRecord(
        seed=node["seed"].integer(),
        split=SplitRecord(
            protocol=split["protocol"].text(),
            seed=split["seed"].integer(),
            train=train,
            val=val,
            test=test,
            notes=split["notes"].texts(),
        ),
        epochs=node["epochs"].integer(),
        best_epoch=node["best_epoch"].integer(),
        stopped=_text(node["stopped"]),
        scores={subset: node["scores"][subset].numbers() for subset in node["scores"].mapping()},
        filters=tuple(_filter(at) for at in node["filters"]) if node["filters"].given else (),
        confusion=confusion,
        counts=node["counts"].array(None, 3) if node["counts"].given else None,
        threshold=node["threshold"].number() if node["threshold"].given else None,
        calibration=_optional(Calibration, node["calibration"]),
        curve=_optional(PrecisionRecall, node["curve"]),
        residuals=_optional(Residuals, node["residuals"]),
        members=tuple(map(MemberRecord.read, node["members"])) if node["members"].given else (),
        phase=node["phase"].number() if node["phase"].given else None,
    )


def _optional(kind: Any, node: Node) -> Any:
    """What a record of an earlier version may lack."""
    return kind.read(node) if node.given else None


def _baselines(node: Node, repeats: int) -> tuple[BaselineRecord, ...]:
    if not node.given:
        return ()
    found = tuple(BaselineRecord.read(at) for at in node)
    if any(len(baseline.scores) != repeats for baseline in found):
        node.fail(f"baselines with scores of {repeats} repeats")
    return found


def _portfolio(node: Node) -> dict[str, dict[str, Any]]:
    """Absent in records of earlier versions."""
    return {name: node[name].mapping() for name in node.mapping()} if node.given else {}


def _filter(node: Node) -> FilterRecord:
    eigenvalues = node["eigenvalues"].array(None)
    response = node["response"].array(None, len(eigenvalues))
    norm = (
        node["norm"].array(len(response)) if node["norm"].given else np.full(len(response), np.nan)
    )
    return FilterRecord(
        basis=_text(node["basis"], "unnamed"),
        degree=node["degree"].integer(),
        learned=node["learned"].numbers() if node["learned"].given else {},
        start=node["start"].numbers() if node["start"].given else {},
        eigenvalues=eigenvalues,
        response=response,
        norm=norm,
        words=_text(node["words"]),
        edge_type=_text(node["edge_type"]),
    )


def _graph(node: Node, missing: list[str]) -> GraphRecord:
    density = None
    if node["density"].given:
        eigenvalues = node["density"]["eigenvalues"].array(None)
        density = eigenvalues, node["density"]["density"].array(len(eigenvalues))
        if not np.isfinite(eigenvalues).all() or (np.abs(density) > LARGEST_DENSITY).any():
            node["density"].fail("a density of the eigenvalues from 0 to 2")
    else:
        missing.append("The record holds no spectral density of the graph.")
    card = _card(node["card"])
    if not card:
        missing.append("The record holds no card of the graph.")
    outliers = None
    if node["outliers"].given:
        outliers = np.array([at.number() for at in node["outliers"]])
    return GraphRecord(
        name=node["name"].text(),
        task=_text(node["task"], "classification"),
        fingerprint=_text(node["fingerprint"]),
        classes=node["classes"].texts(),
        notes=node["notes"].texts(),
        card=card,
        density=density,
        source=node["source"].mapping() if node["source"].given else None,
        scaling=_text(node["scaling"]),
        targets=node["targets"].texts(),
        columns=_columns(node["columns"]),
        outliers=outliers,
    )


def _card(node: Node) -> dict[str, Any]:
    """What pages show of the graph, as it was written; empty where there is none."""
    if not node.given:
        return {}
    for key in ("warnings", "notes"):
        node[key].texts()
    counts = node["class_counts"]
    for name in counts.mapping() if counts.given else ():
        counts[name].integer()
    for key, value in node.mapping().items():
        if isinstance(value, int) and not isinstance(value, bool):
            node[key].integer()
    return node.mapping()


def _columns(node: Node) -> tuple[tuple[str, str, str], ...]:
    """Absent in records of earlier versions."""
    found = []
    for at in node if node.given else ():
        row = at.texts()
        if len(row) != 3:
            at.fail("name, kind and treatment of a column")
        found.append((row[0], row[1], row[2]))
    return tuple(found)


def _load_history(file: Path, missing: list[str]) -> History | None:
    if not file.is_file():
        missing.append("There is no history.csv: nothing is known of single epochs.")
        return None
    try:
        return History.read(file)
    except (ValueError, csv.Error) as error:
        missing.append(f"history.csv is damaged and was left out: {error}")
        return None


def _load_path(file: Path, missing: list[str]) -> FilterPath | None:
    if not file.is_file():
        missing.append("There is no filter_path.npz: the path of the filter is not known.")
        return None
    try:
        return FilterPath.read(file)
    except DAMAGED as error:
        missing.append(f"filter_path.npz is damaged and was left out: {_one_line(error)}")
        return None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__

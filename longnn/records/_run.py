"""A run folder, read and checked.

The only module that knows how a run lies on disk. It knows nothing of figures or pages.
`record.json` must be there and whole. The other files are optional: one that is absent or
damaged is left out, and `Run.missing` says so in a sentence.
"""

from __future__ import annotations

import csv
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from longnn.records._node import Node

HISTORY_COLUMNS = ("repeat", "epoch", "train_loss", "val_loss", "val_score")
#: What numpy raises over a damaged archive, or over something else in its place.
DAMAGED = (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)
OPTIONAL_COLUMNS = ("amplitude", "a", "b")


@dataclass(frozen=True)
class Summary:
    """A score over the repeats: its mean, 95 % interval, standard deviation and count."""

    mean: float
    low: float
    high: float
    std: float
    count: int


@dataclass(frozen=True)
class Split:
    """How many nodes a repeat trained on, selected on and was tested on."""

    protocol: str
    seed: int
    train: int
    val: int
    test: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class LearnedFilter:
    """One filter after training.

    `learned` and `start` are the parameters of its basis (a, b), empty for a fixed basis.
    """

    basis: str
    degree: int
    learned: dict[str, float]
    start: dict[str, float]
    eigenvalues: np.ndarray  # (points,) of the normalised Laplacian
    response: np.ndarray  # (channels, points)
    norm: np.ndarray  # (channels,)
    words: str

    @property
    def channels(self) -> int:
        return len(self.response)


@dataclass(frozen=True, eq=False)
class Repeat:
    """One training run of the repeats."""

    seed: int
    split: Split
    epochs: int
    best_epoch: int
    stopped: str
    seconds: float
    scores: dict[str, dict[str, float]]  # part of the split -> metric -> score
    filters: tuple[LearnedFilter, ...]
    confusion: np.ndarray | None = None  # (classes, classes): rows true, columns predicted


@dataclass(frozen=True, eq=False)
class Graph:
    """The data a run was made on; `density` is (eigenvalues, density)."""

    name: str
    task: str
    fingerprint: str
    classes: tuple[str, ...]
    notes: tuple[str, ...]
    card: dict[str, Any]
    density: tuple[np.ndarray, np.ndarray] | None


@dataclass(frozen=True, eq=False)
class History:
    """What was measured at each epoch, one array per column; NaN where there is no value."""

    columns: dict[str, np.ndarray]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    @property
    def repeats(self) -> list[int]:
        return [int(index) for index in np.unique(self["repeat"])]

    def of(self, repeat: int) -> History:
        """The rows of one repeat."""
        rows = self["repeat"] == repeat
        return History({name: values[rows] for name, values in self.columns.items()})

    def has(self, *names: str) -> bool:
        """Whether every one of these columns holds a number somewhere."""
        return all(bool(np.isfinite(self[name]).any()) for name in names)


@dataclass(frozen=True, eq=False)
class FilterPath:
    """The filter of the first repeat over training, in Chebyshev coefficients."""

    epochs: np.ndarray  # (epochs,)
    beta: np.ndarray  # (epochs, degree + 1, channels)


@dataclass(frozen=True, eq=False)
class Run:
    """A run folder; `missing` says in sentences what it lacks."""

    folder: Path
    version: str
    created: str
    command: str
    config: dict[str, Any]
    environment: dict[str, Any]
    data: Graph
    metric: str
    repeats: tuple[Repeat, ...]
    summary: dict[str, dict[str, Summary]]  # part of the split -> metric -> summary
    history: History | None
    path: FilterPath | None
    seconds: float  # of the whole run; NaN where it was not taken
    missing: tuple[str, ...] = ()
    label: str = ""  # in place of the folder's name, where two runs share it

    @property
    def name(self) -> str:
        return self.label or self.folder.name

    @property
    def model(self) -> str:
        return str(self.config["model"])

    @property
    def filters(self) -> tuple[LearnedFilter, ...]:
        """The filters of the first repeat; empty for a model without."""
        return self.repeats[0].filters

    def score(self, part: str = "test", metric: str | None = None) -> Summary | None:
        """The summary of a score, or None where there is none."""
        return self.summary.get(part, {}).get(metric or self.metric)


def load_run(folder: str | Path) -> Run:
    """Read a run folder.

    Raises:
        FileNotFoundError: The folder holds no record.
        ValueError: The record is damaged or lacks something; names the file and the place.
    """
    folder = Path(folder).resolve()
    file = folder / "record.json"
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
    return Run(
        folder=folder,
        version=_text(record["longnn"]),
        created=_text(record["created"]),
        command=_text(record["command"]),
        config=record["config"].mapping(),
        environment=_mapping(record["environment"]),
        data=_graph(record["data"], missing),
        metric=record["metric"].text(),
        repeats=repeats,
        summary=_summaries(record["summary"]),
        history=_load_history(folder / "history.csv", missing),
        path=_load_path(folder / "filter_path.npz", missing) if repeats[0].filters else None,
        seconds=_seconds(record, repeats),
        missing=tuple(missing),
    )


def _seconds(record: Node, repeats: Sequence[Repeat]) -> float:
    if record["seconds"].given:
        return record["seconds"].number()
    return sum(repeat.seconds for repeat in repeats)


def _text(node: Node, default: str = "") -> str:
    return node.text() if node.given else default


def _mapping(node: Node) -> dict[str, Any]:
    return node.mapping() if node.given else {}


def _summaries(node: Node) -> dict[str, dict[str, Summary]]:
    def summary(at: Node) -> Summary:
        mean, low, high, std = (at[key].number() for key in ("mean", "low", "high", "std"))
        return Summary(mean, low, high, std, at["count"].integer())

    return {
        part: {metric: summary(node[part][metric]) for metric in node[part].mapping()}
        for part in node.mapping()
    }


def _repeat(node: Node) -> Repeat:
    split = node["split"]
    train, val, test = (split[part].integer() for part in ("train", "val", "test"))
    confusion = None
    if node["confusion"].given:
        confusion = node["confusion"].array(None, None)
        if confusion.shape[0] != confusion.shape[1]:
            node["confusion"].fail("a square table of counts")
    return Repeat(
        seed=node["seed"].integer(),
        split=Split(
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
        seconds=node["seconds"].number() if node["seconds"].given else float("nan"),
        scores={part: node["scores"][part].numbers() for part in node["scores"].mapping()},
        filters=tuple(_filter(at) for at in node["filters"]) if node["filters"].given else (),
        confusion=confusion,
    )


def _filter(node: Node) -> LearnedFilter:
    eigenvalues = node["eigenvalues"].array(None)
    response = node["response"].array(None, len(eigenvalues))
    norm = (
        node["norm"].array(len(response)) if node["norm"].given else np.full(len(response), np.nan)
    )
    return LearnedFilter(
        basis=_text(node["basis"], "unnamed"),
        degree=node["degree"].integer(),
        learned=node["learned"].numbers() if node["learned"].given else {},
        start=node["start"].numbers() if node["start"].given else {},
        eigenvalues=eigenvalues,
        response=response,
        norm=norm,
        words=_text(node["words"]),
    )


def _graph(node: Node, missing: list[str]) -> Graph:
    density = None
    if node["density"].given:
        eigenvalues = node["density"]["eigenvalues"].array(None)
        density = eigenvalues, node["density"]["density"].array(len(eigenvalues))
    else:
        missing.append("The record holds no spectral density of the graph.")
    card = _mapping(node["card"])
    if not card:
        missing.append("The record holds no card of the graph.")
    return Graph(
        name=node["name"].text(),
        task=_text(node["task"], "classification"),
        fingerprint=_text(node["fingerprint"]),
        classes=node["classes"].texts(),
        notes=node["notes"].texts(),
        card=card,
        density=density,
    )


def _load_history(file: Path, missing: list[str]) -> History | None:
    if not file.is_file():
        missing.append("There is no history.csv: nothing is known of single epochs.")
        return None
    try:
        return _read_history(file)
    except (ValueError, csv.Error) as error:
        missing.append(f"history.csv is damaged and was left out: {error}")
        return None


def _read_history(file: Path) -> History:
    with file.open(encoding="utf-8", newline="") as stream:
        reader = csv.DictReader(stream)
        absent = [name for name in HISTORY_COLUMNS if name not in (reader.fieldnames or ())]
        if absent:
            raise ValueError(f"Expected the columns {', '.join(absent)} (got none of that name).")
        names = HISTORY_COLUMNS + OPTIONAL_COLUMNS
        rows = []
        for row in reader:
            if None in row or any(row[name] is None for name in HISTORY_COLUMNS):
                raise ValueError(f"Expected as many values as columns in line {reader.line_num}.")
            try:
                rows.append([float(row.get(name) or "nan") for name in names])
            except ValueError:
                raise ValueError(f"Expected only numbers in line {reader.line_num}.") from None
    if not rows:
        raise ValueError("Expected at least one epoch (got none).")
    table = np.array(rows)
    table[np.isinf(table)] = np.nan
    return History({name: table[:, index] for index, name in enumerate(names)})


def _load_path(file: Path, missing: list[str]) -> FilterPath | None:
    if not file.is_file():
        missing.append("There is no filter_path.npz: the filter's way there is not known.")
        return None
    try:
        # Opened here, because numpy does not close a file that is no archive.
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            epochs = np.asarray(arrays["epochs"], dtype=np.float64)
            beta = np.asarray(arrays["beta"], dtype=np.float64)
        if beta.ndim != 3 or epochs.shape != beta.shape[:1] or beta.size == 0:
            raise ValueError(
                f"Expected beta of shape (epochs, degree + 1, channels) (got {beta.shape})."
            )
    except DAMAGED as error:
        missing.append(f"filter_path.npz is damaged and was left out: {_one_line(error)}")
        return None
    return FilterPath(epochs, beta)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__

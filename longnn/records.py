"""The schema of a run: what was asked and what was found, written and read by the same classes.

A run folder holds ``run.json`` (:class:`Request`, written first), ``record.json``, ``history.csv``
and ``filter_path.npz`` (:class:`RunRecord`, written last). On reading, ``record.json`` must be
there and whole; the other two are optional: one that is absent or damaged is left out, and
:attr:`RunRecord.missing` says so in a sentence. The annotations are the schema
(:mod:`longnn._base.schema`). Knows nothing of training, figures or pages.
"""

import csv
import dataclasses
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from longnn._base.files import atomic_path, write_json, write_text, writing
from longnn._base.schema import Node, Points, Schema, Shape, stored
from longnn.data._arrays import Archive
from longnn.metrics import summarize

RUN, RECORD, HISTORY, FILTER_PATH = "run.json", "record.json", "history.csv", "filter_path.npz"
#: A density over [0, 2] is larger only where a file is damaged: figures cannot draw that.
LARGEST_DENSITY = 1e9
HISTORY_COLUMNS = ("repeat", "epoch", "train_loss", "val_loss", "val_score")
OPTIONAL_COLUMNS = ("amplitude", "a", "b")
#: No epoch, and no parameter of a basis, is this large.
LARGEST = 1e9
#: What is raised over a damaged table or archive, or over something else in its place: encrypted,
#: of an unknown compression, too large.
DAMAGED = (
    *(OSError, ValueError, TypeError, LookupError, EOFError, zipfile.BadZipFile, zlib.error),
    *(RuntimeError, OverflowError, MemoryError, struct.error, csv.Error),
)
#: The sets of a split, in their order.
SETS = ("train", "val", "test")

#: Set -> metric -> score.
Scores = Mapping[str, Mapping[str, float]]
#: Arrays over the classes, and counts of them.
Classes = Annotated[np.ndarray, Shape("classes")]
ClassCounts = Annotated[np.ndarray, Shape("classes", whole=True)]


@dataclass(frozen=True, eq=False)
class History:
    """What was measured at each epoch, one array per column; NaN where there is no value.

    >>> history = History({"repeat": np.array([0.0, 0.0, 1.0]), "a": np.full(3, np.nan)})
    >>> history.repeats, history.has("repeat"), history.has("a")
    ([0, 1], True, False)
    """

    columns: dict[str, np.ndarray]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    @property
    def repeats(self) -> list[int]:
        """The numbers of the repeats."""
        return [int(index) for index in np.unique(self["repeat"])]

    def of(self, repeat: int) -> "History":
        """The rows of one repeat."""
        rows = self["repeat"] == repeat
        return History({name: values[rows] for name, values in self.columns.items()})

    def has(self, *names: str) -> bool:
        """Whether every one of these columns holds a number somewhere."""
        return all(bool(np.isfinite(self[name]).any()) for name in names)

    def write(self, path: Path) -> None:
        """Write CSV; an empty cell is "no value"."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        whole = [self.columns[name].astype(int).tolist() for name in ("repeat", "epoch")]
        names = [name for name in self.columns if name not in ("repeat", "epoch")]
        numbers = [self.columns[name].tolist() for name in names]
        for row in zip(*whole, *numbers, strict=True):
            writer.writerow([*row[:2], *("" if v != v else repr(v) for v in row[2:])])
        write_text(path, buffer.getvalue())

    @classmethod
    def read(cls, file: Path) -> "History":
        """Read what :meth:`write` wrote; raises ValueError where the file is something else."""
        with file.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream)
            absent = [name for name in HISTORY_COLUMNS if name not in (reader.fieldnames or ())]
            if absent:
                raise ValueError(
                    f"Expected the columns {', '.join(absent)} (got none of that name)."
                )
            names = HISTORY_COLUMNS + OPTIONAL_COLUMNS
            rows = []
            for row in reader:
                if None in row or any(row[name] is None for name in HISTORY_COLUMNS):
                    raise ValueError(
                        f"Expected as many values as columns in line {reader.line_num}."
                    )
                try:
                    rows.append([float(row.get(name) or "nan") for name in names])
                except ValueError:
                    raise ValueError(f"Expected only numbers in line {reader.line_num}.") from None
        if not rows:
            raise ValueError("Expected at least one epoch (got none).")
        table = np.array(rows)
        table[np.isinf(table)] = np.nan
        columns = {name: table[:, index] for index, name in enumerate(names)}
        for name in ("repeat", "epoch"):
            if not (
                (columns[name] >= 0) & (columns[name] < LARGEST) & (columns[name] % 1 == 0)
            ).all():
                raise ValueError(f"Expected whole numbers as {name} (got others).")
        for name in ("a", "b"):
            if ((columns[name] <= -1) | (columns[name] >= LARGEST)).any():
                raise ValueError(f"Expected {name} > -1 (got other numbers).")
        return cls(columns)


@dataclass(frozen=True, eq=False)
class FilterPath:
    """The filter of the first repeat over training, in Chebyshev coefficients."""

    epochs: np.ndarray  # (epochs,)
    beta: np.ndarray  # (epochs, degree + 1, channels)

    def write(self, path: Path) -> None:
        """Write a compressed archive."""
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, epochs=self.epochs, beta=self.beta)

    @classmethod
    def read(cls, file: Path) -> "FilterPath":
        """Read what :meth:`write` wrote; raises one of :data:`DAMAGED` otherwise."""
        arrays = Archive(file, ("epochs", "beta"))
        epochs = np.asarray(arrays["epochs"], dtype=np.float64)
        beta = np.asarray(arrays["beta"], dtype=np.float64)
        if beta.ndim != 3 or epochs.shape != beta.shape[:1] or beta.size == 0:
            raise ValueError(
                f"Expected beta of shape (epochs, degree + 1, channels) (got {beta.shape})."
            )
        return cls(epochs, beta)


@dataclass(frozen=True)
class SplitRecord(Schema):
    """How many nodes a repeat trained on, selected on and was tested on."""

    protocol: str
    seed: int
    train: int
    val: int
    test: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class FilterRecord(Schema):
    """One filter after training.

    ``learned`` and ``start`` are the parameters of its basis (a, b), empty for a fixed basis.

    >>> ends, response = np.array([0.0, 2.0]), np.array([[1.0, 0.0]])
    >>> low_pass = FilterRecord("jacobi", 1, {}, {}, ends, response, np.ones(1), "low-pass")
    >>> Node(low_pass.to_dict(), file="record.json").read(FilterRecord).response
    array([[1., 0.]])
    """

    basis: str
    degree: int
    learned: dict[str, float]
    start: dict[str, float]
    eigenvalues: Points  # of the normalised Laplacian
    response: Annotated[np.ndarray, Shape("channels", "points")]
    norm: Annotated[np.ndarray, Shape("channels")]
    words: str
    edge_type: str = stored(empty=False, default="")  # that it is for, if edges have types

    @property
    def channels(self) -> int:
        """How many filters there are side by side."""
        return len(self.response)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, the number of channels too."""
        first = {"basis": self.basis, "degree": self.degree, "channels": self.channels}
        return {**first, **super().to_dict()}


@dataclass(frozen=True, eq=False)
class MemberRecord(Schema):
    """One model of an ensemble, in one repeat.

    ``val`` and ``test`` are its own headline scores, None where there are no such nodes. ``words``
    and ``response``, the mean over the channels at the ``eigenvalues``, are of its first filter.
    """

    name: str
    model: str
    weight: float  # in the ensemble; 0 for one without a vote
    epochs: int
    best_epoch: int
    stopped: str
    val: float | None = stored(null=True)
    test: float | None = stored(null=True)
    words: str = stored(empty=False, default="")
    eigenvalues: Points | None = None
    response: Points | None = None

    def check(self, node: Node) -> None:
        """The weight is one."""
        if not 0 <= self.weight <= 1 + 1e-6:
            node["weight"].fail("a weight from 0 to 1")


@dataclass(frozen=True, eq=False)
class Bins(Schema):
    """Predictions grouped by how sure they are; a bin without any is left out."""

    confidence: Points  # mean probability of what was predicted
    accuracy: Points  # share that was right
    count: Points

    @property
    def error(self) -> float:
        """The expected calibration error: the mean gap between confidence and accuracy.

        >>> Bins(np.array([0.9]), np.array([0.7]), np.array([10.0])).error
        0.2...
        """
        gaps = np.abs(self.confidence - self.accuracy)
        return float((gaps * self.count).sum() / max(self.count.sum(), 1))


@dataclass(frozen=True, eq=False)
class Calibration(Schema):
    """How sure a model is and how often it is right on test nodes, before and after calibration."""

    temperature: float
    before: Bins
    after: Bins

    def to_dict(self) -> dict[str, Any]:
        """Plain data, the two errors too."""
        errors = {"error_before": self.before.error, "error_after": self.after.error}
        return {"temperature": self.temperature, **errors, **super().to_dict()}


@dataclass(frozen=True, eq=False)
class FrequencyShift(Schema):
    """Class frequencies that probabilities follow, though those of the training nodes differ."""

    train: ClassCounts
    val: ClassCounts
    shift: Classes  # added to the class scores, after the temperature

    @property
    def shares(self) -> np.ndarray:
        """Shares of the classes among the training and the validation nodes, (2, classes).

        >>> FrequencyShift(np.array([5, 5]), np.array([9, 1]), np.array([0.6, -1.6])).shares
        array([[0.5, 0.5],
               [0.9, 0.1]])
        """
        counts = np.stack([self.train, self.val]).astype(float)
        return counts / np.maximum(counts.sum(1, keepdims=True), 1)

    @property
    def farthest(self) -> int:
        """The class whose shares differ most."""
        train, val = self.shares
        return int(np.abs(val - train).argmax())


@dataclass(frozen=True, eq=False)
class PrecisionRecall(Schema):
    """What finding more of a class costs, on test nodes.

    ``threshold`` is the probability from which on the class is predicted, and ``chosen`` the
    recall and precision there.
    """

    name: str
    prevalence: float
    recall: Points
    precision: Points
    threshold: float
    chosen: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Residuals(Schema):
    """Predicted and true values of test nodes and their numbers of neighbours; a sample of many."""

    name: str  # of the target
    predicted: Points
    true: Points
    degree: Points


@dataclass(frozen=True, eq=False)
class ErrorMap(Schema):
    """Where test nodes lie, and how wrong each is; a sample of many.

    The error is predicted minus true; of classes how improbable the truth was said to be, and 0
    where the right one is predicted.
    """

    x_name: str
    y_name: str
    aspect: float  # how long a unit upwards is, compared with one to the right
    x: Points
    y: Points
    error: Points


@dataclass(frozen=True)
class Covered(Schema):
    """Intervals, or sets of plausible classes, of test nodes."""

    stated: float  # the coverage that was asked for
    share: float  # of the test nodes whose answer is in theirs
    size: float  # the mean width, or the mean number of classes


@dataclass(frozen=True, eq=False)
class KnownRings(Schema):
    """How far away the known answers are that count in predictions of test nodes.

    One number for 1, 2, ... steps from the node; the last is for all that are farther away, too.
    Weights are shares of all: ``alike`` and ``opposed`` add up to 1.
    """

    nodes: int  # of the test nodes that were asked
    answers: Points  # known ones, per node
    alike: Points  # of answers which, if above what the models say, raise the prediction
    opposed: Points  # of answers which lower it then


@dataclass(frozen=True)
class ErrorRecord(Schema):
    """A test node that is predicted wrongly: what is true of it, and what is predicted.

    ``error`` is the distance of numbers; of classes and labels how improbable the truth was said to
    be, from 0 to 1.
    """

    node: str  # its id
    what: str  # which of several labels or numbers; else empty
    true: str
    predicted: str
    error: float


@dataclass(frozen=True, eq=False, kw_only=True)
class RepeatRecord(Schema):
    """One training of the repeats; what the task does not have is None."""

    seed: int
    split: SplitRecord
    epochs: int
    best_epoch: int
    stopped: str = ""
    scores: Scores
    filters: tuple[FilterRecord, ...] = ()
    #: Rows true, columns predicted.
    confusion: Annotated[np.ndarray, Shape("classes", "classes", whole=True)] | None = None
    #: Nodes with the label, predicted, both.
    counts: Annotated[np.ndarray, Shape("labels", 3, whole=True)] | None = None
    threshold: float | None = None  # probability from which on the rarer class is predicted
    #: Of unequal classes: what their probabilities are multiplied by to choose one.
    factors: Classes | None = None
    shift: FrequencyShift | None = None  # where classes are more or less frequent in validation
    calibration: Calibration | None = None
    curve: PrecisionRecall | None = None
    residuals: Residuals | None = None
    error_map: ErrorMap | None = None  # where nodes have coordinates
    covered: Covered | None = None
    known_rings: KnownRings | None = None  # where known answers are used
    worst: tuple[ErrorRecord, ...] = stored(empty=False, default=())  # the largest first
    members: tuple[MemberRecord, ...] = stored(empty=False, default=())  # of an ensemble


@dataclass(frozen=True)
class Summary(Schema):
    """A score over the repeats: its mean, 95 % interval, standard deviation and count. Where all
    have the same test nodes, the interval is over these."""

    mean: float
    low: float
    high: float
    std: float
    count: int
    over_nodes: bool = stored(empty=False, default=False)

    @classmethod
    def of(cls, values: Sequence[float]) -> "Summary":
        """What the values of the repeats sum up to."""
        return cls(**summarize(values))  # type: ignore[arg-type]  # the count is whole


def summarize_repeats(scores: Sequence[Scores]) -> dict[str, dict[str, Summary]]:
    """Each score of each set over the repeats that have it.

    >>> scores = {"train": {}, "val": {}, "test": {"accuracy": 0.5}}
    >>> summarize_repeats([scores])["test"]["accuracy"].mean
    0.5
    """
    summary: dict[str, dict[str, Summary]] = {}
    for name in SETS:
        metrics = sorted({metric for repeat in scores for metric in repeat[name]})
        summary[name] = {
            metric: Summary.of(
                [repeat[name][metric] for repeat in scores if metric in repeat[name]]
            )
            for metric in metrics
        }
    return summary


@dataclass(frozen=True, eq=False)
class BaselineRecord(Schema):
    """A model to compare with, most without the graph, on the same splits.

    ``scores`` are those of every repeat, ``summary`` those of the test nodes over the repeats, and
    ``ahead`` is how far the run is ahead of it there, repeat by repeat: negative where the baseline
    has the larger score.
    """

    name: str
    title: str
    scores: tuple[Scores, ...]
    summary: Mapping[str, Summary]  # metric -> score
    ahead: Mapping[str, Summary]  # metric -> difference
    uses_graph: bool = False


@dataclass(frozen=True, eq=False)
class Density(Schema):
    """A spectral density over the eigenvalues of the Laplacian."""

    eigenvalues: Points
    density: Points

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.eigenvalues, self.density))


@dataclass(frozen=True, eq=False, kw_only=True)
class GraphRecord(Schema):
    """The data a run was made on.

    ``outliers`` are the eigenvalues outside the bulk; None where they were not computed.
    """

    name: str
    source: Mapping[str, Any] | None = stored(null=True, default=None)
    fingerprint: str = ""
    task: str = "classification"
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    scaling: str = ""
    targets: tuple[str, ...] = ()  # names of several numbers to predict
    columns: tuple[tuple[str, str, str], ...] = ()  # of the node table: name, kind, what was done
    card: dict[str, Any] = dataclasses.field(default_factory=dict)
    density: Density | None = None
    outliers: Annotated[np.ndarray, Shape("outliers", empty=True)] | None = None  # increasing

    def check(self, node: Node) -> None:
        """The card and the density are what pages can show."""
        if self.density is not None:
            eigenvalues, density = self.density
            if not np.isfinite(eigenvalues).all() or (np.abs(density) > LARGEST_DENSITY).any():
                node["density"].fail("a density of the eigenvalues from 0 to 2")
        card = node["card"]
        for key, value in self.card.items():
            if key in ("warnings", "notes"):
                card[key].texts()
            if key == "class_counts" and value is not None:
                card[key].read(Mapping[str, int])
            if isinstance(value, int) and not isinstance(value, bool):
                card[key].integer()


@dataclass(frozen=True, kw_only=True)
class Request(Schema):
    """What was asked of a run; ``source`` is None for a graph that was in memory.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     asked = {"version": "0.6.0", "created": "", "source": None, "fingerprint": ""}
    ...     Request(command="longnn train club", **asked).write(Path(folder))
    ...     Request.read(Path(folder)).command
    'longnn train club'
    """

    version: str = stored(key="longnn")
    created: str
    command: str
    source: Mapping[str, Any] | None = stored(null=True)
    fingerprint: str
    config: Mapping[str, Any] | None = stored(null=True, default=None)

    def write(self, folder: Path) -> None:
        """Write ``run.json``: this makes the folder that of the run.

        Raises:
            FileExistsError: it is that of another run.
        """
        write_json(folder / RUN, self.to_dict(), new=True)

    @classmethod
    def read(cls, folder: Path) -> "Request":
        """Read ``run.json``.

        Raises:
            ValueError: there is none, or it is damaged; names the file and the place.
        """
        if not (folder / RUN).is_file():
            raise ValueError(f"Expected {RUN} in {folder} (there is none)")
        request: Request = Node.load(folder / RUN).read(cls)
        return request


@dataclass(frozen=True, eq=False, kw_only=True)
class RunRecord(Schema):
    """A finished run: every number of it.

    ``missing`` says in sentences what its folder lacks. ``portfolio`` has the configurations of the
    members of an ensemble by name; then ``config`` tells only what they share.
    """

    version: str = stored(key="longnn", default="")
    created: str = ""
    command: str = ""
    config: dict[str, Any]
    environment: dict[str, Any] = dataclasses.field(default_factory=dict)
    data: GraphRecord
    metric: str
    seconds: Mapping[str, float] = dataclasses.field(default_factory=dict)  # step -> its time
    repeats: tuple[RepeatRecord, ...]
    summary: Mapping[str, Mapping[str, Summary]]  # set -> metric -> summary
    baselines: tuple[BaselineRecord, ...] = ()
    portfolio: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    #: What the headline score of test nodes loses where a column is shuffled, over some draws.
    importance: Mapping[str, Summary] = stored(empty=False, default_factory=dict)
    history: History | None = stored(file=False, default=None)
    path: FilterPath | None = stored(file=False, default=None)
    folder: Path | None = stored(file=False, default=None)
    missing: tuple[str, ...] = stored(file=False, default=())
    label: str = stored(file=False, default="")  # for the folder's name, where two runs share it

    def check(self, node: Node) -> None:
        """What pages rely on and types do not say."""
        if not self.repeats:
            node["repeats"].fail("a list of at least one repeat")
        config = node["config"]
        config["model"].text()
        if config["epochs"].given:
            config["epochs"].integer()
        if any(len(baseline.scores) != len(self.repeats) for baseline in self.baselines):
            node["baselines"].fail(f"baselines with scores of {len(self.repeats)} repeats")

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

    @property
    def over_nodes(self) -> bool:
        """Whether all repeats have the same test nodes, over which intervals then are."""
        return any(score.over_nodes for score in self.summary.get("test", {}).values())

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
        record: RunRecord = Node.load(file).read(cls)
        missing = []
        if record.data.density is None:
            missing.append("The record holds no spectral density of the graph.")
        if not record.data.card:
            missing.append("The record holds no card of the graph.")
        history = _optional(History, folder / HISTORY, "nothing is known of single epochs", missing)
        path = None
        if record.filters:
            unknown = "the path of the filter is not known"
            path = _optional(FilterPath, folder / FILTER_PATH, unknown, missing)
        return dataclasses.replace(
            record, history=history, path=path, folder=folder, missing=tuple(missing)
        )


def _optional(kind: Any, file: Path, otherwise: str, missing: list[str]) -> Any:
    """What is in a file; None, with a sentence about it, where it is absent or damaged."""
    if not file.is_file():
        missing.append(f"There is no {file.name}: {otherwise}.")
        return None
    try:
        return kind.read(file)
    except DAMAGED as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        missing.append(f"{file.name} is damaged and was left out: {reason}")
        return None

"""The schema of a run: what was asked and what was found, written and read by the same classes.

A run folder holds ``run.json`` (:class:`Request`, written first), ``record.json``, ``history.csv``
and ``filter_path.npz`` (:class:`RunRecord`, written last). On reading, ``record.json`` must be
there and whole; the other two are optional: one that is absent or damaged is left out, and
:attr:`RunRecord.missing` says so in a sentence. Knows nothing of training, figures or pages.
"""

import csv
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from longnn._base.files import write_json, writing
from longnn._base.schema import Node, Points, Schema, Shape, stored
from longnn.records._history import DAMAGED, FilterPath, History
from longnn.records._repeat import SETS, FilterRecord, MemberRecord, RepeatRecord, Scores

RUN, RECORD, HISTORY, FILTER_PATH = "run.json", "record.json", "history.csv", "filter_path.npz"
#: A density over [0, 2] is larger only where a file is damaged: figures cannot draw that.
LARGEST_DENSITY = 1e9


@dataclass(frozen=True)
class Summary(Schema):
    """A score over the repeats: its mean, 95 % interval, standard deviation and count."""

    mean: float
    low: float
    high: float
    std: float
    count: int


def summarize_repeats(
    scores: Sequence[Scores], summarize: Callable[[list[float]], Mapping[str, Any]]
) -> dict[str, dict[str, Summary]]:
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
        metrics = {metric for repeat in scores for metric in repeat[name]}
        summary[name] = {
            metric: Summary(
                **summarize([repeat[name][metric] for repeat in scores if metric in repeat[name]])
            )
            for metric in sorted(metrics)
        }
    return summary


@dataclass(frozen=True, eq=False)
class BaselineRecord(Schema):
    """A model without the graph, on the same splits.

    ``scores`` are those of every repeat, ``summary`` those of the test nodes over the repeats, and
    ``ahead`` is how far the run is ahead of it there, repeat by repeat: negative where the baseline
    has the larger score.
    """

    name: str
    title: str
    scores: tuple[Scores, ...]
    summary: Mapping[str, Summary]  # metric -> score
    ahead: Mapping[str, Summary]  # metric -> difference


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
        history = _load_history(folder / HISTORY, missing)
        path = _load_path(folder / FILTER_PATH, missing) if record.filters else None
        return dataclasses.replace(
            record, history=history, path=path, folder=folder, missing=tuple(missing)
        )


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

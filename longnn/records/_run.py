"""The schema of a run: what was asked and what was found, written and read by the same classes.

A run folder holds ``run.json`` (:class:`Request`, written first), ``record.json``, ``history.csv``
and ``filter_path.npz`` (:class:`RunRecord`, written last). On reading, ``record.json`` must be
there and whole; the other two are optional: one that is absent or damaged is left out, and
:attr:`RunRecord.missing` says so in a sentence. Knows nothing of training, figures or pages.
"""

import csv
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longnn._base.files import write_json, writing
from longnn._base.node import Node
from longnn.records._graph import GraphRecord
from longnn.records._history import DAMAGED, FilterPath, History
from longnn.records._members import MemberRecord
from longnn.records._repeat import FilterRecord, RepeatRecord
from longnn.records._summary import Summary, read_summaries, summary_dict
from longnn.records._trust import BaselineRecord

RUN, RECORD, HISTORY, FILTER_PATH = "run.json", "record.json", "history.csv", "filter_path.npz"


@dataclass(frozen=True)
class Request:
    """What was asked of a run; ``source`` is None for a graph that was in memory.

    ``config`` is None in requests of earlier versions, whose folders have it in a file of its own.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Request("0.6.0", "", "longnn train club", None, "").write(Path(folder))
    ...     Request.read(Path(folder)).command
    'longnn train club'
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
            "data": self.data.to_dict(),
            "metric": self.metric,
            "seconds": dict(self.seconds),
            "repeats": [repeat.to_dict() for repeat in self.repeats],
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
        repeats = tuple(map(RepeatRecord.read, record["repeats"]))
        if not repeats:
            record["repeats"].fail("a list of at least one repeat")
        record["config"]["model"].text()
        if record["config"]["epochs"].given:
            record["config"]["epochs"].integer()
        return cls(
            version=record["longnn"].text(""),
            created=record["created"].text(""),
            command=record["command"].text(""),
            config=record["config"].mapping(),
            environment=_mapping(record["environment"]),
            data=GraphRecord.read(record["data"], missing),
            metric=record["metric"].text(),
            repeats=repeats,
            summary=read_summaries(record["summary"]),
            history=_load_history(folder / HISTORY, missing),
            path=_load_path(folder / FILTER_PATH, missing) if repeats[0].filters else None,
            seconds=record["seconds"].numbers() if record["seconds"].given else {},
            folder=folder,
            missing=tuple(missing),
            baselines=_baselines(record["baselines"], len(repeats)),
            portfolio=_portfolio(record["portfolio"]),
        )


def _mapping(node: Node) -> dict[str, Any]:
    return node.mapping() if node.given else {}


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

"""The record of a search: ``tuning.json``, written and read by the same classes.

Figures, page and recipe are made from it alone. Knows JSON, and nothing of Optuna or training.
"""

import dataclasses
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from longnn._base.files import write_json
from longnn.data import NodeDataset, known_names
from longnn.records import from_plain
from longnn.registry import find_model
from longnn.tuning._domains import Plain
from longnn.tuning._halving import Halving
from longnn.tuning._trials import Finalists, Start, TrialRecord

#: The file in the folder of a search.
RECORD = "tuning.json"
#: Packages whose versions every record has.
VERSIONS = ("longnn", "torch", "optuna")
#: The states of trials, as :class:`TrialRecord` has them, and a bound for their numbers.
STATES, MOST = ("complete", "pruned", "running", "fail"), 10**9


@dataclasses.dataclass(frozen=True)
class DatasetRecord:
    """The graph of a search, and how to name it on the command line.

    Args:
        name: of the dataset.
        fingerprint: of its data.
        graph: its name, or the path of its files; None for a graph that was built in Python.
        nodes: the path of the node file, where one was given.
        options: of the loader.
        data_dir: the folder of the named datasets, where one was given.
    """

    name: str
    fingerprint: str
    graph: str | None = None
    nodes: str | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    data_dir: str | None = None

    @classmethod
    def describe(cls, dataset: NodeDataset) -> Self:
        """From a dataset; one without a source is named where its name is that of a dataset."""
        source = getattr(dataset, "source", None)
        if source is not None:
            place = (source.graph, source.nodes, dict(source.options))
            return cls(dataset.name, dataset.fingerprint(), *place)
        named = dataset.name in known_names()
        return cls(dataset.name, dataset.fingerprint(), dataset.name if named else None)

    def arguments(self) -> list[str]:
        """The arguments of ``longnn train`` that name this graph.

        >>> DatasetRecord("csbm", "", "csbm", options={"phi": 0.5}).arguments()
        ['csbm', '--data', 'phi=0.5']
        """
        found = [self.graph or "GRAPH"]
        if self.nodes is not None:
            found += ["--nodes", self.nodes]
        for key, value in self.options.items():
            found += ["--data", f"{key}={_argument(value)}"]
        if self.data_dir is not None:
            found += ["--data-dir", self.data_dir]
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Self:
        """From :meth:`to_dict`."""
        names = [field.name for field in dataclasses.fields(cls) if field.name != "data_dir"]
        # Version 0.2 did not write the folder.
        return cls(**{name: table[name] for name in names}, data_dir=table.get("data_dir"))


@dataclasses.dataclass(frozen=True)
class SpaceRecord:
    """The space of a search, as :meth:`SearchSpace.to_dict` gives it."""

    name: str
    model: str
    search: Mapping[str, Mapping[str, Any]]
    fixed: Mapping[str, Plain]
    dropped: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**dataclasses.asdict(self), "dropped": list(self.dropped)}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Self:
        """From :meth:`to_dict`."""
        own = {key: table[key] for key in ("name", "model", "search", "fixed")}
        return cls(**own, dropped=tuple(table["dropped"]))


@dataclasses.dataclass(frozen=True)
class SearchRecord:
    """A finished search, of all its workers.

    Args:
        created: when it was finished.
        dataset: the graph.
        model: the name of the model.
        metric: what validation scores are: a key of :data:`longnn.metrics.METRICS`.
        search: the name of the search in its storage.
        storage: the URL of the storage without its password; None if the caller opened it.
        finished: trials that were trained to the end or stopped by halving.
        repeats: trainings per trial.
        protocol: the split protocol.
        seeds: of splits, weights and dropout, one per repeat.
        seed: of the sampler.
        halving: when trials were stopped; None if never.
        notes: sentences the user ought to read.
        best: the winner.
        value: its mean validation score, over the splits of the finalists too.
        finalists: the best trials on further splits.
        importance: of the searched settings, in falling order.
        space: what was searched.
        seconds: of this worker.
        environment: machine and versions.
        trials: all of them in the order of their numbers.
        start: the trial that it started with; None if that was drawn, too.
    """

    created: str
    dataset: DatasetRecord
    model: str
    metric: str
    search: str
    storage: str | None
    finished: int
    repeats: int
    protocol: str
    seeds: tuple[int, ...]
    seed: int
    halving: Halving | None
    notes: tuple[str, ...]
    best: TrialRecord
    value: float
    finalists: Finalists
    importance: Mapping[str, float]
    space: SpaceRecord
    seconds: float
    environment: Mapping[str, Any]
    trials: tuple[TrialRecord, ...]
    start: Start | None = None

    @property
    def gain(self) -> float | None:
        """By how much the winner is better than the start, on the same splits."""
        if self.start is None or self.start.value is None:
            return None
        return self.value - self.start.value

    @property
    def splits(self) -> int:
        """The number of splits that the winner's score is the mean of."""
        return self.repeats + len(self.finalists.seeds)

    def with_state(self, state: str) -> list[TrialRecord]:
        """The trials in one state."""
        return [trial for trial in self.trials if trial.state == state]

    def train_command(self, recipe: Path) -> str:
        """The command that trains the winner on the reporting splits; it runs in any folder."""
        options = ["--config", str(recipe), "--repeat", "10"]
        return shlex.join(["longnn", "train", *self.dataset.arguments(), *options])

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as ``tuning.json`` and ``longnn tune --json`` have it."""
        return {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Self:
        """From :meth:`to_dict`.

        Raises:
            ValueError: for a table that is not the record of a search, naming what is missing.
        """
        try:
            names = [field.name for field in dataclasses.fields(cls) if field.name != "start"]
            own = {name: table[name] for name in names}
            start = table.get("start")  # earlier versions did not write it
            own |= {
                "start": None if start is None else Start.from_dict(start),
                "dataset": DatasetRecord.from_dict(own["dataset"]),
                "seeds": tuple(own["seeds"]),
                "halving": None if own["halving"] is None else Halving.from_dict(own["halving"]),
                "notes": tuple(own["notes"]),
                "best": TrialRecord.from_dict(own["best"]),
                "finalists": Finalists.from_dict(own["finalists"]),
                "space": SpaceRecord.from_dict(own["space"]),
                "trials": tuple(map(TrialRecord.from_dict, own["trials"])),
            }
        except KeyError as error:
            raise ValueError(
                f"Expected {error.args[0]!r} in the record of a search (it is missing)"
            ) from error
        except (TypeError, AttributeError) as error:
            raise ValueError(
                f"Expected the record of a search (got other data: {error})"
            ) from error
        record = cls(**own)
        from_plain(cls, dataclasses.asdict(record), "record")  # checks all types
        record.check()
        return record

    def check(self) -> None:
        """Check what the page relies on and types do not say.

        Raises:
            ValueError: where the record contradicts itself.
        """
        find_model(self.model)
        missing = [name for name in VERSIONS if name not in self.environment]
        if missing:
            raise ValueError(f"Expected the version of {missing[0]} in `record.environment`")
        if not self.seeds or self.best.value is None:
            raise ValueError("Expected `record` to have seeds and a best trial with a value")
        for trial in (self.best, *self.trials):
            if trial.state not in STATES or not 0 <= trial.number < MOST:
                raise ValueError(f"Expected trials with a state and a number (got {trial!r:.60})")
            if trial.state == "complete" and not trial.outcome.epochs:
                raise ValueError(f"Expected trial {trial.number} to have epochs (got none)")


def write_record(folder: Path, record: SearchRecord) -> Path:
    """Write ``tuning.json``, whole or not at all."""
    write_json(folder / RECORD, record.to_dict())
    return folder / RECORD


def read_record(folder: Path) -> SearchRecord:
    """Read ``tuning.json``.

    Raises:
        FileNotFoundError: if the folder has none.
        ValueError: if it is damaged, or is not the record of a search.
    """
    try:
        table = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"Expected {RECORD} in {folder} (there is none)") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Expected {folder / RECORD} to be JSON (it is damaged)") from error
    try:
        return SearchRecord.from_dict(table)
    except ValueError as error:
        raise ValueError(f"{folder / RECORD}: {error}") from error


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value


def _argument(value: Any) -> str:
    """A loader's option as it is typed after ``--data key=``."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)

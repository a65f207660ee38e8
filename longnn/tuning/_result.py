"""What a search gives back: its progress while it runs, then the winner and the record."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from longnn._base.files import write_text
from longnn.config import Config
from longnn.metrics import metric_of
from longnn.report import metric_name, score_text
from longnn.tuning._domains import Plain
from longnn.tuning._record import VERSIONS, SearchRecord
from longnn.tuning._trials import TrialRecord

#: The file of the winner in the folder of a search.
RECIPE = "recipe.toml"
#: What a search starts with, in words.
NAMES = {"default": "the default", "given": "the given configuration"}


@dataclasses.dataclass(frozen=True)
class TuningProgress:
    """The state of a search, given to its callback.

    Args:
        metric: what scores are: a key of :data:`longnn.metrics.METRICS`.
        done: trials that all workers together have finished.
        total: trials to finish.
        best_value: the best mean validation score until now; None at first.
        best_params: the values that gave it; empty at first.
        elapsed: seconds since this worker started.
        eta: estimated seconds left; None until this worker has finished a trial.
        training: trials that this worker is training.
        epoch: the epoch they have reached.
    """

    metric: str
    done: int
    total: int
    best_value: float | None
    best_params: Mapping[str, Plain]
    elapsed: float
    eta: float | None
    training: int
    epoch: int


@dataclasses.dataclass(frozen=True)
class TuningResult:
    """A finished search.

    Args:
        config: the winner.
        record: everything else, as it is in ``tuning.json``.
        folder: where it was written; None if it was not.
    """

    config: Config
    record: SearchRecord
    folder: Path | None

    @property
    def value(self) -> float:
        """The winner's mean validation score, over the splits of the finalists too."""
        return self.record.value

    @property
    def trials(self) -> tuple[TrialRecord, ...]:
        """All trials in the order of their numbers."""
        return self.record.trials

    def sentence(self) -> str:
        """The score of the winner, and what it gained over the start on the same splits."""
        record = self.record
        score = f"validation {metric_name(record.metric)} {shown_score(record, record.value)}"
        return score if record.start is None else f"{score}, {gain_text(record)}"

    def write_recipe(self, path: str | Path) -> Path:
        """Write the winner as TOML, for :meth:`Config.from_toml` and ``longnn train --config``."""
        # A dataset's name may hold any character, but a comment ends with its line.
        header = [f"# {_one_line(line)}" for line in _header(self.record)]
        write_text(Path(path), "\n".join([*header, "", *self.config.to_toml(), ""]))
        return Path(path)


def _header(record: SearchRecord) -> list[str]:
    seeds = [*record.seeds, *record.finalists.seeds]
    versions = ", ".join(f"{name} {record.environment[name]}" for name in VERSIONS)
    return [
        f"Recipe for {record.model} on {record.dataset.name}, found by longnn tune.",
        f"Trial {record.best.number} of a search with {record.finished} trials and "
        f"{record.repeats} repeats per trial in the space {record.space.name!r}.",
        f"Validation {metric_name(record.metric)}: {shown_score(record, record.value)}, the mean "
        f"over the tuning splits with seeds {seeds[0]} to {seeds[-1]}. No test node was used.",
        *([f"On the same splits: {gain_text(record)}."] if record.start is not None else []),
        f"Versions: {versions}.",
    ]


def shown_score(record: SearchRecord, value: float | None) -> str:
    """A score with as many digits as tell close trials apart."""
    return "diverged" if value is None else score_text(value, record.metric, digits=2)


def gain_text(record: SearchRecord) -> str:
    """How much the winner gained over the trial that the search started with."""
    assert record.start is not None, "the search started with a trial of its own"
    name = NAMES[record.start.name]
    if record.start.number == record.best.number:
        return f"{name} won"
    if record.gain is None:
        return f"{name} diverged"
    shown = shown_score(record, record.start.value)
    metric = metric_of(record.metric)
    gain = f"{metric.scale * record.gain:+.{metric.digits + 1}f}{metric.points}"
    return f"{gain} over {name} ({shown})"


def _one_line(text: str) -> str:
    """Text without line breaks and control characters.

    >>> _one_line("two\\nlines")
    'two lines'
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())

"""What a search found: its trials, the winner as a recipe, and the record on disk.

The record is plain data; figures and page are made of it alone.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from longnn._base.files import atomic_path, write_json
from longnn.config import Config

RECORD, RECIPE = "tuning.json", "recipe.toml"


@dataclasses.dataclass(frozen=True)
class TuningProgress:
    """How a search stands; given to the callback."""

    done: int  # trials finished, of all workers
    total: int
    best_value: float | None  # the best mean validation score so far
    best_params: Mapping[str, Any]  # what it was reached with; empty at first
    elapsed: float  # seconds, of this worker
    eta: float | None  # seconds left, or None as long as that cannot be told
    training: int  # trials in training here
    epoch: int  # of those


@dataclasses.dataclass(frozen=True)
class TuningResult:
    """A finished search. :meth:`write_recipe` writes the winner, ``record`` holds everything."""

    config: Config  # the winner
    value: float  # its mean validation score, over the splits of the finalists too
    trials: Sequence[Mapping[str, Any]]
    record: Mapping[str, Any]
    folder: Path | None

    def write_recipe(self, path: str | Path) -> Path:
        """Write the winner as TOML that :meth:`Config.from_toml` and ``train --config`` take."""
        path = Path(path)
        record, best = self.record, self.record["best"]
        versions = ", ".join(
            f"{name} {record['environment'][name]}" for name in ("longnn", "torch", "optuna")
        )
        seeds = [*record["seeds"], *record["finalists"]["seeds"]]
        header = [
            f"Recipe for {record['model']} on {record['dataset']['name']}, found by longnn tune.",
            f"Trial {best['number']} of {record['finished']} with {record['repeats']} repeats "
            f"in the space {record['space']['name']!r}.",
            f"Validation {record['metric']} {self.value:.4f}, the mean over tuning splits "
            f"with seeds {seeds[0]} to {seeds[-1]}; no test node was used.",
            f"Versions: {versions}.",
        ]
        # A name may hold anything; a comment ends with its line.
        comment = "".join(f"# {_one_line(line)}\n" for line in header)
        with atomic_path(path) as temporary:
            self.config.write_toml(temporary)
            text = temporary.read_text(encoding="utf-8")
            temporary.write_text(comment + "\n" + text, encoding="utf-8")
        return path


def trial_rows(trials: Sequence[FrozenTrial]) -> list[dict[str, Any]]:
    """Trials as plain data, in the order of their numbers."""
    return [_trial_row(trial) for trial in trials]


def _trial_row(trial: FrozenTrial) -> dict[str, Any]:
    start, end = trial.datetime_start, trial.datetime_complete
    attributes = trial.user_attrs
    row = {
        "number": trial.number,
        "state": trial.state.name.lower(),
        "params": attributes.get("values", {}),
        "value": _finite(trial.values[0] if trial.values else None),
        "intermediate": {
            str(step): _finite(v) for step, v in sorted(trial.intermediate_values.items())
        },
        "seconds": (end - start).total_seconds() if start and end else None,
        "worker": attributes.get("worker"),
        **attributes.get("result", {}),
    }
    for key in ("retry_of", "reason"):
        if key in attributes:
            row[key] = attributes[key]
    return row


def best_trial(trials: Sequence[FrozenTrial]) -> FrozenTrial | None:
    """The highest mean score; of equals the lowest loss, then the first."""
    return next(iter(rank_trials(trials)), None)


def rank_trials(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Trials that trained to their end, the best first."""
    complete = [t for t in trials if t.state == TrialState.COMPLETE and t.values]

    def rank(trial: FrozenTrial) -> tuple[float, float, int]:
        losses = trial.user_attrs.get("result", {}).get("losses", [])
        loss = sum(losses) / len(losses) if losses and None not in losses else math.inf
        return (-trial.values[0], loss, trial.number)

    return sorted(complete, key=rank)


def write_record(folder: Path, record: Mapping[str, Any]) -> Path:
    """Write ``tuning.json``, whole or not at all."""
    write_json(folder / RECORD, record)
    return folder / RECORD


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())

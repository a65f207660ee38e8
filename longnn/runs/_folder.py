"""The folder of a run: its names, begun by one alone, held while it is trained, found again.

``run.json`` (what was asked) is written first and ``record.json`` (what came out) last, both
atomically; in between lies ``checkpoint.safetensors``, removed at the very end. So a folder is
complete if it has a record and no checkpoint, and resumable otherwise. ``run.json`` is only ever
created: of two runs that begin in one folder, one gets it.
"""

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from longnn._base.files import TEMPORARY, try_lock, writing
from longnn.config import Config
from longnn.data import DataError
from longnn.records import RECORD, RUN, Request, RunRecord
from longnn.store._ranks import Ranks
from longnn.training import (
    Population,
    StopTraining,
    Watcher,
    is_out_of_memory,
    load_checkpoint,
    save_checkpoint,
    saved_members,
)

OnEpoch = Callable[[Population], None]

CONFIG, REPORT = "config.toml", "report.html"
WEIGHTS, PREDICTIONS = "weights.safetensors", "predictions.csv"
PROGRAM = "model.pt2"
CHECKPOINT = "checkpoint.safetensors"
#: One for each population, where memory allows no more than part of the repeats at once.
CHECKPOINTS = "checkpoint*.safetensors"
#: Stands for members that are trained again where a run is continued.
MARK = "checkpoint-trees.safetensors"


def folder_name(text: str) -> str:
    """A text as the name of a folder.

    >>> folder_name("my graph/lon")
    'my-graph-lon'
    """
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in text)


def default_folder(root: Path, dataset: str, model: str, *, unfinished: bool = False) -> Path:
    """``runs/DATASET-MODEL``, or the first free ``runs/DATASET-MODEL-N``.

    With ``unfinished``, the one before it, if its run has not ended.
    """
    stem = folder_name(f"{dataset}-{model}")
    last, folder, number = None, root / stem, 2
    while folder.exists():
        last, folder, number = folder, root / f"{stem}-{number}", number + 1
    return last if unfinished and last is not None and not is_complete(last) else folder


def is_complete(folder: Path) -> bool:
    """Whether a run has ended: it has a record and no checkpoint."""
    return (folder / RECORD).exists() and not any(folder.glob(CHECKPOINTS))


def begin_folder(folder: Path, request: Request, config: Config) -> None:
    """Create the folder and write down what is asked for."""
    taken = ValueError(
        f"Expected a new folder (got {folder}, which already holds a run); "
        "choose another --output, or continue it with --resume"
    )
    if folder.exists() and not (folder.is_dir() and _is_empty(folder)):
        if (folder / RUN).exists() or (folder / RECORD).exists():
            raise taken
        raise ValueError(f"Expected a new or empty folder (got {folder}, which is neither)")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            request.write(folder)
        except FileExistsError as error:  # another run has begun here since
            raise taken from error
        config.write_toml(folder / CONFIG)


def _is_empty(folder: Path) -> bool:
    """Whether there is nothing, or only what a killed write left behind."""
    return set(folder.iterdir()) <= set(folder.glob(TEMPORARY))


def read_config(folder: Path, request: Request) -> Config:
    """What to train; a disk may have been full before it was in a file of its own."""
    if (folder / CONFIG).exists() or request.config is None:
        try:
            return Config.from_toml(folder / CONFIG)
        except ValueError as error:
            raise DataError(str(error)) from error
    try:
        config = Config.from_dict(request.config)
    except ValueError as error:
        raise DataError(f"{folder / RUN}: {error}") from error
    with writing(folder / CONFIG):
        config.write_toml(folder / CONFIG)
    return config


@contextlib.contextmanager
def hold_folder(folder: Path | None) -> Iterator[None]:
    """Hold a run folder: two who train in it would remove each other's files."""
    if folder is None:
        yield
        return
    with (folder / RUN).open("rb") as file:
        if not try_lock(file):
            raise DataError(
                f"Expected a run that nobody is training (got {folder}, where a training is under "
                "way); wait for its end, or choose another folder"
            )
        yield


def find_run(folder: Path) -> Request:
    """What was asked of the run in a folder; an error where there is none."""
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise DataError(f"Expected a run folder (got {folder}, which {what})")
    try:
        return Request.read(folder)
    except ValueError as error:
        raise DataError(str(error)) from error


def read_record(folder: Path) -> RunRecord:
    """The record of a finished run; an error that says what is missing otherwise."""
    find_run(folder)
    if not (folder / RECORD).exists():
        raise DataError(
            f"Expected a finished run in {folder} (it has no {RECORD}: it was interrupted); "
            f"continue it with: longnn train --resume {folder}"
        )
    try:
        return RunRecord.read(folder)
    except ValueError as error:
        raise DataError(str(error)) from error


def tidy_folder(folder: Path) -> None:
    """Remove checkpoints, and what a killed write left behind."""
    for checkpoint in sorted(folder.glob(CHECKPOINTS)):  # the first one last: it stands for all
        checkpoint.unlink(missing_ok=True)
    for leftover in folder.rglob(TEMPORARY):
        leftover.unlink(missing_ok=True)


def begun_before(folder: Path, request: Request, ranks: Ranks) -> Request | None:
    """The request of the run in a folder, if it is the same run, begun by earlier ranks.

    A finished one counts where ``torchrun`` has started these ranks again.
    """
    if ranks.count == 1:
        return None
    found: Request | None = ranks.agree(_same_run(folder, request) if ranks.first else None)
    return found


def _same_run(folder: Path, request: Request) -> Request | None:
    if not (folder / RUN).exists():
        return None
    found = Request.read(folder)
    same = all(_plain(getattr(found, k)) == _plain(getattr(request, k)) for k in _SAME)
    again = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
    return found if same and (again or not is_complete(folder)) else None


_SAME = ("source", "fingerprint", "config")


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


class Keeper(Watcher):
    """Keeps what populations have reached in checkpoints, and stops them on a signal."""

    def __init__(
        self,
        folder: Path | None,
        caught: list[int],
        on_epoch: OnEpoch | None,
        checkpoint_every: float,
        deadline: float | None,
        ranks: Ranks,
    ) -> None:
        super().__init__(on_epoch, deadline, ranks, aside=True)
        self.folder, self.caught = folder, caught
        self.every, self.saved = checkpoint_every, time.perf_counter()

    def begin(self, population: Population, first: int) -> None:
        """Go on where it was, where the first rank knows of it."""
        if self.folder is None:
            return
        if self.ranks.agree(_checkpoint(self.folder, first).exists()):
            with _damage():
                load_checkpoint(population, _checkpoint(self.folder, first))

    def watch(self, population: Population, first: int) -> None:
        """Save it now and then."""
        caught = self.ranks.any(bool(self.caught))
        if caught or time.perf_counter() - self.saved >= self.every:
            self.rest(population, first)
            self.saved = time.perf_counter()
        if caught:
            raise StopTraining("interrupted")
        super().watch(population, first)

    def check(self) -> None:
        """Stop on a signal, too."""
        if self.ranks.any(bool(self.caught)):
            raise StopTraining("interrupted")
        super().check()

    def unfinished(self) -> None:
        """Leave a mark: there is something to continue."""
        if self.folder is not None and self.ranks.first:
            (self.folder / MARK).touch()

    def rest(self, population: Population, first: int) -> None:
        """Save it."""
        if self.folder is not None and self.ranks.first:
            save_checkpoint(population, _checkpoint(self.folder, first))

    def failed(self, error: BaseException, first: int) -> None:
        """Where memory ran out, fewer will be tried, to whom a checkpoint is of no use."""
        if self.folder is not None and self.ranks.first and is_out_of_memory(error):
            _checkpoint(self.folder, first).unlink(missing_ok=True)


def _checkpoint(folder: Path, first: int) -> Path:
    """Of the repeats that are trained together, by the number of the first."""
    return folder / (CHECKPOINT if first == 0 else f"checkpoint-{first}.safetensors")


def begun_members(folder: Path | None) -> dict[int, int]:
    """The first repeat of every checkpoint, and how many repeats it holds."""
    begun: dict[int, int] = {}
    for path in () if folder is None else folder.glob(CHECKPOINTS):
        number = path.stem.removeprefix("checkpoint").removeprefix("-") or "0"
        if number.isascii() and number.isdecimal():
            with _damage():
                begun[int(number)] = saved_members(path)
    return begun


@contextlib.contextmanager
def _damage() -> Iterator[None]:
    """Say of a checkpoint that cannot be read what to do about it."""
    try:
        yield
    except ValueError as error:
        raise DataError(f"{error}; move it elsewhere to begin the run again") from error

"""Checkpoints of a run: written while it is trained, found and read when it goes on."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from longnn.data import DataError
from longnn.runs._folder import CHECKPOINT, CHECKPOINTS
from longnn.store import Ranks
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
        super().__init__(on_epoch, deadline, ranks)
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

"""Who looks on while members are trained, and may end it."""

import time
from collections.abc import Callable

from longnn.store._ranks import Ranks
from longnn.training._population import Population


class StopTraining(Exception):  # noqa: N818 - it is no error
    """Training ends now, with the best weights so far; ``reason`` is ``"time"`` or alike."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"training was stopped ({reason})")
        self.reason = reason


class Watcher:
    """Looks on while populations are trained: tells a function, and stops them in time.

    Args:
        on_epoch: called with the population after each epoch, on a GPU after every ten.
        deadline: when to stop, by ``time.perf_counter``.
        ranks: those that train together, who stop together; by default one alone.
        aside: whether groups may train in processes of their own, where it looks on too, but
            calls no function.

    >>> Watcher(deadline=0.0).check()
    Traceback (most recent call last):
    longnn.training._watcher.StopTraining: training was stopped (time)
    """

    def __init__(
        self,
        on_epoch: Callable[[Population], None] | None = None,
        deadline: float | None = None,
        ranks: Ranks | None = None,
        *,
        aside: bool = False,
    ) -> None:
        self.on_epoch, self.deadline, self.aside = on_epoch, deadline, aside
        self.ranks = Ranks() if ranks is None else ranks

    def begin(self, population: Population, first: int) -> None:
        """A population is made, whose first member has this number; it may be restored."""

    def watch(self, population: Population, first: int) -> None:
        """An epoch is over. May raise :class:`StopTraining`."""
        if self.on_epoch is not None:
            self.on_epoch(population)
        Watcher.check(self)

    def check(self) -> None:
        """Raise :class:`StopTraining` where it is time."""
        if self.deadline is None:
            return
        if self.ranks.agree(time.perf_counter() >= self.deadline):
            raise StopTraining("time")

    def unfinished(self) -> None:
        """Members were stopped that leave no checkpoint: they will be trained again."""

    def rest(self, population: Population, first: int) -> None:
        """Its turn is over."""

    def failed(self, error: BaseException, first: int) -> None:
        """Training it raised an error."""

"""How far a long piece of work is: named steps, each with its share of the whole."""

from collections.abc import Callable, Mapping

#: Called with the name of the step and the share of the whole that is done.
OnProgress = Callable[[str, float], None]


class Steps:
    """Steps of known relative lengths, one after the other.

    Args:
        lengths: by the name of the step, in order; any unit.
        on_progress: called with the name of a step and the share of the whole that is done.

    >>> steps = Steps({"read": 3, "sort": 1}, lambda name, share: print(name, share))
    >>> steps.begin("sort")
    sort 0.75
    >>> steps.at(0.5)
    sort 0.875
    """

    def __init__(self, lengths: Mapping[str, float], on_progress: OnProgress | None) -> None:
        self._lengths, self._call = dict(lengths), on_progress
        self._total = sum(self._lengths.values())
        self._name, self._before = "", 0.0

    def begin(self, name: str) -> None:
        """Go on to a step; those before it are done."""
        names = list(self._lengths)
        self._name = name
        self._before = sum(self._lengths[earlier] for earlier in names[: names.index(name)])
        self.at(0.0)

    def at(self, share: float) -> None:
        """So much of this step is done."""
        if self._call is not None:
            done = self._before + min(max(share, 0.0), 1.0) * self._lengths[self._name]
            self._call(self._name, done / self._total)

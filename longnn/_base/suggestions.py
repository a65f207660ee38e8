"""The nearest valid word to one that is not."""

import difflib
from collections.abc import Iterable


def nearest(word: str, choices: Iterable[str], *, count: int = 1) -> list[str]:
    """Up to ``count`` choices that look like the word, the nearest first.

    >>> nearest("degre", ["degree", "dropout"])
    ['degree']
    """
    return difflib.get_close_matches(word, list(choices), n=count, cutoff=0.5)


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """The end of an error message: ``"; did you mean `degree`?"``, or nothing.

    >>> did_you_mean("degre", ["degree", "dropout"])
    '; did you mean `degree`?'
    >>> did_you_mean("xyz", ["degree"])
    ''
    """
    near = nearest(word, choices)
    return f"; did you mean `{near[0]}`?" if near else ""

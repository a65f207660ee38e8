"""What is said of a word that is not valid: those that are, or the nearest."""

import difflib
import reprlib
from collections.abc import Iterable, Sequence
from typing import Any


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


def check_choice(key: str, value: Any, choices: Sequence[str]) -> None:
    """Raise where there are choices and the value is none of them."""
    if choices and value not in choices:
        raise ValueError(f"Expected `{key}` to be one of {', '.join(choices)} (got {short(value)})")


def short(value: Any) -> str:
    """A value of any kind and size, for a message."""
    text = reprlib.repr(value)
    return text if len(text) <= 80 else text[:77] + "..."

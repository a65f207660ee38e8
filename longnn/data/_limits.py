"""Whether what a file asks for fits into memory, known before any of it is allocated."""

from pathlib import Path

from longnn._base import memory
from longnn.data._errors import DataError


def require_memory(needed: float, what: str, *, path: str | Path | None = None) -> None:
    """Raise unless so many bytes are free.

    Args:
        needed: in bytes; an upper bound is not needed, the order of magnitude is.
        what: what they are for, for the message.
        path: the file that asks for them.

    Raises:
        DataError: naming both numbers.

    >>> require_memory(1e18, "its features")
    Traceback (most recent call last):
    longnn.data._errors.DataError: Expected its features to fit into memory (got 1 EB, ... free).
    """
    free = memory.available_memory()
    if free is not None and needed > free:
        raise DataError(
            f"Expected {what} to fit into memory (got {memory.in_words(needed)}, "
            f"{memory.in_words(free)} are free).",
            path=path,
            value=needed,
        )

"""What can be wrong with data, as exceptions that name the place; and numbers in sentences.

All readers of this package raise them, naming file, line, column and value. One base class, so that
a command line can turn each of them into one line. Whether a file ends, and whether what it asks
for fits into memory, is known before any of it is read or allocated.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from longnn._base import memory


class DataError(ValueError):
    """Data that cannot be used, and the place of the fault.

    Args:
        message: what was expected, what was found, and the remedy.
        path: the file (or folder) at fault.
        table: what a table in memory is called, where there is no file.
        row: 1-based line of a text file, 1-based row of any other.
        column: the name (or index) of the column at fault.
        value: the offending value, as it was read.

    >>> print(DataError("Expected a number (got 'old').", path="n.csv", row=3, column="age"))
    n.csv, line 3, column 'age': Expected a number (got 'old').
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | Path | None = None,
        table: str | None = None,
        row: int | None = None,
        column: str | int | None = None,
        value: object = None,
    ) -> None:
        self.path = None if path is None else Path(path)
        self.row = row
        self.column = column
        self.value = value
        place = [str(part) for part in (path, table) if part is not None]
        if row is not None:
            place.append(f"line {row}" if path is not None else f"row {row}")
        if column is not None:
            place.append(f"column {column!r}")
        text = " ".join(message.split())  # one line, whatever a library put in its message
        super().__init__(f"{', '.join(place)}: {text}" if place else text)

    def named(self, path: Path) -> "DataError":
        """The same error with the file it is in, where it does not name one yet."""
        if self.path is None:
            self.path = path
            self.args = (f"{path}: {self.args[0]}",)
        return self

    def __reduce__(self) -> tuple[object, ...]:
        # The message already holds the place: rebuild from it, then restore the fields.
        return (_rebuild, (type(self), self.args[0], self.__dict__))


class MissingFileError(DataError, FileNotFoundError):
    """A file the user named does not exist."""


class DatasetUnavailable(DataError, FileNotFoundError):  # noqa: N818 (a state, not a slip)
    """A named dataset is neither on disk nor obtainable."""


def _rebuild(kind: type[DataError], text: str, fields: dict[str, object]) -> DataError:
    error = kind(text)
    error.__dict__.update(fields)
    return error


def require_file(path: Path) -> None:
    """Raise unless there is a file (or a folder): devices and pipes may have no end.

    >>> require_file(Path("/dev/null"))
    Traceback (most recent call last):
    longnn.data._errors.DataError: /dev/null: Expected a regular file (got a device or a pipe).
    """
    if not path.exists():
        raise MissingFileError("Expected a file here (found none).", path=path)
    if not path.is_file() and not path.is_dir():
        raise DataError("Expected a regular file (got a device or a pipe).", path=path)


@contextmanager
def readable(path: Path, what: str, where: str = "") -> Iterator[None]:
    """Whatever a library raises for a damaged or hostile file, as one error that names the file.

    What that can be changes from one version of a library to the next: nobody can list it.
    """
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}{where}"
        raise DataError(
            f"Expected a readable, complete {what} (got {reason}).", path=path
        ) from error


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


def few(items: Sequence[str], separator: str = ", ", most: int = 5) -> str:
    """Items in a sentence, the first of them where they are many.

    >>> few(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = len(items) - most
    rest = f"{separator.strip(',')}and {more} more" if more > 0 else ""
    return separator.join(items[:most]) + rest


def counted(number: int, noun: str) -> str:
    """A number of things: "1 node", "2 nodes"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def was(number: int) -> str:
    """The verb after a number of things that something was done to."""
    return "was" if number == 1 else "were"


def have(number: int) -> str:
    """The verb after a number of things that have something."""
    return "has" if number == 1 else "have"

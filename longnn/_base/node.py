"""A JSON value that knows where it came from.

Reading a record through it turns whatever is wrong with the file into one sentence that names
the file, the place in it, what was expected and what was found.
"""

import itertools
import json
import math
import reprlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np

T = TypeVar("T", bound=str)
_NOTHING = object()
#: Levels of lists and objects inside each other; records have eight.
DEEPEST = 32
_shorten = reprlib.Repr()
_shorten.maxstring = _shorten.maxother = _shorten.maxlong = 40


class Node:
    """A value of a JSON file, with its place.

    >>> record = Node({"metric": "accuracy", "repeats": []}, file="record.json")
    >>> record["metric"].text()
    'accuracy'
    >>> record["repeats"].integer()
    Traceback (most recent call last):
    ...
    ValueError: record.json: Expected 'repeats' to be a whole number (got []).
    """

    def __init__(self, value: Any, *, file: str | Path, place: str = "") -> None:
        self._value = value
        self._file = file
        self._place = place

    @classmethod
    def load(cls, path: Path) -> "Node":
        """Read a JSON file whose outermost value is an object.

        Raises:
            ValueError: the file holds anything else.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: Expected JSON text in UTF-8 (got other bytes).") from error
        return cls.parse(text, file=path)

    @classmethod
    def parse(cls, text: str, *, file: str | Path, place: str = "") -> "Node":
        """Read JSON text whose outermost value is an object; raises as :meth:`load`."""
        where = f"{file}: Expected {place or 'a JSON record'}"
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{where} (got text that breaks off or is damaged at line "
                f"{error.lineno}: {error.msg})."
            ) from error
        except RecursionError:
            raise ValueError(f"{where} (got more than {DEEPEST} levels).") from None
        except ValueError as error:  # a whole number of thousands of digits
            raise ValueError(f"{where} (got a number that is too long).") from error
        if not isinstance(value, dict):
            expected = f"{place} to be a JSON object" if place else "a JSON object"
            raise ValueError(f"{file}: Expected {expected} (got {_short(value)}).")
        if not _is_flat(value):
            raise ValueError(f"{where} (got more than {DEEPEST} levels).")
        if "\\ud" in text.lower():
            value = _mended(value)
        return cls(value, file=file, place=place)

    def __getitem__(self, key: str) -> "Node":
        place = f"{self._place}.{key}" if self._place else key
        return Node(self.mapping().get(key, _NOTHING), file=self._file, place=place)

    def __iter__(self) -> Iterator["Node"]:
        if not isinstance(self._value, list):
            self.fail("a list")
        for index, value in enumerate(self._value):
            yield Node(value, file=self._file, place=f"{self._place}[{index}]")

    @property
    def given(self) -> bool:
        """Whether there is a value: neither absent nor null."""
        return self._value is not _NOTHING and self._value is not None

    def fail(self, expected: str) -> NoReturn:
        got = "nothing" if self._value is _NOTHING else _short(self._value)
        raise ValueError(f"{self._file}: Expected {self._place!r} to be {expected} (got {got}).")

    def mapping(self) -> dict[str, Any]:
        if not isinstance(self._value, dict):
            self.fail("an object")
        return self._value

    def text(self, default: str | None = None) -> str:
        """A text; the default, if there is one, where nothing is given."""
        if default is not None and not self.given:
            return default
        if not isinstance(self._value, str):
            self.fail("text")
        return self._value

    def texts(self) -> tuple[str, ...]:
        """A list of texts; numbers count as text, nothing as the empty list."""
        if not self.given:
            return ()
        return tuple(str(item._value) for item in self)

    def scalars(self) -> list[str | int | float | bool]:
        """A list of texts, numbers, true and false."""
        found = [item._value for item in self]
        if not all(isinstance(value, str | int | float) for value in found):
            self.fail("a list of texts or numbers")
        return found

    def choice(self, choices: Sequence[T]) -> T:
        """One of some texts."""
        if self._value not in choices:
            self.fail(f"one of {', '.join(choices)}")
        return choices[choices.index(self._value)]

    def number(self) -> float:
        """A number, NaN for what is not finite; null is how JSON writes a NaN."""
        if self._value is None:
            return float("nan")
        if isinstance(self._value, bool) or not isinstance(self._value, int | float):
            self.fail("a number")
        try:
            number = float(self._value)
        except OverflowError:
            return float("nan")
        return number if math.isfinite(number) else float("nan")

    def integer(self) -> int:
        """A whole number of 64 bits."""
        whole = isinstance(self._value, int) and not isinstance(self._value, bool)
        if not whole or not -(2**63) <= self._value < 2**63:
            self.fail("a whole number")
        return int(self._value)

    def truth(self) -> bool:
        if not isinstance(self._value, bool):
            self.fail("true or false")
        return self._value

    def numbers(self) -> dict[str, float]:
        return {key: self[key].number() for key in self.mapping()}

    def array(self, *shape: int | None) -> np.ndarray:
        """A float array, NaN for what is not finite; None in ``shape`` is any size but zero."""
        sizes = " x ".join("any" if size is None else str(size) for size in shape)
        expected = f"a list of numbers of shape {sizes}"
        if not isinstance(self._value, list):
            self.fail(expected)
        try:
            array = np.array(self._value, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            self.fail(expected)
        fits = array.ndim == len(shape) and all(
            size > 0 if wanted is None else size == wanted
            for size, wanted in zip(array.shape, shape, strict=True)
        )
        if not fits:
            self.fail(expected)
        return np.where(np.isfinite(array), array, np.nan)


def _is_flat(value: Any) -> bool:
    """Whether there are few levels, so that what recurses may; this does not."""
    level = [value]
    for _ in range(DEEPEST):
        lists = [each for each in level if isinstance(each, list)]
        level = [inner for each in level if isinstance(each, dict) for inner in each.values()]
        level += itertools.chain.from_iterable(lists)
        if not level:
            return True
    return False


def _mended(value: Any) -> Any:
    """The same without halves of characters, which JSON may hold and no file can be given."""
    if isinstance(value, dict):
        return {_mended(key): _mended(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_mended(inner) for inner in value]
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def _short(value: Any) -> str:
    text = _shorten.repr(value)
    return text if len(text) <= 40 else text[:37] + "..."

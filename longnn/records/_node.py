"""A JSON value that knows where it came from.

Reading a record through it turns whatever is wrong with the file into one sentence that names
the file, the place in it, what was expected and what was found.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

_NOTHING = object()


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
        """Read a JSON file whose outermost value is an object."""
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: Expected JSON text in UTF-8 (got other bytes).") from error
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{path}: Expected a JSON record (got text that breaks off or is damaged at line "
                f"{error.lineno}: {error.msg})."
            ) from error
        if not isinstance(value, dict):
            raise ValueError(f"{path}: Expected a JSON object (got {_short(value)}).")
        return cls(value, file=path)

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

    def text(self) -> str:
        if not isinstance(self._value, str):
            self.fail("text")
        return self._value

    def texts(self) -> tuple[str, ...]:
        """A list of texts; numbers count as text, nothing as the empty list."""
        if not self.given:
            return ()
        return tuple(str(item._value) for item in self)

    def number(self) -> float:
        """A number, where null (how JSON writes a NaN) is a NaN."""
        if self._value is None:
            return float("nan")
        if isinstance(self._value, bool) or not isinstance(self._value, int | float):
            self.fail("a number")
        return float(self._value)

    def integer(self) -> int:
        if isinstance(self._value, bool) or not isinstance(self._value, int):
            self.fail("a whole number")
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
        except (TypeError, ValueError):
            self.fail(expected)
        fits = array.ndim == len(shape) and all(
            size > 0 if wanted is None else size == wanted
            for size, wanted in zip(array.shape, shape, strict=True)
        )
        if not fits:
            self.fail(expected)
        return np.where(np.isfinite(array), array, np.nan)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."

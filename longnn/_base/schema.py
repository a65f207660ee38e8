"""What is written as JSON: dataclasses, whose annotations are the schema.

:func:`to_plain` writes one, :meth:`Node.read` reads it back. A :class:`Node` is a value of a JSON
file that knows its place, so that whatever is wrong with a file becomes one sentence that names the
file, the place in it, what was expected and what was found. Files are hostile: levels without end,
numbers of thousands of digits and halves of characters are errors, or harmless.

A field is a key; a name that ends in an underscore is written without it (``from_`` as ``"from"``).
A field that is None is left out. Metadata of a field say otherwise, see :func:`stored`.
"""

import dataclasses
import functools
import itertools
import json
import math
import reprlib
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NoReturn,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

T = TypeVar("T")
_NOTHING = object()
#: Levels of lists and objects inside each other; records have eight.
DEEPEST = 32
_shorten = reprlib.Repr()
_shorten.maxstring = _shorten.maxother = _shorten.maxlong = 40


@dataclasses.dataclass(frozen=True)
class Shape:
    """The sizes of an array of numbers, as ``Annotated[np.ndarray, Shape("points")]``.

    A name stands for any size but zero (where it may not be ``empty``), the same in all arrays of a
    dataclass. ``whole`` numbers are written without a point.
    """

    sizes: tuple[int | str, ...]
    whole: bool
    empty: bool

    def __init__(self, *sizes: int | str, whole: bool = False, empty: bool = False) -> None:
        for name, value in (("sizes", sizes), ("whole", whole), ("empty", empty)):
            object.__setattr__(self, name, value)


#: Arrays over points, classes and bins: in a dataclass all of one name have one size.
Points = Annotated[np.ndarray, Shape("points")]


def stored(
    *, key: str = "", null: bool = False, empty: bool = True, file: bool = True, **options: Any
) -> Any:
    """A field with what its annotation does not say.

    Args:
        key: its key, where that is not its name.
        null: written as null where it is None.
        empty: written where it is empty.
        file: written at all.
        options: of :func:`dataclasses.field`.
    """
    about = {"key": key, "null": null, "empty": empty, "file": file}
    return dataclasses.field(metadata=about, **options)


class Schema:
    """Base class of dataclasses whose file may hold more than they know, and that check more than
    types say."""

    def check(self, node: "Node") -> None:
        """Raise where what was read from a place contradicts itself."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as what JSON can hold."""
        return _write_fields(self)


def to_plain(value: Any) -> Any:
    """A dataclass, or lists and tables of them, as what JSON can hold; NaN as null.

    >>> @dataclasses.dataclass
    ... class Score:
    ...     test: tuple[float, ...]
    ...     note: str | None = None
    >>> to_plain(Score((0.5, 0.7)))
    {'test': [0.5, 0.7]}
    """
    if isinstance(value, Schema):
        return value.to_dict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _write_fields(value)
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        finite = value.dtype.kind != "f" or bool(np.isfinite(value).all())
        return value.tolist() if finite else to_plain(value.tolist())
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def from_plain(
    kind: type[T], value: object, place: str = "value", *, file: Path | None = None
) -> T:
    """The dataclass that :func:`to_plain` wrote.

    Args:
        kind: the dataclass.
        value: what JSON gave.
        place: where it stood, for errors.
        file: that it stood in.

    Raises:
        ValueError: where a field is missing, unknown or of another type.

    >>> @dataclasses.dataclass
    ... class Score:
    ...     test: list[float]
    >>> from_plain(Score, {"test": [0.5, 1.0]})
    Score(test=[0.5, 1.0])
    >>> from_plain(Score, {"test": "high"}, "cora")
    Traceback (most recent call last):
    ...
    ValueError: Expected 'cora.test' to be a list (got 'high').
    """
    record: T = Node(value, file=file, place=place).read(kind)
    return record


@functools.cache
def _fields(kind: Any) -> dict[str, tuple["dataclasses.Field[Any]", Any]]:
    """Key -> field and annotation, of the fields that are written."""
    hints = get_type_hints(kind, include_extras=True)
    fields = [f for f in dataclasses.fields(kind) if f.metadata.get("file", True)]
    keys = [f.metadata.get("key") or f.name.removesuffix("_") for f in fields]
    return {key: (f, hints[f.name]) for key, f in zip(keys, fields, strict=True)}


def _write_fields(value: Any) -> dict[str, Any]:
    plain = {}
    for key, (field, kind) in _fields(value.__class__).items():
        item, about = getattr(value, field.name), field.metadata
        if item is None and not about.get("null"):
            continue
        if not about.get("empty", True) and not item:
            continue
        shape = _shape(kind)
        plain[key] = to_plain(item.astype(int) if shape and shape.whole and len(item) else item)
    return plain


def _shape(kind: Any) -> Shape | None:
    """The shape of an array, or of an array or None."""
    for option in (kind, *get_args(kind)):
        for about in getattr(option, "__metadata__", ()):
            if isinstance(about, Shape):
                return about
    return None


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

    def __init__(self, value: Any, *, file: str | Path | None, place: str = "") -> None:
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
        if not isinstance(self._value, list | tuple):
            self.fail("a list")
        for index, value in enumerate(self._value):
            yield Node(value, file=self._file, place=f"{self._place}[{index}]")

    @property
    def given(self) -> bool:
        """Whether there is a value: neither absent nor null."""
        return self._value is not _NOTHING and self._value is not None

    def fail(self, expected: str) -> NoReturn:
        got = "nothing" if self._value is _NOTHING else _short(self._value)
        where = "" if self._file is None else f"{self._file}: "
        raise ValueError(f"{where}Expected {self._place!r} to be {expected} (got {got}).")

    def read(self, kind: Any) -> Any:
        """The value as what an annotation asks for."""
        origin, arguments = get_origin(kind), get_args(kind)
        if kind in _LEAVES:
            return _LEAVES[kind](self)
        if origin is Annotated:
            return self._array(arguments[1], {})
        if origin in (Union, types.UnionType):
            return self._read_union(arguments)
        if origin is Literal:
            return self.choice(arguments)
        if origin in (list, tuple, Sequence):
            return self._read_list(origin, arguments)
        if origin in (dict, Mapping):
            return {key: self[key].read(arguments[1]) for key in self.mapping()}
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            return self._read_fields(kind)
        return self._value  # Any: whatever it is

    def _read_list(self, origin: Any, arguments: Sequence[Any]) -> Any:
        items = list(self)
        fixed = origin is tuple and arguments[-1] is not Ellipsis
        if fixed and len(items) != len(arguments):
            self.fail(f"a list of {len(arguments)}")
        kinds = arguments if fixed else itertools.repeat(arguments[0])
        values = [item.read(each) for item, each in zip(items, kinds, strict=False)]
        return tuple(values) if origin is tuple else values

    def _read_union(self, kinds: Sequence[Any]) -> Any:
        """The kind of the value, else the first that fits; of the last the error if none does."""
        if self._value is None and type(None) in kinds:
            return None
        if type(self._value) in kinds:
            return self.read(type(self._value))
        *first, last = [kind for kind in kinds if kind is not type(None)]
        for kind in first:
            try:
                return self.read(kind)
            except ValueError:
                continue
        return self.read(last)

    def _read_fields(self, kind: Any) -> Any:
        fields, sizes = _fields(kind), dict[str, int]()
        unknown = [key for key in self.mapping() if key not in fields]
        if unknown and not issubclass(kind, Schema):
            self.fail(f"an object with fields among {', '.join(fields)}, without {unknown[0]!r}")
        table = {}
        for key, (field, annotation) in fields.items():
            node, shape = self[key], _shape(annotation)
            optional = field.default is not dataclasses.MISSING
            optional |= field.default_factory is not dataclasses.MISSING
            null = node._value is None and type(None) in get_args(annotation)
            if optional and not node.given and not null:
                continue
            if shape is not None and (node.given or not optional):
                table[field.name] = node._array(shape, sizes)
            else:
                table[field.name] = node.read(annotation)
        value = kind(**table)
        if isinstance(value, Schema):
            value.check(self)
        return value

    def mapping(self) -> Any:
        if not isinstance(self._value, Mapping):
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
        values = [item._value for item in self]
        if not all(isinstance(value, str | int | float) for value in values):
            self.fail("a list of texts or numbers")
        return values

    def choice(self, choices: Sequence[T]) -> T:
        """One of some texts."""
        if self._value not in choices:
            self.fail(f"one of {', '.join(map(str, choices))}")
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

    def array(self, *sizes: int | None) -> np.ndarray:
        """A float array, NaN for what is not finite; None is any size but zero."""
        return self._array(Shape(*("any" if size is None else size for size in sizes)), None)

    def _array(self, shape: Shape, sizes: dict[str, int] | None) -> np.ndarray:
        """A float array; ``sizes`` are those of the names of a dataclass until now."""
        wanted = [(sizes or {}).get(s, s) if isinstance(s, str) else s for s in shape.sizes]
        expected = f"a list of numbers of shape {' x '.join(map(str, wanted))}"
        if not isinstance(self._value, list):
            self.fail(expected)
        try:
            array = np.array(self._value, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            self.fail(expected)
        if array.ndim != len(wanted):
            self.fail(expected)
        own: dict[str, int] = {} if sizes is None else sizes
        for name, size, length in zip(shape.sizes, wanted, array.shape, strict=True):
            named = isinstance(name, str) and sizes is not None
            fits = length > 0 or shape.empty if isinstance(size, str) else length == size
            if not fits or (named and own.setdefault(str(name), length) != length):
                self.fail(expected)
        return np.where(np.isfinite(array), array, np.nan)


_LEAVES: dict[Any, Any] = {str: Node.text, float: Node.number, int: Node.integer, bool: Node.truth}


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

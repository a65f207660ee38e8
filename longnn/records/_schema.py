"""Dataclasses as plain JSON data and back: the annotations are the schema.

A field is a key; a name that ends in an underscore is written without it (``from_`` as ``"from"``).
A field that is None is left out, unless it is marked by :data:`KEEP_NONE`. Reading checks keys and
types, so that a damaged or foreign file fails in one sentence that names the place.
"""

import dataclasses
import types
from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

#: Metadata of a field that is written as null when it is None.
KEEP_NONE = {"keep_none": True}


class Schema:
    """Base class of dataclasses that write and read themselves; a subclass may do so otherwise."""

    @classmethod
    def from_dict(cls, given: Any, *, place: str = "record") -> Self:
        """Read what :meth:`to_dict` wrote.

        Args:
            given: what JSON gave.
            place: where it stood, for errors.

        Raises:
            ValueError: where a field is missing, unknown or of another type.
        """
        return _read_fields(cls, given, place)

    def to_dict(self) -> dict[str, Any]:
        """The fields as what JSON can hold."""
        return _write_fields(self)


def to_plain(value: Any) -> Any:
    """A dataclass, or lists and tables of them, as what JSON can hold.

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
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return value


def from_plain(kind: type[T], value: object, place: str = "value") -> T:
    """The dataclass that :func:`to_plain` wrote.

    Args:
        kind: the dataclass.
        value: what JSON gave.
        place: where it stood, for errors.

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
    ValueError: Expected `cora.test` to be a list (got 'high')
    """
    found: T = _read(kind, value, place)
    return found


def _key(field: "dataclasses.Field[Any]") -> str:
    return field.name.removesuffix("_")


def _write_fields(value: Any) -> dict[str, Any]:
    found = {}
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if item is not None or field.metadata.get("keep_none"):
            found[_key(field)] = to_plain(item)
    return found


def _read(kind: Any, value: Any, place: str) -> Any:
    """A plain value as what the annotation asks for."""
    origin, arguments = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and issubclass(kind, Schema):
        return kind.from_dict(value, place=place)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _read_fields(kind, value, place)
    if origin in (Union, types.UnionType):
        return _read_union(arguments, value, place)
    if origin in (list, tuple, Sequence):
        items = _check(isinstance(value, list | tuple), value, "a list", place)
        read = [_read(arguments[0], item, f"{place}[{i}]") for i, item in enumerate(items)]
        return tuple(read) if origin is tuple else read
    if origin in (dict, Mapping):
        _check(isinstance(value, Mapping), value, "an object", place)
        return {k: _read(arguments[1], v, f"{place}.{k}") for k, v in value.items()}
    if kind in (float, int, str, bool):
        accepted = (int, float) if kind is float else kind
        # Python counts true and false as integers.
        fits = isinstance(value, accepted) and isinstance(value, bool) == (kind is bool)
        name = "a number" if kind is float else f"of type {kind.__name__}"
        return _check(fits, value, name, place)
    return value  # object: whatever it is


def _read_fields(kind: type[T], value: Any, place: str) -> T:
    _check(isinstance(value, Mapping), value, "an object", place)
    hints = get_type_hints(kind)
    known = {_key(field): field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    unknown = [key for key in value if key not in known]
    if unknown:
        raise ValueError(
            f"Expected `{place}` to have fields among {', '.join(known)} (got {unknown})"
        )
    found = {}
    for key, field in known.items():
        if key in value:
            found[field.name] = _read(hints[field.name], value[key], f"{place}.{key}")
        elif field.default is field.default_factory is dataclasses.MISSING:
            raise ValueError(f"Expected `{place}.{key}` (got nothing)")
    return kind(**found)


def _read_union(kinds: Sequence[Any], value: Any, place: str) -> Any:
    """The first kind that fits; the error of the last where none does."""
    if value is None and type(None) in kinds:
        return None
    *first, last = [kind for kind in kinds if kind is not type(None)]
    for kind in first:
        try:
            return _read(kind, value, place)
        except ValueError:
            continue
    return _read(last, value, place)


def _check(fits: bool, value: Any, expected: str, place: str) -> Any:
    if not fits:
        shown = repr(value)
        shown = shown if len(shown) <= 40 else shown[:37] + "..."
        raise ValueError(f"Expected `{place}` to be {expected} (got {shown})")
    return value

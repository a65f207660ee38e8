"""Dataclasses as plain JSON data and back.

A field is a key. A field that is ``None`` is left out. Reading checks the types that are written at
the fields, so that a damaged or foreign file fails in one sentence that names the place.
"""

import dataclasses
import types
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """A dataclass, or lists and tables of them, as what JSON can hold.

    >>> @dataclasses.dataclass
    ... class Score:
    ...     test: tuple[float, ...]
    ...     note: str | None = None
    >>> to_plain(Score((0.5, 0.7)))
    {'test': [0.5, 0.7]}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        found = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {key: to_plain(item) for key, item in found.items() if item is not None}
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
    >>> from_plain(Score, {"test": [0.5, 1]})
    Score(test=[0.5, 1.0])
    >>> from_plain(Score, {"test": "high"}, "cora")
    Traceback (most recent call last):
    ...
    ValueError: Expected `cora.test` to be a list (got 'high')
    """
    found: T = _read(kind, value, place)
    return found


def _read(kind: Any, value: Any, place: str) -> Any:
    origin = get_origin(kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _read_fields(kind, value, place)
    if origin in (Union, types.UnionType):
        return _read_union(get_args(kind), value, place)
    if origin in (list, tuple, Sequence):
        items = _check(isinstance(value, list | tuple), value, "a list", place)
        read = [_read(get_args(kind)[0], item, f"{place}[{i}]") for i, item in enumerate(items)]
        return tuple(read) if origin is tuple else read
    if origin in (dict, Mapping):
        _check(isinstance(value, Mapping), value, "an object", place)
        return {k: _read(get_args(kind)[1], v, f"{place}.{k}") for k, v in value.items()}
    if kind is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(_check(number, value, "a number", place))
    if kind in (int, str, bool):
        fits = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
        return _check(fits, value, f"of type {kind.__name__}", place)
    return value  # object: whatever it is


def _read_fields(kind: type[T], value: Any, place: str) -> T:
    _check(isinstance(value, Mapping), value, "an object", place)
    hints = get_type_hints(kind)
    fields = {f.name: f for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    unknown = [key for key in value if key not in fields]
    if unknown:
        raise ValueError(
            f"Expected `{place}` to have fields among {', '.join(fields)} (got {unknown})"
        )
    for name, field in fields.items():
        required = field.default is field.default_factory is dataclasses.MISSING
        if required and name not in value:
            raise ValueError(f"Expected `{place}.{name}` (got nothing)")
    return kind(**{key: _read(hints[key], item, f"{place}.{key}") for key, item in value.items()})


def _read_union(kinds: Sequence[Any], value: Any, place: str) -> Any:
    """The one kind beside None; of plain types (numbers, texts) the value as it is."""
    if value is None and type(None) in kinds:
        return None
    others = [kind for kind in kinds if kind is not type(None)]
    if len(others) == 1:
        return _read(others[0], value, place)
    fits = isinstance(value, tuple(others))
    return _check(fits, value, " or ".join(kind.__name__ for kind in others), place)


def _check(fits: bool, value: Any, expected: str, place: str) -> Any:
    if not fits:
        shown = repr(value)
        shown = shown if len(shown) <= 40 else shown[:37] + "..."
        raise ValueError(f"Expected `{place}` to be {expected} (got {shown})")
    return value

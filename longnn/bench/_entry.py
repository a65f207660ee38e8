"""Dataclasses that read and write themselves as JSON: the annotations are the schema.

Knows nothing of benchmarks. Unknown and missing keys fail with the place where they are.
"""

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, Self

#: Metadata of a field that is absent from the JSON while it is None.
OPTIONAL = {"optional": True}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Base class of the sections of a record.

    Fields may be numbers, texts, other entries, and lists or dictionaries of them. A field name
    that ends in an underscore is written without it (``from_`` as ``"from"``).
    """

    @classmethod
    def from_dict(cls, given: Mapping[str, Any], *, place: str = "") -> Self:
        """Read the section from plain values.

        Args:
            given: the values as :meth:`to_dict` gives them.
            place: where they are in the whole record, for error messages.

        Raises:
            ValueError: for a missing or unknown key, or a value of another kind.
        """
        if not isinstance(given, Mapping):
            raise ValueError(f"Expected an object at {place or 'the top'} (got {given!r})")
        hints = typing.get_type_hints(cls)
        known = {_key(f): f for f in fields(cls)}
        unknown = sorted(given.keys() - known.keys())
        if unknown:
            raise ValueError(f"Expected no {_join(place, unknown[0])!r} (got a value)")
        values: dict[str, Any] = {}
        for key, item in known.items():
            if key in given:
                values[item.name] = _read(hints[item.name], given[key], _join(place, key))
            elif item.default is MISSING and item.default_factory is MISSING:
                raise ValueError(f"Expected {_join(place, key)!r} (got nothing)")
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """The section as plain values that JSON can hold."""
        found = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if value is not None or not item.metadata.get("optional"):
                found[_key(item)] = _plain(value)
        return found


def _key(item: "Field[Any]") -> str:
    return item.name.removesuffix("_")


def _join(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _plain(value: Any) -> Any:
    if isinstance(value, Entry):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _read(hint: Any, value: Any, place: str) -> Any:
    """A plain value as what the annotation asks for."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _read_union(arguments, value, place)
    if origin is dict and isinstance(value, Mapping):
        return {key: _read(arguments[1], item, _join(place, key)) for key, item in value.items()}
    if origin is list and isinstance(value, list | tuple):
        return [_read(arguments[0], item, f"{place}[{i}]") for i, item in enumerate(value)]
    if isinstance(hint, type) and issubclass(hint, Entry):
        return hint.from_dict(value, place=place)
    accepted = (int, float) if hint is float else hint
    is_bool = isinstance(value, bool)  # which Python counts as an integer
    if origin is None and isinstance(value, accepted) and is_bool == (hint is bool):
        return value
    name = getattr(hint, "__name__", str(hint))
    raise ValueError(f"Expected {place!r} to be of type {name} (got {value!r})")


def _read_union(choices: tuple[Any, ...], value: Any, place: str) -> Any:
    """The first choice that fits; the error of the last where none does."""
    if value is None and types.NoneType in choices:
        return None
    *first, last = [choice for choice in choices if choice is not types.NoneType]
    for choice in first:
        try:
            return _read(choice, value, place)
        except ValueError:
            continue
    return _read(last, value, place)

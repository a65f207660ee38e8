"""Single values of a configuration: type, choices and range checked one by one; read from and
written as TOML. Knows no name but those with a range, and nothing of models.
"""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longnn._base.suggestions import short

#: The least and the greatest of every whole number. Whatever is greater is a slip of the keyboard,
#: or a damaged file: a filter has tables of (degree + 1)^2 numbers, a history one row per epoch.
#: What fits below depends on the graph, see `longnn.training`.
LIMITS = {
    "hidden_channels": (1, 2**20),
    "degree": (0, 4096),
    "output_degree": (0, 4096),
    "stacks": (1, 1024),
    "layers": (1, 1024),
    "blocks": (1, 1024),
    "heads": (1, 1024),
    "repeat": (1, 10**6),
    "epochs": (1, 10**7),
    "batch_rows": (1, 10**7),
    "patience": (1, 2**31 - 1),
    "seed": (0, 2**62),
}


def check_range(key: str, value: Any) -> None:
    """Raise where a whole number is outside its limits."""
    if key not in LIMITS:
        return
    least, most = LIMITS[key]
    if not least <= value <= most:
        raise ValueError(f"Expected {least} <= `{key}` <= {most} (got {short(value)})")


def check_table(name: str, value: Any) -> Mapping[str, Any]:
    """The value, or an error where it is no table with text as names."""
    if not isinstance(value, Mapping):
        raise ValueError(
            f"Expected `{name}` to be a table of names and values (got {short(value)})"
        )
    for key in value:
        if not isinstance(key, str):
            raise ValueError(f"Expected `{name}` to have text as names (got {short(key)})")
    return value


def type_in_words(default: Any) -> str:
    """What values are in place of this default, for a message."""
    kinds = {bool: "true or false", int: "an integer", float: "a number"}
    return kinds.get(type(default), "a word")


def check_type(key: str, value: Any, default: Any) -> Any:
    """The value in the type of its default (an int is a float), or an error."""
    if isinstance(default, bool):
        fits = isinstance(value, bool)
    elif isinstance(default, int):
        fits = isinstance(value, int) and not isinstance(value, bool)
    elif isinstance(default, float):
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        try:
            value = float(value) if fits else value
        except OverflowError:  # a whole number of hundreds of digits
            fits = False
    else:
        fits = isinstance(value, str)
    if not fits:
        raise ValueError(f"Expected `{key}` to be {type_in_words(default)} (got {short(value)})")
    return value


def read_toml(path: str | Path) -> dict[str, Any]:
    """A TOML file as a flat table, but for the tables of members, or one clear error."""
    try:
        with Path(path).open("rb") as file:
            table = tomllib.load(file)
    except (ValueError, RecursionError) as error:  # no TOML, no UTF-8, numbers without end
        raise ValueError(f"Expected {path} to be TOML ({error})") from error
    kinds = {"members": list}
    nested = [k for k, value in table.items() if isinstance(value, kinds.get(k, dict | list))]
    if nested:
        raise ValueError(f"Expected a flat table in {path} (got a table or list at {nested[0]!r})")
    return table


def parse_assignment(text: str) -> tuple[str, Any]:
    """``key=value`` from the command line; the value as TOML where it is, else as text.

    >>> parse_assignment("degree=5"), parse_assignment("weight=paper")
    (('degree', 5), ('weight', 'paper'))
    """
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise ValueError(f"Expected key=value (got {text!r})")
    try:
        parsed = tomllib.loads(f"value = {value.strip()}")["value"]
    except (ValueError, RecursionError):
        parsed = value.strip()
    return key.strip(), parsed


def toml_value(value: Any) -> str:
    """A plain value as TOML writes it.

    >>> toml_value("loss"), toml_value(True)
    ('"loss"', 'true')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):  # as in JSON, but for one character
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)

"""Flat tables in TOML, read and written. Knows nothing of what the names in them mean."""

import json
import tomllib
from pathlib import Path
from typing import Any


def read_toml(path: str | Path) -> dict[str, Any]:
    """A TOML file as a flat table, or one clear error."""
    try:
        with Path(path).open("rb") as file:
            table = tomllib.load(file)
    except (ValueError, RecursionError) as error:  # no TOML, no UTF-8, numbers without end
        raise ValueError(f"Expected {path} to be TOML ({error})") from error
    nested = [key for key, value in table.items() if isinstance(value, dict | list)]
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

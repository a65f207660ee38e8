"""Values of a configuration, checked one by one: type, choices, range. Knows no name but those with
a range, and nothing of models.
"""

import reprlib
from collections.abc import Mapping
from typing import Any

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


def check_choice(key: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise where there are choices and the value is none of them."""
    if choices and value not in choices:
        raise ValueError(f"Expected `{key}` to be one of {', '.join(choices)} (got {short(value)})")


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


def short(value: Any) -> str:
    """A value of any kind and size, for a message."""
    text = reprlib.repr(value)
    return text if len(text) <= 80 else text[:77] + "..."

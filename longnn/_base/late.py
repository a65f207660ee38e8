"""Functions of upper layers that a lower one offers to users, found when they are called.

Imports point down only. Where a method of a lower layer has to do what only an upper one can, it
calls a function by name here; the root of the package, which knows all layers, says which it is.
"""

from collections.abc import Callable
from typing import Any

_FUNCTIONS: dict[str, Callable[..., Any]] = {}


def provide(name: str, function: Callable[..., Any]) -> None:
    """Say which function a name stands for; the last word counts.

    >>> provide("double", lambda x: 2 * x)
    >>> call("double", 4)
    8
    """
    _FUNCTIONS[name] = function


def call(name: str, *arguments: Any, **options: Any) -> Any:
    """Call the function of a name.

    Raises:
        LookupError: where none was provided.
    """
    if name not in _FUNCTIONS:
        raise LookupError(f"Expected a function for {name!r} (none was provided)")
    return _FUNCTIONS[name](*arguments, **options)

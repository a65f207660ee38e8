"""Modules of others that are slow to load, and not always needed."""

import importlib
from typing import Any


class Late:
    """A module that is loaded when something of it is first used.

    No lazy module among those of Python: torch looks through them all, and so would load it.

    >>> Late("math").floor(1.5)
    1
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module(self._name), name)
        setattr(self, name, found)
        return found

"""Graphs to learn on: named datasets, bundled ones, and the user's own files.

:func:`load` is the one entry point; every loader returns a checked :class:`NodeDataset`. Modules
are imported when a name is first used: listing the datasets does not wait for torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longnn.data._card import describe
    from longnn.data._convert import from_data
    from longnn.data._dataset import NodeDataset
    from longnn.data._errors import DataError
    from longnn.data._frames import from_networkx, from_pandas, from_scipy
    from longnn.data._source import Source, load
    from longnn.data._splits import Split, make_split
    from longnn.data._synthetic import csbm

__all__ = [
    "DataError",
    "NodeDataset",
    "Source",
    "Split",
    "csbm",
    "describe",
    "from_data",
    "from_networkx",
    "from_pandas",
    "from_scipy",
    "load",
    "make_split",
]

#: Where each name is defined.
_HOMES = {
    "_card": ("describe",),
    "_convert": ("from_data",),
    "_dataset": ("NodeDataset",),
    "_errors": ("DataError",),
    "_frames": ("from_networkx", "from_pandas", "from_scipy"),
    "_source": ("Source", "load"),
    "_splits": ("Split", "make_split"),
    "_synthetic": ("csbm",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value  # found without this function next time
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Graphs to learn on: named datasets, bundled ones, and the user's own files.

:func:`load` is the one entry point; every loader returns a checked :class:`NodeDataset`. Modules
are imported when a name is first used: listing the datasets does not wait for torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longnn.data._card import GraphCard, describe, homophily, untested
    from longnn.data._catalog import (
        BundledDataset,
        NamedDataset,
        find_named,
        known_names,
        list_bundled,
        list_named,
    )
    from longnn.data._convert import from_data, symmetrize, undirected
    from longnn.data._dataset import NodeDataset
    from longnn.data._encoding import Encoding
    from longnn.data._errors import DataError, DatasetUnavailable, MissingFileError
    from longnn.data._features import row_normalize
    from longnn.data._files import load_files
    from longnn.data._frames import from_networkx, from_pandas, from_scipy
    from longnn.data._images import ImageGrid, image_grid, read_image_grid
    from longnn.data._named import load_named
    from longnn.data._npz import Archive
    from longnn.data._scaling import SCALINGS, Scaling
    from longnn.data._source import Source, load
    from longnn.data._splits import Split, make_split
    from longnn.data._synthetic import csbm, digits

__all__ = [
    "SCALINGS",
    "Archive",
    "BundledDataset",
    "DataError",
    "DatasetUnavailable",
    "Encoding",
    "GraphCard",
    "ImageGrid",
    "MissingFileError",
    "NamedDataset",
    "NodeDataset",
    "Scaling",
    "Source",
    "Split",
    "csbm",
    "describe",
    "digits",
    "find_named",
    "from_data",
    "from_networkx",
    "from_pandas",
    "from_scipy",
    "homophily",
    "image_grid",
    "known_names",
    "list_bundled",
    "list_named",
    "load",
    "load_files",
    "load_named",
    "make_split",
    "read_image_grid",
    "row_normalize",
    "symmetrize",
    "undirected",
    "untested",
]

#: Where each name is found.
_HOMES = {
    "_card": ("GraphCard", "describe", "homophily", "untested"),
    "_catalog": (
        "BundledDataset",
        "NamedDataset",
        "find_named",
        "known_names",
        "list_bundled",
        "list_named",
    ),
    "_convert": ("from_data", "symmetrize", "undirected"),
    "_dataset": ("NodeDataset",),
    "_encoding": ("Encoding",),
    "_errors": ("DataError", "DatasetUnavailable", "MissingFileError"),
    "_features": ("row_normalize",),
    "_files": ("load_files",),
    "_frames": ("from_networkx", "from_pandas", "from_scipy"),
    "_images": ("ImageGrid", "image_grid", "read_image_grid"),
    "_named": ("load_named",),
    "_npz": ("Archive",),
    "_scaling": ("SCALINGS", "Scaling"),
    "_source": ("Source", "load"),
    "_splits": ("Split", "make_split"),
    "_synthetic": ("csbm", "digits"),
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

"""Graphs to learn on: named datasets, bundled ones, and the user's own files.

:func:`load` is the one entry point; every loader returns a checked :class:`NodeDataset`. Modules
are imported when a name is first used: listing the datasets does not wait for torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longnn.data._arcs import edge_notes, isolated_note, symmetrize
    from longnn.data._card import GraphCard, describe, homophily, untested
    from longnn.data._catalog import (
        BundledDataset,
        NamedDataset,
        find_named,
        known_names,
        list_bundled,
        list_named,
    )
    from longnn.data._convert import from_data, undirected
    from longnn.data._dataset import NodeDataset
    from longnn.data._edgetable import (
        TYPE_NAMES,
        added_note,
        edge_columns,
        unknown_note,
        unknown_text,
    )
    from longnn.data._encoding import Encoding, Novelty, encode_columns
    from longnn.data._errors import DataError, DatasetUnavailable, MissingFileError
    from longnn.data._features import row_normalize
    from longnn.data._files import find_nodes_beside, graph_name, load_files
    from longnn.data._frames import from_networkx, from_pandas, from_scipy
    from longnn.data._images import ImageGrid, image_grid, read_image_grid
    from longnn.data._labels import read_labels
    from longnn.data._named import load_named
    from longnn.data._nodetable import NodeColumns, read_ids, read_split
    from longnn.data._npz import Archive
    from longnn.data._options import TableOptions
    from longnn.data._rawfiles import cache_root
    from longnn.data._readtable import TABLE_SUFFIXES
    from longnn.data._relations import Relation, match_types
    from longnn.data._scaling import SCALINGS, Scaling
    from longnn.data._source import Source, load
    from longnn.data._splits import Split, make_split
    from longnn.data._storedtable import STORED_SUFFIXES, StoredTable, line_in_parts
    from longnn.data._synthetic import csbm, digits
    from longnn.data._targets import Answers, read_answers
    from longnn.data._text import TextStream, table_stem, table_suffix

__all__ = [
    "SCALINGS",
    "STORED_SUFFIXES",
    "TABLE_SUFFIXES",
    "TYPE_NAMES",
    "Answers",
    "Archive",
    "BundledDataset",
    "DataError",
    "DatasetUnavailable",
    "Encoding",
    "GraphCard",
    "ImageGrid",
    "MissingFileError",
    "NamedDataset",
    "NodeColumns",
    "NodeDataset",
    "Novelty",
    "Relation",
    "Scaling",
    "Source",
    "Split",
    "StoredTable",
    "TableOptions",
    "TextStream",
    "added_note",
    "cache_root",
    "csbm",
    "describe",
    "digits",
    "edge_columns",
    "edge_notes",
    "encode_columns",
    "find_named",
    "find_nodes_beside",
    "from_data",
    "from_networkx",
    "from_pandas",
    "from_scipy",
    "graph_name",
    "homophily",
    "image_grid",
    "isolated_note",
    "known_names",
    "line_in_parts",
    "list_bundled",
    "list_named",
    "load",
    "load_files",
    "load_named",
    "make_split",
    "match_types",
    "read_answers",
    "read_ids",
    "read_image_grid",
    "read_labels",
    "read_split",
    "row_normalize",
    "symmetrize",
    "table_stem",
    "table_suffix",
    "undirected",
    "unknown_note",
    "unknown_text",
    "untested",
]

#: Where each name is found.
_HOMES = {
    "_arcs": ("edge_notes", "isolated_note", "symmetrize"),
    "_card": ("GraphCard", "describe", "homophily", "untested"),
    "_catalog": (
        "BundledDataset",
        "NamedDataset",
        "find_named",
        "known_names",
        "list_bundled",
        "list_named",
    ),
    "_convert": ("from_data", "undirected"),
    "_dataset": ("NodeDataset",),
    "_encoding": (
        "Encoding",
        "Novelty",
        "encode_columns",
    ),
    "_errors": ("DataError", "DatasetUnavailable", "MissingFileError"),
    "_features": ("row_normalize",),
    "_files": (
        "load_files",
        "find_nodes_beside",
        "graph_name",
    ),
    "_frames": ("from_networkx", "from_pandas", "from_scipy"),
    "_images": ("ImageGrid", "image_grid", "read_image_grid"),
    "_named": ("load_named",),
    "_npz": ("Archive",),
    "_scaling": ("SCALINGS", "Scaling"),
    "_edgetable": ("TYPE_NAMES", "added_note", "edge_columns", "unknown_note", "unknown_text"),
    "_labels": ("read_labels",),
    "_nodetable": (
        "NodeColumns",
        "read_ids",
        "read_split",
    ),
    "_options": ("TableOptions",),
    "_storedtable": (
        "STORED_SUFFIXES",
        "StoredTable",
        "line_in_parts",
    ),
    "_rawfiles": ("cache_root",),
    "_readtable": ("TABLE_SUFFIXES",),
    "_relations": ("Relation", "match_types"),
    "_text": ("TextStream", "table_stem", "table_suffix"),
    "_source": ("Source", "load"),
    "_splits": ("Split", "make_split"),
    "_synthetic": ("csbm", "digits"),
    "_targets": ("Answers", "read_answers"),
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

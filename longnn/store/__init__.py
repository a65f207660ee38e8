"""Graphs that are read from disk as they are needed: a folder of memory-mapped arrays.

:func:`prepare` makes one of a user's files.
:class:`GraphStore` holds a graph, its features and labels; :class:`BasisStore` the Chebyshev terms
:math:`T_0(P) X, \\dots, T_K(P) X` of some of its rows. Both know what they should hold: a manifest
has the shape, type, size and checksum of every file. :func:`propagate` makes the second of the
first, by blocks of columns. :class:`StoredDataset` is the labelled part of a graph, to be trained
on by rows.
"""

from longnn.store._basis import BasisStore
from longnn.store._cache import load_source, stored_graph
from longnn.store._find import ensure_basis, places_of, serving_basis
from longnn.store._graph import GraphStore, card_lines
from longnn.store._manifest import Manifest, StoreError
from longnn.store._ones import add_ones
from longnn.store._operator import StoredOperator
from longnn.store._prepare import Form, prepare
from longnn.store._propagate import Progress, propagate
from longnn.store._ranks import RankLostError, Ranks, join_ranks
from longnn.store._rows import (
    ON_ROWS,
    StoredDataset,
    fits_memory,
    is_prepared,
    load_stored,
    memory_needed,
    stored_scaling,
)
from longnn.store._terms import each_term

__all__ = [
    "ON_ROWS",
    "BasisStore",
    "Form",
    "GraphStore",
    "Manifest",
    "Progress",
    "RankLostError",
    "Ranks",
    "StoreError",
    "StoredDataset",
    "StoredOperator",
    "add_ones",
    "card_lines",
    "each_term",
    "ensure_basis",
    "fits_memory",
    "is_prepared",
    "join_ranks",
    "load_source",
    "load_stored",
    "memory_needed",
    "places_of",
    "prepare",
    "propagate",
    "serving_basis",
    "stored_graph",
    "stored_scaling",
]

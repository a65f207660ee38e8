"""Graphs that are read from disk as they are needed: a folder of memory-mapped arrays.

:func:`prepare` makes one of a user's files, :func:`generate` of a random :class:`BlockModel`.
:class:`GraphStore` holds a graph, its features and labels; :class:`BasisStore` the Chebyshev terms
:math:`T_0(P) X, \\dots, T_K(P) X` of some of its rows. Both know what they should hold: a manifest
has the shape, type, size and checksum of every file. :func:`propagate` makes the second of the
first, by blocks of columns.
"""

from longnn.store._basis import BasisStore
from longnn.store._card import card_lines
from longnn.store._generate import generate
from longnn.store._graph import GraphStore
from longnn.store._manifest import Manifest, StoreError
from longnn.store._model import BlockModel
from longnn.store._prepare import prepare
from longnn.store._propagate import Progress, find_basis, propagate

__all__ = [
    "BasisStore",
    "BlockModel",
    "GraphStore",
    "Manifest",
    "Progress",
    "StoreError",
    "card_lines",
    "find_basis",
    "generate",
    "prepare",
    "propagate",
]

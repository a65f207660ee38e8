"""Graphs that are read from disk as they are needed: a folder of memory-mapped arrays.

:func:`prepare` makes one of a user's files.
:class:`GraphStore` holds a graph, its features and labels; :class:`BasisStore` the Chebyshev terms
:math:`T_0(P) X, \\dots, T_K(P) X` of some of its rows. Both know what they should hold: a manifest
has the shape, type, size and checksum of every file. :func:`propagate` makes the second of the
first, by blocks of columns. ``OnDisk`` makes a graph the backing of a dataset.
"""

from longnn.store._prepare import prepare
from longnn.store._propagate import propagate

__all__ = [
    "prepare",
    "propagate",
]

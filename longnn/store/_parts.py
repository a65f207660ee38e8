"""Which files hold the edges and which the nodes: single files, or folders of parts.

A folder of parts is what Spark, DuckDB or Dask write: many files of one kind, perhaps in folders of
their own. Reads nothing.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longnn.data import DataError
from longnn.data._errors import MissingFileError
from longnn.data._files import find_nodes_beside
from longnn.data._readtable import TABLE_SUFFIXES
from longnn.data._storedtable import STORED_SUFFIXES
from longnn.data._text import table_stem, table_suffix

SUFFIXES = tuple(dict.fromkeys((*TABLE_SUFFIXES, *STORED_SUFFIXES)))


@dataclass(frozen=True)
class Parts:
    """A table in one or several files.

    Args:
        path: the file or the folder.
        files: in the order of their rows.
    """

    path: Path
    files: tuple[Path, ...]

    @classmethod
    def of(cls, path: Path) -> "Parts":
        """The parts in a folder, or a file alone.

        Raises:
            DataError: for a folder without parts, or with parts of several kinds.
        """
        if not path.is_dir():
            if not path.exists():
                raise MissingFileError("Expected a file or a folder here (found none).", path=path)
            return cls(path, (path,))
        found = [
            file
            for file in sorted(path.rglob("*"))
            if file.is_file()
            and table_suffix(file) in SUFFIXES
            and not any(part[0] in "._" for part in file.relative_to(path).parts)
        ]
        kinds = sorted({table_suffix(file) for file in found})
        if len(kinds) != 1:
            got = ", ".join(kinds) or "none"
            raise DataError(
                f"Expected a folder with parts of one kind, {', '.join(SUFFIXES)} (got {got}).",
                path=path,
            )
        return cls(path, tuple(found))

    @property
    def suffix(self) -> str:
        """The kind of file."""
        return table_suffix(self.files[0])

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(file.stat().st_size for file in self.files)

    def stamp(self) -> list[list[Any]]:
        """Name, size and time of each file: whether they are still the same."""
        states = [(file, file.stat()) for file in self.files]
        return [[str(file), state.st_size, state.st_mtime_ns] for file, state in states]


def find_parts(graph: Path, nodes: Path | None) -> tuple[Parts, Parts | None]:
    """The edges, and the nodes if there are any.

    Args:
        graph: an edge file, a folder of its parts, or a folder with ``edges.*`` and perhaps
            ``nodes.*``, each a file or a folder (then ``edges/`` and ``nodes/``).
        nodes: the node file or a folder of its parts, where it is not beside the edges.

    Raises:
        DataError: where there is nothing, or more than one of a kind.
    """
    if not graph.is_dir():
        beside = find_nodes_beside(graph) if nodes is None else nodes
        return Parts.of(graph), None if beside is None else Parts.of(beside)
    edges = _called("edges", graph)
    if edges is None:
        return Parts.of(graph), None if nodes is None else Parts.of(nodes)
    if nodes is None:
        nodes = _called("nodes", graph)
    if any(table_stem(path) == "features" for path in graph.glob("features.*")):
        raise DataError(
            "Expected features in the node file (got a file features.*, which a prepared graph "
            "cannot have); join it to the nodes.",
            path=graph,
        )
    return Parts.of(edges), None if nodes is None else Parts.of(nodes)


def _called(stem: str, folder: Path) -> Path | None:
    """The file ``stem.*`` of any kind, or the folder ``stem``."""
    found = [
        path
        for path in sorted([*folder.glob(stem), *folder.glob(f"{stem}.*")])
        if (path.is_dir() or path.suffix) and table_stem(path) == stem
    ]
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise DataError(f"Expected one {stem} file or folder (got {names}).", path=folder)
    return found[0] if found else None

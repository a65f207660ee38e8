"""The user's own graph, from files: an edge file, perhaps a node file, → :class:`NodeDataset`.

This module finds the files and reads them. How each format is read is the business of
:mod:`longnn.data._tables` and :mod:`longnn.data._arrays`, how they become a graph that of
:mod:`longnn.data._assemble`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from longnn.data._assemble import Arrays, assemble
from longnn.data._dataset import NodeDataset
from longnn.data._errors import DataError
from longnn.data._featurefile import find_feature_file, is_matrix
from longnn.data._formats import Parts, find_files, graph_name, names_of, read_arrays
from longnn.data._nodetable import NodeColumns
from longnn.data._options import FileOptions
from longnn.data._tables import Table, open_table

_ENDS = ("source", "target", "weight", "type")
#: Arrays that are not used where their column is to be ``"none"``.
_REFUSABLE = {"weight_column": ("edge_weight", "edge_attr"), "type_column": ("edge_type",)}
_NODE_COLUMNS = (
    "id_column",
    "label_column",
    "split_column",
    "time_column",
    "group_column",
    "node_weight_column",
    "feature_columns",
    "text_columns",
    "category_columns",
    "drop_columns",
)


def load_files(edges: str | Path, nodes: str | Path | None = None, **options: Any) -> NodeDataset:
    """A graph from the user's files.

    Args:
        edges: CSV, TSV, TXT, DAT (also compressed: ``.csv.gz``, ...) or Parquet with one edge per
            row; ``.npz`` or ``.mtx`` with an adjacency matrix; ``.pt`` with a PyG ``Data``; or a
            folder with ``edges.*``, and perhaps ``nodes.*`` and ``features.*``.
        nodes: a table with one node per row, or ``.npz`` with ``x`` and ``y``. By default
            ``nodes.*`` beside a file called ``edges.*``; without one the nodes are those in the
            edges.
        options: those of :class:`FileOptions`.

    Raises:
        DataError: naming file, line, column and value of what is wrong.
    """
    chosen = FileOptions.from_dict(options)
    files = GraphFiles.find(Path(edges), None if nodes is None else Path(nodes), chosen)
    try:
        return files.load()
    except DataError as error:  # of the whole graph, which is in no one place
        raise error.named(files.main.path) from error.__cause__


@dataclass(frozen=True)
class GraphFiles:
    """The files of a graph, and the options they are read with."""

    edges: Parts
    nodes: Parts | None
    features: Path | None
    options: FileOptions
    notes: tuple[str, ...] = ()

    @classmethod
    def find(cls, graph: Path, nodes: Path | None, options: FileOptions) -> "GraphFiles":
        """What there is in a folder or beside an edge file.

        Raises:
            DataError: where a file is missing, or there is more than one of a kind.
        """
        edges, node_parts = find_files(graph, nodes, options.header)
        if options.directed is True and edges.form.is_symmetric(edges.path):
            raise DataError(
                "Expected a general matrix for directed=true (got one that is called symmetric); "
                "use directed=false.",
                path=edges.path,
            )
        notes = []
        if nodes is None and node_parts is not None and not graph.is_dir():
            notes = [f"The nodes are those of {node_parts.path.name}, beside the edges."]
        features = find_feature_file(graph, options.feature_file, options.features)
        if node_parts is None and features is not None and is_matrix(features) and edges.is_table:
            node_parts, features = Parts.of(features), None  # its rows are the nodes 0, 1, ...
        for folder in options.more_rows:
            if features is not None:
                raise DataError("Expected no feature file where rows are added.", path=features)
            edges, node_parts = _with_rows(edges, node_parts, Path(folder), options)
        return cls(edges, node_parts, features, options, tuple(notes))

    @property
    def are_tables(self) -> bool:
        """Whether none is a file of arrays, but perhaps that of features."""
        return self.edges.is_table and (self.nodes is None or self.nodes.is_table)

    @property
    def main(self) -> Parts:
        """Where a flaw of the whole graph is looked for."""
        return self.edges if self.nodes is None else self.nodes

    def stamp(self) -> list[list[list[Any]]]:
        """Name, size and time of each file: whether they are still the same."""
        more = None if self.features is None else Parts.of(self.features)
        return [parts.stamp() for parts in (self.edges, self.nodes, more) if parts is not None]

    @property
    def name(self) -> str:
        """Of the graph."""
        return self.options.name or graph_name(self.edges.path)

    def added_ids(self) -> Any:
        """The ids of the nodes that the last folder of ``more_rows`` added, as text."""
        _, new = find_files(Path(self.options.more_rows[-1]), None)
        assert new is not None
        assert self.nodes is not None
        table = open_table(replace(self.nodes, path=new.path, files=new.files))
        key = str(_node_columns(self.nodes, self.options).key)
        return self.options.meaning(table).ids(key).cast(pa.string())

    def cells(self, column: str) -> tuple[Any, Any]:
        """The id of each row of the node table, and what a column has there, as text.

        Raises:
            DataError: where there is no such column.
        """
        if self.nodes is None or not self.nodes.is_table:
            raise DataError(
                f"Expected a table of nodes with a column {column!r} (got none).",
                path=self.main.path,
            )
        table = self.options.meaning(open_table(self.nodes))
        table.find(column, (), "node")
        key = _node_columns(self.nodes, self.options, ids_needed=self.edges.is_table).key
        ids = pa.array(range(len(table))) if key is None else table.ids(key)
        return ids.cast(pa.string()), table.cells(column)

    def open(self, room: Path | None = None) -> tuple[Any, Any, FileOptions]:
        """Edges, nodes (or None), and the options without optional columns that are absent.

        Args:
            room: see :func:`~longnn.data._tables.open_table`.
        """
        options, optional = self.options, self.options.optional_columns
        ends = {f"{end}_column": getattr(options, f"{end}_column") for end in _ENDS}
        edges = _open(self.edges, ends, room)
        required = {key: getattr(options, key) for key in _NODE_COLUMNS if key not in optional}
        nodes = _open(self.nodes, required, room, as_features=True)
        columns = nodes.columns if isinstance(nodes, Table) else ()
        return edges, nodes, options.without_absent(optional, columns)

    def load(self) -> NodeDataset:
        """The graph in memory."""
        edges, nodes, options = self.open()
        return assemble(
            edges,
            nodes,
            options,
            name=self.name,
            notes=self.notes,
            features=self.features,
        )


def _with_rows(
    edges: Parts, nodes: Parts | None, folder: Path, options: FileOptions
) -> tuple[Parts, Parts]:
    """Edges and nodes with the rows of a folder behind their own."""
    more_edges, more_nodes = find_files(folder, None, options.header)
    if more_nodes is None or nodes is None or not nodes.is_table:
        where = folder if more_nodes is None else edges.path
        raise DataError("Expected a table of nodes where rows are added (found none).", path=where)
    columns = _node_columns(nodes, options)
    needed = (columns.key, *columns.features)  # what is known with the answer alone is not
    optional = [name for name in nodes.open()[0].names if name not in needed]
    return edges.with_rows(more_edges), nodes.with_rows(more_nodes, optional)


def _node_columns(nodes: Parts, options: FileOptions, *, ids_needed: bool = True) -> NodeColumns:
    """What the columns of a table are for, by its first file."""
    names = nodes.open()[0].names
    options = options.without_absent(options.optional_columns, names)
    table = Table({name: pa.array([], pa.string()) for name in names}, nodes.path)
    return NodeColumns.find(table, options, ids_needed=ids_needed)


def _open(
    parts: Parts | None,
    options: Mapping[str, str | Sequence[str] | None],
    room: Path | None,
    *,
    as_features: bool = False,
) -> Table | Arrays | None:
    """A table or arrays; without a table column options make no sense."""
    if parts is not None and parts.is_table:
        return open_table(parts, room)
    refused = [key for key, value in options.items() if value == "none" and key in _REFUSABLE]
    given = next((k for k, v in options.items() if v is not None and k not in refused), None)
    if given is not None:
        value = options[given]
        shown = value if isinstance(value, str) else ",".join(value or ())
        raise DataError(
            f"Expected no `{given}` without a {names_of(tables=True)} file to look in "
            f"(got {shown!r}).",
            path=None if parts is None else parts.path,
        )
    if parts is None:
        return None
    data, classes = read_arrays(parts.path, as_features=as_features)
    for name in (name for key in refused for name in _REFUSABLE[key]):
        data.pop(name, None)
    return Arrays(data, classes, parts.path)

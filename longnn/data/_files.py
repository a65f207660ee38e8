"""The user's own graph, from files: an edge file, perhaps a node file, → :class:`NodeDataset`.

This module finds the files and reads them. How each format is read is the business of
:mod:`longnn.data._tables` and :mod:`longnn.data._arrays`, how they become a graph that of
:mod:`longnn.data._assemble`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longnn.data._arcs import Directed
from longnn.data._arrays import is_called_symmetric
from longnn.data._assemble import Arrays, assemble
from longnn.data._dataset import NodeDataset, Task
from longnn.data._encoding import Missing
from longnn.data._errors import DataError
from longnn.data._featurefile import find_feature_file, is_matrix
from longnn.data._formats import Parts, find_files, graph_name, names_of, read_arrays
from longnn.data._options import (
    EmptyEnds,
    Features,
    Ids,
    Isolated,
    Outliers,
    RepeatedNodes,
    Repeats,
    TableOptions,
    UnknownIds,
)
from longnn.data._tables import Table, open_table
from longnn.data._text import Header

OPTIONAL = ("label_column", "split_column")  # what a graph to predict on may lack
_ENDS = ("source", "target", "weight", "type")
_NODE_COLUMNS = (
    "id_column",
    "label_column",
    "split_column",
    "feature_columns",
    "text_columns",
    "category_columns",
    "drop_columns",
)


def load_files(
    edges: str | Path,
    nodes: str | Path | None = None,
    *,
    id_column: str | None = None,
    label_column: Sequence[str] | None = None,
    feature_columns: Sequence[str] | None = None,
    text_columns: Sequence[str] | None = None,
    category_columns: Sequence[str] | None = None,
    drop_columns: Sequence[str] | None = None,
    split_column: str | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    weight_column: str | None = None,
    type_column: str | None = None,
    header: Header = "auto",
    unknown_ids: UnknownIds = "error",
    ids: Ids = "exact",
    empty_ends: EmptyEnds = "error",
    repeats: Repeats = "merge",
    repeated_nodes: RepeatedNodes = "error",
    isolated: Isolated = "keep",
    feature_file: str | None = None,
    missing: Missing = "fill",
    missing_words: Sequence[str] | None = None,
    outliers: Outliers = "keep",
    features: Features = "auto",
    task: Task | None = None,
    directed: Directed = False,
    self_loops: bool = False,
    name: str | None = None,
    optional_columns: Sequence[str] = (),
) -> NodeDataset:
    """A graph from the user's files.

    Args:
        edges: CSV, TSV, TXT, DAT (also compressed: ``.csv.gz``, ...) or Parquet with one edge per
            row; ``.npz`` or ``.mtx`` with an adjacency matrix; ``.pt`` with a PyG ``Data``; or a
            folder with ``edges.*``, and perhaps ``nodes.*`` and ``features.*``.
        nodes: a table with one node per row, or ``.npz`` with ``x`` and ``y``. By default
            ``nodes.*`` beside a file called ``edges.*``; without one the nodes are those in the
            edges.
        id_column: by default id, node or node_id, else the first column; the row number if the
            edges are a matrix.
        label_column: by default label, y, class or target. A gap means "predict me".
            Several columns of 0 and 1 are labels of yes or no (task ``"multilabel"``), several of
            other numbers are several quantities.
        feature_columns: by default all columns that are not id, label or split. Numbers, truth
            values, dates and categories are recognised; names that are nearly all different,
            constant columns and repeated ones are left out, and a note says so.
        text_columns: columns whose words become features (TF-IDF).
        category_columns: columns whose values are categories, even if they are numbers.
        drop_columns: columns of the node file that are not used.
        split_column: by default split. Its cells are train, val, test or empty.
        source_column, target_column: by default source/src/from and target/dst/to, else the
            first two columns.
        weight_column: by default weight or edge_weight; without one all edges have weight 1.
        type_column: types of edges (friend, colleague, ...), each with a filter of its own; by
            default edge_type. Without one all edges are alike.
        header: whether the first line of a text file has the names of columns, ``"yes"`` or
            ``"no"``; by default a first line that is like the others is data, and a note says so.
        unknown_ids: an edge with an end that the node file does not have is an ``"error"``; with
            ``"drop"`` such edges are left out, with ``"add"`` the nodes are added, with gaps in all
            columns; a note counts them.
        ids: with ``"numbers"``, 00024, 24 and 24.0 are one id; else ids are compared as written.
        empty_ends: an edge with an empty cell for an end is an ``"error"``, or is left out
            (``"drop"``).
        repeats: with ``"count"``, an edge without a weight that is listed n times has weight n.
        repeated_nodes: an id that is listed again is an ``"error"``; with ``"merge"`` the row is
            left out if it is identical to the first of its id.
        isolated: with ``"drop"``, nodes without an edge are left out.
        feature_file: sparse features, set beside the columns of the node file: a SciPy ``.npz`` or
            ``.mtx`` matrix (nodes, features), its rows in the order of the node file or of the
            adjacency; or a long table with the columns id, feature and value, one row per nonzero
            value (1 without that column), repeated ones added.
        missing: ``"fill"`` gaps in feature columns (numbers with the median, and a feature that
            marks them), or ``"error"``: a gap is an error.
        missing_words: what is a gap besides an empty cell, in features, labels and splits; by
            default NA, N/A, NaN, null, None, \\N, ?, - and ., in any case (``default`` stands
            for these). A note counts them.
        outliers: numbers to predict that lie beyond all others, 1e9 among prices, decide every
            fit; ``"drop"`` treats these labels as unknown. A note names them.
        features: ``"columns"`` of the node file, ``"degree"`` (log(1 + degree)), ``"identity"``
            (one feature per node), or ``"auto"``: columns if there are any, else degree.
        task: by default classification for text or few distinct whole numbers; see
            ``label_column`` for several columns.
        directed: keep arcs, from source to target; ``"auto"`` keeps them if one has no reverse, or
            another weight than it. By default each line is an edge in both directions. A matrix
            that its file calls symmetric has no arcs: there true is an error.
        self_loops: keep self loops.
        name: by default that of the file or folder.
        optional_columns: ``label_column``, ``split_column`` or both: if the file does not have the
            column that the option names, the option is ignored. For a new graph to predict on,
            which need not have labels.

    Raises:
        DataError: naming file, line, column and value of what is wrong.
    """
    options = TableOptions(
        id_column=id_column,
        label_column=label_column,
        feature_columns=feature_columns,
        text_columns=text_columns,
        category_columns=category_columns,
        drop_columns=drop_columns,
        split_column=split_column,
        source_column=source_column,
        target_column=target_column,
        weight_column=weight_column,
        type_column=type_column,
        header=header,
        unknown_ids=unknown_ids,
        ids=ids,
        empty_ends=empty_ends,
        repeats=repeats,
        repeated_nodes=repeated_nodes,
        isolated=isolated,
        missing=missing,
        missing_words=missing_words,
        outliers=outliers,
        features=features,
        task=task,
        directed=directed,
        self_loops=self_loops,
        name=name,
    )
    for column in optional_columns:
        if column not in OPTIONAL:
            raise DataError(
                f"Expected `optional_columns` among {', '.join(OPTIONAL)} (got {column!r}).",
                value=column,
            )
    files = GraphFiles.find(
        Path(edges), None if nodes is None else Path(nodes), options, feature_file
    )
    try:
        return files.load(optional_columns)
    except DataError as error:  # of the whole graph, which is in no one place
        raise error.named(files.main.path) from error.__cause__


@dataclass(frozen=True)
class GraphFiles:
    """The files of a graph, and the options they are read with."""

    edges: Parts
    nodes: Parts | None
    features: Path | None
    options: TableOptions
    notes: tuple[str, ...] = ()

    @classmethod
    def find(
        cls,
        graph: Path,
        nodes: Path | None,
        options: TableOptions,
        feature_file: str | Path | None = None,
    ) -> "GraphFiles":
        """What there is in a folder or beside an edge file.

        Raises:
            DataError: where a file is missing, or there is more than one of a kind.
        """
        edges, node_parts = find_files(graph, nodes, options.header)
        is_matrix_text = edges.path.suffix == ".mtx"
        if options.directed is True and is_matrix_text and is_called_symmetric(edges.path):
            raise DataError(
                "Expected a general matrix for directed=true (got one that is called symmetric); "
                "use directed=false.",
                path=edges.path,
            )
        notes = []
        if nodes is None and node_parts is not None and not graph.is_dir():
            notes = [f"The nodes are those of {node_parts.path.name}, beside the edges."]
        features = find_feature_file(graph, feature_file, options.features)
        if node_parts is None and features is not None and is_matrix(features) and edges.is_table:
            node_parts, features = Parts.of(features), None  # its rows are the nodes 0, 1, ...
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

    def open(
        self, optional: Sequence[str] = (), room: Path | None = None
    ) -> tuple[Any, Any, TableOptions]:
        """Edges, nodes (or None), and the options without optional columns that are absent.

        Args:
            optional: options of columns that may be absent.
            room: see :func:`~longnn.data._tables.open_table`.
        """
        options = self.options
        ends = {f"{end}_column": getattr(options, f"{end}_column") for end in _ENDS}
        edges = _open(self.edges, ends, room)
        required = {key: getattr(options, key) for key in _NODE_COLUMNS if key not in optional}
        nodes = _open(self.nodes, required, room, as_features=True)
        columns = nodes.columns if isinstance(nodes, Table) else ()
        return edges, nodes, options.without_absent(optional, columns)

    def load(self, optional: Sequence[str] = ()) -> NodeDataset:
        """The graph in memory."""
        edges, nodes, options = self.open(optional)
        return assemble(
            edges,
            nodes,
            options,
            name=self.name,
            notes=self.notes,
            features=self.features,
        )


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
    given = next((key for key, value in options.items() if value is not None), None)
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
    return Arrays(data, classes, parts.path)

"""The user's own graph, from files: an edge file, perhaps a node file, → :class:`NodeDataset`.

This module finds the files and reads them. How each format is read is the business of
:mod:`longnn.data._tables` and :mod:`longnn.data._arrays`, how they become a graph that of
:mod:`longnn.data._assemble`.
"""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from longnn.data._arrays import ARRAY_SUFFIXES, is_called_symmetric, read_arrays
from longnn.data._assemble import Arrays, assemble
from longnn.data._convert import Directed
from longnn.data._dataset import NodeDataset, Task
from longnn.data._encoding import Missing
from longnn.data._errors import DataError, MissingFileError, require_file
from longnn.data._featurefile import add_feature_file, find_feature_file, is_matrix
from longnn.data._options import Features, TableOptions, UnknownIds
from longnn.data._tables import TABLE_SUFFIXES, Table, read_table
from longnn.data._text import Header, table_stem, table_suffix

OPTIONAL = ("label_column", "split_column")  # what a graph to predict on may lack
SUFFIXES = (*TABLE_SUFFIXES, *ARRAY_SUFFIXES)
_LISTED = 5  # files of a folder that an error names
_ENDS = ("source", "target", "weight", "type")
_NODE_COLUMNS = (
    "id_column",
    "label_column",
    "split_column",
    "feature_columns",
    "text_columns",
    "category_columns",
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
    split_column: str | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    weight_column: str | None = None,
    type_column: str | None = None,
    header: Header = "auto",
    unknown_ids: UnknownIds = "error",
    feature_file: str | None = None,
    missing: Missing = "fill",
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
        label_column: by default label, y, class or target. An empty cell means "predict me".
            Several columns of 0 and 1 are labels of yes or no (task ``"multilabel"``), several of
            other numbers are several quantities.
        feature_columns: by default all columns that are not id, label or split. Numbers, truth
            values, dates and categories are recognised; names that are nearly all different,
            constant columns and repeated ones are left out, and a note says so.
        text_columns: columns whose words become features (TF-IDF).
        category_columns: columns whose values are categories, even if they are numbers.
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
        feature_file: sparse features, set beside the columns of the node file: a SciPy ``.npz`` or
            ``.mtx`` matrix (nodes, features), its rows in the order of the node file or of the
            adjacency; or a long table with the columns id, feature and value, one row per nonzero
            value (1 without that column), repeated ones added.
        missing: ``"fill"`` gaps in feature columns (numbers with the median, and a feature that
            marks them), or ``"error"``: a gap is an error. A gap is an empty cell, NA, N/A, NaN,
            null, None, ? or -.
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
        split_column=split_column,
        source_column=source_column,
        target_column=target_column,
        weight_column=weight_column,
        type_column=type_column,
        header=header,
        unknown_ids=unknown_ids,
        missing=missing,
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
    edge_path, node_path = _find_files(Path(edges), None if nodes is None else Path(nodes))
    if directed is True and edge_path.suffix == ".mtx" and is_called_symmetric(edge_path):
        raise DataError(
            "Expected a general matrix for directed=true (got one that is called symmetric); use "
            "directed=false.",
            path=edge_path,
        )
    beside = []
    if nodes is None and node_path is not None and not Path(edges).is_dir():
        beside = [f"The nodes are those of {node_path.name}, beside the edges."]
    feature_path = find_feature_file(Path(edges), feature_file, features)
    if node_path is None and is_matrix(feature_path) and table_suffix(edge_path) in TABLE_SUFFIXES:
        node_path, feature_path = feature_path, None  # its rows are the nodes 0, 1, ...
    ends = {f"{end}_column": getattr(options, f"{end}_column") for end in _ENDS}
    edge_table = _table_or_none(edge_path, ends, header)
    node_table, options = _read_node_table(node_path, options, optional_columns)
    try:
        return assemble(
            _read_arrays(edge_path) if edge_table is None else edge_table,
            _read_arrays(node_path, as_features=True) if node_table is None else node_table,
            options,
            name=graph_name(edge_path),
            notes=beside,
            extend=functools.partial(add_feature_file, path=feature_path),
        )
    except DataError as error:  # of the whole graph, which is in no one place
        raise error.named(edge_path if node_path is None else node_path) from error.__cause__


def _read_node_table(
    path: Path | None, options: TableOptions, optional: Sequence[str]
) -> tuple[Table | None, TableOptions]:
    """The node file as a table if it is one; optional columns it lacks leave the options."""
    required = {key: getattr(options, key) for key in _NODE_COLUMNS if key not in optional}
    table = _table_or_none(path, required, options.header)
    return table, options.without_absent(optional, () if table is None else table.columns)


def _read_arrays(path: Path | None, *, as_features: bool = False) -> Any:
    if path is None:
        return None
    data, classes = read_arrays(path, as_features=as_features)
    return Arrays(data, classes, path)


def graph_name(edges: Path) -> str:
    """A name for the graph of an edge file, or of a folder with ``edges.*``."""
    if edges.is_dir():
        return edges.name
    stem = table_stem(edges)
    return edges.parent.name if stem == "edges" else stem


def _table_or_none(
    path: Path | None, options: Mapping[str, str | Sequence[str] | None], header: Header
) -> Table | None:
    """The file as a table if it is one; else column options make no sense."""
    if path is not None and table_suffix(path) in TABLE_SUFFIXES:
        return read_table(path, header)
    given = next((key for key, value in options.items() if value is not None), None)
    if given is not None:
        value = options[given]
        shown = value if isinstance(value, str) else ",".join(value or ())
        raise DataError(
            f"Expected no `{given}` without a {', '.join(TABLE_SUFFIXES)} file to look in "
            f"(got {shown!r}).",
            path=path,
        )
    return None


def find_nodes_beside(edges: Path) -> Path | None:
    """The file ``nodes.*`` beside a file ``edges.*``, if there is just one."""
    if edges.is_dir() or table_stem(edges) != "edges" or not edges.parent.is_dir():
        return None
    found = _files_called("nodes", edges.parent)
    return found[0] if len(found) == 1 else None


def _files_called(stem: str, folder: Path) -> list[Path]:
    paths = sorted(folder.glob(f"{stem}.*"))
    return [p for p in paths if table_suffix(p) in SUFFIXES and table_stem(p) == stem]


def _find_files(edges: Path, nodes: Path | None) -> tuple[Path, Path | None]:
    if edges.is_dir() and nodes is None:
        folder = edges
        found = {stem: _files_called(stem, folder) for stem in ("edges", "nodes")}
        for stem, paths in found.items():
            if len(paths) > 1:
                names = ", ".join(path.name for path in paths)
                raise DataError(f"Expected one {stem} file (got {names}).", path=folder)
        if not found["edges"]:
            choices = ", ".join(SUFFIXES)
            held = [path for path in sorted(folder.iterdir()) if table_suffix(path) in SUFFIXES]
            others = ", ".join(path.name for path in held[:_LISTED])
            remedy = f"; it has {others}: give the edge file itself, and --nodes" if held else ""
            raise MissingFileError(
                f"Expected a file edges.* ({choices}) in the folder (found none){remedy}.",
                path=folder,
            )
        edges = found["edges"][0]
        nodes = found["nodes"][0] if found["nodes"] else None
    elif nodes is None:
        nodes = find_nodes_beside(edges)
    for path in (edges, nodes):
        if path is None:
            continue
        require_file(path)
        if table_suffix(path) not in SUFFIXES:
            raise DataError(
                f"Expected a file of type {', '.join(SUFFIXES)} (got {path.suffix!r}).", path=path
            )
    return edges, nodes

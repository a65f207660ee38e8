"""The user's own graph, from files: an edge file, perhaps a node file, → :class:`NodeDataset`.

This module combines the two, and makes features if there are none. How each format is read is the
business of :mod:`longnn.data._tables` and :mod:`longnn.data._arrays`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from longnn.data._arrays import ARRAY_SUFFIXES, read_arrays
from longnn.data._convert import edge_weights, from_data, symmetrize
from longnn.data._dataset import MASKS, TASKS, NodeDataset, Task
from longnn.data._edgetable import read_edges, whole_numbers
from longnn.data._errors import DataError, MissingFileError
from longnn.data._nodetable import Nodes, read_nodes
from longnn.data._tables import TABLE_SUFFIXES, Table, read_table

Features = Literal["auto", "columns", "degree", "identity"]
FEATURES = ("auto", "columns", "degree", "identity")
OPTIONAL = ("label_column", "split_column")  # what a graph to predict on may lack
SUFFIXES = (*TABLE_SUFFIXES, *ARRAY_SUFFIXES)
MAX_IDENTITY = 20_000  # nodes: 1.6 GB of float32


def load_files(
    edges: str | Path,
    nodes: str | Path | None = None,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    feature_columns: Sequence[str] | None = None,
    split_column: str | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    weight_column: str | None = None,
    features: Features = "auto",
    task: Task | None = None,
    directed: bool = False,
    self_loops: bool = False,
    name: str | None = None,
    optional_columns: Sequence[str] = (),
) -> NodeDataset:
    """A graph from the user's files.

    Args:
        edges: CSV, TSV or Parquet with one edge per row; ``.npz`` or ``.mtx`` with an adjacency
            matrix; ``.pt`` with a PyG ``Data``; or a folder with ``edges.*`` and ``nodes.*``.
        nodes: CSV, TSV or Parquet with one node per row, or ``.npz`` with ``x`` and ``y``. Without
            it the nodes are those in the edges.
        id_column: by default id, node or node_id, else the first column; the row number if the
            edges are a matrix.
        label_column: by default label, y, class or target. An empty cell means "predict me".
        feature_columns: by default all columns that are not id, label or split.
        split_column: by default split. Its cells are train, val, test or empty.
        source_column, target_column: by default source/src/from and target/dst/to, else the
            first two columns.
        weight_column: by default weight or edge_weight; without one all edges have weight 1.
        features: ``"columns"`` of the node file, ``"degree"`` (log(1 + degree)), ``"identity"``
            (one feature per node), or ``"auto"``: columns if there are any, else degree.
        task: by default classification for text or few distinct whole numbers.
        directed: the file lists both directions of each edge, and an edge without its reverse is
            an error; by default each line is an edge in both directions.
        self_loops: keep self loops.
        name: by default that of the file or folder.
        optional_columns: ``label_column``, ``split_column`` or both: if the file does not have the
            column that the option names, the option is ignored. For a new graph to predict on,
            which need not have labels.

    Raises:
        DataError: naming file, line, column and value of what is wrong.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     edges = Path(folder, "edges.csv")
    ...     _ = edges.write_text("source,target\\nann,bob\\nbob,eve\\n")
    ...     load_files(edges, name="friends").ids
    ['ann', 'bob', 'eve']
    """
    if features not in FEATURES:
        raise DataError(f"Expected `features` to be one of {FEATURES} (got {features!r}).")
    if task is not None and task not in TASKS:
        raise DataError(f"Expected `task` to be one of {TASKS} (got {task!r}).")
    _check_optional(optional_columns)
    edge_path, node_path = _find_files(Path(edges), None if nodes is None else Path(nodes))
    edge_options = {"source": source_column, "target": target_column, "weight": weight_column}
    node_options = {"id": id_column, "label": label_column, "split": split_column}
    edge_table = _table_or_none(edge_path, edge_options)
    node_table = _read_node_table(node_path, node_options, feature_columns, optional_columns)
    edge_data, classes = read_arrays(edge_path) if edge_table is None else (None, ())
    want_features = features in ("auto", "columns")
    if node_table is not None:
        known = read_nodes(
            node_table,
            id_column=id_column,
            label_column=node_options["label"],
            split_column=node_options["split"],
            feature_columns=feature_columns,
            task=task,
            want_features=want_features,
            ids_needed=edge_table is not None,
        )
    else:
        known = _nodes_without_table(node_path, edge_data, classes, want_features)
    if edge_table is not None:
        index, weight = read_edges(edge_table, known, tuple(edge_options.values()))
    else:
        assert edge_data is not None
        index, weight = _edges_of_arrays(edge_data, known, edge_path)
    if directed:
        _check_both_ways(index, edge_path, edge_table)
    index, weight = _drop_weightless(index, weight, known.notes)
    _add_features(known, index, features)
    return from_data(
        Data(x=known.x, edge_index=index, edge_weight=weight, y=known.y, **known.masks),
        name=name or graph_name(edge_path),
        task=task or known.task,
        classes=known.classes,
        ids=_user_ids(known.ids),
        feature_names=known.feature_names,
        self_loops=self_loops,
        notes=known.notes,
        ready=features == "identity",
    )


def _nodes_without_table(
    path: Path | None, edge_data: Data | None, classes: tuple[str, ...], want_features: bool
) -> Nodes:
    """The nodes of an array file: that of the nodes, else that of the edges, if there is one."""
    if path is not None:
        known = _nodes_of(*read_arrays(path, as_features=True), want_features)
        known.source = path.name
        return known
    return Nodes() if edge_data is None else _nodes_of(edge_data, classes, want_features)


def _check_optional(columns: Sequence[str]) -> None:
    for column in columns:
        if column not in OPTIONAL:
            raise DataError(
                f"Expected `optional_columns` among {', '.join(OPTIONAL)} (got {column!r}).",
                value=column,
            )


def _read_node_table(
    path: Path | None,
    options: dict[str, str | None],
    feature_columns: Sequence[str] | None,
    optional: Sequence[str],
) -> Table | None:
    """The node file as a table if it is one; optional columns it lacks leave the options."""
    required = {k: None if f"{k}_column" in optional else v for k, v in options.items()}
    table = _table_or_none(path, {**required, "feature": feature_columns})
    for key, column in options.items():
        if required[key] is None and (table is None or column not in table.columns):
            options[key] = None
    return table


def graph_name(edges: Path) -> str:
    """A name for the graph of an edge file, or of a folder with ``edges.*``.

    >>> graph_name(Path("club/edges.csv")), graph_name(Path("friends.csv"))
    ('club', 'friends')
    """
    if edges.is_dir():
        return edges.name
    return edges.parent.name if edges.stem == "edges" else edges.stem


def _table_or_none(
    path: Path | None, options: Mapping[str, str | Sequence[str] | None]
) -> Table | None:
    """The file as a table if it is one; else column options make no sense."""
    if path is not None and path.suffix.lower() in TABLE_SUFFIXES:
        return read_table(path)
    given = next((f"{key}_column" for key, value in options.items() if value is not None), None)
    if given is not None:
        raise DataError(
            f"Expected no `{given}` without a {', '.join(TABLE_SUFFIXES)} file to look in "
            f"(got {options[given.removesuffix('_column')]!r}).",
            path=path,
        )
    return None


def _find_files(edges: Path, nodes: Path | None) -> tuple[Path, Path | None]:
    if edges.is_dir() and nodes is None:
        folder = edges
        found = {stem: sorted(folder.glob(f"{stem}.*")) for stem in ("edges", "nodes")}
        found = {k: [p for p in v if p.suffix.lower() in SUFFIXES] for k, v in found.items()}
        for stem, paths in found.items():
            if len(paths) > 1:
                names = ", ".join(path.name for path in paths)
                raise DataError(f"Expected one {stem} file (got {names}).", path=folder)
        if not found["edges"]:
            choices = ", ".join(SUFFIXES)
            raise MissingFileError(
                f"Expected a file edges.* ({choices}) in the folder (found none).", path=folder
            )
        edges = found["edges"][0]
        nodes = found["nodes"][0] if found["nodes"] else None
    for path in (edges, nodes):
        if path is None:
            continue
        if not path.exists():
            raise MissingFileError("Expected a file here (found none).", path=path)
        if path.suffix.lower() not in SUFFIXES:
            raise DataError(
                f"Expected a file of type {', '.join(SUFFIXES)} (got {path.suffix!r}).", path=path
            )
    return edges, nodes


def _nodes_of(data: Data, classes: tuple[str, ...], want_features: bool) -> Nodes:
    """The nodes of an array file."""
    x, y = data.get("x"), data.get("y")
    sizes = [len(value) for value in (x, y) if value is not None]
    count = sizes[0] if sizes else data.get("num_nodes")
    nodes = Nodes(count=count, x=x if want_features else None, y=y, classes=classes or None)
    if classes:
        nodes.task = "classification"
    nodes.masks = {key: data[key] for key in MASKS if data.get(key) is not None}
    return nodes


def _edges_of_arrays(data: Data, nodes: Nodes, path: Path) -> tuple[Tensor, Tensor | None]:
    index = data.get("edge_index")
    if index is None:
        raise DataError("Expected an adjacency matrix or `edge_index` in the file.", path=path)
    size = data.get("num_nodes")
    if nodes.count is None:
        nodes.count = size or int(index.max()) + 1
    if size is not None and nodes.count != size:
        raise DataError(
            f"Expected {size} nodes, as many as the adjacency has rows "
            f"(got {nodes.count} in {nodes.source}).",
            path=path,
        )
    _check_order(nodes, path)
    weight = edge_weights(data)
    if weight is not None and not bool((torch.isfinite(weight) & (weight >= 0)).all()):
        raise DataError("Expected weights finite and >= 0 (got others).", path=path)
    return index, weight


def _check_order(nodes: Nodes, path: Path) -> None:
    """Rows of the node file are rows of the matrix: refuse ids that say otherwise."""
    if nodes.ids is None:
        return
    texts = nodes.ids.to_pylist()
    if not all(text.isdecimal() for text in texts):
        return
    ids = np.array([int(text) for text in texts])
    if (ids != np.sort(ids)).any() and np.ptp(ids) == len(ids) - 1:
        row = int((ids != np.sort(ids)).argmax())
        raise DataError(
            f"Expected the nodes of {nodes.source} in the order of the matrix "
            f"(got id {ids[row]} as row {row + 1}); sort the node file by id.",
            path=path,
        )


def _check_both_ways(index: Tensor, path: Path, table: Table | None) -> None:
    size = int(index.max()) + 1
    there, back = index[0] * size + index[1], index[1] * size + index[0]
    alone = (~torch.isin(back, there)).nonzero()
    if len(alone) == 0:
        return
    message = (
        "Expected both directions of each edge (got one that lacks its reverse); filters need "
        "an undirected graph: use directed=False to complete it."
    )
    if table is not None:
        raise table.error(message, int(alone[0]))
    raise DataError(message, path=path)


def _drop_weightless(
    index: Tensor, weight: Tensor | None, notes: list[str]
) -> tuple[Tensor, Tensor | None]:
    if weight is None or bool((weight != 0).all()):
        return index, weight
    keep = weight.reshape(-1) != 0
    notes.append(f"Edges of weight 0, which are none, were dropped: {int((~keep).sum())}.")
    return index[:, keep], weight.reshape(-1)[keep]


def _add_features(nodes: Nodes, index: Tensor, features: str) -> None:
    if nodes.x is not None:
        return
    count = nodes.count or 0
    if features == "columns":
        raise DataError(
            f"Expected feature columns in {nodes.source} (got none); use features='degree' or "
            "'identity'."
        )
    if features == "identity":
        if count > MAX_IDENTITY:
            raise DataError(
                f"Expected at most {MAX_IDENTITY} nodes for identity features (got {count}); "
                "use features='degree'."
            )
        nodes.x = torch.eye(count)
        return
    both = symmetrize(index.long(), num_nodes=count)[0]
    nodes.x = torch.log1p(torch.bincount(both[0], minlength=count).float())[:, None]
    nodes.feature_names = ("log_degree",)
    if features == "auto":
        nodes.notes.append("There are no features: log(1 + degree) is used.")


def _user_ids(ids: Any) -> Sequence[str] | Sequence[int]:
    """Whole numbers where all ids are, else text, just as the user wrote them."""
    if ids is None:
        return ()
    numbers = whole_numbers(ids)
    return ids.to_pylist() if numbers is None else numbers

"""Tables of edges and nodes → the arrays of a prepared graph, one step after the other."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from longnn.data import (
    DataError,
    Encoding,
    NodeColumns,
    Scaling,
    Source,
    StoredTable,
    TableOptions,
    edge_notes,
    graph_name,
    isolated_note,
)
from longnn.store._csr import Counts, write_csr
from longnn.store._edges import open_edges, relate
from longnn.store._engine import Engine
from longnn.store._features import FeatureFile, write_features
from longnn.store._finish import finish
from longnn.store._graph import FEATURES, IDS, GraphStore
from longnn.store._labels import read_asked, write_asked
from longnn.store._numbers import number_edges, number_nodes, write_ids
from longnn.store._parts import Parts
from longnn.store._steps import Steps

#: Relative times of the steps, measured on a graph of 20 neighbours and 64 features per node.
LENGTHS = {
    "reading edges": 1.0,
    "numbering nodes": 1.0,
    "numbering edges": 3.0,
    "sorting edges": 6.0,
    "reading nodes": 4.0,
    "checking": 1.0,
}
#: The feature of a graph that has none.
DEGREE = "log_degree"
_NODE_OPTIONS = ("id_column", "label_column", "split_column", "feature_columns", "category_columns")


@dataclass
class Ingest:
    """One graph on its way into a folder.

    Args:
        given: what the user named.
        parts: the files of edges, and of nodes if there are any.
        folder: for the arrays.
        room: a folder for what is not kept.
        source: how the graph is made, for the manifest; ``scale`` and ``seed`` are used.
        model: a prepared graph whose features were encoded and scaled as these shall be, or None.
        memory: bytes.
        steps: how far the work is.
    """

    given: Source
    parts: tuple[Parts, Parts | None]
    folder: Path
    room: Path
    source: Mapping[str, Any]
    model: GraphStore | None
    memory: int
    steps: Steps
    notes: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Write all arrays, then the manifest."""
        options = self._options()
        table, columns, options = self._open_nodes(options)
        counts = self._write_edges(table, columns, options)
        self.steps.begin("reading nodes")
        classes = None if self.model is None else self.model.about["classes"]
        asked = read_asked(table, columns, options, len(counts.degree), classes)
        encoding, scaling, names = self._write_features(table, columns, options, counts.degree)
        files, split = write_asked(asked, self.folder, int(self.source["seed"]))
        loops = 0 if options.self_loops else counts.loops
        changes = edge_notes(counts.one_way, counts.edges, loops, counts.repeats)
        self.steps.begin("checking")
        finish(
            self.folder,
            self._name(options),
            labelled=asked.labelled,
            files=files,
            feature_names=names,
            encoding=encoding,
            scaling=scaling,
            split=split,
            edges=counts.edges,
            degree=counts.degree,
            one_way=counts.one_way,
            self_loops=options.self_loops,
            notes=[
                *self.notes,
                *changes,
                *isolated_note(int((counts.degree == 0).sum())),
                *asked.notes,
            ],
            source=self.source,
        )

    def _name(self, options: TableOptions) -> str:
        path = self.parts[0].path
        own = path.parent if path.is_dir() and path.name == "edges" else path
        return options.name or graph_name(own)

    def _options(self) -> TableOptions:
        given = dict(self.given.options)
        given.pop("optional_columns", None)
        for key in ("feature_file", "text_columns"):
            if given.pop(key, None):
                raise DataError(
                    f"Expected no `{key}` for a prepared graph, whose features are columns of "
                    "numbers and categories; use the graph in memory, or make numbers of it first."
                )
        options = TableOptions.from_dict(given)
        if options.directed:
            raise DataError(
                "Expected an undirected graph: a prepared folder keeps no arcs (got "
                f"directed={options.directed}); leave it out, or train in memory."
            )
        if options.type_column is not None:
            raise DataError(
                "Expected no `type_column`: a prepared folder keeps no types of edges (got "
                f"{options.type_column!r}); leave it out, or train in memory."
            )
        if options.unknown_ids == "add":
            raise DataError(
                "Expected `unknown_ids` of a prepared graph to be 'error' or 'drop' (got 'add'); "
                "add the nodes to the node file, or train in memory."
            )
        if options.features == "identity":
            raise DataError(
                "Expected features of a prepared graph to be 'auto', 'columns' or 'degree' "
                "(got 'identity'); use features=degree."
            )
        return options

    def _open_nodes(
        self, options: TableOptions
    ) -> tuple[StoredTable | None, NodeColumns | None, TableOptions]:
        """The node table, what its columns are for, and the options without absent columns."""
        optional: Sequence[str] = self.given.options.get("optional_columns", ())
        parts = self.parts[1]
        if parts is None:
            named = [k for k in _NODE_OPTIONS if getattr(options, k) and k not in optional]
            if named:
                raise DataError(
                    f"Expected no `{named[0]}` without a node file to look in.",
                    path=self.parts[0].path,
                )
            return None, None, options
        table = StoredTable.open(parts.files, parts.path, self.room)
        lost: dict[str, Any] = {}
        for key in optional:
            value = getattr(options, key)
            wanted = (value,) if isinstance(value, str) else value or ()
            if any(column not in table.columns for column in wanted):
                lost[key] = None
        options = replace(options, **lost)
        if options.features == "degree":
            options = replace(options, feature_columns=(), category_columns=None)
        columns = NodeColumns.find(table, options, ids_needed=True)
        self.notes += table.notes
        if not table.has_header:
            self.notes.append(f"{table.name} has no header: its first line was read as a node.")
        return table, columns, options

    def _write_edges(
        self, table: StoredTable | None, columns: NodeColumns | None, options: TableOptions
    ) -> Counts:
        """The neighbours of each node, and the ids."""
        edge_parts, node_parts = self.parts
        steps = self.steps
        with ExitStack() as stack:
            engine = stack.enter_context(Engine(self.room, self.memory))
            steps.begin("reading edges")
            ignored = bool(self.source["ignore_weights"])
            edges = open_edges(
                engine, stack, edge_parts, options.ends, ignore_weights=ignored, on_share=steps.at
            )
            steps.begin("numbering nodes")
            ids = None
            if table is not None and columns is not None and columns.key is not None:
                assert node_parts is not None
                ids = relate(engine, stack, node_parts, (columns.key,), table)
            how, count = number_nodes(engine, edges.relation, ids)
            steps.begin("numbering edges")
            name = "the edges" if node_parts is None else node_parts.path.name
            dropped = number_edges(
                engine, edges.relation, how, name, steps.at, unknown_ids=options.unknown_ids
            )
            write_ids(engine, self.folder / IDS)
            steps.begin("sorting edges")
            loops = options.self_loops
            counts = write_csr(engine, self.folder, count, self_loops=loops, on_share=steps.at)
        self.notes += [*edges.notes, *dropped]
        return counts

    def _write_features(
        self,
        table: StoredTable | None,
        columns: NodeColumns | None,
        options: TableOptions,
        degree: np.ndarray,
    ) -> tuple[Encoding | None, Scaling, Sequence[str]]:
        """How columns became features, how these were scaled, and their names."""
        model, share = self.model, self.steps.at
        fitted = None if model is None else model.scaling
        file = FeatureFile(self.folder / FEATURES, len(degree), str(self.source["scale"]), fitted)
        encoding: Encoding | None = None
        if model is not None and model.about["feature_names"] != [DEGREE]:
            if table is None:
                raise DataError("Expected a node file with the features of training (got none).")
            encoding = model.encoding or Encoding.plain(model.about["feature_names"])
            blocks = (block for _, block in encoding.blocks(table))
            return model.encoding, file.write(blocks), encoding.feature_names
        if model is None and table is not None and columns is not None and columns.features:
            encoding, scaling = write_features(file, table, columns.features, options, share)
            if encoding.note:
                self.notes.append(encoding.note)
            if scaling is not None:
                return encoding, scaling, encoding.feature_names
        if options.features == "columns":
            why = "" if encoding is None else f". {encoding.note.rstrip('.')}"
            raise DataError(
                f"Expected feature columns in the node file (got none{why}); use features='degree'."
            )
        if options.features == "auto":
            self.notes.append("There are no features: log(1 + degree) is used.")
        x = torch.log1p(torch.from_numpy(degree).float())[:, None]
        return None, file.write(iter([x.numpy()])), (DEGREE,)

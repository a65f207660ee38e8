"""The formats of files, one entry each, and the files of a graph: how they are found and opened.

A table is read in batches, or one column at a time where its format allows it. A new format is one
more entry of :data:`FORMATS`. Knows nothing of what columns or arrays mean.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from longnn.data._arrays import KEYS, as_arrays, is_called_symmetric, read_matrix, read_npz
from longnn.data._errors import DataError, MissingFileError, readable, require_file
from longnn.data._pickles import read_pyg
from longnn.data._tensors import GraphTensors
from longnn.data._text import SEPARATORS, Header, TextStream, kind_of, table_stem, table_suffix

#: How much larger a compressed text is, about, when it is read.
PACKED = 4
ROWS = 2**20  # of a column that are read at once
_LISTED = 5  # files of a folder that an error names


class StoredTable:
    """A table in a file that says how many rows it has, and of which types its columns are.

    Args:
        path: the file.
    """

    has_header = True
    doubt = ""
    notes: tuple[str, ...] = ()
    decimal = ""

    def __init__(self, path: Path, _: Header = "auto") -> None:
        self.path = path
        if path.stat().st_size == 0:
            raise DataError("Expected rows (got an empty file).", path=path)
        with readable(path, kind_of(path)):
            self.schema, self.rows, self.size = self._look()
        self.names = self.schema.names

    def line(self, row: int) -> int:
        """The row, counted from 1."""
        return row + 1

    def column(self, name: str) -> pa.ChunkedArray:
        """A column as a whole."""
        chunks = [batch.column(0) for batch in self.batches([name], ROWS)]
        return pa.chunked_array(chunks or [pa.array([], self.schema.field(name).type)])

    def batches(self, names: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Some columns, at most so many rows at a time."""
        with readable(self.path, kind_of(self.path)):
            for batch in self._batches(names, rows):
                batch.validate(full=True)  # of texts, that they are UTF-8: nobody else looks
                yield batch

    def _look(self) -> tuple[pa.Schema, int, float]:
        """Columns, rows, and bytes in memory."""
        raise NotImplementedError

    def _batches(self, names: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError


class ParquetTable(StoredTable):
    """Equal texts are stored once, and read as they are stored."""

    def _look(self) -> tuple[pa.Schema, int, float]:
        with pq.ParquetFile(self.path) as file:
            held, schema = file.metadata, file.schema_arrow
        groups = [held.row_group(i) for i in range(held.num_row_groups)]
        values = sum(g.column(j).num_values for g in groups for j in range(g.num_columns))
        # Equal numbers are stored once, but take 8 bytes each in memory, in lists too.
        return schema, held.num_rows, sum(g.total_byte_size for g in groups) + 8.0 * values

    def _batches(self, names: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        texts = [name for name in names if is_long(self.schema.field(name).type)]
        with pq.ParquetFile(self.path, read_dictionary=texts) as file:
            yield from file.iter_batches(rows, columns=[*names])


class ArrowTable(StoredTable):
    """Arrow's own format, which Feather is, too."""

    def _look(self) -> tuple[pa.Schema, int, float]:
        with pa.memory_map(str(self.path)) as source, pa.ipc.open_file(source) as file:
            rows = sum(file.get_batch(i).num_rows for i in range(file.num_record_batches))
            return file.schema, rows, float(self.path.stat().st_size)

    def _batches(self, names: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        fields = [self.names.index(name) for name in names]
        options = pa.ipc.IpcReadOptions(included_fields=fields)  # others may be compressed
        with (
            pa.memory_map(str(self.path)) as source,
            pa.ipc.open_file(source, options=options) as file,
        ):
            for number in range(file.num_record_batches):
                batch = file.get_batch(number).select([*names])
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows)


def is_text(kind: pa.DataType) -> bool:
    """Whether a type of Arrow is one of text."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()


def is_long(kind: pa.DataType) -> bool:
    """Whether one value of a type takes as much room as it likes: text or bytes."""
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return is_text(kind) or is_bytes


class Format(NamedTuple):
    """How a file is read.

    Args:
        table: opens a table; a :class:`StoredTable`, or the text of one.
        arrays: reads arrays by name; true reads a matrix as features, not as edges.
        is_symmetric: whether a file says that its edges have no direction.
    """

    table: Callable[[Path, Header], Any] | None = None
    arrays: Callable[[Path, bool], dict[str, object]] | None = None
    is_symmetric: Callable[[Path], bool] = lambda _: False


FORMATS = {
    **dict.fromkeys(SEPARATORS, Format(TextStream)),
    ".parquet": Format(ParquetTable),
    **dict.fromkeys((".arrow", ".feather"), Format(ArrowTable)),
    ".npz": Format(arrays=read_npz),
    ".mtx": Format(arrays=read_matrix, is_symmetric=is_called_symmetric),
    **dict.fromkeys((".pt", ".pth"), Format(arrays=lambda path, _: read_pyg(path, KEYS))),
}


def read_arrays(path: Path, *, as_features: bool = False) -> tuple[GraphTensors, tuple[str, ...]]:
    """Read a file of arrays; the class names come with it if its labels are text.

    Args:
        path: ``.npz`` (a SciPy sparse matrix, or arrays named ``edge_index``, ``edge_weight``,
            ``x``, ``y``, ``train_mask``, ..., or both), ``.mtx``, ``.pt`` or ``.pth``.
        as_features: read a sparse matrix as node features instead of an adjacency.
    """
    require_file(path)
    if path.stat().st_size == 0:
        raise DataError("Expected a graph (got an empty file).", path=path)
    read: Any = FORMATS[table_suffix(path)].arrays
    with readable(path, kind_of(path)):
        return as_arrays(read(path, as_features), path)


def is_table(path: Path) -> bool:
    """Whether a file is called as those of tables are."""
    form = FORMATS.get(table_suffix(path))
    return form is not None and form.table is not None


def names_of(*, tables: bool = False) -> str:
    """The suffixes of all files that can be read, or of tables."""
    return ", ".join(s for s, form in FORMATS.items() if form.table is not None or not tables)


@dataclass(frozen=True)
class Parts:
    """A table in one or several files of one format, or a file of arrays."""

    path: Path
    files: tuple[Path, ...]
    header: Header = "auto"
    optional: tuple[str, ...] = ()  # columns that files but the first may lack: gaps there

    @classmethod
    def of(cls, path: Path, header: Header = "auto") -> "Parts":
        """A file alone, or the parts in a folder: what Spark, DuckDB or Dask write."""
        if not path.is_dir():
            require_file(path)
            if table_suffix(path) not in FORMATS:
                raise DataError(
                    f"Expected a file of type {names_of()} (got {path.suffix!r}).", path=path
                )
            return cls(path, (path,), header)
        files = _parts(path)
        kinds = sorted({table_suffix(file) for file in files})
        if len(kinds) > 1:
            raise DataError(
                f"Expected a file edges.*, or parts of one kind (got {', '.join(kinds)}"
                f"{_some(path)}).",
                path=path,
            )
        if not files:
            raise MissingFileError(
                f"Expected parts of a table ({names_of(tables=True)}) in the folder (found none).",
                path=path,
            )
        return cls(path, files, header)

    @property
    def form(self) -> Format:
        """How each file is read."""
        return FORMATS[table_suffix(self.files[0])]

    @property
    def is_table(self) -> bool:
        """Whether it is a table, not arrays."""
        return self.form.table is not None

    def with_rows(self, more: "Parts", optional: Sequence[str] = ()) -> "Parts":
        """The table with the rows of another behind its own, which may lack some columns."""
        if self.form.table is None or more.form.table is not self.form.table:
            raise DataError(
                "Expected a table of the kind of the one that its rows are added to "
                f"({self.files[0].name}; got {more.files[0].name}).",
                path=more.path,
            )
        # One row is no evidence of a header: there is one if the first file has it.
        header: Header = "yes" if self.open()[0].has_header else "no"
        files = (*self.files, *more.files)
        return replace(self, files=files, header=header, optional=tuple(optional))

    def size(self) -> tuple[int, int]:
        """Rows and columns, roughly: of text, by the length of its first lines."""
        opened = self.open()
        if isinstance(opened[0], StoredTable):
            return sum(part.rows for part in opened), len(opened[0].names)
        head = opened[0].head
        packed = PACKED if self.files[0].suffix.lower() not in FORMATS else 1
        size = sum(file.stat().st_size for file in self.files)
        rows = packed * size * max(head.count(b"\n"), 1) / len(head)
        return int(rows), len(opened[0].names)

    def stamp(self) -> list[list[Any]]:
        """Name, size and time of each file: whether they are still the same."""
        states = [(file, file.stat()) for file in self.files]
        return [[str(file), state.st_size, state.st_mtime_ns] for file, state in states]

    def open(self) -> list[Any]:
        """The tables, in order; each has the columns of the first."""
        opened = []
        for file in self.files:
            require_file(file)
            with readable(file, kind_of(file)):
                opened.append(self.form.table(file, self.header))  # type: ignore[misc]
            names = (*opened[-1].names, *self.optional)
            missing = [name for name in opened[0].names if name not in names]
            if missing:
                raise DataError(
                    f"Expected the columns of {self.files[0].name} in every part (got no "
                    f"{missing[0]!r}); if they are not parts of one table, give the edge file "
                    "itself, and --nodes.",
                    path=file,
                )
        return opened

    def place(self, row: int, *, has_header: bool) -> tuple[Path, int]:
        """The file that holds a row of all, counted from 0; and the line of a text file or the row
        of any other, counted from 1.
        """
        header: Header = self.header if len(self.files) > 1 else "yes" if has_header else "no"
        for file in self.files:
            opened: Any = self.form.table(file, header)  # type: ignore[misc]
            if file == self.files[-1]:
                break
            is_stored = isinstance(opened, StoredTable)
            count = opened.rows if is_stored else sum(b.num_rows for b in opened.batches())
            if row < count:
                break
            row -= count
        return file, opened.line(row)


def _parts(folder: Path) -> tuple[Path, ...]:
    """The tables in a folder, but for those that are hidden or marked as no part."""
    return tuple(
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file()
        and is_table(file)
        and not any(part[0] in "._" for part in file.relative_to(folder).parts)
    )


def _some(folder: Path) -> str:
    """A few of the files in a folder, for an error."""
    names = [p.name for p in sorted(folder.iterdir()) if table_suffix(p) in FORMATS][:_LISTED]
    return f"; it has {', '.join(names)}: give the edge file itself, and --nodes" if names else ""


def find_files(
    graph: Path, nodes: Path | None, header: Header = "auto"
) -> tuple[Parts, Parts | None]:
    """The edges, and the nodes if there are any.

    Args:
        graph: an edge file, a folder of its parts, or a folder with ``edges.*`` and perhaps
            ``nodes.*``, each a file or a folder of parts, called so or ``edges`` and ``nodes``.
        nodes: the node file or a folder of its parts, where it is not beside the edges.
        header: of text files.
    """
    require_file(graph)
    edges = graph
    if graph.is_dir():
        inside = called("edges", graph)
        if inside is None and (_all_called("nodes", graph) or not _parts(graph)):
            raise MissingFileError(
                f"Expected a file edges.* ({names_of()}), or parts of a table, in the folder "
                f"(found none{_some(graph)}).",
                path=graph,
            )
        if nodes is None and inside is not None:
            nodes = called("nodes", graph)
        edges = inside or graph
    elif nodes is None:
        nodes = find_nodes_beside(graph)
    found = [None if path is None else Parts.of(path, header) for path in (edges, nodes)]
    assert found[0] is not None
    return found[0], found[1]


def find_nodes_beside(edges: Path) -> Path | None:
    """The file ``nodes.*`` beside a file ``edges.*``, if there is just one."""
    if edges.is_dir() or table_stem(edges) != "edges" or not edges.parent.is_dir():
        return None
    beside = _all_called("nodes", edges.parent)
    return beside[0] if len(beside) == 1 else None


def called(stem: str, folder: Path) -> Path | None:
    """The file ``stem.*`` of a known format; or a folder called so, or ``stem`` alone, of parts."""
    paths = _all_called(stem, folder)
    if len(paths) > 1:
        names = ", ".join(path.name for path in paths)
        raise DataError(f"Expected one {stem} file or folder (got {names}).", path=folder)
    return paths[0] if paths else None


def _all_called(stem: str, folder: Path) -> list[Path]:
    return [
        path
        for path in sorted([*folder.glob(stem), *folder.glob(f"{stem}.*")])
        if (table_suffix(path) in FORMATS and table_stem(path) == stem)
        or (path.is_dir() and path.name == stem)
    ]


def graph_name(edges: Path) -> str:
    """A name for the graph of an edge file, or of a folder with ``edges.*``."""
    if edges.is_dir() and edges.name != "edges":
        return edges.name
    stem = table_stem(edges)
    return edges.parent.name if stem == "edges" else stem

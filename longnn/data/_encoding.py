"""From the columns of a node table to features, and the same way for another table.

An :class:`Encoding` is one entry per column, learned from all nodes of a graph, not from labels. It
is plain data: a run stores it as JSON, and a new table goes through it unchanged.
"""

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
import torch
from torch import Tensor

from longnn._base.late import Late
from longnn.data._columns import Boolean, Category, Date, LeftOut, Number, Text, guess_kind
from longnn.data._errors import DataError, few
from longnn.data._hints import Hints
from longnn.data._tables import Table
from longnn.matrices import SPARSE_SHARE, csr_from_scipy

pc = Late("pyarrow.compute")

Column: TypeAlias = Number | Boolean | Date | Category | Text | LeftOut
#: Features (nodes, width) of one column, float32.
Block: TypeAlias = np.ndarray | sp.csr_array
#: What becomes of the features of all columns: joined in memory, or written to a file.
Join: TypeAlias = Callable[[Iterator[Block]], Tensor | None]
Missing = Literal["fill", "error"]
KINDS: dict[str, Any] = {
    kind.kind: kind for kind in (Number, Boolean, Date, Category, Text, LeftOut)
}
SPARSE_WIDTH = 200  # features from which on mostly zeros are kept sparse


@dataclass(frozen=True)
class Encoding:
    """How each column of a node table becomes features.

    >>> table = Table({"age": pa.array(["3", "", "5", "4"]), "team": pa.array(list("abab"))})
    >>> encoding, x = Encoding.fit(table)
    >>> encoding.feature_names
    ('age', 'age missing', 'team=a', 'team=b')
    >>> Encoding.from_dict(encoding.to_dict()) == encoding
    True
    >>> encoding.apply(Table({"team": pa.array(["b"]), "age": pa.array(["?"])}))
    tensor([[4., 1., 0., 1.]])
    """

    columns: tuple[Column, ...]

    @classmethod
    def fit(
        cls,
        table: Table,
        names: Sequence[str] | None = None,
        *,
        join: Join | None = None,
        text_columns: Sequence[str] = (),
        category_columns: Sequence[str] = (),
        missing: Missing = "fill",
        hints: Hints | None = None,
    ) -> tuple["Encoding", Tensor | None]:
        """Learn from the columns of a table; returns the features too, None if there are none.

        Args:
            table: one node per row.
            names: its feature columns; by default all.
            join: what becomes of the features of each column, which are made one after the other;
                by default they are joined in memory.
            text_columns: columns whose words are features.
            category_columns: columns whose values are categories, whatever they look like.
            missing: ``"fill"`` gaps, or treat the first as an ``"error"``.
            hints: what looks at each column.
        """
        named = {"text_columns": text_columns, "category_columns": category_columns}
        names, columns = table.names if names is None else names, list[Column]()
        blocks = _new_blocks(columns, table, names, **named, missing=missing, hints=hints)
        x = (join or join_blocks)(blocks)
        return cls(tuple(columns)), x

    @classmethod
    def plain(cls, names: Sequence[str]) -> "Encoding":
        """Columns of numbers as they are; a gap stays a gap."""
        return cls(tuple(Number(name, (float("nan"),)) for name in names))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features, in order."""
        return tuple(name for column in self.columns for name in column.names)

    def apply(self, table: Table) -> Tensor:  # (nodes, features)
        """The features of another table; columns that the encoding does not know are ignored."""
        x = join_blocks(block for _, block in self.blocks(table))
        if x is None:
            raise DataError("Expected an encoding with features (got one that has none)")
        return x

    def blocks(self, table: Table) -> Iterator[tuple[Column, Block]]:
        """As :meth:`apply`, column by column: each column that is used, and its features."""
        used: list[Any] = [column for column in self.columns if column.kind != LeftOut.kind]
        for column in used:
            if column.column not in table.columns:
                found = few(table.names, most=8)
                raise DataError(
                    f"Expected the columns the run was trained with (missing column "
                    f"{column.column!r}; {table.name} has {found})"
                )
        for column in used:
            yield column, column.encode(column.parse(table, column.column))

    def check_same(self, done: "Encoding") -> None:
        """Raise unless columns that another encoding was done to have the features of this one.

        Both may have learned other medians: they count where gaps were filled with them.
        """
        there = {column.column: column for column in done.columns}
        for column in self.columns:
            other = there.get(column.column)
            same = column == other or column.names == getattr(other, "names", ())
            fill, other_fill = (getattr(each, "fill", 0.0) for each in (column, other))
            if not same or (getattr(other, "gaps", False) and fill != other_fill):
                raise DataError(
                    f"Expected features made as in training (column {column.column!r} was read in "
                    "another way here); give the files themselves, or prepare them with --like RUN"
                )

    def rows(self) -> list[tuple[str, str, str]]:
        """Column, kind, and what was done, for each column."""
        return [(column.column, column.kind, column.done) for column in self.columns]

    @property
    def note(self) -> str:
        """One sentence on what was done, empty where all columns are plain numbers."""
        gaps = [c.column for c in self.columns if getattr(c, "gaps", 0)]
        parts = [f"gaps filled in {few(gaps)}"] if gaps else []
        words = {"category": "categories", "date": "dates", "text": "text"}
        for kind, word in words.items():
            found = [c for c in self.columns if c.kind == kind]
            if found:
                width = sum(len(c.names) for c in found)
                parts.append(f"{word} made {width} features ({few([c.column for c in found])})")
        lost = [f"{c.column} ({c.reason})" for c in self.columns if isinstance(c, LeftOut)]
        if lost:
            parts.append(f"left out: {few(lost, '; ')}")
        return f"Columns: {'; '.join(parts)}." if parts else ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {"columns": [{"kind": c.kind, **dataclasses.asdict(c)} for c in self.columns]}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Encoding":
        """From :meth:`to_dict`, perhaps through JSON."""
        try:
            columns = []
            for entry in fields["columns"]:
                own = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
                columns.append(KINDS[str(own.pop("kind"))](**own))
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"Expected an encoding of columns (got {error!r})") from error
        return cls(tuple(columns))


def join_blocks(each: Iterable[Block]) -> Tensor | None:  # (nodes, features)
    """The features of all columns: CSR if they are many and mostly zeros, else dense."""
    blocks = list(each)
    width = sum(block.shape[1] for block in blocks)
    if width == 0:
        return None
    rows = blocks[0].shape[0]
    nonzeros = sum(
        int(np.count_nonzero(b)) if isinstance(b, np.ndarray) else int(b.nnz) for b in blocks
    )
    if width >= SPARSE_WIDTH and nonzeros <= SPARSE_SHARE * rows * width:
        return csr_from_scipy(sp.hstack([sp.csr_array(block) for block in blocks], format="csr"))
    joined = np.empty((rows, width), dtype=np.float32)
    start = 0
    for block in blocks:
        end = start + block.shape[1]
        joined[:, start:end] = block if isinstance(block, np.ndarray) else block.toarray()
        start = end
    return torch.from_numpy(joined)


def _encode_columns(
    table: Table,
    names: Sequence[str],
    *,
    text_columns: Sequence[str] = (),
    category_columns: Sequence[str] = (),
    missing: Missing = "fill",
    hints: Hints | None = None,
) -> Iterator[tuple[Column, Block | None]]:
    """What each column is, and its features; one column is read at a time."""
    for name in names:
        if missing == "error":
            _refuse_gaps(table, name)
        kind, cells = guess_kind(
            table, name, text=name in text_columns, category=name in category_columns
        )
        if isinstance(kind, LeftOut):
            yield kind, None
            continue
        column = kind.fit(name, cells)
        block = column.encode(cells)
        if hints is not None:
            hints.see(column, cells, block)
        yield column, block


class Novelty:
    """Which columns say something that those before them do not.

    >>> known, ages = Novelty(), np.array([[3.0], [5.0]], np.float32)
    >>> known.judge(Number("age", (4.0,)), ages)[0]
    Number(column='age', fill=(4.0,), gaps=0, many=False)
    >>> known.judge(Number("years", (4.0,)), ages)
    (LeftOut(column='years', reason='the same as age'), None)
    """

    def __init__(self) -> None:
        self._names: dict[object, str] = {}

    def judge(self, column: Column, block: Block | None) -> tuple[Column, Block | None]:
        """The column and its features; without them, if it is constant or repeats another."""
        if block is None:
            return column, None
        twin = self._names.setdefault(_digest(block), column.column)
        reason = f"the same as {twin}" if twin != column.column else _no_news(column, block)
        return (column, block) if reason is None else (LeftOut(column.column, reason), None)


def _new_blocks(
    columns: list[Column], table: Table, names: Sequence[str], **options: Any
) -> Iterator[Block]:
    """The features of each column but those that are constant or repeat an earlier one, unless
    nothing would remain; ``columns`` is filled with what each column is."""
    for judge in (Novelty().judge, lambda column, block: (column, block)):
        columns.clear()
        empty = True
        for column, block in _encode_columns(table, names, **options):
            column, block = judge(column, block)
            columns.append(column)
            if block is not None:
                empty = False
                yield block
        if not empty:
            return
        options["hints"] = None


def _no_news(column: Column, block: Block) -> str | None:
    """Why no feature of a column varies, or None."""
    if isinstance(column, Text) and not column.words:
        return "no word occurs at two nodes"
    if isinstance(column, Category) and not column.values and not column.gaps:
        return "every value is rare"
    if isinstance(block, np.ndarray):
        constant = bool((block[1:] == block[:1]).all())
    else:
        counts = np.bincount(block.indices, minlength=block.shape[1])
        constant = isinstance(column, Category) and bool(np.isin(counts, (0, block.shape[0])).all())
    return "constant" if constant else None


def _digest(block: Block) -> object:
    """What equal blocks, and only those, share."""
    arrays = [block + 0.0] if isinstance(block, np.ndarray) else [block.indptr, block.indices]
    arrays += [] if isinstance(block, np.ndarray) else [block.data]  # above, -0 became 0
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return type(block), block.shape, digest.digest()


def _refuse_gaps(table: Table, column: str) -> None:
    array = table.columns[column]
    if pa.types.is_nested(array.type):
        mask = np.isnan(table.values(column)).any(axis=1)
    else:
        cells = table.cells(column) if pa.types.is_string(array.type) else array
        mask = pc.is_null(cells, nan_is_null=True).to_numpy(zero_copy_only=False)
    if mask.any():
        remedy = "Fill it, use missing='fill', or leave the column out with drop_columns."
        raise table.wrong("a value", int(mask.argmax()), column, f". {remedy}")

"""A text table read in batches, however long it is.

The same separators, encodings and compressions as :mod:`longnn.data._textfile` and the same parser
as :mod:`longnn.data._readtable`, but recognised from the beginning of the file alone. Every cell is
text. Knows nothing of what the columns mean.
"""

import bz2
import codecs
import gzip
import io
import lzma
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as pacsv

from longnn.data._errors import DataError
from longnn.data._readtable import header_of, is_decimal, unreadable
from longnn.data._textfile import (
    BROKEN,
    MARKS,
    TextFile,
    incomplete,
    join_spaces,
    recognise_text,
    table_suffix,
    without_comments,
)

_HEAD = 2**20  # bytes that decide encoding, separator and header
_PIECE = 2**22  # bytes that are read, decoded and parsed at once
_PACKED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
_ZSTD = b"\x28\xb5\x2f\xfd"


@dataclass(eq=False)
class TextStream:
    """A text table that is read once, from its beginning to its end.

    Args:
        path: the file.

    Raises:
        DataError: if the file is empty, truncated, or no text.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "edges.txt")
    ...     _ = path.write_text("# of a friend\\n7 8\\n8  9\\n")
    ...     stream = TextStream(path)
    ...     stream.names, [batch.to_pylist() for batch in stream.batches()]
    (['column_1', 'column_2'], [[{'column_1': '7', 'column_2': '8'}, \
{'column_1': '8', 'column_2': '9'}]])
    """

    path: Path
    names: list[str] = field(init=False)
    has_header: bool = field(init=False)
    text: TextFile = field(init=False)  # of the beginning
    size: int = field(init=False)
    #: Columns all of whose numbers so far may be read with decimal commas, and those that have one.
    _possible: set[str] = field(init=False)
    _commas: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.size = self.path.stat().st_size
        with self._opened() as stream:
            head = _read(stream, _HEAD, self.path)
        if not head:
            raise DataError("Expected rows (got an empty file).", path=self.path)
        self._encoding = _encoding_of(head)
        whole = len(head) < _HEAD
        self.text = recognise_text(self.path, head if whole else _cut(head, self._encoding))
        self.names, self.has_header, self._skip = header_of(self.path, self.text)
        self._possible, self._commas = set(self.names), set()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not as the name of the file promises."""
        found = [*self.text.recognised]
        if self.decimals:
            found.append(f"decimal commas in {', '.join(sorted(self.decimals))}")
        return (f"{self.path.name}: recognised {'; '.join(found)}.",) if found else ()

    @property
    def decimals(self) -> frozenset[str]:
        """The columns whose numbers have decimal commas, once all was read."""
        if self.text.separator == ",":
            return frozenset()
        return frozenset(self._possible & self._commas)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, every cell a text.

        Raises:
            DataError: for a record with too few or too many cells, with its line.
        """
        bad: list[Any] = []

        def refuse(row: Any) -> str:
            bad.append(row)
            return "error"

        with self._opened() as stream:
            pieces = _Pieces(self._pieces(stream))
            try:
                reader = pacsv.open_csv(
                    pa.PythonFile(pieces, mode="r"),
                    read_options=pacsv.ReadOptions(
                        column_names=self.names,
                        skip_rows=self._skip,
                        use_threads=False,
                        block_size=_PIECE,
                    ),
                    parse_options=pacsv.ParseOptions(
                        delimiter=self.text.separator,
                        newlines_in_values=True,
                        invalid_row_handler=refuse,
                    ),
                    convert_options=pacsv.ConvertOptions(
                        column_types={name: pa.string() for name in self.names},
                        strings_can_be_null=False,
                    ),
                )
                for batch in reader:
                    self._look_for_commas(batch)
                    yield batch
            except pa.ArrowException as error:
                raise self._error(bad, error) from error

    def _opened(self) -> Any:
        with self.path.open("rb") as file:
            magic = file.read(8)
        if magic.startswith(_ZSTD):
            return pa.input_stream(str(self.path), compression="zstd")
        packed = next((o for m, o in _PACKED.items() if magic.startswith(m)), None)
        return self.path.open("rb") if packed is None else packed(self.path, "rb")

    def _pieces(self, stream: Any) -> Iterator[bytes]:
        """The text as UTF-8, in pieces of whole lines."""
        decoder = codecs.getincrementaldecoder(self._encoding)() if self._encoding else None
        is_first, spaced, rest = True, self.text.is_joined, b""
        comments = table_suffix(self.path) == ".txt"
        while piece := _read(stream, _PIECE, self.path):
            if decoder is not None:
                piece = decoder.decode(piece).encode()
            piece = rest + piece
            end = piece.rfind(b"\n") + 1
            piece, rest = piece[:end], piece[end:]
            if is_first and piece:
                piece = piece.removeprefix(codecs.BOM_UTF8)
                piece = without_comments(piece) if comments else piece
                is_first = False
            if piece:
                yield join_spaces(piece) if spaced else piece
        if rest:
            yield join_spaces(rest) if spaced else rest

    def _look_for_commas(self, batch: pa.RecordBatch) -> None:
        if self.text.separator == ",":
            return
        for name in [*self._possible]:
            column = batch.column(name)
            if not is_decimal(column):
                self._possible.discard(name)
            elif pc.any(pc.match_substring(column, ",")).as_py():
                self._commas.add(name)

    def _error(self, bad: list[Any], error: Exception) -> DataError:
        if not bad:
            return unreadable(self.path, error)
        row = bad[0]
        return DataError(
            f"Expected {row.expected_columns} columns (got {row.actual_columns}: "
            f"{row.text[:40]!r}); the file may be truncated.",
            path=self.path,
            row=row.number,
        )


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a file, which is what Arrow reads."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not self._rest:
            self._rest = next(self._pieces, b"")
        found, self._rest = self._rest[:size], self._rest[size:]
        return found


def _read(stream: Any, size: int, path: Path) -> bytes:
    """So many bytes, or all that are left."""
    found = []
    try:
        while size > 0 and (piece := stream.read(size)):
            found.append(piece)
            size -= len(piece)
    except BROKEN as error:
        raise incomplete(path, error) from error
    return b"".join(cast("list[bytes]", found))


def _encoding_of(head: bytes) -> str | None:
    """The encoding to translate from; None for UTF-8."""
    marked = next((e for mark, e in MARKS.items() if head.startswith(mark)), None)
    if marked is not None:
        return None if marked == "utf-8-sig" else marked
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return "cp1252"
    return None


def _cut(head: bytes, encoding: str | None) -> bytes:
    """Without the last line, which may be half of one."""
    if encoding in ("utf-16", "utf-32"):
        text = codecs.getincrementaldecoder(encoding)().decode(head)
        return text[: text.rfind("\n") + 1].encode(encoding)
    end = head.rfind(b"\n") + 1
    return head[:end] if end else head

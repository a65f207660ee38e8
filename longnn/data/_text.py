"""A text table read in batches, however long it is: the one reader of text.

Compression, encoding and separator are recognised from the content, not taken from the name. Every
cell is text, and an error names the line. In memory a table is all its batches at once. Knows
nothing of what the columns mean.
"""

import bz2
import codecs
import contextlib
import csv
import gzip
import io
import itertools
import lzma
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyarrow import csv as pacsv

from longnn.data._cells import MISSING, is_number
from longnn.data._errors import DataError, readable, require_memory

#: What the name promises; ``None`` promises nothing.
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": None, ".dat": None}
#: By suffix, how a compressed file begins and how it is opened; the content decides, not the name.
COMPRESSED: dict[str, tuple[bytes, Any]] = {
    ".gz": (b"\x1f\x8b", gzip.open),
    ".bz2": (b"BZh", bz2.open),
    ".xz": (b"\xfd7zXZ\x00", lzma.open),
    ".zst": (b"\x28\xb5\x2f\xfd", lambda path: pa.input_stream(str(path), compression="zstd")),
}
_NAMES = {",": "','", ";": "';'", "\t": "a tab", "|": "'|'", " ": "a space"}
#: A number with a decimal comma, perhaps with points between thousands.
DECIMAL_COMMA = re.compile(r"[-+]?(\d+|\d{1,3}(\.\d{3})+)?,\d+([eE][-+]?\d+)?")
_PLAIN_NUMBER = re.compile(r"[-+]?[\d.,]*\d[\d.,]*(e[-+]?\d+)?$", re.IGNORECASE)
_POINT_NUMBER = re.compile(r"[-+]?[\d.]+(e[-+]?\d+)?", re.IGNORECASE)
_DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}")
_SAMPLE = 2**16  # characters that decide the separator
_HEAD = 2**20  # bytes that decide the header
_ROWS = 2_000  # records of them that the first is compared with
#: Names that only a header has: those that give a column its role, and a few more.
USUAL_NAMES = re.compile(
    "source|src|from|target|dst|to|(edge_)?(weight|type)|id|node(_?id)?|name|labels?|y|class|split"
    "|feature|value"
)
#: What pandas calls the index of a frame, which it writes as a first column without a name.
INDEX = "Unnamed: 0"
Header = Literal["auto", "yes", "no"]
_PIECE = 2**22  # bytes that are read, decoded and parsed at once
MARKS = {  # longest first: that of UTF-32 begins like that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_FOREIGN = {
    b"PK\x03\x04": "an Excel workbook or a ZIP archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"PAR1": "a Parquet file",
    b"SQLite format 3": "an SQLite database",
}


def table_suffix(path: Path) -> str:
    """The suffix that names the format, without that of a compression.

    >>> table_suffix(Path("nodes.csv.gz")), table_suffix(Path("Nodes.CSV"))
    ('.csv', '.csv')
    """
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if len(suffixes) == 2 and suffixes[1] in COMPRESSED and suffixes[0] in SEPARATORS:
        return suffixes[0]
    return path.suffix.lower()


def table_stem(path: Path) -> str:
    """The name of a file without the suffixes of format and compression.

    >>> table_stem(Path("data/edges.csv.gz")), table_stem(Path("edges.parquet"))
    ('edges', 'edges')
    """
    return Path(path.stem).stem if table_suffix(path) != path.suffix.lower() else path.stem


class TextStream:
    """A text table that is read from its beginning to its end, as often as it is asked for.

    Args:
        path: the file, plain or compressed.
        header: whether its first line has names; ``"auto"`` recognises a line like the others.

    Attributes:
        names: of the columns; ``column_1``, ... without a header.
        has_header: whether the first line has names.
        separator: one character.
        doubt: what the separator seems to be where that is not sure, in words, else empty.
        head: the first lines, as UTF-8.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "edges.txt")
    ...     _ = path.write_text("# of a friend\\nu v\\n7 8\\n8  9\\n", encoding="utf-16")
    ...     stream = TextStream(path)
    ...     stream.notes, [batch.to_pylist() for batch in stream.batches()]
    (('edges.txt: recognised UTF-16 text; the separator a space.',), [[{'u': '7', 'v': '8'}, \
{'u': '8', 'v': '9'}]])
    """

    def __init__(self, path: Path, header: Header = "auto") -> None:
        self.path = path
        with self._opened() as stream:
            start = _read(stream, _HEAD, path)
        if not start:
            raise DataError("Expected rows (got an empty file).", path=path)
        foreign = next((what for magic, what in _FOREIGN.items() if start.startswith(magic)), None)
        if foreign is not None:
            raise DataError(
                f"Expected text (the file seems to be {foreign}); save it as CSV.", path=path
            )
        self._encoding, said = self._find_encoding(start)
        self._joins = False  # runs of spaces become tabs
        text = next(self._text(_HEAD), b"")
        suffix = table_suffix(path)
        usual = SEPARATORS[suffix]
        end = len(text) if len(text) <= _SAMPLE else text.rfind(b"\n", 0, _SAMPLE) + 1
        sample = text[: end or _SAMPLE].decode("utf-8", errors="ignore")  # no line is cut
        self.separator, self.doubt = _recognise(sample, usual)
        if self.separator != (usual or "\t"):
            said = (*said, f"the separator {_NAMES[self.separator]}")
        if self.separator == " ":
            self.separator, self._joins, text = "\t", True, join_spaces(text)
        self.head, self._said = text, said
        self.first: list[str] = []
        self.names, self.has_header, self._skip = self._header(header)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not as the name of the file promises."""
        notes = [f"{self.path.name}: recognised {'; '.join(self._said)}."] if self._said else []
        if not self.has_header:
            notes.append(
                f"{self.path.name} has no header: its first line was read as data "
                f"({', '.join(self.first)[:60]}); if it has the names, use header=yes."
            )
        return tuple(notes)

    @property
    def decimal(self) -> str:
        """What stands before decimals where cells do not show it: who cannot use commas, does."""
        return {",": ".", ";": ","}.get(self.separator, "")

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, every cell a text."""
        bad: list[Any] = []

        def refuse(row: Any) -> str:
            bad.append(row)
            return "error"

        last, pieces = "", _Pieces(self._text(_PIECE))
        with readable(self.path, kind_of(self.path)):
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
                        delimiter=self.separator,
                        newlines_in_values=True,
                        invalid_row_handler=refuse,
                    ),
                    convert_options=pacsv.ConvertOptions(
                        column_types={name: pa.string() for name in self.names},
                        strings_can_be_null=False,
                    ),
                )
                for batch in reader:
                    if batch.num_rows:
                        last = batch.columns[-1][-1].as_py()
                        yield batch
            except pa.ArrowException as error:
                if bad:
                    raise self._ragged(bad[0]) from error
                if "straddl" in str(error):  # Arrow looks for the end of a record in two blocks
                    raise self._unclosed(self.names[-1]) from error
                raise
        if "\n" in last and not pieces.end.rstrip().endswith(b'"'):
            raise self._unclosed(self.names[-1])

    def line(self, row: int) -> int:
        """1-based line on which a row ends, counted from 0; blank lines are no rows."""
        row += int(self.has_header)
        reader = self._records(self._text(_PIECE))
        try:
            for cells in reader:
                if cells and (row := row - 1) < 0:
                    break
        except csv.Error:  # a cell of more than 131,072 characters: count the line breaks
            return sum(piece.count(b"\n") for piece in self._text(_PIECE))
        return int(reader.line_num)

    def _records(self, pieces: Iterator[bytes]) -> Any:
        stream = io.BufferedReader(_Pieces(pieces), _HEAD)
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        return csv.reader(text, delimiter=self.separator)

    def _header(self, header: Header) -> tuple[list[str], bool, int]:
        """Column names, whether a header gave them, and how many lines come before the data."""
        reader = self._records(iter([self.head]))
        self.first = next((cells for cells in reader if cells), [])
        if not self.first:
            raise DataError("Expected rows (got only blank lines).", path=self.path)
        line, rows = reader.line_num, []
        with contextlib.suppress(csv.Error):  # a cell of more than 131,072 characters
            rows += [cells for cells in itertools.islice(reader, _ROWS) if cells]
        is_data = header == "no" or (header == "auto" and is_like_others(self.first, rows))
        cells = [""] * len(self.first) if is_data else self.first
        names = [cell.strip() or f"column_{i}" for i, cell in enumerate(cells, start=1)]
        if not is_data and names[0] == "column_1" and len(names) > 1:
            names[0] = INDEX
        check_names(self.path, None, names)
        return names, not is_data, line - int(is_data)

    def _opened(self) -> Any:
        with self.path.open("rb") as file:
            magic = file.read(8)
        packings = (unpack for begin, unpack in COMPRESSED.values() if magic.startswith(begin))
        unpack = next(packings, None)
        return self.path.open("rb") if unpack is None else unpack(self.path)

    def _find_encoding(self, start: bytes) -> tuple[str | None, tuple[str, ...]]:
        """The encoding to translate from, None for UTF-8; and what it is, in words."""
        marked = next((e for mark, e in MARKS.items() if start.startswith(mark)), None)
        if marked not in (None, "utf-8-sig"):
            return marked, (f"{str(marked).upper()} text",)
        if b"\0" in start[:_SAMPLE]:
            raise DataError(
                "Expected text (got bytes of value 0: a binary file, or UTF-16 without a "
                "byte-order mark); save it as UTF-8.",
                path=self.path,
            )
        if self._decodes("utf-8"):
            return None, ()
        # Five bytes have no meaning in Windows' encoding; in Latin-1 all have.
        encoding = "cp1252" if self._decodes("cp1252") else "latin-1"
        return encoding, ("Latin-1 (Windows) text, because it is not UTF-8",)

    def _decodes(self, encoding: str) -> bool:
        """Whether the whole file is of an encoding."""
        decoder = codecs.getincrementaldecoder(encoding)()
        with self._opened() as stream:
            try:
                while piece := _read(stream, _PIECE, self.path):
                    decoder.decode(piece)
                decoder.decode(b"", final=True)
            except UnicodeDecodeError:
                return False
        return True

    def _text(self, size: int) -> Iterator[bytes]:
        """The text as UTF-8 without a byte-order mark, in pieces of whole lines."""
        decoder = codecs.getincrementaldecoder(self._encoding)() if self._encoding else None
        is_first, rest = True, [b""]
        comments = SEPARATORS[table_suffix(self.path)] is None
        with self._opened() as stream:
            while True:
                piece = _read(stream, size, self.path)
                is_last = len(piece) < size
                if decoder is not None:
                    try:
                        piece = decoder.decode(piece, final=is_last).encode()
                    except UnicodeDecodeError as error:
                        raise DataError(
                            f"Expected complete {str(self._encoding).upper()} text, as its "
                            f"byte-order mark says (got {error.reason}).",
                            path=self.path,
                        ) from error
                end = len(piece) if is_last else piece.rfind(b"\n") + 1
                if not end and not is_last:  # one line as long as this
                    rest.append(piece)
                    require_memory(4.0 * sum(map(len, rest)), "its text", path=self.path)
                    continue
                piece, rest = b"".join([*rest, piece[:end]]), [piece[end:]]
                if is_first:
                    piece = piece.removeprefix(codecs.BOM_UTF8)
                    piece = without_comments(piece) if comments else piece
                    is_first = False
                if piece:
                    yield join_spaces(piece) if self._joins else piece
                if is_last:
                    return

    def _ragged(self, row: Any) -> DataError:
        if row.text.count('"') % 2 and row.actual_columns < row.expected_columns:
            return self._unclosed(self.names[row.actual_columns - 1])
        usual = SEPARATORS[table_suffix(self.path)]
        or_else = "" if self.separator == usual else f", or the separator is not {self.separator!r}"
        return DataError(
            f"Expected {row.expected_columns} columns (got {row.actual_columns}: "
            f"{row.text[:40]!r}); the file may be truncated{or_else}.",
            path=self.path,
            row=self.line(row.number - self._skip - 1),
        )

    def _unclosed(self, column: str) -> DataError:
        """The last record has no end: its line is where it begins."""
        reader = self._records(self._text(_PIECE))
        begins = line = 0
        try:
            for cells in reader:
                begins, line = line + 1 if cells else begins, int(reader.line_num)
        except csv.Error:  # a cell of more than 131,072 characters
            begins = line + 1
        return DataError(
            "Expected a closing quote for the one that begins here; the file may be truncated.",
            path=self.path,
            row=begins,
            column=column,
        )


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a file, which is what Arrow reads; ``end`` is the last of them."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest, self.end = pieces, b"", b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = next(self._pieces, b"")
            self.end = self._rest or self.end
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def is_like_others(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a first record is one more row, not a header.

    It is if all its cells are numbers; or if no cell differs in type from its column, and one
    occurs again there: in the first two columns together, where edges have their ends. Names of
    columns are seldom values, and numbers in order (0, 1, 2, or years) may be names.

    >>> is_like_others(["ann", "bob"], [["bob", "eve"], ["eve", "ann"]])
    True
    >>> is_like_others(["person", "age"], [["bob", "41"], ["eve", "41"]])
    False
    """
    first = [cell.strip() for cell in first]
    if all(is_number(cell.replace(",", ".")) for cell in first):
        return True
    if not first[0] or any(USUAL_NAMES.fullmatch(cell.lower()) for cell in first):
        return False
    rows = [[cell.strip() for cell in cells] for cells in rows if len(cells) == len(first)]
    columns = [{cells[i] for cells in rows} - {""} for i in range(len(first))]
    recurs, numbers = False, []
    for i, (cell, values) in enumerate(zip(first, columns, strict=True)):
        for shape in (_PLAIN_NUMBER, _DATE):
            others = [value for value in values if value.lower() not in MISSING]
            if cell and others and all(map(shape.match, others)) and not shape.match(cell):
                return False
        if is_number(cell):
            numbers.append(float(cell))
        else:
            recurs |= cell in (columns[0] | columns[min(1, len(columns) - 1)] if i < 2 else values)
    in_order = all(a < b for a, b in itertools.pairwise(numbers))
    return recurs and (len(numbers) < 2 or not in_order)


def kind_of(path: Path) -> str:
    """What a file is by its name, in words."""
    return f"{table_suffix(path).lstrip('.')} file"


def check_names(path: Path | None, frame: str | None, names: Sequence[str]) -> None:
    """Raise where two columns have one name."""
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        frame = frame if path is None else None
        raise DataError("Expected each column name once.", path=path, table=frame, column=twice)


def _read(stream: Any, size: int, path: Path) -> bytes:
    """So many bytes, or all that are left."""
    pieces: list[bytes] = []
    with readable(path, "compressed file"):
        while size > 0 and (piece := stream.read(size)):
            pieces.append(piece)
            size -= len(piece)
    return b"".join(pieces)


def without_comments(content: bytes) -> bytes:
    """The lines at the top that begin with # or % left blank: line numbers stay right."""
    top = re.match(rb"(?:[ \t\r]*\n|[#%][^\n]*\n)*", content)
    assert top is not None
    return re.sub(rb"[^\r\n]", b"", top[0]) + content[top.end() :]


def join_spaces(content: bytes) -> bytes:
    """Runs of spaces as one tab, none at the ends of lines."""
    content = re.sub(rb"^[ \t]+|[ \t]+(?=\r?$)", b"", content, flags=re.MULTILINE)
    return re.sub(rb"[ \t]+", b"\t", content)


def _recognise(sample: str, usual: str | None) -> tuple[str, str]:
    """The separator, and a doubt in words where another one seems right but is not sure."""
    shares = {mark: _share(sample, mark) for mark in (usual or "\t", "\t", ";", "|", ",")}
    if shares[","] == 1:
        for mark in (";", "\t", "|"):  # 1,5;2,5 can be split either way
            cells = [cell.strip() for cells in _records(sample, mark) for cell in cells]
            with_comma = [cell for cell in cells if "," in cell]
            if shares[mark] == 1 and all(map(DECIMAL_COMMA.fullmatch, with_comma)):
                return mark, ""
    best = max(shares, key=lambda mark: shares[mark])  # the first of equals: the usual one
    if shares[best] > 1 / 2:
        return best, ""
    spaced = join_spaces(sample.encode()).decode()
    if '"' not in sample and _share(spaced, "\t") == 1:
        cells = [cell for cells in _records(spaced, "\t")[1:] for cell in cells]
        if usual is None or (cells and all(map(_POINT_NUMBER.fullmatch, cells))):
            return " ", ""
        return usual, "the separator seems to be a space: save it with commas, or call it .txt"
    return usual or "\t", ""


def _records(sample: str, separator: str) -> list[list[str]]:
    try:
        return [cells for cells in csv.reader(io.StringIO(sample), delimiter=separator) if cells]
    except csv.Error:
        return []


def _share(sample: str, separator: str) -> float:
    """Share of records with as many cells as the first has; 0 if the first has only one."""
    records = _records(sample, separator)
    if not records or len(records[0]) < 2:
        return 0.0
    return sum(len(cells) == len(records[0]) for cells in records) / len(records)

"""The text of a table file, whatever it is written in: compression, characters and separator.

All three are recognised from the content, not taken from the name. What comes out is UTF-8 without
a byte-order mark, with the line breaks of the file, so that line numbers stay right. Knows nothing
of columns and their types.
"""

import bz2
import codecs
import contextlib
import csv
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from longnn.data._errors import DataError
from longnn.data._limits import require_memory

#: What the name promises; ``None`` promises nothing.
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": None}
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_NAMES = {",": "','", ";": "';'", "\t": "a tab", "|": "'|'", " ": "a space"}
#: A number with a decimal comma, perhaps with points between thousands.
DECIMAL_COMMA = re.compile(r"[-+]?(\d+|\d{1,3}(\.\d{3})+)?,\d+([eE][-+]?\d+)?")
_SAMPLE = 2**16  # characters that decide the separator
_MAGIC: dict[bytes, Callable[[bytes], Any]] = {
    b"\x1f\x8b": lambda content: gzip.GzipFile(fileobj=io.BytesIO(content)),
    b"BZh": lambda content: bz2.BZ2File(io.BytesIO(content)),
    b"\xfd7zXZ\x00": lambda content: lzma.LZMAFile(io.BytesIO(content)),  # noqa: SIM115
    b"\x28\xb5\x2f\xfd": lambda content: pa.input_stream(
        pa.BufferReader(content), compression="zstd"
    ),
}
_PIECE = 2**24  # bytes that are decompressed at once
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


@dataclass(frozen=True, eq=False)
class TextFile:
    """The text of a table, and how its cells are separated.

    Args:
        content: UTF-8.
        separator: one character.
        recognised: what is not as the name of the file promises, in words.
        doubt: what the separator seems to be where that is not sure, in words, else empty.
        is_joined: whether runs of spaces became tabs.
    """

    content: bytes
    separator: str
    recognised: tuple[str, ...] = ()
    doubt: str = ""
    is_joined: bool = False

    def records(self) -> Any:
        """A :func:`csv.reader` of the cells of each record, from the first."""
        stream = io.TextIOWrapper(io.BytesIO(self.content), encoding="utf-8", newline="")
        return csv.reader(stream, delimiter=self.separator)


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


def read_text(path: Path) -> TextFile:
    """Read a text table, plain or compressed, in any usual encoding and with any usual separator.

    Raises:
        DataError: if the file is empty, truncated, or no text.
        OSError: if it cannot be read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "nodes.csv")
    ...     _ = path.write_text("id;age\\nann;41\\nbob;7\\n", encoding="utf-16")
    ...     read_text(path).recognised
    ('UTF-16 text', "the separator ';'")
    """
    return recognise_text(path, _decompress(path, path.read_bytes()))


def recognise_text(path: Path, content: bytes) -> TextFile:
    """The text of a file, or of its beginning: UTF-8, its separator recognised.

    >>> recognise_text(Path("edges.txt"), b"1  2\\n3 4\\n").content
    b'1\\t2\\n3\\t4\\n'
    """
    foreign = next((what for magic, what in _FOREIGN.items() if content.startswith(magic)), None)
    if foreign is not None:
        raise DataError(
            f"Expected text (the file seems to be {foreign}); save it as CSV.", path=path
        )
    content, recognised = _as_utf8(path, content)
    suffix = table_suffix(path)
    if suffix == ".txt":
        content = without_comments(content)
    usual = SEPARATORS[suffix]
    separator, doubt = _recognise(_sample(content), usual)
    if separator != (usual or "\t"):
        recognised = (*recognised, f"the separator {_NAMES[separator]}")
    if separator == " ":
        return TextFile(join_spaces(content), "\t", recognised, doubt, is_joined=True)
    return TextFile(content, separator, recognised, doubt)


def line_of_record(text: TextFile, record: int) -> int:
    """1-based line on which the 0-based record ends; blank lines are no records."""
    reader = text.records()
    with contextlib.suppress(csv.Error):  # a field of more than 131,072 characters: near enough
        for cells in reader:
            if cells and (record := record - 1) < 0:
                break
    return reader.line_num


#: What reading a damaged compressed file raises.
BROKEN = (EOFError, OSError, zlib.error, lzma.LZMAError, ValueError)


def _decompress(path: Path, content: bytes) -> bytes:
    if not content:
        raise DataError("Expected rows (got an empty file).", path=path)
    for magic, opened in _MAGIC.items():
        if content.startswith(magic):
            pieces: list[bytes] = []
            size = 0
            try:
                with opened(content) as stream:
                    while piece := stream.read(_PIECE):
                        pieces.append(piece)
                        # Text, its records and its columns are in memory at one time.
                        size += len(piece)
                        require_memory(4.0 * size, "its text", path=path)
                return b"".join(pieces)
            except DataError:
                raise
            except BROKEN as error:
                raise incomplete(path, error) from error
    return content


def incomplete(path: Path, error: BaseException) -> DataError:
    """What to say of a compressed file that cannot be read to its end."""
    return DataError(
        f"Expected a complete compressed file (got {type(error).__name__}: {error}); "
        "it may be truncated.",
        path=path,
    )


def _as_utf8(path: Path, content: bytes) -> tuple[bytes, tuple[str, ...]]:
    """The content as UTF-8, and what it was if it was something else."""
    for mark, encoding in MARKS.items():
        if content.startswith(mark) and encoding == "utf-8-sig":
            return _as_utf8(path, content[len(mark) :])
        if content.startswith(mark):
            try:
                return content.decode(encoding).encode(), (f"{encoding.upper()} text",)
            except UnicodeDecodeError as error:
                raise DataError(
                    f"Expected complete {encoding.upper()} text, as its byte-order mark says "
                    f"(got {error.reason}).",
                    path=path,
                ) from error
    if b"\0" in content[:_SAMPLE]:
        raise DataError(
            "Expected text (got bytes of value 0: a binary file, or UTF-16 without a byte-order "
            "mark); save it as UTF-8.",
            path=path,
        )
    if _is_utf8(content):
        return content, ()
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError:  # five bytes have no meaning there; in Latin-1 all have
        text = content.decode("latin-1")
    return text.encode(), ("Latin-1 (Windows) text, because it is not UTF-8",)


def _is_utf8(content: bytes) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    view, step = memoryview(content), 2**20
    try:
        for start in range(0, len(content), step):
            decoder.decode(view[start : start + step])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def without_comments(content: bytes) -> bytes:
    """The lines at the top that begin with # or % left blank: line numbers stay right."""
    top = re.match(rb"(?:[ \t\r]*\n|[#%][^\n]*\n)*", content)
    assert top is not None
    return re.sub(rb"[^\r\n]", b"", top[0]) + content[top.end() :]


def join_spaces(content: bytes) -> bytes:
    """Runs of spaces as one tab, none at the ends of lines."""
    content = re.sub(rb"^[ \t]+|[ \t]+(?=\r?$)", b"", content, flags=re.MULTILINE)
    return re.sub(rb"[ \t]+", b"\t", content)


def _sample(content: bytes) -> str:
    """The first lines, none of them cut."""
    if len(content) <= _SAMPLE:
        return content.decode("utf-8")
    end = content.rfind(b"\n", 0, _SAMPLE) + 1
    return content[: end or _SAMPLE].decode("utf-8", errors="ignore")


def _recognise(sample: str, usual: str | None) -> tuple[str, str]:
    """The separator, and a doubt in words where another one seems right but is not sure."""
    shares = {mark: _share(sample, mark) for mark in (usual or "\t", "\t", ";", "|", ",")}
    if shares[","] == 1:
        for mark in (";", "\t", "|"):  # 1,5;2,5 can be split either way
            if shares[mark] == 1 and _commas_are_decimal(sample, mark):
                return mark, ""
    best = max(shares, key=lambda mark: shares[mark])  # the first of equals: the usual one
    if shares[best] > 1 / 2:
        return best, ""
    spaced = join_spaces(sample.encode()).decode()
    if '"' not in sample and _share(spaced, "\t") == 1:
        if usual is None or _holds_numbers(spaced):
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


def _commas_are_decimal(sample: str, separator: str) -> bool:
    cells = [cell.strip() for cells in _records(sample, separator) for cell in cells]
    return all(DECIMAL_COMMA.fullmatch(cell) for cell in cells if "," in cell)


def _holds_numbers(sample: str) -> bool:
    """Whether all cells below the first record are numbers."""
    cells = [cell for cells in _records(sample, "\t")[1:] for cell in cells]
    return bool(cells) and all(re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", c, re.I) for c in cells)

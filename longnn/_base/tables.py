"""Tables as files that a spreadsheet opens without running what is in them."""

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.csv
import pyarrow.parquet

from longnn._base.files import atomic_path, writing
from longnn._base.late import Late

pc = Late("pyarrow.compute")


def write_table(table: pyarrow.Table, path: Path) -> None:
    """Write a table as CSV, with formulas marked, or as Parquet, by the ending of the file."""
    write_tables([table], [path])


def write_tables(tables: Iterable[pyarrow.Table], paths: Sequence[Path]) -> int:
    """Write tables of the same columns one below the other, as they come, into each file.

    Returns:
        the number of rows.
    """
    rows = 0
    with contextlib.ExitStack() as stack:
        for path in paths:
            stack.enter_context(writing(path))
        targets = [(path.suffix, stack.enter_context(atomic_path(path))) for path in paths]
        writers: list[Any] = []
        with contextlib.ExitStack() as opened:
            for table in tables:
                if not writers:
                    writers = [_open(*target, table.schema, opened) for target in targets]
                for (kind, _), writer in zip(targets, writers, strict=True):
                    writer.write_table(without_formulas(table) if kind == ".csv" else table)
                rows += table.num_rows
    return rows


def _open(
    kind: str, path: Path, schema: pyarrow.Schema, opened: contextlib.ExitStack
) -> pyarrow.csv.CSVWriter | pyarrow.parquet.ParquetWriter:
    writer = pyarrow.csv.CSVWriter if kind == ".csv" else pyarrow.parquet.ParquetWriter
    return opened.enter_context(writer(path, schema))


def without_formulas(table: pyarrow.Table) -> pyarrow.Table:
    """The table with ``'`` before each text that a spreadsheet would take for a formula.

    Such a text begins with = + - @, a tab or a carriage return, and is not a number.

    >>> table = pyarrow.table({"id": ["=1+1", "-5", "-x", "ann"]})
    >>> without_formulas(table)["id"].to_pylist()
    ["'=1+1", '-5', "'-x", 'ann']
    """
    for place, name in enumerate(table.column_names):
        column = table[name]
        if not pyarrow.types.is_string(column.type):
            continue
        begins = pc.match_substring_regex(column, r"^[=+\-@\t\r]")
        number = pc.match_substring_regex(
            column, r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
        )
        formula = pc.and_not(begins, number)
        marked = pc.binary_join_element_wise("'", column, "")
        table = table.set_column(place, name, pc.if_else(formula, marked, column))
    return table

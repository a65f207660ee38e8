"""Tables as files that a spreadsheet opens without running what is in them."""

from pathlib import Path

import pyarrow
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from longnn._base.files import atomic_path, writing


def write_table(table: pyarrow.Table, path: Path) -> None:
    """Write a table as CSV, with formulas marked, or as Parquet, by the ending of the file."""
    with writing(path), atomic_path(path) as temporary:
        if path.suffix == ".csv":
            pyarrow.csv.write_csv(without_formulas(table), temporary)
        else:
            pyarrow.parquet.write_table(table, temporary)


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

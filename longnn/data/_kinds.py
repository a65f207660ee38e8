"""What kind of column it is, from its cells: numbers, truth values, dates, categories or names.

A column of which most cells are numbers (or dates) is one with mistakes in it, and an error that
names the first: it does not silently become a category.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from longnn.data._columns import TRUTH, Boolean, Date, LeftOut, Number
from longnn.data._tables import Table
from longnn.data._text import MISSING
from longnn.data._words import Category, Text

#: Cells that were meant as a number: 3 | -1.5e3 | inf | 1,234.50 | 2,5
_NUMBER_LIKE = r"^[-+]?(\d*\.?\d+(e[-+]?\d+)?|\d+\.|inf|infinity|\d{1,3}(,\d{3})+(\.\d+)?|\d+,\d+)$"
#: Cells that were meant as a date: 2024-05-31 | 2024-05-31T12:30 | 2024-5-31 | 31.5.2024
_DATE_LIKE = r"^(\d{4}-\d{1,2}-\d{1,2}|\d{1,2}\.\d{1,2}\.\d{4})([ t].*)?$"
#: Dates that may be read in two ways: 5/6/2024 | 31.12.24
_OTHER_DATE = r"^\d{1,2}[./]\d{1,2}[./](\d{2}|\d{4})\b"
DISTINCT = 1 / 2  # share of different texts beyond which they are names, not categories


def guess_kind(
    table: Table, column: str, *, text: bool = False, category: bool = False
) -> tuple[Any, Any]:
    """The kind of a column and its cells, parsed by that kind; or why it is left out, and None.

    Args:
        table: where the column is.
        column: its name.
        text, category: whether the user says that it is one.

    Raises:
        DataError: naming the first cell that is no number or date where most are.

    >>> table = Table({"flag": pa.array(["yes", "no", ""]), "day": pa.array(["2024-05-31"] * 3)})
    >>> guess_kind(table, "flag")[0].kind, guess_kind(table, "day")[0].kind
    ('boolean', 'date')
    """
    array = table.columns[column]
    if array.null_count == len(array):
        return LeftOut(column, "empty"), None
    if text or category:
        chosen: Any = Text if text else Category
        return chosen, chosen.parse(table, column)
    if not pa.types.is_string(array.type):
        kind = _kind_of_type(array.type)
        return kind, kind.parse(table, column)
    values = table.parsed(column)
    if values is None:
        return _kind_of_words(table, column)
    if np.isnan(values).all():
        return LeftOut(column, "empty"), None
    known = pc.utf8_lower(table.columns[column])
    if pc.all(pc.is_in(known, value_set=pa.array([*TRUTH, *MISSING, ""]))).as_py():
        return Boolean, Boolean.parse(table, column)
    return Number, Number.checked(table, column, values)


def _kind_of_type(kind: pa.DataType) -> Any:
    if pa.types.is_boolean(kind):
        return Boolean
    is_date = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    return Date if is_date else Number


def _kind_of_words(table: Table, column: str) -> tuple[Any, Any]:
    """The kind of a column of text that is not all numbers."""
    cells = table.cells(column)
    known = pc.utf8_lower(cells.drop_null())
    if pc.all(pc.is_in(known, value_set=pa.array(list(TRUTH)))).as_py():
        return Boolean, Boolean.parse(table, column)
    if _share(known, _NUMBER_LIKE) > 1 / 2:
        return Number, Number.parse(table, column)  # raises: one cell is none
    if _share(known, _DATE_LIKE) > 1 / 2:
        return Date, Date.parse(table, column)
    distinct = len(pc.unique(cells.drop_null()))
    if distinct <= DISTINCT * len(known):
        return Category, cells
    if _share(known, _OTHER_DATE) > 1 / 2:
        return LeftOut(column, "to use its dates, write them as 2024-05-31"), None
    reason = f"almost every value is different; to use its words: text_columns={column}"
    return LeftOut(column, reason), None


def _share(texts: Any, pattern: str) -> float:
    matches = pc.sum(pc.match_substring_regex(texts, pattern)).as_py() or 0
    return matches / max(len(texts), 1)

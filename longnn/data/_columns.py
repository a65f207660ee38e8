"""Columns of numbers, truth values and dates, and what each has learned.

What a kind of column learns is what a transformer of scikit-learn would learn. It is kept as plain
numbers and words: it can be stored as data and applied to another table. ``parse`` reads the cells,
``fit`` learns from them, ``encode`` makes float32 features (nodes, width) of them. No kind sees a
label.
"""

import contextlib
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from longnn._base.late import Late
from longnn.data._cells import TRUTH, truth_words
from longnn.data._tables import Table
from longnn.data._text import INDEX

pc = Late("pyarrow.compute")

YEAR = 365.2425  # days
DAY = 86_400_000_000  # microseconds
#: 31.12.2024 means the 31st of December wherever dates have dots; with slashes it depends.
_DOTTED = r"^(\d{1,2})\.(\d{1,2})\.(\d{4})"
REMEDY = (
    "Correct it, or name the word in missing_words, or the column in category_columns or "
    "drop_columns."
)


@dataclass(frozen=True)
class Number:
    """Numbers; a gap becomes the median, and has a flag if there was one at fitting time.

    Args:
        column: its name.
        fill: the median of what is known; one per entry of a list column.
        gaps: how many cells were missing.
        many: whether each cell is a list.
    """

    kind: ClassVar[str] = "number"
    column: str
    fill: tuple[float, ...]
    gaps: int = 0
    many: bool = False

    @staticmethod
    def parse(table: Table, column: str) -> np.ndarray:  # (nodes,) or (nodes, width)
        """Numbers that fit float32, NaN for a gap."""
        return Number.checked(table, column, table.values(column, remedy=REMEDY))

    @staticmethod
    def checked(table: Table, column: str, values: np.ndarray) -> np.ndarray:
        """The same numbers, or an error at the first that is infinite or too large."""
        table.refuse(np.isinf(values), column, REMEDY)
        with np.errstate(over="ignore"):
            large = np.isinf(values.astype(np.float32)).reshape(len(values), -1).any(axis=1)
        if large.any():
            row, remedy = int(large.argmax()), "; rescale the column."
            raise table.wrong("a number that fits float32", row, column, remedy)
        return values

    @classmethod
    def fit(cls, column: str, values: np.ndarray) -> "Number":
        fill, gaps = _fill(values)
        return cls(column, fill, gaps, values.ndim == 2)

    def encode(self, values: np.ndarray) -> np.ndarray:
        return _filled(values.reshape(len(values), -1), self.fill, self.gaps > 0)

    @property
    def names(self) -> tuple[str, ...]:
        many = [f"{self.column}[{i}]" for i in range(len(self.fill))]
        return (*(many if self.many else [self.column]), *flag_name(self.column, self.gaps))

    @property
    def done(self) -> str:
        what = f"{len(self.fill)} numbers per node" if self.many else "a number"
        median = "the median" if self.many else f"the median {self.fill[0]:g}"
        return what + _gaps(self.gaps, f"filled with {median}, and marked in a feature")


@dataclass(frozen=True)
class Boolean:
    """True or false as 1 and 0; a gap becomes the more frequent of the two."""

    kind: ClassVar[str] = "boolean"
    column: str
    fill: float
    gaps: int = 0

    @staticmethod
    def parse(table: Table, column: str) -> np.ndarray:  # (nodes,)
        """1, 0, and NaN for a gap."""
        if pa.types.is_boolean(table.columns[column].type):
            return table.values(column)
        cells = pc.utf8_lower(table.cells(column))
        values = {"1": "1", "0": "0"} | (_truth(cells) or TRUTH)
        place = pc.index_in(cells, value_set=pa.array([*values]))
        bad = pc.index(pc.and_(pc.is_valid(cells), pc.is_null(place)), True).as_py()
        if bad >= 0:
            raise table.wrong("true or false, yes or no", bad, column, f". {REMEDY}")
        numbers = np.array([float(value) for value in values.values()])
        codes = place.fill_null(-1).to_numpy(zero_copy_only=False)
        return np.append(numbers, np.nan)[codes]

    @classmethod
    def fit(cls, column: str, values: np.ndarray) -> "Boolean":
        known = values[~np.isnan(values)]
        return cls(column, float(2 * known.sum() > len(known)), len(values) - len(known))

    def encode(self, values: np.ndarray) -> np.ndarray:
        return _filled(values[:, None], (self.fill,), self.gaps > 0)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.column, *flag_name(self.column, self.gaps))

    @property
    def done(self) -> str:
        return "0 or 1" + _gaps(self.gaps, f"filled with {self.fill:g}, and marked in a feature")


@dataclass(frozen=True)
class Date:
    """A date as days since 1970, and where it lies in the year, and in the day where times are.

    With t in days: t, sin and cos of 2 pi t / 365.2425, and with times sin and cos of 2 pi t.
    """

    kind: ClassVar[str] = "date"
    column: str
    fill: float
    gaps: int = 0
    times: bool = False

    @staticmethod
    def parse(table: Table, column: str, remedy: str = f". {REMEDY}") -> np.ndarray:  # (nodes,)
        """Days since 1970 (UTC where an offset is given), NaN for a gap."""
        array = table.columns[column]
        if pa.types.is_string(array.type):
            cells = table.cells(column)
            moments = _as_moments(cells)
            if moments is None:
                texts = enumerate(cells.to_pylist())
                row = next(i for i, v in texts if v and _as_moments(pa.array([v])) is None)
                date = "a date such as 2024-05-31, 31.05.2024 or 2024-05-31 12:30"
                raise table.wrong(date, row, column, remedy)
        else:
            zone = getattr(array.type, "tz", None)
            moments = pc.cast(array, pa.timestamp("us", zone), safe=False)
        micros = pc.cast(moments, pa.int64())
        days = micros.fill_null(0).to_numpy(zero_copy_only=False) / DAY
        days[pc.is_null(micros).to_numpy(zero_copy_only=False)] = np.nan
        return days

    @classmethod
    def fit(cls, column: str, days: np.ndarray) -> "Date":
        (fill,), gaps = _fill(days)
        return cls(column, fill, gaps, bool((days[~np.isnan(days)] % 1 != 0).any()))

    def encode(self, days: np.ndarray) -> np.ndarray:
        t = np.where(np.isnan(days), self.fill, days)
        columns = [t, np.sin(2 * np.pi * t / YEAR), np.cos(2 * np.pi * t / YEAR)]
        if self.times:
            columns += [np.sin(2 * np.pi * t), np.cos(2 * np.pi * t)]
        if self.gaps:
            columns.append(np.isnan(days))
        return np.stack(columns, axis=1).astype(np.float32)

    @property
    def names(self) -> tuple[str, ...]:
        waves = ("year", "day") if self.times else ("year",)
        parts = [f"{self.column} {wave} {f}" for wave in waves for f in ("sin", "cos")]
        return (f"{self.column} days", *parts, *flag_name(self.column, self.gaps))

    @property
    def done(self) -> str:
        what = "days, and sine and cosine of the year" + (" and of the day" if self.times else "")
        return what + _gaps(self.gaps, "filled with the median, and marked in a feature")


@dataclass(frozen=True)
class LeftOut:
    """A column that is not used."""

    kind: ClassVar[str] = "left out"
    column: str
    reason: str

    names: ClassVar[tuple[str, ...]] = ()

    @property
    def done(self) -> str:
        return self.reason


def _as_moments(cells: Any) -> Any | None:
    """Texts as timestamps; None if one is no date. 1.5.2024 is read as 2024-05-01."""
    dashed = pc.replace_substring_regex(cells, _DOTTED, r"\3-0\2-0\1")
    dashed = pc.replace_substring_regex(dashed, r"^(\d{4})-0?(\d\d)-0?(\d\d)", r"\1-\2-\3")
    dashed = pc.replace_substring_regex(dashed, r"^(\d{4}-\d\d)$", r"\1-01")
    for zone in (None, "UTC"):
        with contextlib.suppress(pa.ArrowInvalid):
            return pc.cast(dashed, pa.timestamp("us", zone))
    return None


def _fill(values: np.ndarray) -> tuple[tuple[float, ...], int]:
    """The median of each entry, 0 where nothing is known, and how many rows have a gap."""
    table = values.reshape(len(values), -1)
    known = [column[~np.isnan(column)] for column in table.T]
    fill = tuple(float(np.median(column)) if len(column) else 0.0 for column in known)
    return fill, int(np.isnan(table).any(axis=1).sum())


def _filled(values: np.ndarray, fill: tuple[float, ...], flag: bool) -> np.ndarray:
    missing = np.isnan(values)
    filled = np.where(missing, np.array(fill), values).astype(np.float32)
    if not flag:
        return filled
    return np.concatenate([filled, missing.any(axis=1, keepdims=True)], axis=1, dtype=np.float32)


def flag_name(column: str, gaps: int) -> tuple[str, ...]:
    """The name of the feature that marks gaps, if there is one."""
    return (f"{column} missing",) if gaps else ()


def _gaps(gaps: int, how: str) -> str:
    return "" if gaps == 0 else f"; {gaps} {'gap' if gaps == 1 else 'gaps'} {how}"


MAX_CATEGORIES = 50  # features of one column
RARE = (0.01, 2, 10)  # a category is rare below this share of the nodes, kept within these counts
MAX_WORDS = 2_000
MIN_NODES = 2  # nodes that a word must occur in


@dataclass(frozen=True)
class Category:
    """One feature for each frequent value, one for all rare ones, one for gaps.

    Args:
        column: its name.
        values: the frequent values.
        rare: how many other values there were; if any, new values count as such.
        gaps: how many cells were missing.
    """

    kind: ClassVar[str] = "category"
    column: str
    values: tuple[str, ...]
    rare: int = 0
    gaps: int = 0

    @staticmethod
    def parse(table: Table, column: str) -> Any:
        """Trimmed strings in one spelling, null for a gap."""
        return table.words(column)

    @classmethod
    def fit(cls, column: str, cells: Any) -> "Category":
        found = cells.drop_null().dictionary_encode()
        order = pc.array_sort_indices(found.dictionary)
        words = found.dictionary.take(order).to_pylist()
        count = np.bincount(found.indices.to_numpy(), minlength=len(words))[order.to_numpy()]
        share, least, most = RARE
        rare = count < int(np.clip(np.ceil(share * len(cells)), least, most))
        if (~rare).sum() + 1 > MAX_CATEGORIES:  # one feature is that of all rare ones
            rare[np.argsort(count, kind="stable")[: -(MAX_CATEGORIES - 1)]] = True
        values = tuple(word for word, lost in zip(words, rare, strict=True) if not lost)
        return cls(column, values, int(rare.sum()), cells.null_count)

    def encode(self, cells: Any) -> sp.csr_array:
        values = pc.utf8_lower(pa.array(self.values, pa.string()))
        place = pc.index_in(pc.utf8_lower(cells), value_set=values)
        codes = place.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        missing = pc.is_null(cells).to_numpy(zero_copy_only=False)
        width = len(self.values)
        codes[(codes < 0) & ~missing] = width if self.rare else -1
        codes[missing] = width + (self.rare > 0) if self.gaps else -1
        rows = np.flatnonzero(codes >= 0)
        start = np.concatenate([[0], np.cumsum(codes >= 0)])
        ones = np.ones(len(rows), dtype=np.float32)
        return sp.csr_array((ones, codes[rows], start), shape=(len(codes), len(self.names)))

    @property
    def names(self) -> tuple[str, ...]:
        named = [f"{self.column}={value}" for value in self.values]
        other = [f"{self.column}=(other)"] if self.rare else []
        return (*named, *other, *flag_name(self.column, self.gaps))

    @property
    def done(self) -> str:
        what = f"one feature for each of {len(self.values)} values"
        what += f", one for {self.rare} rare ones" if self.rare else ""
        return what + (f", one for {self.gaps} gaps" if self.gaps else "")


@dataclass(frozen=True)
class Text:
    """Words by TF-IDF: count times ``idf``, each node's row brought to length 1.

    Args:
        column: its name.
        words: the vocabulary.
        idf: one weight per word, :math:`1 + ln((1 + nodes) / (1 + nodes with the word))`.
    """

    kind: ClassVar[str] = "text"
    column: str
    words: tuple[str, ...]
    idf: tuple[float, ...]

    @staticmethod
    def parse(table: Table, column: str) -> list[str]:
        """The text of each node, empty for a gap."""
        return table.cells(column).fill_null("").to_pylist()

    @classmethod
    def fit(cls, column: str, texts: list[str]) -> "Text":
        """Learn words and weights; none if no word occurs twice."""
        from sklearn.feature_extraction.text import TfidfVectorizer  # slow to load

        vectorizer = TfidfVectorizer(max_features=MAX_WORDS, min_df=MIN_NODES)
        try:
            vectorizer.fit(texts)
        except ValueError:  # no words, or none that two nodes share
            return cls(column, (), ())
        words = tuple(vectorizer.get_feature_names_out().tolist())
        return cls(column, words, tuple(vectorizer.idf_.tolist()))

    def encode(self, texts: list[str]) -> sp.csr_array:
        if not self.words:
            return sp.csr_array((len(texts), 0), dtype=np.float32)
        from sklearn.feature_extraction.text import CountVectorizer  # slow to load
        from sklearn.preprocessing import normalize

        counts = CountVectorizer(vocabulary=self.words, dtype=np.float64).transform(texts)
        weighted = sp.csr_array(counts)
        weighted.data *= np.array(self.idf)[weighted.indices]
        return sp.csr_array(normalize(weighted, copy=False), dtype=np.float32)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.column}: {word}" for word in self.words)

    @property
    def done(self) -> str:
        return f"TF-IDF of {len(self.words)} words"


#: Cells that were meant as a number: 3 | -1.5e3 | inf | 1,234.50 | 2,5
_NUMBER_LIKE = r"^[-+]?(\d*\.?\d+(e[-+]?\d+)?|\d+\.|inf|infinity|\d{1,3}(,\d{3})+(\.\d+)?|\d+,\d+)$"
#: Cells that were meant as a date: 2024-05-31 | 2024-05-31T12:30 | 2024-5-31 | 31.5.2024
_DATE_LIKE = r"^(\d{4}-\d{1,2}-\d{1,2}|\d{1,2}\.\d{1,2}\.\d{4})([ t].*)?$"
#: Dates that may be read in two ways: 5/6/2024 | 31.12.24
_OTHER_DATE = r"^\d{1,2}[./]\d{1,2}[./](\d{2}|\d{4})\b"
_FEW = 1000  # cells
DISTINCT = 1 / 2  # share of different texts beyond which they are names, not categories


def guess_kind(
    table: Table, column: str, *, text: bool = False, category: bool = False
) -> tuple[Any, Any]:
    """The kind of a column and its cells, parsed by that kind; or why it is left out, and None.

    >>> table = Table({"flag": pa.array(["yes", "no", ""]), "day": pa.array(["2024-05-31"] * 3)})
    >>> guess_kind(table, "flag")[0].kind, guess_kind(table, "day")[0].kind
    ('boolean', 'date')
    """
    array = table.columns[column]
    if array.null_count == len(array):
        return LeftOut(column, "empty"), None
    if column == INDEX and not text and not category:
        numbers = table.parsed(column)
        if numbers is not None and (numbers - numbers[0] == np.arange(len(numbers))).all():
            return LeftOut(column, "the index of a data frame"), None
    if text or category:
        chosen: Any = Text if text else Category
        return chosen, chosen.parse(table, column)
    if not pa.types.is_string(array.type):
        is_date = pa.types.is_date(array.type) or pa.types.is_timestamp(array.type)
        kind: Any = Boolean if pa.types.is_boolean(array.type) else Date if is_date else Number
        return kind, kind.parse(table, column)
    values = table.parsed(column)
    if values is None:
        return _kind_of_words(table, column)
    if np.isnan(values).all():
        return LeftOut(column, "empty"), None
    words = pc.utf8_lower(pc.unique(array[:_FEW])).to_pylist()  # true and false are numbers, too
    if truth_words({*words} - {*table.missing, "", None}) and _truth(table.cells(column)):
        return Boolean, Boolean.parse(table, column)
    return Number, Number.checked(table, column, values)


def _kind_of_words(table: Table, column: str) -> tuple[Any, Any]:
    """The kind of a column of text that is not all numbers."""
    cells = table.words(column)
    known = pc.utf8_lower(cells.drop_null())
    if _truth(known):
        return Boolean, Boolean.parse(table, column)
    doubt = table.read[column].doubt
    if not doubt and _share(known, _NUMBER_LIKE) > 1 / 2:
        return Number, Number.parse(table, column)  # raises: one cell is none
    if _share(known, _DATE_LIKE) > 1 / 2:
        return Date, Date.parse(table, column)
    if doubt:
        return LeftOut(column, "its numbers can be read in several ways"), None
    distinct = len(pc.unique(cells.drop_null()))
    if distinct <= DISTINCT * len(known):
        return Category, cells
    if _share(known, _OTHER_DATE) > 1 / 2:
        return LeftOut(column, "to use its dates, write them as 2024-05-31"), None
    reason = f"almost every value is different; to use its words: text_columns={column}"
    return LeftOut(column, reason), None


def _truth(cells: Any) -> dict[str, str]:
    """The value of each word in cells of lower case, if they are truth values."""
    for known in (cells.drop_null()[:_FEW], cells.drop_null()):  # a few show that they are others
        words = truth_words(set(pc.unique(pc.utf8_lower(known)).to_pylist()))
        if not words:
            return {}
    return words


def _share(texts: Any, pattern: str) -> float:
    matches = pc.sum(pc.match_substring_regex(texts, pattern)).as_py() or 0
    return matches / max(len(texts), 1)

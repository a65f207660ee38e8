"""Columns of numbers, truth values and dates, and what each has learned.

A kind of column is learned by a transformer of scikit-learn and kept as plain numbers and words: it
can be stored as data and applied to another table. ``parse`` reads the cells, ``fit`` learns from
them, ``encode`` makes float32 features (nodes, width) of them. No kind sees a label.
"""

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.impute import SimpleImputer

from longnn.data._tables import Table

YEAR = 365.2425  # days
_DAY = 86_400_000_000  # microseconds
TRUTH = {"true": "1", "yes": "1", "false": "0", "no": "0"}
#: 31.12.2024 means the 31st of December wherever dates have dots; with slashes it depends.
_DOTTED = r"^(\d{1,2})\.(\d{1,2})\.(\d{4})"
REMEDY = "Correct it, or name the column in category_columns, or leave it out with feature_columns."


@dataclass(frozen=True)
class Number:
    """Numbers; a gap becomes the median, and has a flag if there was one at fitting time.

    Args:
        column: its name.
        fill: the median of what is known; one per entry of a list column.
        gaps: how many cells were missing.
        many: whether each cell is a list.

    >>> table = Table({"age": pa.array(["3", "", "5"])})
    >>> values = Number.parse(table, "age")
    >>> age = Number.fit("age", values)
    >>> age.names, age.encode(values).tolist()
    (('age', 'age missing'), [[3.0, 0.0], [4.0, 1.0], [5.0, 0.0]])
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
            row = int(large.argmax())
            raise table.error(
                f"Expected a number that fits float32 (got {values[row]}); rescale the column.",
                row,
                column,
                value=values[row],
            )
        return values

    @classmethod
    def fit(cls, column: str, values: np.ndarray) -> "Number":
        fill, gaps = _fill(values, "median")
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
        words = pa.array([*TRUTH, "1", "0"])
        place = pc.index_in(cells, value_set=words)
        bad = pc.index(pc.and_(pc.is_valid(cells), pc.is_null(place)), True).as_py()
        if bad >= 0:
            value = table.columns[column][bad].as_py()
            raise table.error(
                f"Expected true or false, yes or no (got {value!r}). {REMEDY}",
                bad,
                column,
                value=value,
            )
        numbers = np.array([float(TRUTH.get(word.as_py(), word.as_py())) for word in words])
        codes = place.fill_null(-1).to_numpy(zero_copy_only=False)
        return np.append(numbers, np.nan)[codes]

    @classmethod
    def fit(cls, column: str, values: np.ndarray) -> "Boolean":
        (fill,), gaps = _fill(values, "most_frequent")
        return cls(column, fill, gaps)

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
    def parse(table: Table, column: str) -> np.ndarray:  # (nodes,)
        """Days since 1970, NaN for a gap."""
        moments = as_dates(table, column)
        if moments is None:
            cells = table.cells(column)
            row, value = next(
                (i, v) for i, v in enumerate(cells.to_pylist()) if v and not _is_date(v)
            )
            raise table.error(
                "Expected a date such as 2024-05-31, 31.05.2024 or 2024-05-31 12:30 "
                f"(got {value!r}). {REMEDY}",
                row,
                column,
                value=value,
            )
        return moments

    @classmethod
    def fit(cls, column: str, days: np.ndarray) -> "Date":
        (fill,), gaps = _fill(days, "median")
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
    """A column that is not used.

    Args:
        column: its name.
        reason: why, and perhaps how to use it.
    """

    kind: ClassVar[str] = "left out"
    column: str
    reason: str

    names: ClassVar[tuple[str, ...]] = ()

    @property
    def done(self) -> str:
        return self.reason


def as_dates(table: Table, column: str) -> np.ndarray | None:  # (nodes,)
    """Days since 1970 (UTC where an offset is given), NaN for a gap; None if a cell is no date."""
    array = table.columns[column]
    if pa.types.is_string(array.type):
        array = _with_dashes(table.cells(column))
        for zone in (None, "UTC"):
            try:
                moments = pc.cast(array, pa.timestamp("us", zone))
                break
            except pa.ArrowInvalid:
                continue
        else:
            return None
    else:
        moments = pc.cast(array, pa.timestamp("us", getattr(array.type, "tz", None)), safe=False)
    micros = pc.cast(moments, pa.int64())
    days = micros.fill_null(0).to_numpy(zero_copy_only=False) / _DAY
    days[pc.is_null(micros).to_numpy(zero_copy_only=False)] = np.nan
    return days


def _with_dashes(cells: Any) -> Any:
    """Dates with dots as ISO writes them: 1.5.2024 becomes 2024-05-01."""
    dashed = pc.replace_substring_regex(cells, _DOTTED, r"\3-0\2-0\1")
    return pc.replace_substring_regex(dashed, r"^(\d{4})-0?(\d\d)-0?(\d\d)", r"\1-\2-\3")


def _is_date(text: str) -> bool:
    for zone in (None, "UTC"):
        try:
            pc.cast(_with_dashes(pa.scalar(text)), pa.timestamp("us", zone))
        except pa.ArrowInvalid:
            continue
        return True
    return False


def _fill(values: np.ndarray, strategy: str) -> tuple[tuple[float, ...], int]:
    """What fills the gaps of each entry, and how many rows have one; 0 where nothing is known."""
    table = values.reshape(len(values), -1)
    gaps = int(np.isnan(table).any(axis=1).sum())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of entries without any value
        imputer = SimpleImputer(strategy=strategy, keep_empty_features=True).fit(table)
    return tuple(np.nan_to_num(imputer.statistics_.astype(np.float64)).tolist()), gaps


def _filled(values: np.ndarray, fill: tuple[float, ...], flag: bool) -> np.ndarray:
    missing = np.isnan(values)
    filled = np.where(missing, np.array(fill), values).astype(np.float32)
    if not flag:
        return filled
    return np.concatenate([filled, missing.any(axis=1, keepdims=True)], axis=1, dtype=np.float32)


def flag_name(column: str, gaps: int) -> tuple[str, ...]:
    """The name of the feature that marks gaps, if there is one.

    >>> flag_name("age", 3), flag_name("age", 0)
    (('age missing',), ())
    """
    return (f"{column} missing",) if gaps else ()


def _gaps(gaps: int, how: str) -> str:
    return "" if gaps == 0 else f"; {gaps} {'gap' if gaps == 1 else 'gaps'} {how}"

"""How tables become a graph: the options that all loaders of tables share, checked once."""

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from longnn._base.suggestions import did_you_mean
from longnn.data._arcs import Directed, check_directed
from longnn.data._cells import MISSING
from longnn.data._dataset import TASKS, Task
from longnn.data._encoding import MISSING_CHOICES, Missing
from longnn.data._errors import DataError
from longnn.data._tables import Table
from longnn.data._text import HEADERS, Header

Features = Literal["auto", "columns", "degree", "identity"]
FEATURES = ("auto", "columns", "degree", "identity")
UnknownIds = Literal["error", "drop", "add"]
Outliers = Literal["keep", "drop"]
OUTLIERS = ("keep", "drop")
Ids = Literal["exact", "numbers"]
IDS = ("exact", "numbers")
Repeats = Literal["merge", "count"]
REPEATS = ("merge", "count")
EmptyEnds = Literal["error", "drop"]
EMPTY_ENDS = ("error", "drop")
RepeatedNodes = Literal["error", "merge"]
REPEATED_NODES = ("error", "merge")
Isolated = Literal["keep", "drop"]
ISOLATED = ("keep", "drop")
UNKNOWN_IDS = ("error", "drop", "add")


_LISTS = (
    "label_column",
    "feature_columns",
    "text_columns",
    "category_columns",
    "drop_columns",
    "missing_words",
)


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """The options of :func:`~longnn.data.load_files`, which explains each.

    >>> TableOptions(label_column="price,rent").label_column
    ('price,rent',)
    >>> TableOptions.from_dict({"lable_column": "y"})
    Traceback (most recent call last):
    longnn.data._errors.DataError: Unknown option `lable_column`; did you mean `label_column`?
    """

    id_column: str | None = None
    label_column: Sequence[str] | None = None
    feature_columns: Sequence[str] | None = None
    text_columns: Sequence[str] | None = None
    category_columns: Sequence[str] | None = None
    drop_columns: Sequence[str] | None = None
    split_column: str | None = None
    source_column: str | None = None
    target_column: str | None = None
    weight_column: str | None = None
    type_column: str | None = None
    header: Header = "auto"
    unknown_ids: UnknownIds = "error"
    ids: Ids = "exact"
    empty_ends: EmptyEnds = "error"
    repeats: Repeats = "merge"
    repeated_nodes: RepeatedNodes = "error"
    isolated: Isolated = "keep"
    missing: Missing = "fill"
    missing_words: Sequence[str] | None = None
    outliers: Outliers = "keep"
    features: Features = "auto"
    task: Task | None = None
    directed: Directed = False
    self_loops: bool = False
    name: str | None = None

    def __post_init__(self) -> None:
        check_directed(self.directed)
        allowed = {
            "header": HEADERS,
            "features": FEATURES,
            "task": TASKS,
            "missing": MISSING_CHOICES,
            "unknown_ids": UNKNOWN_IDS,
            "outliers": OUTLIERS,
            "ids": IDS,
            "empty_ends": EMPTY_ENDS,
            "repeats": REPEATS,
            "repeated_nodes": REPEATED_NODES,
            "isolated": ISOLATED,
        }
        for key, choices in allowed.items():
            value = getattr(self, key)
            if value not in choices and (key != "task" or value is not None):
                raise DataError(f"Expected `{key}` to be one of {choices} (got {value!r}).")
        if self.unknown_ids == "add" and self.missing == "error":
            raise DataError(
                "Expected missing='fill' where unknown_ids='add' (got 'error'): the nodes that are "
                "added have gaps in all columns."
            )
        for key in _LISTS:
            value = getattr(self, key)
            if value is not None:  # a text alone is one name
                names = (value,) if isinstance(value, str) else tuple(map(str, value))
                object.__setattr__(self, key, names)

    def meaning(self, table: Table) -> Table:
        """A table whose cells are read as these options say."""
        table = replace(table, number_ids=self.ids == "numbers")
        if self.missing_words is None:
            return table
        named = [word.strip().lower() for word in self.missing_words]
        kept = [MISSING if word == "default" else (word,) for word in named]
        return replace(table, missing=tuple(itertools.chain(*kept)))

    @property
    def ends(self) -> tuple[str | None, str | None, str | None]:
        """The source, target and weight columns that are named."""
        return self.source_column, self.target_column, self.weight_column

    def without_absent(self, keys: Sequence[str], columns: Collection[str]) -> "TableOptions":
        """The options; of these keys only those whose columns are all there."""
        lost: dict[str, Any] = {}
        for key in keys:
            value = getattr(self, key)
            wanted = (value,) if isinstance(value, str) else value or ()
            if any(column not in columns for column in wanted):
                lost[key] = None
        return replace(self, **lost)

    @classmethod
    def from_dict(cls, options: dict[str, Any]) -> "TableOptions":
        """The options by name; an unknown one is an error that suggests the nearest."""
        known = [field.name for field in fields(cls)]
        for key in options:
            if key not in known:
                raise DataError(f"Unknown option `{key}`{did_you_mean(key, known)}", value=key)
        return cls(**options)

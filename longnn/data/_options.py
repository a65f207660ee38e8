"""How tables become a graph: the options that all loaders of tables share, checked once."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import UnionType
from typing import Any, Literal, Self, Union, get_args, get_origin, get_type_hints

from longnn._base.suggestions import did_you_mean
from longnn.data._arcs import Directed, check_directed
from longnn.data._cells import MISSING
from longnn.data._dataset import Task
from longnn.data._encoding import Missing
from longnn.data._errors import DataError
from longnn.data._tables import Table
from longnn.data._text import Header

Features = Literal["auto", "columns", "degree", "identity"]
UnknownIds = Literal["error", "drop", "add"]
Outliers = Literal["keep", "drop"]
IdForm = Literal["exact", "numbers"]
Repeats = Literal["merge", "count"]
EmptyEnds = Literal["error", "drop"]
RepeatedNodes = Literal["error", "merge"]
Isolated = Literal["keep", "drop"]

#: What decides on the split, of which there is one.
SPLITS = ("split_column", "time_column", "group_column")
#: What a graph to predict on may lack.
OPTIONAL = ("label_column", *SPLITS, "node_weight_column", "drop_columns")


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """What the columns of tables are for, and what to make of them.

    Args:
        id_column: by default id, node or node_id, else the first column; the row number if the
            edges are a matrix.
        label_column: by default label, y, class or target. A gap means "predict me".
            Several columns of 0 and 1 are labels of yes or no (task ``"multilabel"``), several of
            other numbers are several quantities.
        feature_columns: by default all columns without another role. Numbers, truth values, dates
            and categories are recognised; names that are nearly all different, constant columns
            and repeated ones are left out, and a note says so.
        text_columns: columns whose words become features (TF-IDF).
        category_columns: columns whose values are categories, even if they are numbers.
        drop_columns: columns of the node file that are not used.
        split_column: by default split. Its cells are train, val, test or empty.
        time_column: numbers or dates to split by: the past trains, the next validates, the last
            tests, near 60/20/20 % of the labelled nodes. Nodes of one time are in one set.
        split_at: two times instead of these shares: from when on nodes validate, and test.
        group_column: groups of nodes, of which none is in two sets; every seed draws others.
        node_weight_column: how much a node counts in losses, scores, votes and intervals, >= 0; one
            of weight 0 is as if it had no label.
        source_column, target_column: by default source/src/from and target/dst/to, else the
            first two columns.
        weight_column: by default weight or edge_weight; without one, or with ``"none"``, all edges
            have weight 1.
        type_column: types of edges (friend, colleague, ...), each with a filter of its own; by
            default edge_type. Without one, or with ``"none"``, all edges are alike.
        header: whether the first line of a text file has the names of columns, ``"yes"`` or
            ``"no"``; by default a first line that is like the others is data, and a note says so.
        unknown_ids: an edge with an end that the node file does not have is an ``"error"``; with
            ``"drop"`` such edges are left out, with ``"add"`` the nodes are added, with gaps in all
            columns; a note counts them.
        ids: with ``"numbers"``, 00024, 24 and 24.0 are one id; else ids are compared as written.
        empty_ends: an edge with an empty cell for an end is an ``"error"``, or is left out
            (``"drop"``).
        repeats: with ``"count"``, an edge without a weight that is listed n times has weight n.
        repeated_nodes: an id that is listed again is an ``"error"``; with ``"merge"`` the row is
            left out if it is identical to the first of its id.
        isolated: with ``"drop"``, nodes without an edge are left out.
        missing: ``"fill"`` gaps in feature columns (numbers with the median, and a feature that
            marks them), or ``"error"``: a gap is an error.
        missing_words: what is a gap besides an empty cell, in features, labels and splits; by
            default NA, N/A, NaN, null, None, \\N, ?, - and ., in any case (``default`` stands
            for these). A note counts them.
        outliers: numbers to predict that lie beyond all others, 1e9 among prices, decide every
            fit; ``"drop"`` treats these labels as unknown. A note names them.
        features: ``"columns"`` of the node file, ``"degree"`` (log(1 + degree)), ``"identity"``
            (one feature per node), or ``"auto"``: columns if there are any, else degree.
        task: by default classification for text or few distinct whole numbers; see
            ``label_column`` for several columns.
        directed: keep arcs, from source to target; ``"auto"`` keeps them if one has no reverse, or
            another weight than it. By default each line is an edge in both directions. A matrix
            that its file calls symmetric has no arcs: there true is an error.
        self_loops: keep self loops.
        name: by default that of the file or folder.

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
    time_column: str | None = None
    split_at: Sequence[str] | None = None
    group_column: str | None = None
    node_weight_column: str | None = None
    source_column: str | None = None
    target_column: str | None = None
    weight_column: str | None = None
    type_column: str | None = None
    header: Header = "auto"
    unknown_ids: UnknownIds = "error"
    ids: IdForm = "exact"
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
        for key, hint in get_type_hints(type(self)).items():
            value, kinds = getattr(self, key), alternatives(hint)
            choices = next((get_args(kind) for kind in kinds if get_origin(kind) is Literal), ())
            given = value is not None and not isinstance(value, bool)
            if choices and given and value not in choices:
                raise DataError(f"Expected `{key}` to be one of {choices} (got {value!r}).")
            if given and any(get_origin(kind) is Sequence for kind in kinds):
                names = (value,) if isinstance(value, str) else tuple(map(str, value))
                object.__setattr__(self, key, names)  # a text alone is one name
        ways = [key for key in SPLITS if getattr(self, key) is not None]
        if len(ways) > 1:
            raise DataError(f"Expected one of {', '.join(SPLITS)} (got {' and '.join(ways)}).")
        if self.split_at is not None and (self.time_column is None or len(self.split_at) != 2):
            raise DataError(
                "Expected `split_at` beside time_column, as the two times from which on nodes "
                f"validate and test, such as 2019,2021 (got {','.join(self.split_at)!r}"
                f"{' without time_column' if self.time_column is None else ''})."
            )
        if self.unknown_ids == "add" and self.missing == "error":
            raise DataError(
                "Expected missing='fill' where unknown_ids='add' (got 'error'): the nodes that are "
                "added have gaps in all columns."
            )

    def meaning(self, table: Table) -> Table:
        """A table whose cells are read as these options say."""
        table = replace(table, number_ids=self.ids == "numbers")
        if self.missing_words is None:
            return table
        named = [word.strip().lower() for word in self.missing_words]
        kept = [MISSING if word == "default" else (word,) for word in named]
        return replace(table, missing=tuple(itertools.chain(*kept)))

    def without_absent(self, keys: Sequence[str], columns: Collection[str]) -> Self:
        """The options; of these keys only those whose columns are all there.

        Of columns to drop those that are there stay.
        """
        lost: dict[str, Any] = {}
        for key in keys:
            value = getattr(self, key)
            wanted = (value,) if isinstance(value, str) else value or ()
            present = [column for column in wanted if column in columns]
            if len(present) < len(wanted):
                lost[key] = present if key == "drop_columns" else None
        if "time_column" in lost:
            lost["split_at"] = None
        return replace(self, **lost)

    @classmethod
    def from_dict(cls, options: Mapping[str, Any]) -> Self:
        """The options by name; an unknown one is an error that suggests the nearest."""
        known = [field.name for field in fields(cls)]
        for key in options:
            if key not in known:
                raise DataError(f"Unknown option `{key}`{did_you_mean(key, known)}", value=key)
        return cls(**options)


@dataclass(frozen=True, kw_only=True)
class FileOptions(TableOptions):
    """The same for files, of which there may be more.

    Args:
        feature_file: sparse features, set beside the columns of the node file: a SciPy ``.npz`` or
            ``.mtx`` matrix (nodes, features), its rows in the order of the node file or of the
            adjacency; or a long table with the columns id, feature and value, one row per nonzero
            value (1 without that column), repeated ones added.
        optional_columns: among ``label_column``, ``node_weight_column``, ``drop_columns`` and the
            options of the split: if the file does not have the column that the option names, the
            option is ignored. For a new graph to predict on, which need not have labels.
        more_rows: folders with ``nodes.*`` and ``edges.*``, whose rows follow those of the graph:
            later nodes, and all edges that touch them. Labels and the split may be absent there.
    """

    feature_file: str | None = None
    optional_columns: Sequence[str] = ()
    more_rows: Sequence[str] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for column in self.optional_columns:
            if column not in OPTIONAL:
                raise DataError(
                    f"Expected `optional_columns` among {', '.join(OPTIONAL)} (got {column!r}).",
                    value=column,
                )


def alternatives(hint: Any) -> tuple[Any, ...]:
    """The alternatives of a union, a type alone being one."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)

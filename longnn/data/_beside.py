"""What a table says of nodes beside features and labels: their side of a split, their weight.

A side is said outright, by a time, or by groups that stay together. A labelled node has to have
all that is named; of the others nothing is asked, since nothing is learned of them.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from longnn.data._cells import is_number
from longnn.data._columns import DAY, Date
from longnn.data._dataset import MASKS
from longnn.data._errors import counted, have
from longnn.data._labels import distinct_texts
from longnn.data._splits import SHARES, in_shares
from longnn.data._tables import Table

_MASKS = {
    "train": "train_mask",
    "training": "train_mask",
    "val": "val_mask",
    "valid": "val_mask",
    "validation": "val_mask",
    "test": "test_mask",
}
_TIME = "; a time is a number, or a date such as 2024-05-31."
_FILL = "; fill it, or leave the label empty."


def read_split(table: Table, column: str) -> dict[str, Tensor]:
    """The masks that the cells train, val and test make, by name."""
    texts, codes = distinct_texts(table, column)
    masks = [_MASKS.get(text.lower()) for text in texts]
    if None in masks:
        row = int((codes == masks.index(None)).argmax())
        raise table.wrong("train, val, test or an empty cell", row, column)
    return {
        key: torch.from_numpy(np.isin(codes, [k for k, mask in enumerate(masks) if mask == key]))
        for key in MASKS
    }


def read_time(
    table: Table,
    column: str,
    labelled: np.ndarray,
    split_at: Sequence[str] | None,
    notes: list[str],
) -> dict[str, Tensor]:
    """The masks of the past, the next and the last labelled nodes."""
    times, are_dates = _times(table, column)
    _refuse_gaps(table, column, "a time", labelled & np.isnan(times))
    known = times[labelled]
    if split_at is None:
        _, codes, counts = np.unique(known, return_inverse=True, return_counts=True)
        sets = in_shares(counts, SHARES)[codes]
    else:
        texts = [f"{text}-01" if are_dates and text.isdigit() else text for text in split_at]
        cuts = Table({column: pa.array(texts, pa.string())}, frame="split_at")  # 2021 is 2021-01
        starts, as_dates = _times(cuts, column)
        if as_dates != are_dates or not starts[0] < starts[1]:
            what = "dates" if are_dates else "numbers"
            raise table.error(
                f"Expected `split_at` as two {what}, as the column has, the earlier one first (got "
                f"{','.join(split_at)!r}).",
                column=column,
            )
        sets = np.searchsorted(starts, known, side="right")
    every = np.full(len(table), -1)
    every[labelled] = sets
    periods = []
    for k, what in enumerate(("training", "validation", "test")):
        if len(mine := known[sets == k]):
            first, last = (_shown(value, are_dates) for value in (mine.min(), mine.max()))
            when = first if first == last else f"{first} to {last}"
            periods.append(f"{len(mine):,} {what} nodes ({when})")
    if periods:
        notes.append(f"Split by time, column {column!r}: {', '.join(periods)}.")
    return {key: torch.from_numpy(every == k) for k, key in enumerate(MASKS)}


def read_groups(
    table: Table, column: str, labelled: np.ndarray, notes: list[str]
) -> dict[str, Tensor]:
    """The number of each node's group, -1 for a gap."""
    names, codes = distinct_texts(table, column)
    _refuse_gaps(table, column, "a group", labelled & (codes < 0))
    notes.append(
        f"The {len(names):,} groups of column {column!r} stay together: none has nodes on two "
        "sides of a split."
    )
    return {"node_group": torch.from_numpy(codes.astype(np.int64))}


def read_weights(table: Table, column: str, labelled: np.ndarray, notes: list[str]) -> Tensor:
    """How much each node counts, NaN for a gap."""
    weight = table.values(column)
    if (weight < 0).any():
        raise table.wrong("a weight >= 0", int((weight < 0).argmax()), column)
    _refuse_gaps(table, column, "a weight", labelled & np.isnan(weight))
    nothing = int((weight[labelled] == 0).sum())
    notes.append(
        f"Nodes count by their weight, column {column!r}, in losses, scores, votes and intervals; "
        "figures count each once."
        + (f" {counted(nothing, 'node')} of weight 0 {have(nothing)} no label." * (nothing > 0))
    )
    return torch.from_numpy(weight.astype(np.float32))


def _times(table: Table, column: str) -> tuple[np.ndarray, bool]:  # float64 (nodes,), NaN for a gap
    """Numbers, or dates as days; and whether they are dates."""
    kind = table.columns[column].type
    are_dates = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    if pa.types.is_string(kind) and table.parsed(column) is None:
        cells = table.cells(column).drop_null()
        are_dates = not is_number(cells[0].as_py())  # else one of the others is no number
    if are_dates:
        return Date.parse(table, column, _TIME), True
    times = table.values(column, remedy=_TIME[2:].capitalize())
    if times.ndim > 1:
        raise table.wrong("one time per node", 0, column)
    return times, False


def _shown(time: float, is_date: bool) -> str:
    """A time as users write it.

    >>> _shown(18993.0, True), _shown(18993.5, True), _shown(2021.0, False)
    ('2022-01-01', '2022-01-01T12:00', '2021')
    """
    if not is_date:
        return f"{time:.15g}"
    unit = "D" if time % 1 == 0 else "m"
    return str(np.datetime64(round(time * DAY), "us").astype(f"M8[{unit}]"))


def _refuse_gaps(table: Table, column: str, what: str, gaps: np.ndarray) -> None:
    if gaps.any():
        raise table.wrong(f"{what} for every labelled node", int(gaps.argmax()), column, _FILL)

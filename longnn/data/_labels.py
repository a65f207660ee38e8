"""Label columns → labels as a dataset wants them: classes, numbers, or several of either.

A gap means "predict me". Knows nothing of the other columns of a node table.
"""

import math
import re
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from longnn.data._cells import TRUTH, is_number, truth_words
from longnn.data._dataset import UNLABELLED, Task
from longnn.data._errors import counted
from longnn.data._hints import outlying
from longnn.data._options import TableOptions
from longnn.data._tables import Table
from longnn.data._targets import many_classes_note

LABEL_NAMES = ("label", "labels", "y", "class", "target")
_WHOLE = re.compile(r"[-+]?[0-9]{1,300}")
MAX_CLASSES = 100  # more distinct whole numbers than this are taken for a quantity
OFTEN = 20  # times that a number that is not whole occurs where it may name a class

#: Labels, names of classes (or of labels), names of targets, task.
Labels = tuple[Tensor, tuple[str, ...] | None, tuple[str, ...], Task]


def find_labels(table: Table, options: TableOptions) -> tuple[str, ...]:
    """The label columns that the user named, else the one that is called so, if any."""
    wanted, dropped = options.label_column, options.drop_columns or ()
    if wanted:
        for column in wanted:
            table.find(column, (), "label", dropped)
        return tuple(dict.fromkeys(wanted))
    found = table.find(None, LABEL_NAMES, "label", dropped)
    return () if found is None else (found,)


def read_labels(
    table: Table, columns: Sequence[str], options: TableOptions, notes: list[str]
) -> Labels:
    """Labels, class names, target names and task of one or several columns.

    One column of text, or of few distinct whole numbers, holds classes; other numbers are a
    quantity. Several columns of nothing but 0 and 1 are labels of yes or no; other numbers are
    several quantities. ``task`` overrides this. Class names are sorted, numbers by value.
    """
    task = options.task
    if len(columns) == 1 and task != "multilabel":
        return _read_one(table, columns[0], options, notes)
    if task == "classification":
        raise table.error(
            f"Expected one label column for classification (got {', '.join(columns)}); several "
            "columns of 0 and 1 are task='multilabel'."
        )
    y = np.stack([_read_number(table, column) for column in columns], axis=1)
    other = ~(np.isnan(y) | (y == 0) | (y == 1))
    if task == "multilabel" and other.any():
        row, place = (int(i) for i in np.argwhere(other)[0])
        raise table.error(
            f"Expected 0, 1, true, false or an empty cell (got {y[row, place]:g}).",
            row,
            columns[place],
            value=float(y[row, place]),
        )
    labels = torch.from_numpy(y.astype(np.float32))
    if other.any() or task == "regression":
        return labels, None, tuple(columns), "regression"
    return labels, tuple(columns), (), "multilabel"


def _read_number(table: Table, column: str) -> np.ndarray:  # (nodes,)
    """The numbers of one of several label columns; true and false are 1 and 0."""
    texts, codes = distinct_texts(table, column)
    values = np.full(len(texts) + 1, np.nan)  # the last stands for a gap
    truth = truth_words({text.lower() for text in texts}) or TRUTH
    for k, text in enumerate(texts):
        plain = truth.get(text.lower(), text)
        values[k] = float(plain) if is_number(plain) else np.nan
        if not np.isfinite(values[k]):
            raise table.wrong(
                "a finite number, true, false or an empty cell",
                int((codes == k).argmax()),
                column,
                "; of several label columns each holds numbers.",
            )
    return values[codes]


def _read_one(table: Table, column: str, options: TableOptions, notes: list[str]) -> Labels:
    """Labels, class names and task of one column."""
    texts, codes = distinct_texts(table, column)
    are_numbers = [is_number(text) for text in texts]
    pairs = zip(texts, are_numbers, strict=True)
    values = np.array([float(text) if yes else np.nan for text, yes in pairs])  # of distinct texts
    numeric = all(are_numbers)
    labelled = int((codes >= 0).sum())
    task = options.task or _guess_task(column, values, numeric, labelled, notes)
    if task == "classification":
        classes, names = _classes(texts, values, numeric)
        return torch.from_numpy(np.append(classes, UNLABELLED)[codes]), names, (), task
    wrong = np.isinf(values) if numeric else ~np.array(are_numbers)
    if wrong.any():
        bad = int(wrong.argmax())
        what = "a finite label" if numeric else "a number for regression"
        remedy = "." if numeric else "; use task='classification'."
        raise table.wrong(what, int((codes == bad).argmax()), column, remedy)
    y = torch.from_numpy(np.append(values, np.nan)[codes].astype(np.float32))
    far = outlying(y)
    if bool(far.any()):
        what = f"{counted(int(far.sum()), 'value')} of {column!r}, such as {float(y[far][0]):g},"
        if options.outliers == "drop":
            y[far] = float("nan")
            notes.append(f"Far from all others, and taken as unknown: {what[:-1]}.")
        else:
            notes.append(
                f"{what} will decide every fit, far from all others as they are: correct them, or "
                "take them as unknown with outliers=drop."
            )
    return y, None, (column,), task


def distinct_texts(table: Table, column: str) -> tuple[list[str], np.ndarray]:
    """The distinct texts of a column in order of appearance, and the number of each row's.

    The number is -1 for a gap.
    """
    encoded = table.words(column).dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return encoded.dictionary.to_pylist(), codes


def _guess_task(
    column: str, values: np.ndarray, numeric: bool, labelled: int, notes: list[str]
) -> Task:
    if not numeric:
        return "classification"
    known = values[~np.isnan(values)]
    if not np.isfinite(known).all():
        return "regression"
    whole, distinct = bool((known == np.round(known)).all()), len(np.unique(known))
    if whole and distinct <= MAX_CLASSES:
        notes += many_classes_note(f"Column {column!r}", distinct)
        return "classification"
    if whole or labelled >= OFTEN * distinct:
        notes.append(
            f"Column {column!r} holds {distinct} distinct {'whole ' * whole}numbers and was taken "
            "for a quantity (regression); use task='classification' if they are classes."
        )
    return "regression"


def _classes(
    texts: list[str], values: np.ndarray, numeric: bool
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The class of each distinct text, and the names of the classes."""
    if not numeric:
        names, classes = np.unique(np.array(texts, dtype=object), return_inverse=True)
        return classes, tuple(names.tolist())
    # Whole numbers exactly: as floats all above 2^53 would fall together.
    numbers = [
        int(text) if _WHOLE.fullmatch(text) else value
        for text, value in zip(texts, values.tolist(), strict=True)
    ]
    whole = all(v == round(v) for v in numbers if math.isfinite(v))
    known = sorted(set(numbers))
    place = {value: k for k, value in enumerate(known)}
    shown = [str(int(v)) if whole and math.isfinite(v) else str(float(v)) for v in known]
    return np.array([place[v] for v in numbers], dtype=np.int64), tuple(shown)

"""Predictions of every node as tables of some rows each, written as they come.

No more is held than a batch of rows and a few bytes per node, wherever the graph is.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow
import torch
from torch import Tensor

from longnn._base.tables import write_tables
from longnn.data import NodeDataset, Split
from longnn.training import Readout, Trained
from longnn.training._intervals import Forecast

#: Rows of one table: of a group in a Parquet file.
ROWS = 1 << 16
SETS = ("none", "train", "val", "test")


def prediction_tables(
    trained: Trained,
    dataset: NodeDataset,
    batches: Iterable[Forecast],
    *,
    repeat: int | None = None,
    sets: np.ndarray | None = None,
) -> Iterator[pyarrow.Table]:
    """One row per node: id, prediction, how far it may be off, probabilities, and, where known,
    label and set.

    Numbers lie between ``low`` and ``high``; of classes those in ``plausible``, joined by ``|``.
    Where one of two classes is predicted from a probability on that is not one half, that is in
    ``threshold_NAME``.
    Several labels or numbers have one column of each kind per label or target:
    ``predicted_NAME``, ``low_NAME``, ``high_NAME``, ``plausible_NAME`` (1, 0, or 0|1 where both
    are), ``p_NAME``, ``label_NAME``.

    Args:
        trained: the models, which know the names of classes and targets.
        dataset: whose nodes these are.
        batches: predictions of some nodes after the other, with their intervals or without.
        repeat: the number of the repeat that predicts; None for the mean of all.
        sets: see :func:`sets_of`.
    """
    y = dataset.data.y if bool(dataset.labelled.any()) else None
    start = 0
    for forecast in batches:
        for some in forecast.split(ROWS):
            part = slice(start, start + len(some.predicted))
            yield forecast_table(
                pyarrow.array(dataset.ids[part]),
                some,
                trained.readout(repeat),
                trained,
                y=None if y is None else y[part],
                where=None if sets is None else np.array(SETS, dtype=object)[sets[part]],
                classes=dataset.classes,
            )
            start = part.stop


def forecast_table(
    ids: pyarrow.Array,
    forecast: Forecast,
    readout: Readout,
    trained: Trained,
    *,
    y: Tensor | None = None,
    where: np.ndarray | None = None,
    classes: Sequence[str] = (),
) -> pyarrow.Table:
    """The rows of some nodes; ``classes`` are the names of the labels."""
    columns: dict[str, object] = {"id": ids}
    predicted = forecast.predicted
    chosen = readout.choose(predicted)
    if trained.task == "classification":
        columns |= _classes(forecast, chosen, trained.classes, y, classes)
        if readout.threshold is not None and len(trained.classes) == 2:
            name = f"threshold_{trained.classes[readout.positive]}"
            columns[name] = np.full(len(ids), readout.threshold)
    elif chosen.dim() == 1:
        columns["predicted"] = predicted.double().numpy()
        if forecast.low is not None and forecast.high is not None:
            columns |= {"low": _bound(forecast.low), "high": _bound(forecast.high)}
        if y is not None:
            columns["label"] = _known(y)
    else:
        names = trained.classes or trained.targets or [str(k) for k in range(chosen.shape[1])]
        for k, name in enumerate(names):
            columns[f"predicted_{name}"] = chosen[:, k].numpy()
            if forecast.low is not None and forecast.high is not None:
                columns[f"low_{name}"] = _bound(forecast.low[:, k])
                columns[f"high_{name}"] = _bound(forecast.high[:, k])
            if forecast.plausible is not None:
                columns[f"plausible_{name}"] = _joined(forecast.plausible[:, k], ["0", "1"])
            if trained.task == "multilabel":
                columns[f"p_{name}"] = predicted[:, k].double().numpy()
            if y is not None and y.dim() == 2:
                columns[f"label_{name}"] = _known(y[:, k])
    if where is not None:
        columns["set"] = where
    return pyarrow.table(columns)


def _bound(values: Tensor) -> pyarrow.Array:
    """One end of each interval; nothing where no node says how large errors are."""
    return pyarrow.array(values.double().numpy(), mask=values.isinf().numpy())


def _joined(plausible: Tensor, names: Sequence[str]) -> pyarrow.Array:
    """The names of what is plausible (nodes, names), joined; few sets differ, each is made once."""
    sets, of = torch.unique(plausible, dim=0, return_inverse=True)
    texts = ["|".join(names[k] for k in row.nonzero()[:, 0].tolist()) for row in sets]
    return pyarrow.array(texts, type=pyarrow.string()).take(pyarrow.array(of.numpy()))


def _classes(
    forecast: Forecast,
    chosen: Tensor,
    classes: Sequence[str],
    y: Tensor | None,
    named: Sequence[str],
) -> dict[str, object]:
    columns: dict[str, object] = {}
    columns["predicted"] = pyarrow.array(list(classes)).take(pyarrow.array(chosen.numpy()))
    if forecast.plausible is not None:
        columns["plausible"] = _joined(forecast.plausible, classes)
    for k, name in enumerate(classes):
        columns[f"p_{name}"] = forecast.predicted[:, k].double().numpy()
    if y is not None:
        codes = pyarrow.array(y.numpy(), mask=(y < 0).numpy())
        columns["label"] = pyarrow.array(list(named)).take(codes)
    return columns


def _known(y: Tensor) -> pyarrow.Array:
    return pyarrow.array(y.double().numpy(), mask=y.isnan().numpy())


def write_predictions(tables: Iterable[pyarrow.Table], path: Path) -> tuple[int, list[Path]]:
    """Write tables of predictions to a CSV file, and to a Parquet file beside it; or, if ``path``
    ends so, to a Parquet file alone.

    A spreadsheet runs a cell such as ``=HYPERLINK(...)``, so the CSV file has an apostrophe before
    texts that begin like a formula (see :mod:`longnn._base.tables`). The Parquet file has every id
    as it is.

    Returns:
        the number of rows, and the files.
    """
    paths = list(dict.fromkeys([path, path.with_suffix(".parquet")]))
    return write_tables(tables, paths), paths


def sets_of(splits: Sequence[Split]) -> np.ndarray | None:
    """int8 (nodes,), what each node serves for, by its place in :data:`SETS`; None where the
    repeats have several splits."""
    first, *others = [(s.train, s.val, s.test) for s in splits]
    if any(not torch.equal(a, b) for other in others for a, b in zip(first, other, strict=True)):
        return None
    found = np.zeros(len(first[0]), dtype=np.int8)
    for number, mask in enumerate(first, start=1):
        found[mask.numpy()] = number
    return found

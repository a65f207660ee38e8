"""What makes scores believable: class frequencies, and calibration, curves and residuals of tests.

From predictions to arrays for the record; knows nothing of figures.
"""

import numpy as np
import torch
from sklearn.metrics import precision_recall_curve
from torch import Tensor

from longnn.data import NodeDataset, Split
from longnn.records import Bins, Calibration, FrequencyShift, PrecisionRecall, Residuals
from longnn.store._rows import StoredDataset
from longnn.training import Readout, class_counts

#: Groups of predictions by how sure they are.
BINS = 10
#: Points of a curve, and nodes of a scatter, that are written down.
POINTS, NODES = 200, 2000


def calibration_of(
    predicted: Tensor, dataset: NodeDataset, test: Tensor, readout: Readout
) -> Calibration | None:
    """How sure the predictions are and how often they are right; None without test nodes."""
    if dataset.task == "regression" or not bool(test.any()):
        return None
    before, after = (
        make_bins(*_sure_and_right(p, dataset, test))
        for p in (readout.uncalibrated(predicted), predicted)
    )
    return Calibration(readout.temperature, before, after)


def shift_of(dataset: NodeDataset, split: Split, readout: Readout) -> FrequencyShift | None:
    """How probabilities are shifted, and the class frequencies behind it; None if they are not."""
    if not readout.shift:
        return None
    y = dataset.data.y
    sets, classes = (split.train, split.val), len(readout.shift)
    train, val = (class_counts(y, mask, classes).numpy() for mask in sets)
    return FrequencyShift(train, val, np.array(readout.shift))


def _sure_and_right(p: Tensor, dataset: NodeDataset, test: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """The probability of what is most probable, and whether it is so, by test node or label."""
    p, y = p[test].double(), dataset.data.y[test]
    if dataset.task == "classification":
        sure, chosen = p.max(1)
        return sure.numpy(), (chosen == y).numpy()
    known = ~torch.isnan(y)
    return p[known].clamp_min(1 - p[known]).numpy(), ((p >= 0.5) == (y > 0.5))[known].numpy()


def make_bins(confidence: np.ndarray, right: np.ndarray) -> Bins:
    """Predictions in groups of equal width by their confidence.

    >>> make_bins(np.array([0.95, 0.93, 0.2]), np.array([True, False, False])).count
    array([1., 2.])
    """
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    count = np.bincount(place, minlength=BINS).astype(float)
    sure = np.bincount(place, weights=confidence, minlength=BINS)
    hits = np.bincount(place, weights=right.astype(float), minlength=BINS)
    there = count > 0
    return Bins(sure[there] / count[there], hits[there] / count[there], count[there])


def curve_of(
    predicted: Tensor, dataset: NodeDataset, test: Tensor, readout: Readout
) -> PrecisionRecall | None:
    """Precision against recall of the rarer of two classes; None where there are not both."""
    if dataset.task != "classification" or dataset.num_classes != 2 or not bool(test.any()):
        return None
    hit = (dataset.data.y[test] == readout.positive).numpy()
    if not hit.any() or hit.all():
        return None
    p = predicted[test].double()
    precision, recall, _ = precision_recall_curve(hit, p[:, readout.positive].numpy())
    chosen = (readout.choose(predicted)[test] == readout.positive).numpy()
    found = (chosen & hit).sum()
    keep = np.unique(np.linspace(0, len(recall) - 1, min(POINTS, len(recall))).astype(int))
    return PrecisionRecall(
        name=dataset.classes[readout.positive],
        prevalence=float(hit.mean()),
        recall=recall[keep],
        precision=precision[keep],
        threshold=0.5 if readout.threshold is None else readout.threshold,
        chosen=(float(found / hit.sum()), float(found / max(chosen.sum(), 1))),
    )


def residuals_of(predicted: Tensor, dataset: NodeDataset, test: Tensor) -> Residuals | None:
    """Predicted and true values of test nodes (of the first target), or of a sample of them."""
    if dataset.task != "regression":
        return None
    y = dataset.data.y.reshape(dataset.num_nodes, -1)[:, 0]
    rows = (test & ~torch.isnan(y)).nonzero()[:, 0]
    if len(rows) == 0:
        return None
    if len(rows) > NODES:
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
        rows = rows[order[:NODES].sort().values]
    degree = _degrees(dataset)
    values = predicted.reshape(dataset.num_nodes, -1)[:, 0]
    return Residuals(
        name=dataset.targets[0] if dataset.targets else "label",
        predicted=values[rows].double().numpy(),
        true=y[rows].double().numpy(),
        degree=degree[rows].double().numpy(),
    )


def _degrees(dataset: NodeDataset) -> Tensor:
    """Neighbours of each node, (nodes,)."""
    if isinstance(dataset, StoredDataset):
        return torch.from_numpy(np.diff(dataset.graph.offsets)[dataset.nodes])
    return dataset.degrees


def label_counts(
    predicted: Tensor, dataset: NodeDataset, test: Tensor, readout: Readout
) -> np.ndarray:
    """Of each label: the test nodes that have it, those predicted to, and those with both."""
    y, chosen = dataset.data.y[test], readout.choose(predicted)[test] > 0
    known, has = ~torch.isnan(y), y > 0.5
    parts = (has.sum(0), (chosen & known).sum(0), (has & chosen).sum(0))
    return torch.stack(parts, 1).double().numpy()

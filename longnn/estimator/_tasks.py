"""The two estimators: classes, or numbers."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import Tags, assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from longnn.estimator._estimator import GraphEstimator
from longnn.estimator._inputs import is_graph, to_numpy
from longnn.metrics import Task


class LONGNNClassifier(ClassifierMixin, GraphEstimator):
    """Node classification with LON-GNN or any other model, scikit-learn style.

    >>> import torch
    >>> from sklearn.model_selection import cross_val_score
    >>> ring = torch.arange(20)
    >>> edges = torch.cat([torch.stack([ring, (ring + 1) % 20]),
    ...                    torch.stack([(ring + 1) % 20, ring])], dim=1)
    >>> y = (ring >= 10).long()
    >>> x = torch.nn.functional.one_hot(y, 2).float()
    >>> classifier = LONGNNClassifier(preset="fast", epochs=30).fit(x, edges, y)
    >>> classifier.predict().shape, classifier.predict([3, 17]).tolist()
    ((20,), [0, 1])
    >>> nodes = LONGNNClassifier(graph=(x, edges), preset="fast", epochs=30)
    >>> cross_val_score(nodes, ring.numpy(), y.numpy(), cv=2).tolist()
    [1.0, 1.0]
    """

    _tasks: ClassVar[tuple[Task, ...]] = ("classification", "multilabel")

    def _encode(self, y: Any, learn: bool, *, gaps: bool) -> tuple[Tensor, Task]:
        """Any labels as 0..C-1; with gaps, -1, NaN, None or an empty string mean unlabelled.

        Several columns of 0 and 1 are several labels; NaN means unlabelled there.
        """
        y = to_numpy(y)
        if not gaps:
            assert_all_finite(y, input_name="y")
            check_classification_targets(y)
        if y.ndim == 2 and y.shape[1] > 1:
            return self._encode_several(y, learn), "multilabel"
        y = column_or_1d(y, warn=not gaps)
        is_labelled = _known(y) if gaps else np.ones(len(y), dtype=bool)
        if learn:
            self.classes_ = np.unique(y[is_labelled])
        if learn and not gaps and len(self.classes_) == 1:
            raise ValueError(f"Expected at least two classes (got one class, {self.classes_[0]})")
        codes = np.full(len(y), -1, dtype=np.int64)
        if is_labelled.any():
            order = np.argsort(self.classes_)
            places = np.searchsorted(self.classes_, y[is_labelled], sorter=order)
            places = order[np.clip(places, 0, len(order) - 1)]
            codes[is_labelled] = np.where(self.classes_[places] == y[is_labelled], places, -1)
        return torch.from_numpy(codes), "classification"

    def _encode_several(self, y: np.ndarray, learn: bool) -> Tensor:
        wrong = ~((y == 0) | (y == 1) | (y != y))
        if wrong.any():
            raise ValueError(
                f"Expected one class per node, or several labels of 0 and 1 (got {y[wrong][0]} "
                f"in `y` of shape {y.shape})"
            )
        if learn:
            self.classes_ = np.arange(y.shape[1])
        return torch.from_numpy(y.astype(np.float32))

    def _learn_names(self, names: Sequence[str]) -> None:
        """Text, unless all of the names are whole numbers."""
        numbers = all(
            name.removeprefix("-").isdecimal() and str(int(name)) == name for name in names
        )
        self.classes_ = np.array([int(name) for name in names] if numbers else list(names))

    def __sklearn_tags__(self) -> Tags:
        """One class of several, or several labels of yes or no."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def predict_proba(self, X: Any = None) -> np.ndarray:
        """Probabilities of the classes, shape (nodes, classes), columns as in ``classes_``.

        Of several labels, the probability of each: rows do not add up to 1.

        Args:
            X: nodes, as in :meth:`fit`; or another graph, for all of its nodes; by default all
                nodes of the graph that was fitted on.
        """
        return self._outputs(X)

    def predict(self, X: Any = None) -> np.ndarray:
        """The class of each node, shape (nodes,); X as in :meth:`predict_proba`.

        The most probable one. Where one of two classes has over 80 % of the nodes, the rarer one
        from a probability on that was chosen on the validation nodes (``threshold``).
        Of several labels, 0 or 1 for each, shape (nodes, labels).
        """
        places = self._choose(self._outputs(X))
        return places if self.trained_.task == "multilabel" else self.classes_[places]

    def predict_set(self, X: Any = None, coverage: float | None = None) -> np.ndarray:
        """The plausible classes of each node, bool (nodes, classes), columns as in ``classes_``.

        Of several labels, which of no and yes is plausible, bool (nodes, labels, 2).

        Args:
            X: as in :meth:`predict_proba`.
            coverage: share of nodes whose class is to be in its set; by default the parameter.
        """
        forecast, places = self._forecast(X, coverage)
        assert forecast.plausible is not None
        return forecast.plausible.numpy()[places]

    def _choose(self, probabilities: np.ndarray) -> np.ndarray:
        """Numbers of the classes (nodes,), or 0 or 1 for several labels (nodes, labels)."""
        return self.trained_.choose(torch.from_numpy(probabilities)).numpy().astype(np.int64)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, *, mask: Any = None) -> float:
        """Accuracy: ``score(nodes, y)``, or of a graph ``score(data)`` and ``score(data, mask)``.

        With several labels a node counts where all of them are right, as in scikit-learn.

        Args:
            X: nodes, as in :meth:`fit`, or a graph with labels.
            y: labels of the nodes; or ``mask``.
            sample_weight: one weight >= 0 per node.
            mask: bool (nodes,): which nodes of a graph count.
        """
        if not is_graph(X):
            return float(super().score(X, y, sample_weight))
        truth, keep, weights = self._labelled(X, y if mask is None else mask, sample_weight)
        predicted = self._choose(self._outputs(X))[keep]
        return float(accuracy_score(truth, predicted, sample_weight=weights))


class LONGNNRegressor(RegressorMixin, GraphEstimator):
    """Node regression with LON-GNN or any other model, scikit-learn style."""

    _tasks: ClassVar[tuple[Task, ...]] = ("regression",)

    def _encode(self, y: Any, learn: bool, *, gaps: bool) -> tuple[Tensor, Task]:
        """Numbers, one or several per node; with gaps, NaN means unlabelled."""
        y = to_numpy(y)
        if y.ndim != 2 or y.shape[1] == 1:
            y = column_or_1d(y, warn=not gaps)
        y = y.astype(np.float32)
        if not gaps:
            assert_all_finite(y, input_name="y")
        return torch.from_numpy(y), "regression"

    def predict(self, X: Any = None) -> np.ndarray:
        """The predicted value of each node, shape (nodes,), or (nodes, targets) of several.

        Args:
            X: nodes, as in :meth:`fit`; or another graph, for all of its nodes; by default all
                nodes of the graph that was fitted on.
        """
        return self._outputs(X)

    def predict_interval(self, X: Any = None, coverage: float | None = None) -> np.ndarray:
        """Where the value of each node lies, (nodes, 2) from low to high; of several targets
        (nodes, targets, 2).

        Args:
            X: as in :meth:`predict`.
            coverage: share of nodes whose value is to lie there; by default the parameter.
        """
        forecast, places = self._forecast(X, coverage)
        assert forecast.low is not None
        assert forecast.high is not None
        return torch.stack([forecast.low, forecast.high], -1).numpy()[places]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, *, mask: Any = None) -> float:
        """R2: ``score(nodes, y)``, or of a graph ``score(data)`` and ``score(data, mask)``.

        Args:
            X: nodes, as in :meth:`fit`, or a graph with labels.
            y: labels of the nodes; or ``mask``.
            sample_weight: one weight >= 0 per node.
            mask: bool (nodes,): which nodes of a graph count.
        """
        if not is_graph(X):
            return float(super().score(X, y, sample_weight))
        truth, keep, weights = self._labelled(X, y if mask is None else mask, sample_weight)
        if (np.ptp(truth, axis=0) == 0).any():
            raise ValueError("Expected labels that differ to score on (got one value)")
        return float(r2_score(truth, self._outputs(X)[keep], sample_weight=weights))


def _known(y: np.ndarray) -> np.ndarray:
    """Which labels are there, bool (nodes,)."""
    if y.dtype.kind == "f":
        return np.isfinite(y) & (y != -1)
    if y.dtype.kind in "iu":
        return np.asarray(y != -1)
    return np.array([v is not None and v == v and v != "" for v in y], dtype=bool)

"""scikit-learn's own checks of estimators, as far as they apply to samples that are nodes.

Most of these checks fit on matrices of numbers. So they run on an adapter that builds a
nearest-neighbour graph of the matrix it is given, and is the plain estimator in all else.
"""

import numpy as np
import pytest
from sklearn.neighbors import kneighbors_graph
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import validate_data

from longnn import LONGNNClassifier, LONGNNRegressor

NEIGHBOURS = 5
#: In float64: that a check compares to seven digits is not to depend on the order of sums.
QUICK = {
    "epochs": 3,
    "degree": 2,
    "hidden_channels": 8,
    "device": "cpu",
    "precision": "float64",
}

#: Checks that the adapter cannot pass, and why.
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": (
        "rows that are left out or repeated change the neighbours of the others; with one graph "
        "the equivalence holds, see test_weights_count_as_repetition"
    ),
    "check_methods_subset_invariance": (
        "a node is predicted from its neighbours, and a subset of rows has another graph"
    ),
}


def neighbours(x):
    """The edges, both ways, between rows that are near each other; none for a single row."""
    count = min(NEIGHBOURS, len(x) - 1)
    if count < 1:
        return np.zeros((2, 0), dtype=np.int64)
    found = kneighbors_graph(x, count)
    return np.stack((found + found.T).nonzero())


class OnRows:
    """Fits on a matrix, through the graph of its nearest neighbours."""

    def fit(self, X, y, sample_weight=None):
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=self._numbers)
        self.graph = (X, neighbours(X))
        try:
            return super().fit(np.arange(len(X)), y, sample_weight=sample_weight)
        finally:
            self.graph = None

    def _rows(self, X):
        self._check_fitted()
        X = validate_data(self, X, reset=False)
        return X, neighbours(X)

    def predict(self, X):
        return super().predict(self._rows(X))

    def score(self, X, y, sample_weight=None):
        return super().score(np.asarray(X), y, sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = False
        tags.input_tags.two_d_array = True
        tags.input_tags.string = False
        for kind in (tags.classifier_tags, tags.regressor_tags):
            if kind is not None:
                kind.poor_score = True  # after three epochs
        return tags


class RowClassifier(OnRows, LONGNNClassifier):
    _numbers = False

    def predict_proba(self, X):
        return super().predict_proba(self._rows(X))


class RowRegressor(OnRows, LONGNNRegressor):
    _numbers = True


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [RowClassifier(**QUICK), RowRegressor(**QUICK)],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
    xfail_strict=True,
)
def test_the_adapter(estimator, check):
    check(estimator)


def test_tags():
    """Samples are nodes: one column of positions or ids, and no numbers to reckon with."""
    for cls in (LONGNNClassifier, LONGNNRegressor):
        tags = cls().__sklearn_tags__()
        assert tags.requires_fit
        assert tags.target_tags.required
        assert tags.input_tags.one_d_array
        assert tags.input_tags.string
        assert not tags.input_tags.two_d_array
        assert not tags.non_deterministic
    assert LONGNNClassifier().__sklearn_tags__().classifier_tags.multi_label

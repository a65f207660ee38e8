r"""A scikit-learn face: fit, predict, score, and what the filter became.

The samples of an estimator are the nodes of one graph. There are three ways to give them:

- ``LONGNNClassifier(graph=g).fit(nodes, y)``: ``nodes`` are positions or ids of nodes of ``g`` and
  ``y`` their labels. No other label is used, even where ``g`` has some. So ``cross_val_score``,
  ``GridSearchCV``, ``Pipeline`` and the rest of scikit-learn work: they choose among nodes.
- ``fit(data)``: a PyG ``Data`` or a :class:`~longnn.data.NodeDataset` with labels, perhaps masks.
- ``fit(X, edge_index, y)``: features, edges and labels of all nodes.

All of them are transductive: nodes without a label, and nodes that were not given, still take part
with their features and edges, as neighbours of the others. ``predict()`` answers for all nodes of
the graph, ``predict(nodes)`` for some, and ``predict(data)`` for those of another graph with the
same features.

The classes are loaded when first used: they are scikit-learn's, which loads all of ``scipy.stats``.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longnn.estimator._tasks import LONGNNClassifier, LONGNNRegressor

__all__ = [
    "LONGNNClassifier",
    "LONGNNRegressor",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from longnn.estimator import _tasks

    return getattr(_tasks, name)

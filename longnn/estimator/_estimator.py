"""What classifier and regressor share: fitting and predicting on the nodes of a graph, and what a
fitted estimator has to show: its filter, figures, report and file."""

import dataclasses
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import Tags
from torch import Tensor

from longnn import explain
from longnn._base.schema import Node
from longnn.config import Config
from longnn.data import DataError, NodeDataset, Split, from_data, make_split
from longnn.data._targets import without_labels
from longnn.estimator._inputs import (
    GraphLike,
    Parameters,
    check_mask,
    check_weights,
    find_nodes,
    is_edge_index,
    is_graph,
    per_node,
    to_arrays,
    without_masks,
)
from longnn.estimator._presentation import (
    End,
    Progress,
    draw_filter,
    draw_training,
    new_axes,
    write_page,
)
from longnn.metrics import Task
from longnn.nn import Model
from longnn.training import (
    FIELDS,
    Fitted,
    Job,
    Problem,
    Trained,
    Watcher,
    complete,
    mean_prediction,
)
from longnn.training._intervals import Forecast

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WAYS = (
    "LONGNNClassifier(graph=g).fit(nodes, y), fit(data) with a PyG Data or a NodeDataset, or "
    "fit(X, edge_index, y)"
)


class GraphEstimator(Parameters):
    """What classifier and regressor share; see :class:`Parameters` for the parameters.

    Args:
        trained_: the models, of all repeats.
        classes_: classes in the order of the outputs, or the numbers of several labels.
        n_features_in_, feature_names_in_: features of the graph, and their names where known.
        a_, b_: the first filter's basis; None where it has none.
        history_: numbers of each epoch of the first repeat, by name.
        n_epochs_, n_iter_, best_epoch_: epochs of the first repeat, and which it kept.
        train_mask_, val_mask_: nodes that the first repeat learned from and was validated on.
    """

    _tasks: ClassVar[tuple[Task, ...]]
    trained_: Trained
    classes_: np.ndarray
    history_: dict[str, np.ndarray]
    n_epochs_: int
    n_iter_: int
    best_epoch_: int
    train_mask_: np.ndarray
    val_mask_: np.ndarray
    _fitted_on: NodeDataset
    _ends: list[End]
    _predicted: np.ndarray

    def fit(
        self,
        X: Any,
        y: Any = None,
        labels: Any = None,
        *,
        edge_index: Any = None,
        train_mask: Any = None,
        val_mask: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Train on labelled nodes of a graph.

        ``fit(nodes, y)`` uses the estimator's ``graph``, and no label of it but ``y``. Nodes that
        are not given take part as neighbours, with their features and edges.

        ``fit(data, train_mask, val_mask)`` takes the graph with its labels: a PyG ``Data``, a
        :class:`~longnn.data.NodeDataset` or a tuple (X, edge_index, y). ``fit(X, edge_index, y)``
        takes the same three one by one. Nodes with y = -1 (NaN for regression) are unlabelled
        there. An edge that is listed one way only is made two-way, with a warning, unless the
        parameter ``directed`` is set.

        Args:
            X: nodes, of shape (n,) or (n, 1), by position or by id: whole numbers are positions,
                unless the ids of the graph are numbers. Or a graph, or features (nodes, features).
            y: labels of the nodes, (n,) or (n, outputs); or ``train_mask``; or ``edge_index``.
            labels: ``val_mask`` after a graph, ``y`` after features and edges.
            edge_index: the edges (2, arcs), where X are features.
            train_mask, val_mask: bool, one entry per sample: for all nodes of a graph, or for the
                nodes given. By default the data's own masks; where there is no validation mask, a
                fifth of the training nodes, stratified.
            sample_weight: one weight >= 0 per sample, for losses, votes, validation and intervals;
                by default those of the graph. A node of weight zero is as if it had not been given.

        Raises:
            ValueError: for what cannot be fitted on, and where training diverges at once. Where it
                diverges later, the best epoch before is kept, with a ConvergenceWarning.
        """
        table = self._table(self.random_state)
        Config.from_dict(table)  # what is wrong with it is said before anything is done
        if edge_index is not None:
            X, y = (X, edge_index, y), None
        elif labels is not None and is_edge_index(y):
            X, y, labels = (X, y, labels), None, None
        if is_graph(X):
            if y is not None or labels is not None:
                train_mask = train_mask if y is None else y
                val_mask = val_mask if labels is None else labels
            dataset = self._as_dataset(X, learn=True)
            nodes = np.arange(dataset.num_nodes)
        elif self.graph is not None:
            if labels is not None:
                raise ValueError(
                    "Expected fit(nodes, y) (got a third argument); weights and masks by name"
                )
            dataset, nodes = self._label(X, y)
        else:
            raise ValueError(f"Expected a graph (got nodes or features alone); use {WAYS}")
        weights = check_weights(sample_weight, len(nodes))
        if weights is not None or len(np.unique(nodes)) < len(nodes):
            own = dataset.data.get("node_weight", torch.ones(dataset.num_nodes))[nodes].numpy()
            weights = own if weights is None else weights
            dataset = _weigh(dataset, nodes, weights)
        masks = {
            name: per_node(check_mask(name, mask, len(nodes)), nodes, dataset.num_nodes)
            for name, mask in (("train_mask", train_mask), ("val_mask", val_mask))
            if mask is not None
        }
        self._train(complete(table, dataset), dataset, masks)
        return self

    def _train(
        self,
        config: Config,
        dataset: NodeDataset,
        masks: dict[str, Tensor],
    ) -> None:
        configs = [config.replace(seed=config.seed + i) for i in range(config.repeat)]
        splits = [self._split(dataset, c.seed, masks) for c in configs]
        job = Job(dataset, configs, splits)
        progress = Progress(config.settings.epochs) if self.verbose else None
        deadline = time.perf_counter() + config.time_limit if config.time_limit else None
        fitted = job.run(watcher=Watcher(progress, deadline, aside=True))
        if progress is not None:
            progress.finish(fitted[0].result)
        _check_convergence(fitted)
        self._restore(Trained.collect(dataset, job.scaling_of(0), fitted))
        self._remember(dataset, fitted)
        # Predicting for nodes is then a look-up.
        self._predicted = mean_prediction([one.predicted for one in fitted]).numpy()

    def _remember(self, dataset: NodeDataset, fitted: Sequence[Fitted]) -> None:
        """What training leaves beside the models."""
        first = fitted[0]
        self.history_ = {f: first.result.history[f].contiguous().numpy() for f in FIELDS}
        self.n_epochs_, self.best_epoch_ = first.result.epochs, first.result.best_epoch
        self.n_iter_ = self.n_epochs_
        self.train_mask_, self.val_mask_ = first.split.train.numpy(), first.split.val.numpy()
        self._fitted_on = dataset
        # Without the models, which ``trained_`` has: a report puts them together again.
        self._ends = [(each.split, each.result, each.start, each.members) for each in fitted]

    def _class_names(self) -> tuple[str, ...]:
        return tuple(str(c) for c in getattr(self, "classes_", ()))

    def _as_dataset(self, graph: GraphLike, *, learn: bool = False) -> NodeDataset:
        """A graph with its own labels; in fitting (``learn``) they say what the classes are."""
        if isinstance(graph, NodeDataset):
            if graph.task not in self._tasks:
                raise ValueError(f"Expected data for {self._tasks[0]} (got data for {graph.task})")
            if learn:
                self._learn_names(graph.classes)
            return graph
        arrays = to_arrays(graph)
        data, task = arrays.data, self._tasks[0]
        if arrays.labels is not None:
            data.y, task = self._encode(arrays.labels, learn, gaps=True)
        elif learn and not isinstance(graph, tuple | list):
            raise ValueError("Expected labels `y` to fit on (got none)")
        elif learn:
            what = "None" if len(graph) == 3 else "2 entries"
            raise ValueError(f"Expected labels `y` to fit on: (X, edge_index, y) (got {what})")
        dataset = from_data(
            data,
            task=task,
            classes=self._class_names() or None,
            feature_names=arrays.feature_names,
            directed=self._keeps_arcs(learn),
        )
        if learn:
            _warn_one_way(dataset)
        return dataset

    def _own_graph(self, *, learn: bool) -> NodeDataset:
        """The parameter ``graph`` without its labels and masks."""
        graph = self.graph
        if isinstance(graph, NodeDataset):
            return graph
        arrays = to_arrays(graph)
        return from_data(
            without_masks(arrays.data),
            feature_names=arrays.feature_names,
            directed=self._keeps_arcs(learn),
        )

    def _keeps_arcs(self, learn: bool) -> Any:
        """Whether arcs are kept; a new graph is read as that of the training was."""
        if not learn:
            return self.trained_.directed
        return False if self.directed is None else self.directed

    def _label(self, nodes: Any, y: Any) -> tuple[NodeDataset, np.ndarray]:
        """The estimator's graph with the labels of some nodes, and where these are."""
        graph = self._own_graph(learn=True)
        if graph is not self.graph:  # a loader has said so in its notes
            _warn_one_way(graph)
        places = find_nodes(graph.ids, nodes)
        if y is None:
            raise ValueError(
                f"Expected labels: fit(nodes, y) (got nodes alone; {type(self).__name__} "
                "requires y to be passed, but the target y is None)"
            )
        codes, task = self._labels_of(places, y, learn=True)
        if len(places) < 2:
            raise ValueError(f"Expected at least two nodes to fit on (got {len(places)} sample(s))")
        missing = -1 if codes.dtype == torch.int64 else torch.nan
        full = torch.full((graph.num_nodes, *codes.shape[1:]), missing, dtype=codes.dtype)
        full[places] = codes
        double = (full[places] != codes).reshape(len(codes), -1).any(1)
        if bool(double.any()):
            node = graph.ids[int(places[int(double.nonzero()[0])])]
            raise ValueError(f"Expected one label per node (got two for node {node!r})")
        data = without_masks(graph.data)
        data.y = full
        names = self._class_names()
        return dataclasses.replace(
            graph, data=data, task=task, classes=names, targets=(), default_split="own"
        ), places

    def _split(self, dataset: NodeDataset, seed: int, masks: dict[str, Tensor]) -> Split:
        """The masks given, else the data's own, else all labelled nodes."""
        data = dataset.data
        if masks or "train_mask" not in data:
            data = without_masks(data)
            train = masks.get("train_mask", dataset.labelled)
            if "val_mask" in masks:
                data.val_mask = masks["val_mask"] & dataset.labelled
                train = train & ~data.val_mask if "train_mask" not in masks else train
            data.train_mask = train & dataset.labelled
        return make_split(dataclasses.replace(dataset, data=data), "own", seed)

    def _outputs(self, X: Any) -> np.ndarray:
        """Probabilities or values of nodes, or of all nodes of a graph: the mean over repeats."""
        dataset, places = self._asked(X)
        if hasattr(self, "_predicted") and dataset is self._fitted_on:
            return self._predicted[places]
        return self.trained_.predict(self._problem(dataset)).numpy()[places]

    def _forecast(self, X: Any, coverage: float | None) -> tuple[Forecast, Any]:
        """What is said of all nodes of a graph, and which of them are asked about."""
        dataset, places = self._asked(X)
        coverage = self.trained_.config.coverage if coverage is None else coverage
        self.trained_.check_coverage(coverage)
        opinions = self.trained_.opinions(self._problem(dataset))
        return self.trained_.forecast(opinions, coverage, dataset.degrees), places

    def _asked(self, X: Any) -> tuple[NodeDataset, Any]:
        """A graph, and where the nodes that are asked about are in it."""
        self._check_fitted()
        if X is not None and (is_graph(X) or np.ndim(X) == 0):
            return self._as_dataset(X), slice(None)
        dataset = self._fitted_graph("predict on")
        return dataset, slice(None) if X is None else find_nodes(dataset.ids, X)

    def _problem(self, dataset: NodeDataset) -> Problem:
        """A graph as the models want it; none of its labels is used, they may be to score on."""
        return self.trained_.problem(dataset, known="same")

    def _fitted_graph(self, purpose: str) -> NodeDataset:
        """The graph that was fitted on; of a loaded estimator the parameter ``graph``."""
        if hasattr(self, "_fitted_on"):
            return self._fitted_on
        if self.graph is not None:
            return self._own_graph(learn=False)
        raise ValueError(
            f"Expected the graph to {purpose}: a loaded estimator has none; pass it, or set it by "
            "set_params(graph=...)"
        )

    def explain(
        self,
        nodes: Any = None,
        graph: GraphLike | None = None,
        *,
        output: Any = None,
        against: Any = None,
        features: bool = True,
    ) -> Any:
        """Why nodes are predicted so: contributions that add up to their scores.

        Args:
            nodes: as in :meth:`fit`; by default all predictions are explained at once.
            graph: another graph; by default the one that was fitted on.
            output: the class, label or target to explain; by default the predicted class.
            against: another one, whose score is subtracted.
            features: split by feature, too.

        Returns:
            a :class:`~longnn.explain.Explanation` of the nodes, or without nodes a
            :class:`~longnn.explain.Overview`.

        Raises:
            ValueError: for nodes or names that are not there.
        """
        self._check_fitted()
        dataset = self._fitted_graph("explain on") if graph is None else self._as_dataset(graph)
        options: dict[str, Any] = {"features": features, "known": "same"}
        if nodes is None:
            if output is not None or against is not None:
                raise ValueError("Expected nodes where `output` or `against` is given (got none)")
            return explain.explain_model(self.trained_, dataset, **options)
        places = find_nodes(dataset.ids, np.atleast_1d(nodes))
        options |= {"output": output, "against": against}
        return explain.explain_nodes(self.trained_, dataset, places, **options)

    def _labelled(
        self, graph: GraphLike, mask: Any, sample_weight: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The labels to score on, of which nodes of a graph they are, and their weights."""
        self._check_fitted()
        dataset = self._as_dataset(graph)
        truth = dataset.data.y.numpy()
        keep = dataset.labelled.numpy() & np.isfinite(truth.reshape(len(truth), -1)).all(1)
        weights = check_weights(sample_weight, len(keep))
        if sample_weight is None and dataset.node_weight is not None:
            weights = dataset.node_weight.numpy()
        if mask is not None:
            keep = keep & check_mask("mask", mask, len(keep))
        if not keep.any():
            raise ValueError("Expected labelled nodes to score on (got none)")
        return truth[keep], keep, None if weights is None else weights[keep]

    def _restore(self, trained: Trained) -> None:
        """Set what can be read off the models."""
        self.trained_ = trained
        self.n_features_in_ = trained.features
        if trained.feature_names:
            self.feature_names_in_ = np.asarray(trained.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        filters = self.model_.filters()
        basis = filters[0].basis_parameters() if filters else {}
        self.a_ = float(basis["a"].detach()) if "a" in basis else None
        self.b_ = float(basis["b"].detach()) if "b" in basis else None

    @property
    def model_(self) -> Model:
        """The trained model; the first where there are several repeats."""
        return self.trained_.models[0]

    @classmethod
    def from_trained(cls, trained: Trained) -> Self:
        """A fitted estimator of models trained elsewhere; pass ``predict`` the graph.

        Raises:
            ValueError: where they were trained for the other task.
        """
        if trained.task not in cls._tasks:
            raise ValueError(f"Expected models for {cls._tasks[0]} (got some for {trained.task})")
        estimator = cls.from_config(trained.config)
        estimator._learn_names(trained.classes)
        estimator._restore(trained)
        return estimator

    def _check_fitted(self) -> None:
        if not hasattr(self, "trained_"):
            raise NotFittedError(f"Expected a fitted {type(self).__name__}: call fit first")

    def _encode(self, y: Any, learn: bool, *, gaps: bool) -> tuple[Tensor, Task]:
        """Labels as the loop wants them, and what kind they are of.

        Args:
            y: as the user has them.
            learn: whether they say what the classes are.
            gaps: whether some nodes may be unlabelled.
        """
        raise NotImplementedError

    def _labels_of(self, places: np.ndarray, y: Any, *, learn: bool) -> tuple[Tensor, Task]:
        """As :meth:`_encode`, of as many nodes."""
        codes, task = self._encode(y, learn, gaps=False)
        if len(codes) != len(places):
            raise ValueError(f"Expected one label per node, {len(places)} (got {len(codes)})")
        return codes, task

    def _learn_names(self, names: Sequence[str]) -> None:
        """The classes of a dataset that has names for them."""

    def filter_response(self, eigenvalues: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The learned filter: eigenvalues of the normalised Laplacian and g of each channel.

        Returns:
            eigenvalues (points,) in [0, 2], and responses (channels, points).
        """
        self._check_fitted()
        filters = self.model_.filters()
        if not filters:
            model = self.trained_.config.model
            raise ValueError(f"Expected a model with a polynomial filter (got {model!r})")
        grid = np.linspace(0, 2, 101) if eigenvalues is None else np.asarray(eigenvalues, float)
        with torch.no_grad():
            return grid, filters[0].response(torch.from_numpy(grid)).cpu().numpy()

    def plot_filter(self, ax: Any = None) -> "Axes":
        """Draw the learned filter: its response over the eigenvalues of the Laplacian.

        Args:
            ax: axes of matplotlib to draw on; by default those of a new figure.

        Returns:
            the axes.
        """
        grid, responses = self.filter_response()
        config = self.trained_.config
        title = f"Learned filter of {config.model}, degree {self.model_.filters()[0].degree}"
        cover = config.direction == "cover"
        return draw_filter(new_axes(ax), grid, responses, title, cover=cover)

    def plot_training(self, ax: Any = None) -> "Axes":
        """Draw training and validation loss over the epochs; arguments as in :meth:`plot_filter`.

        Raises:
            ValueError: where the estimator was not fitted here, and has no history.
        """
        self._check_fitted()
        if not hasattr(self, "history_"):
            raise ValueError("Expected an estimator with a history (this one was not fitted here)")
        squared = self.trained_.task == "regression"
        loss = "squared error, labels of deviation 1" if squared else "cross entropy"
        title = f"Training of {self.trained_.config.model}"
        return draw_training(new_axes(ax), self.history_, self.best_epoch_, loss, title)

    def report(self, path: str | Path, nodes: Any = None, y: Any = None) -> Path:
        """Write the page that ``longnn train`` writes, as one HTML file that needs no other.

        Args:
            path: the file, e.g. ``"report.html"``.
            nodes, y: nodes that were not fitted on and their labels: the page then has their
                scores as test scores.

        Raises:
            ValueError: where the estimator was not fitted here, or on nodes it was fitted on.
        """
        self._check_fitted()
        if not hasattr(self, "_ends"):
            raise ValueError(
                "Expected an estimator that was fitted here (this one was loaded); the folder of "
                "a run holds its report"
            )
        dataset, ends = self._fitted_on, self._ends
        if nodes is not None:
            dataset, test = self._with_test(dataset, nodes, y)
            ends = [
                (dataclasses.replace(split.without_test(), test=test), result, start, members)
                for split, result, start, members in ends
            ]
        command = f"{type(self).__name__}.fit(...)"
        return write_page(Path(path), self.trained_, dataset, ends, command=command)

    def _with_test(self, dataset: NodeDataset, nodes: Any, y: Any) -> tuple[NodeDataset, Tensor]:
        """The dataset with labels of further nodes, and a mask of these."""
        places = find_nodes(dataset.ids, nodes)
        codes, _ = self._labels_of(places, y, learn=False)
        test = per_node(np.ones(len(places), dtype=bool), places, dataset.num_nodes)
        used = test & torch.from_numpy(self.train_mask_ | self.val_mask_)
        if bool(used.any()):
            node = dataset.ids[int(used.nonzero()[0])]
            raise ValueError(f"Expected nodes that were not fitted on (got {node!r})")
        data = without_masks(dataset.data)
        data.y = dataset.data.y.clone()
        data.y[places] = codes
        return dataclasses.replace(dataset, data=data), test

    def save(self, path: str | Path) -> None:
        """Write parameters and weights, without the graph, to one safetensors file; no pickle."""
        self._check_fitted()
        parameters = self.get_params(deep=False)
        del parameters["graph"]
        if self.random_state is not None:  # a generator is no plain data; its draw is
            parameters["random_state"] = self.trained_.config.seed
        plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in parameters.items()}
        extra = {
            "class": type(self).__name__,
            "parameters": plain,
            "classes": np.asarray(getattr(self, "classes_", [])).tolist(),
            "history": {k: v.tolist() for k, v in getattr(self, "history_", {}).items()},
            "epochs": [getattr(self, "n_epochs_", None), getattr(self, "best_epoch_", None)],
        }
        self.trained_.save(Path(path), extra=extra)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an estimator written by :meth:`save`, or the weights of a run.

        Pass ``predict`` the graph, or set it by ``set_params(graph=...)``: a loaded estimator has
        none.

        Raises:
            FileNotFoundError: where there is none.
            DataError: where it is damaged, or holds something else; names the file.
        """
        if not Path(path).exists():
            raise FileNotFoundError(f"Expected a saved estimator (found no file {path})")
        trained, extra = Trained.load(Path(path))
        if not extra.mapping():
            return cls.from_trained(trained)
        try:
            return cls._read(trained, extra)
        except DataError:
            raise
        except ValueError as error:
            raise DataError(str(error)) from error

    @classmethod
    def _read(cls, trained: Trained, extra: Node) -> Self:
        """An estimator of what :meth:`save` wrote beside the models."""
        name = extra["class"].text()
        if name != cls.__name__ or trained.task not in cls._tasks:
            raise DataError(f"Expected a saved {cls.__name__} (got a {name})")
        parameters, names = extra["parameters"].mapping(), cls().get_params()
        unknown = [key for key in parameters if key not in names or key == "graph"]
        if unknown:
            extra["parameters"].fail(f"those of {cls.__name__}, without {unknown[0]!r}")
        estimator = cls(**parameters)
        classes = extra["classes"].scalars()
        if len(classes) != len(trained.classes):
            extra["classes"].fail(f"a list of {len(trained.classes)} classes")
        if classes:
            estimator.classes_ = np.asarray(classes)
        estimator._restore(trained)
        history = extra["history"]
        estimator.history_ = {
            key: history[key].array(None).astype(np.float32) for key in history.mapping()
        }
        if history.mapping() and not {"train_loss", "val_loss"} <= history.mapping().keys():
            history.fail("losses by epoch")
        if len({len(values) for values in estimator.history_.values()}) > 1:
            history.fail("one value of each kind per epoch")
        epochs = [node.integer() if node.given else None for node in extra["epochs"]]
        if len(epochs) != 2 or (history.mapping() and None in epochs):
            extra["epochs"].fail("two numbers")
        estimator.n_epochs_, estimator.best_epoch_ = epochs  # type: ignore[assignment]
        estimator.n_iter_ = estimator.n_epochs_
        return estimator

    def __sklearn_tags__(self) -> Tags:
        """Samples are nodes, by position or id, and not rows of numbers."""
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.target_tags.required = True
        return tags


def _check_convergence(fitted: Sequence[Fitted]) -> None:
    """Raise where nothing was learned, and warn where training diverged after something was."""
    for each in fitted:
        each.check()
        if each.result.stopped == "diverged":
            warnings.warn(
                f"training diverged in epoch {each.result.epochs}, and epoch "
                f"{each.result.best_epoch} was kept; lower the learning rates",
                ConvergenceWarning,
                stacklevel=4,  # the call of fit
            )


def _warn_one_way(dataset: NodeDataset) -> None:
    if dataset.one_way and not dataset.directed:
        warnings.warn(
            f"{dataset.one_way} edges were listed one way; each was made two-way; "
            "directed=True keeps them as arcs",
            UserWarning,
            stacklevel=4,  # the call of fit
        )


def _weigh(
    dataset: NodeDataset,
    nodes: np.ndarray,  # (samples,)
    weights: np.ndarray,  # (samples,)
) -> NodeDataset:
    """The dataset with these weights: a node that is given twice has the sum of its weights.

    Nodes of weight zero lose their label, so that no validation node is drawn from them.
    """
    total = np.zeros(dataset.num_nodes)
    np.add.at(total, nodes, weights)
    gone = torch.from_numpy(total == 0)
    data = without_masks(dataset.data)
    data.update({k: v & ~_columns(gone, v) for k, v in dataset.data.items() if k.endswith("_mask")})
    data.y, data.node_weight = without_labels(dataset.data.y, gone), torch.from_numpy(total).float()
    return dataclasses.replace(dataset, data=data)


def _columns(mask: Tensor, like: Tensor) -> Tensor:
    return mask if like.dim() == 1 else mask[:, None]

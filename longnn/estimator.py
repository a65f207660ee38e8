r"""A scikit-learn-like face: fit, predict, score, and what the filter became.

``fit`` takes a PyG ``Data``, a :class:`~longnn.data.NodeDataset` or a tuple ``(X, edge_index, y)``:
the nodes of one graph are its samples. So ``predict()`` answers for all nodes of the graph it was
fitted on, and ``predict(data)`` for those of another one with the same features.
"""

import dataclasses
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from torch import Tensor
from torch_geometric.data import Data

from longnn.config import Config
from longnn.data import NodeDataset, Split, from_data, make_split
from longnn.recipes import load_recipe
from longnn.training import FIELDS, Job, Problem, Task, Trained, regression_scores

#: A PyG Data, a NodeDataset, or a tuple (X, edge_index, y).
GraphLike = Any
MASKS = ("train_mask", "val_mask", "test_mask")


class _GraphEstimator(BaseEstimator):
    """What classifier and regressor share.

    Every parameter defaults to None, which means: as in :class:`~longnn.config.Config`, the source
    of defaults that the command line has too. ``longnn models --settings`` explains each.

    Args:
        model: name of the model, see ``longnn models``.
        hidden_channels: hidden units.
        degree: of the filter.
        dropout, input_dropout, filter_dropout: inside the transform, on the features, and just
            before the filter.
        epochs, patience, monitor: when to stop.
        lr_transform, lr_coefficients, lr_factors, lr_basis: learning rates.
        wd_transform, wd_coefficients, wd_factors, wd_basis: weight decays.
        penalty, degree_penalty: weights of the penalties on the filter.
        scale: of the features: ``"auto"``, ``"none"``, ``"row"`` or ``"standard"``.
        seed: of weights, dropout and the validation split.
        repeat: models to train, with seeds seed, seed + 1, ...; predictions are their mean.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        precision: ``"float32"`` or ``"float64"``.
        model_options: further options of the model, e.g. ``{"placement": "hidden"}``.
    """

    _task: ClassVar[Task]
    classes_: np.ndarray

    def __init__(
        self,
        *,
        model: str | None = None,
        hidden_channels: int | None = None,
        degree: int | None = None,
        dropout: float | None = None,
        input_dropout: float | None = None,
        filter_dropout: float | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        monitor: str | None = None,
        lr_transform: float | None = None,
        lr_coefficients: float | None = None,
        lr_factors: float | None = None,
        lr_basis: float | None = None,
        wd_transform: float | None = None,
        wd_coefficients: float | None = None,
        wd_factors: float | None = None,
        wd_basis: float | None = None,
        penalty: float | None = None,
        degree_penalty: float | None = None,
        scale: str | None = None,
        seed: int | None = None,
        repeat: int | None = None,
        device: str | None = None,
        precision: str | None = None,
        model_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.hidden_channels = hidden_channels
        self.degree = degree
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.filter_dropout = filter_dropout
        self.epochs = epochs
        self.patience = patience
        self.monitor = monitor
        self.lr_transform = lr_transform
        self.lr_coefficients = lr_coefficients
        self.lr_factors = lr_factors
        self.lr_basis = lr_basis
        self.wd_transform = wd_transform
        self.wd_coefficients = wd_coefficients
        self.wd_factors = wd_factors
        self.wd_basis = wd_basis
        self.penalty = penalty
        self.degree_penalty = degree_penalty
        self.scale = scale
        self.seed = seed
        self.repeat = repeat
        self.device = device
        self.precision = precision
        self.model_options = model_options

    @classmethod
    def from_recipe(cls, dataset: str, *, model: str = "lon", **parameters: Any) -> Self:
        """An unfitted estimator with the parameters that were tuned for a named dataset.

        Args:
            dataset: its name; see :func:`longnn.recipes.known_recipes`.
            model: the model to take the recipe of.
            parameters: override the recipe, as in the constructor.

        >>> LONGNNClassifier.from_recipe("csbm", seed=3).seed
        3
        """
        recipe = {k: v for k, v in load_recipe(model, dataset).items() if k != "split"}
        options = parameters.pop("model_options", None) or {}
        return cls._from_table({**recipe, **options, **parameters})

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """An unfitted estimator that trains with a configuration; its split is not used."""
        return cls._from_table({k: v for k, v in config.to_dict().items() if k != "split"})

    @classmethod
    def _from_table(cls, table: Mapping[str, Any]) -> Self:
        """From the flat table of a configuration."""
        own = set(cls().get_params()) - {"model_options"}
        options = {k: v for k, v in table.items() if k not in own}
        given = {k: v for k, v in table.items() if k in own}
        return cls(**given, model_options=options or None)

    def config(self) -> Config:
        """The parameters as a configuration: what is None is filled in from the defaults."""
        given = {k: v for k, v in self.get_params().items() if v is not None}
        options = given.pop("model_options", {})
        return Config.from_dict({**given, **options})

    def fit(self, data: GraphLike, train_mask: Any = None, val_mask: Any = None) -> Self:
        """Train on the labelled nodes of a graph.

        Args:
            data: a PyG ``Data`` with x, edge_index and y, a :class:`~longnn.data.NodeDataset`, or a
                tuple (X, edge_index, y). Nodes with y = -1 (NaN for regression) are unlabelled. An
                edge that is listed one way only is made two-way, with a warning.
            train_mask, val_mask: bool (nodes,). By default the data's own masks; where there is
                no validation mask, a fifth of the training nodes, stratified.
        """
        config = self.config()
        dataset = self._dataset(data, learn_classes=True)
        if dataset.one_way and dataset is not data:  # a loader has said so in its notes
            warnings.warn(
                f"{dataset.one_way} edges were listed one way; each was made two-way, since "
                "filters need an undirected graph",
                UserWarning,
                stacklevel=2,
            )
        configs = [config.replace(seed=config.seed + i) for i in range(config.repeat)]
        splits = [self._split(dataset, c.seed, train_mask, val_mask) for c in configs]
        job = Job(dataset, configs, splits)
        fitted = job.run()
        self._restore(Trained.collect(dataset, job.scalings[0], fitted), job.problems[0])
        first = fitted[0]
        self.history_ = {f: first.result.history[f].contiguous().numpy() for f in FIELDS}
        self.n_epochs_, self.best_epoch_ = first.result.epochs, first.result.best_epoch
        self.train_mask_, self.val_mask_ = first.split.train.numpy(), first.split.val.numpy()
        return self

    @classmethod
    def from_trained(cls, trained: Trained) -> Self:
        """A fitted estimator of models trained elsewhere; pass ``predict`` the graph.

        Raises:
            ValueError: where they were trained for the other task.
        """
        if trained.task != cls._task:
            raise ValueError(f"Expected models for {cls._task} (got some for {trained.task})")
        estimator = cls.from_config(trained.config)
        if trained.classes:
            estimator.classes_ = np.asarray(trained.classes)
        estimator._restore(trained)
        return estimator

    def _restore(self, trained: Trained, problem: Problem | None = None) -> None:
        """Set what fitting found: the models and what can be read off them."""
        self.trained_, self._problem = trained, problem
        self.n_features_in_ = trained.features
        self.model_ = trained.models[0]
        filters = self.model_.filters()
        basis = filters[0].basis_parameters() if filters else {}
        self.a_ = float(basis["a"].detach()) if "a" in basis else None
        self.b_ = float(basis["b"].detach()) if "b" in basis else None

    def _encode(self, y: np.ndarray, learn_classes: bool) -> Tensor:
        """Labels as the loop wants them."""
        return torch.from_numpy(y.astype(np.float32))

    def _class_names(self) -> tuple[str, ...]:
        return tuple(str(c) for c in getattr(self, "classes_", ()))

    def _dataset(self, data: GraphLike, *, learn_classes: bool = False) -> NodeDataset:
        if isinstance(data, NodeDataset):
            return self._named_dataset(data, learn_classes)
        if isinstance(data, tuple | list):
            if len(data) != 3:
                raise ValueError(f"Expected (X, edge_index, y) (got {len(data)} entries)")
            x, edge_index, y = data
            data = Data(
                x=torch.as_tensor(np.asarray(x)).float(),
                edge_index=torch.as_tensor(np.asarray(edge_index)).long(),
                y=y,
            )
        if not isinstance(data, Data):
            raise TypeError(
                "Expected a PyG Data, a NodeDataset or (X, edge_index, y) "
                f"(got {type(data).__name__})"
            )
        data = data.clone()
        if data.y is not None:
            data.y = self._encode(np.asarray(data.y).reshape(-1), learn_classes)
        elif learn_classes:
            raise ValueError("Expected labels `y` to fit on (got none)")
        return from_data(data, task=self._task, classes=self._class_names() or None)

    def _named_dataset(self, dataset: NodeDataset, learn_classes: bool) -> NodeDataset:
        """A dataset with class names of its own, as a loader gives it."""
        if dataset.task != self._task:
            raise ValueError(f"Expected data for {self._task} (got data for {dataset.task})")
        if learn_classes and dataset.classes:
            self.classes_ = np.asarray(dataset.classes)
        return dataset

    def _split(self, dataset: NodeDataset, seed: int, train_mask: Any, val_mask: Any) -> Split:
        """The masks given, else the data's own, else all labelled nodes."""
        masks = {
            name: torch.as_tensor(np.asarray(mask)).bool()
            for name, mask in (("train_mask", train_mask), ("val_mask", val_mask))
            if mask is not None
        }
        for name, mask in masks.items():
            if mask.shape != (dataset.num_nodes,):
                raise ValueError(
                    f"Expected `{name}` of shape ({dataset.num_nodes},) (got {tuple(mask.shape)})"
                )
        data = dataset.data.clone()
        if masks or "train_mask" not in data:
            for name in MASKS:
                if name in data:
                    del data[name]
            train = masks.get("train_mask", dataset.labelled)
            if "val_mask" in masks:
                data.val_mask = masks["val_mask"] & dataset.labelled
                train = train & ~data.val_mask if "train_mask" not in masks else train
            data.train_mask = train & dataset.labelled
        return make_split(dataclasses.replace(dataset, data=data), "own", seed)

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise NotFittedError(f"Expected a fitted {type(self).__name__}: call fit first")

    def _outputs(self, data: GraphLike | None) -> np.ndarray:
        """Probabilities (nodes, classes) or values (nodes,): the mean over the repeats."""
        self._check_fitted()
        if data is not None:
            dataset = self._dataset(data)
            if dataset.num_features != self.n_features_in_:
                raise ValueError(
                    f"Expected {self.n_features_in_} features (got {dataset.num_features})"
                )
            problem = self.trained_.problem(dataset)
        elif self._problem is None:
            raise ValueError("Expected the graph to predict on: a loaded estimator has none")
        else:
            problem = self._problem
        return self.trained_.predict(problem).numpy()

    def _labels(self, data: GraphLike, mask: Any) -> tuple[Tensor, Tensor]:
        """The labels of a graph and which nodes to score on."""
        self._check_fitted()
        dataset = self._dataset(data)
        keep = dataset.labelled
        if mask is not None:
            chosen = torch.as_tensor(np.asarray(mask)).bool()
            if chosen.shape != keep.shape:
                raise ValueError(
                    f"Expected `mask` of shape {tuple(keep.shape)} (got {tuple(chosen.shape)})"
                )
            keep = keep & chosen
        if dataset.data.y is None or not bool(keep.any()):
            raise ValueError("Expected labelled nodes to score on (got none)")
        return dataset.data.y, keep

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

    def save(self, path: str | Path) -> None:
        """Write parameters and weights to one safetensors file; no pickle."""
        self._check_fitted()
        extra = {
            "class": type(self).__name__,
            "parameters": self.get_params(),
            "classes": np.asarray(getattr(self, "classes_", [])).tolist(),
            "history": {k: v.tolist() for k, v in getattr(self, "history_", {}).items()},
            "epochs": [getattr(self, "n_epochs_", None), getattr(self, "best_epoch_", None)],
        }
        self.trained_.save(Path(path), extra=extra)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an estimator written by :meth:`save`, or the weights of a run.

        Pass ``predict`` the graph: a loaded estimator has none.
        """
        if not Path(path).exists():
            raise FileNotFoundError(f"Expected a saved estimator (found no file {path})")
        trained, extra = Trained.load(Path(path))
        if not extra:
            return cls.from_trained(trained)
        if extra["class"] != cls.__name__:
            raise ValueError(f"Expected a saved {cls.__name__} (got a {extra['class']})")
        estimator = cls(**extra["parameters"])
        if extra["classes"]:
            estimator.classes_ = np.asarray(extra["classes"])
        estimator._restore(trained)
        estimator.history_ = {
            k: np.asarray(v, dtype=np.float32) for k, v in extra["history"].items()
        }
        estimator.n_epochs_, estimator.best_epoch_ = extra["epochs"]
        return estimator


class LONGNNClassifier(ClassifierMixin, _GraphEstimator):
    """Node classification with LON-GNN or any other model, scikit-learn style.

    >>> import torch
    >>> ring = torch.arange(20)
    >>> edges = torch.cat([torch.stack([ring, (ring + 1) % 20]),
    ...                    torch.stack([(ring + 1) % 20, ring])], dim=1)
    >>> y = (ring >= 10).long()
    >>> x = torch.nn.functional.one_hot(y, 2).float()
    >>> classifier = LONGNNClassifier(epochs=30, device="cpu").fit((x, edges, y))
    >>> classifier.predict().shape
    (20,)
    """

    _task: ClassVar[Task] = "classification"

    def _encode(self, y: np.ndarray, learn_classes: bool) -> Tensor:
        """Any labels as 0..C-1; -1 (a number), None or an empty string mean unlabelled."""
        if y.dtype.kind == "f":
            known = np.isfinite(y) & (y != -1)
        elif y.dtype.kind in "iu":
            known = y != -1
        else:
            known = np.array([v is not None and v == v and v != "" for v in y], dtype=bool)
        if learn_classes:
            self.classes_ = np.unique(y[known])
        codes = np.full(len(y), -1, dtype=np.int64)
        if known.any():
            places = np.searchsorted(self.classes_, y[known])
            places = np.clip(places, 0, len(self.classes_) - 1)
            codes[known] = np.where(self.classes_[places] == y[known], places, -1)
        return torch.from_numpy(codes)

    def predict_proba(self, data: GraphLike | None = None) -> np.ndarray:
        """Probabilities of the classes, shape (nodes, classes), columns as in ``classes_``."""
        return self._outputs(data)

    def predict(self, data: GraphLike | None = None) -> np.ndarray:
        """The most probable class of each node, shape (nodes,)."""
        places = self._outputs(data).argmax(1)
        return self.classes_[places]

    def score(self, data: GraphLike, mask: Any = None) -> float:
        """Accuracy over the labelled nodes of a graph, or over those of them in a mask."""
        y, keep = self._labels(data, mask)
        predicted = torch.from_numpy(self._outputs(data))
        return float((predicted.argmax(1)[keep] == y[keep]).double().mean())


class LONGNNRegressor(RegressorMixin, _GraphEstimator):
    """Node regression with LON-GNN or any other model, scikit-learn style."""

    _task: ClassVar[Task] = "regression"

    def predict(self, data: GraphLike | None = None) -> np.ndarray:
        """The predicted value of each node, shape (nodes,)."""
        return self._outputs(data)

    def score(self, data: GraphLike, mask: Any = None) -> float:
        """R2 over the labelled nodes of a graph, or over those of them in a mask."""
        y, keep = self._labels(data, mask)
        scores = regression_scores(torch.from_numpy(self._outputs(data)), y, keep)
        if "r2" not in scores:
            raise ValueError("Expected labels that differ to score on (got one value)")
        return scores["r2"]

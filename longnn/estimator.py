r"""A scikit-learn-like face: fit, predict, score, and what the filter became.

``fit`` takes a PyG ``Data`` or a tuple ``(X, edge_index, y)``: the nodes of one graph are its
samples. So ``predict()`` answers for all nodes of the graph it was fitted on, and
``predict(data)`` for those of another one with the same features.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import safetensors
import safetensors.torch
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from torch import Tensor
from torch_geometric.data import Data

from longnn import training
from longnn._base.files import atomic_path
from longnn.config import Config
from longnn.data import NodeDataset, Split, from_data, make_split
from longnn.recipes import load_recipe
from longnn.registry import model_options as options_of
from longnn.training import FIELDS, Scaling, Task, regression_scores

_FORMAT = "longnn.estimator/1"
#: A PyG Data, or a tuple (X, edge_index, y).
GraphLike = Any
MASKS = ("train_mask", "val_mask", "test_mask")


class _GraphEstimator(BaseEstimator):
    """What classifier and regressor share.

    Args:
        model: a short name, see ``longnn models``.
        hidden_channels: hidden units.
        degree: of the filter.
        dropout, input_dropout: inside the transform and on the features.
        epochs, patience, monitor, lr_*, wd_*, penalty, degree_penalty: as in
            :class:`longnn.training.Settings`.
        scale: of the features: ``"none"``, ``"row"`` or ``"standard"``.
        seed: of weights, dropout and the validation split.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        model_options: further options of the model, e.g. ``{"placement": "hidden"}``.
    """

    _task: ClassVar[Task]

    def __init__(
        self,
        *,
        model: str = "lon",
        hidden_channels: int = 64,
        degree: int = 10,
        dropout: float = 0.7,
        input_dropout: float = 0.3,
        epochs: int = 1000,
        patience: int = 200,
        monitor: str = "score",
        lr_transform: float = 0.05,
        lr_coefficients: float = 0.05,
        lr_factors: float = 0.05,
        lr_basis: float = 0.02,
        wd_transform: float = 2e-4,
        wd_coefficients: float = 5e-5,
        wd_factors: float = 0.0,
        wd_basis: float = 0.0,
        penalty: float = 0.0,
        degree_penalty: float = 0.0,
        scale: str = "none",
        seed: int = 0,
        device: str = "auto",
        model_options: dict[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.hidden_channels = hidden_channels
        self.degree = degree
        self.dropout = dropout
        self.input_dropout = input_dropout
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
        self.device = device
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
        keys = {k: v for k, v in load_recipe(model, dataset).items() if k != "split"}
        own = set(cls().get_params()) - {"model_options"}
        # What a recipe does not say is as in the model, not as in the constructor.
        defaults = {**options_of(model), **Config(model=model).options}
        plain = {k: v for k, v in defaults.items() if k in own}
        options = {k: v for k, v in keys.items() if k not in own}
        options |= parameters.pop("model_options", None) or {}
        chosen = {k: v for k, v in keys.items() if k in own}
        return cls(**{**plain, **chosen, "model_options": options, **parameters})

    def _config(self) -> Config:
        """The parameters as the configuration of a run; options a model lacks are left out."""
        keys = {k: v for k, v in self.get_params().items() if k != "model_options"}
        Config(model=self.model)
        known = options_of(self.model)
        for key in ("degree", "dropout", "input_dropout"):
            if key not in known:
                del keys[key]
        return Config.from_dict({**keys, **(self.model_options or {})})

    def fit(self, data: GraphLike, train_mask: Any = None, val_mask: Any = None) -> Self:
        """Train on the labelled nodes of a graph.

        Args:
            data: a PyG ``Data`` with x, edge_index, y, or a tuple (X, edge_index, y). Nodes with
                y = -1 (NaN for regression) are unlabelled.
            train_mask, val_mask: bool (nodes,). By default the data's own masks; where there is
                no validation mask, a fifth of the training nodes, stratified.
        """
        config = self._config()
        dataset = self._dataset(data, learn_classes=True)
        split = self._split(dataset, train_mask, val_mask)
        scaling = Scaling.fit(config.scale, dataset.data.x)
        problem = training.make_problem(dataset, config, scaling)
        (result,) = training.run_chunked([config], problem, [split])
        self._restore(
            {
                "config": config,
                "scaling": scaling,
                "features": dataset.num_features,
                "outputs": problem.outputs,
                "state": result.state,
                "offset": result.offset,
                "scale": result.scale,
            }
        )
        self._problem = problem
        self.history_ = {f: result.history[f].contiguous().numpy() for f in FIELDS}
        self.n_epochs_, self.best_epoch_ = result.epochs, result.best_epoch
        self.train_mask_, self.val_mask_ = split.train.numpy(), split.val.numpy()
        return self

    def _restore(self, fitted: dict[str, Any]) -> None:
        """Set what fitting found: the model and what can be read off it."""
        self._fitted = fitted
        self._problem = None
        self.n_features_in_ = fitted["features"]
        self.model_ = training.trained_model(
            fitted["config"], fitted["features"], fitted["outputs"], fitted["state"]
        )
        filters = self.model_.filters()
        basis = filters[0].basis_parameters() if filters else {}
        self.a_ = float(basis["a"].detach()) if "a" in basis else None
        self.b_ = float(basis["b"].detach()) if "b" in basis else None

    def _encode(self, y: np.ndarray, learn_classes: bool) -> Tensor:
        """Labels as the loop wants them."""
        return torch.from_numpy(y.astype(np.float32))

    def _dataset(self, data: GraphLike, *, learn_classes: bool = False) -> NodeDataset:
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
                f"Expected a PyG Data or (X, edge_index, y) (got {type(data).__name__})"
            )
        data = data.clone()
        if data.y is not None:
            data.y = self._encode(np.asarray(data.y).reshape(-1), learn_classes)
        elif learn_classes:
            raise ValueError("Expected labels `y` to fit on (got none)")
        names = tuple(str(c) for c in getattr(self, "classes_", ()))
        return from_data(data, task=self._task, classes=names or None)

    def _split(self, dataset: NodeDataset, train_mask: Any, val_mask: Any) -> Split:
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
        return make_split(dataclasses.replace(dataset, data=data), "own", self.seed)

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise NotFittedError(f"Expected a fitted {type(self).__name__}: call fit first")

    def _outputs(self, data: GraphLike | None) -> np.ndarray:
        """Probabilities (nodes, classes) or values (nodes,)."""
        self._check_fitted()
        fitted = self._fitted
        if data is not None:
            dataset = self._dataset(data)
            if dataset.num_features != self.n_features_in_:
                raise ValueError(
                    f"Expected {self.n_features_in_} features (got {dataset.num_features})"
                )
            problem = training.make_problem(dataset, fitted["config"], fitted["scaling"])
        elif self._problem is None:
            raise ValueError("Expected the graph to predict on: a loaded estimator has none")
        else:
            problem = self._problem
        predicted = training.predict(
            self.model_, problem, offset=fitted["offset"], scale=fitted["scale"]
        )
        return predicted.numpy()

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
            raise ValueError(f"Expected a model with a polynomial filter (got {self.model!r})")
        grid = np.linspace(0, 2, 101) if eigenvalues is None else np.asarray(eigenvalues, float)
        with torch.no_grad():
            return grid, filters[0].response(torch.from_numpy(grid)).cpu().numpy()

    def save(self, path: str | Path) -> None:
        """Write parameters and weights to one safetensors file; no pickle."""
        self._check_fitted()
        fitted = self._fitted
        scaling = fitted["scaling"]
        tensors = {f"model/{k}": v.contiguous() for k, v in fitted["state"].items()}
        if scaling.mean is not None:
            tensors["features/mean"] = scaling.mean
            tensors["features/deviation"] = scaling.deviation
        tensors.update({f"history/{k}": torch.from_numpy(v) for k, v in self.history_.items()})
        plain = {
            "class": type(self).__name__,
            "parameters": self.get_params(),
            "scaling": scaling.kind,
            "classes": np.asarray(getattr(self, "classes_", [])).tolist(),
            "epochs": [self.n_epochs_, self.best_epoch_],
            **{k: fitted[k] for k in ("features", "outputs", "offset", "scale")},
        }
        metadata = {"format": _FORMAT, "fitted": json.dumps(plain)}
        with atomic_path(Path(path)) as temporary:
            safetensors.torch.save_file(tensors, str(temporary), metadata=metadata)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an estimator written by :meth:`save`; pass ``predict`` the graph."""
        try:
            with safetensors.safe_open(str(path), framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except FileNotFoundError:
            raise
        except (safetensors.SafetensorError, OSError) as error:
            raise ValueError(f"Expected {path} to be a saved estimator ({error})") from error
        if metadata.get("format") != _FORMAT:
            raise ValueError(f"Expected {path} to be a saved estimator (got another file)")
        plain = json.loads(metadata["fitted"])
        if plain["class"] != cls.__name__:
            raise ValueError(f"Expected a saved {cls.__name__} (got a {plain['class']})")
        under = lambda prefix: {  # noqa: E731
            k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)
        }
        estimator = cls(**plain["parameters"])
        if plain["classes"]:
            estimator.classes_ = np.asarray(plain["classes"])
        moments = under("features/")
        scaling = Scaling(plain["scaling"], moments.get("mean"), moments.get("deviation"))
        kept = {k: plain[k] for k in ("features", "outputs", "offset", "scale")}
        config = estimator._config()
        estimator._restore({"config": config, "scaling": scaling, "state": under("model/"), **kept})
        estimator.history_ = {k: v.numpy() for k, v in under("history/").items()}
        estimator.n_epochs_, estimator.best_epoch_ = plain["epochs"]
        return estimator

    classes_: Any
    _problem: Any


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

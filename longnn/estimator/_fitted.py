"""What a fitted estimator has to show: its filter, figures, report and file."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from sklearn.exceptions import NotFittedError
from torch import Tensor

from longnn._base.schema import Node
from longnn.data import DataError, NodeDataset, Split
from longnn.estimator._inputs import find_nodes, per_node, without_masks
from longnn.estimator._parameters import Parameters
from longnn.estimator._presentation import draw_filter, draw_training, new_axes, write_page
from longnn.metrics import Task
from longnn.nn import Model
from longnn.training import FittedMember, Result, Trained

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class FittedEstimator(Parameters):
    """Everything that fitting leaves behind, and what can be read off it.

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
    _ends: list[tuple[Split, Result, tuple[Mapping[str, float], ...], tuple[FittedMember, ...]]]
    _predicted: np.ndarray

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
                (_tested(split, test), result, start, members)
                for split, result, start, members in ends
            ]
        command = f"{type(self).__name__}.fit(...)"
        return write_page(Path(path), self.trained_, dataset, ends, command=command)

    def _with_test(self, dataset: NodeDataset, nodes: Any, y: Any) -> tuple[NodeDataset, Tensor]:
        """The dataset with labels of further nodes, and a mask of these."""
        places = find_nodes(dataset.ids, nodes)
        codes, _ = self._encode(y, False, gaps=False)
        if len(codes) != len(places):
            raise ValueError(f"Expected one label per node, {len(places)} (got {len(codes)})")
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
        parameters, known = extra["parameters"].mapping(), cls().get_params()
        unknown = [key for key in parameters if key not in known or key == "graph"]
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


def _tested(split: Split, test: Tensor) -> Split:
    """A split with test nodes."""
    split = split.without_test()
    return dataclasses.replace(split, test=test)

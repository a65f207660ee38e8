"""What an estimator is given: its parameters, and graphs, nodes, masks and weights in any form.

Each is brought to one form: parameters to a :class:`~longnn.config.Config`, the rest to arrays.
Knows nothing of models and of training; nothing here is fitted.
"""

import copy
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from longnn._base.suggestions import did_you_mean
from longnn.config import Config
from longnn.config._config import settings_names
from longnn.data import NodeDataset
from longnn.data._tensors import GraphTensors, as_tensors, is_graph_data
from longnn.explain._subject import find_ids
from longnn.matrices import csr_from_scipy
from longnn.recipes import load_recipe

MASKS = ("train_mask", "val_mask", "test_mask")

#: A PyG Data, a NodeDataset, or a tuple (X, edge_index) or (X, edge_index, y).
GraphLike = Any


class Arrays(NamedTuple):
    """A graph in pieces; labels as they were given."""

    data: GraphTensors  # without labels
    labels: Any  # (nodes, ...), or None
    feature_names: tuple[str, ...]


def is_graph(value: Any) -> bool:
    """Whether a value is a graph rather than nodes of one.

    >>> is_graph((np.eye(3), [[0, 1], [1, 2]])), is_graph([0, 1, 2])
    (True, False)
    """
    if isinstance(value, tuple | list):  # nodes may come as a list, too: of numbers or of words
        return len(value) > 0 and getattr(value[0], "ndim", np.ndim(value[0])) == 2
    return isinstance(value, NodeDataset) or is_graph_data(value)


def is_edge_index(value: Any) -> bool:
    """Whether a value is whole numbers of shape (2, arcs), and so cannot be the labels of nodes."""
    if isinstance(value, Tensor):
        return value.dim() == 2 and len(value) == 2 and not value.is_floating_point()
    array = np.asarray(value)
    return array.ndim == 2 and len(array) == 2 and array.dtype.kind in "iu"


def to_numpy(values: Any) -> np.ndarray:
    """Any array, of torch on any device too, for NumPy."""
    return np.asarray(values.detach().cpu() if isinstance(values, Tensor) else values)


def to_arrays(graph: GraphLike) -> Arrays:
    """A tuple or a PyG ``Data`` in pieces.

    Raises:
        ValueError: for a tuple of another length.
        TypeError: for anything else.
    """
    if is_graph_data(graph):
        data = as_tensors(graph).clone()
        return Arrays(data, data.pop("y", None), ())
    if not isinstance(graph, tuple | list):
        raise TypeError(
            "Expected nodes, a PyG Data, a NodeDataset or (X, edge_index, y) "
            f"(got {type(graph).__name__})"
        )
    if len(graph) not in (2, 3):
        raise ValueError(f"Expected (X, edge_index, y) (got {len(graph)} entries)")
    x, edges, labels = (*graph, None)[:3]
    index = torch.from_numpy(to_numpy(edges).astype(np.int64))
    return Arrays(GraphTensors(x=_features(x), edge_index=index), labels, _names(x))


def _features(x: Any) -> Tensor:
    """Features of any kind of array; sparse ones stay so."""
    if sp.issparse(x):
        return csr_from_scipy(x)
    if isinstance(x, Tensor) and x.layout is not torch.strided:
        return x
    return torch.from_numpy(to_numpy(x).astype(np.float32))  # a copy: x may be read-only


def _names(x: Any) -> tuple[str, ...]:
    """The names of the columns of a data frame, where all of them are text."""
    columns = list(getattr(x, "columns", ()))
    return tuple(columns) if all(isinstance(c, str) for c in columns) else ()


def without_masks(data: GraphTensors) -> GraphTensors:
    """A shallow copy without the masks that came with the data."""
    return GraphTensors({key: value for key, value in data.items() if key not in MASKS})


def find_nodes(ids: Sequence[Any], nodes: Any) -> np.ndarray:
    """The positions of nodes in a graph, int64 (n,).

    Whole numbers are positions, unless the graph has ids that are numbers, other than 0, 1, ...:
    then they are ids. Anything else is an id.

    Args:
        ids: those of the graph, one per node; a ``range`` where it has none of its own.
        nodes: shape (n,) or (n, 1).

    Raises:
        ValueError: for another shape, or where there is no such node.

    >>> find_nodes(range(5), [[3], [0]]), find_nodes(["ann", "bob"], ["bob"])
    (array([3, 0]), array([1]))
    >>> find_nodes([30, 10, 20], [10])
    array([1])
    """
    given = to_numpy(nodes)
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.ndim != 1:
        raise ValueError(
            "Expected nodes of the graph, positions or ids, of shape (n,) or (n, 1) "
            f"(got shape {given.shape}); for another graph pass (X, edge_index)"
        )
    if given.dtype.kind == "b":
        raise ValueError("Expected positions or ids of nodes (got a mask); use np.flatnonzero")
    numbered = all(isinstance(i, int | np.integer) for i in ids[:1])
    named = not (isinstance(ids, range) and ids == range(len(ids)))
    number = _whole(given)
    if number is None or (named and numbered):
        return find_ids(ids, (given if number is None else number).tolist())
    outside = (number < 0) | (number >= len(ids))
    if outside.any():
        raise ValueError(
            f"Expected positions of nodes in 0..{len(ids) - 1} (got {number[outside][0]})"
        )
    return number


def _whole(given: np.ndarray) -> np.ndarray | None:
    """Whole numbers as int64, whatever their type; None for words and the like.

    Raises:
        ValueError: for numbers that are not whole.
    """
    if given.dtype.kind == "O" and all(isinstance(v, int | float | np.number) for v in given):
        given = np.asarray(given.tolist(), dtype=None if len(given) else np.int64)
    if given.dtype.kind not in "iuf":
        return None
    if given.dtype.kind == "f":
        broken = ~np.isfinite(given) | (given != np.round(given))
        if broken.any():
            raise ValueError(
                f"Expected positions or ids of nodes (got {given[broken][0]}); features belong to "
                "the graph: LONGNNClassifier(graph=(X, edge_index)).fit(nodes, y)"
            )
    return given.astype(np.int64)


def check_mask(name: str, mask: Any, size: int) -> np.ndarray:
    """A mask with one entry per sample, bool (size,)."""
    array = to_numpy(mask)
    if array.shape != (size,):
        raise ValueError(f"Expected `{name}` of shape ({size},) (got {array.shape})")
    if array.dtype != bool:
        raise ValueError(
            f"Expected `{name}` to be true or false for each node (got {array.dtype}); labels "
            "belong to the graph, or use fit(X, edge_index, y)"
        )
    return array


def check_weights(weights: Any, size: int) -> np.ndarray | None:
    """Sample weights as float64 (size,); None where all are equal.

    Raises:
        ValueError: for another shape, or weights that are negative, not finite or all zero.
    """
    if weights is None:
        return None
    array = to_numpy(weights).astype(np.float64)
    if array.shape == ():
        array = np.full(size, float(array))
    if array.shape != (size,):
        raise ValueError(f"Expected `sample_weight` of shape ({size},) (got {array.shape})")
    if not (np.isfinite(array) & (array >= 0)).all():
        raise ValueError("Expected `sample_weight` finite and >= 0")
    if not (array > 0).any():
        raise ValueError("Expected some `sample_weight` > 0 (all sample weights are zero)")
    return None if (array == array[0]).all() else array


def per_node(mask: np.ndarray, nodes: np.ndarray, size: int) -> Tensor:
    """A mask over samples as one over the nodes of the graph."""
    spread = torch.zeros(size, dtype=torch.bool)
    spread[nodes[mask]] = True
    return spread


#: Parameters that are not settings of a configuration under the same name.
OWN = ("graph", "directed", "random_state", "verbose", "model_options")
#: Options of models that are parameters; others are among ``model_options``.
OPTIONS = ("degree", "dropout", "input_dropout", "filter_dropout")
#: Settings that an estimator has no use for, or that are set with its other options.
ELSEWHERE = ("split", "batch_rows", "inputs")
NAMES = (*OWN, *OPTIONS, *(name for name in settings_names() if name not in ELSEWHERE))


class Parameters(BaseEstimator):
    """What classifier and regressor have as parameters.

    Every setting of a :class:`~longnn.config.Config` is one under its own name, and so are degree,
    dropout, input_dropout and filter_dropout. Each defaults to None, which means: as there, the
    source of defaults that the command line has too. ``longnn models --settings`` explains them.

    Args:
        graph: whose nodes the samples are: a PyG ``Data``, a :class:`~longnn.data.NodeDataset`, or
            a tuple (X, edge_index). Its labels and masks are not used. Cloning does not copy it.
            None where ``fit`` is given a graph.
        directed: whether arcs, from the first row of ``edge_index`` to the second, are kept; or
            ``"auto"``: if one has no reverse. By default each edge is made two-way. A
            :class:`~longnn.data.NodeDataset` has decided it for itself.
        class_weight: as there, or a dict {class: weight}; classes that it does not name have
            weight 1.
        random_state: another name of the seed, as scikit-learn has it: an integer, or a
            ``RandomState``, from which every fit draws a new seed.
        verbose: 1 prints a line every 100 epochs, and one at the end.
        model_options: further options of the model, e.g. ``{"placement": "hidden"}``.
    """

    graph: GraphLike
    directed: bool | str | None
    class_weight: str | Mapping[Any, float] | None
    seed: int | None
    random_state: int | np.random.RandomState | None
    verbose: int | None
    model_options: Mapping[str, Any] | None

    def __init__(self, **parameters: Any) -> None:
        for name in parameters:
            if name not in NAMES:
                raise TypeError(
                    f"Expected a parameter of {type(self).__name__} (got {name!r})"
                    + did_you_mean(name, NAMES)
                )
        # Each is kept as it was given, under its own name: scikit-learn clones by these.
        self.__dict__.update({name: parameters.get(name) for name in NAMES})

    # scikit-learn and notebooks ask a constructor for its parameters.
    __init__.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
            *(inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=None) for n in NAMES),
        ]
    )

    @classmethod
    def from_recipe(cls, dataset: str, *, model: str = "lon", **parameters: Any) -> Self:
        """An unfitted estimator with the parameters that were tuned for a named dataset.

        Args:
            dataset: its name; see :func:`longnn.recipes.known_recipes`.
            model: the model to take the recipe of.
            parameters: override the recipe, as in the constructor.

        >>> from longnn import LONGNNClassifier
        >>> LONGNNClassifier.from_recipe("csbm", seed=3).seed
        3
        """
        recipe = {k: v for k, v in load_recipe(model, dataset).items() if k != "split"}
        if recipe.get("direction") == "cover":
            recipe["directed"] = True
        options = parameters.pop("model_options", None) or {}
        return cls._from_table({**recipe, **options, **parameters})

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """An unfitted estimator that trains with a configuration; its split is not used."""
        unused = ("split", "batch_rows")  # the graph of an estimator is in memory
        return cls._from_table({k: v for k, v in config.to_dict().items() if k not in unused})

    @classmethod
    def _from_table(cls, table: Mapping[str, Any]) -> Self:
        """From the flat table of a configuration."""
        names = set(cls().get_params()) - {"model_options"}
        options = {k: v for k, v in table.items() if k not in names}
        return cls(**{k: table[k] for k in names & {*table}}, model_options=options or None)

    def config(self) -> Config:
        """The parameters as a configuration: what is None is filled in from the defaults.

        Raises:
            ValueError: for an unknown name or a bad value.
        """
        # A look at the generator, as it is: only fitting draws from it.
        return Config.from_dict(self._table(copy.deepcopy(self.random_state)))

    def _table(self, random_state: Any) -> dict[str, Any]:
        """The parameters that are set, as the flat table of a configuration."""
        given = {
            k: v.item() if isinstance(v, np.generic) else v  # as searches draw them
            for k, v in self.get_params(deep=False).items()
            if v is not None and k not in OWN
        }
        if isinstance(self.class_weight, Mapping):
            given["class_weight"] = ",".join(f"{k}={v}" for k, v in self.class_weight.items())
        seed = _draw_seed(random_state)
        if seed is not None and self.seed not in (None, seed):
            raise ValueError(
                f"Expected one of `seed` and `random_state` (got {self.seed} and {random_state}); "
                "they are two names of one parameter"
            )
        if seed is not None:
            given["seed"] = seed
        options = {} if self.model_options is None else self.model_options
        if not isinstance(options, Mapping):
            raise ValueError(
                f"Expected `model_options` to be a dict of options (got {type(options).__name__})"
            )
        return {**given, **options}

    def __sklearn_clone__(self) -> Self:
        """Copies of all parameters but the graph, which is shared: graphs are large."""
        bare = copy.copy(self)
        bare.graph = None
        cloned: Self = BaseEstimator.__sklearn_clone__(bare)
        cloned.graph = self.graph
        return cloned

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """As scikit-learn has it, with the graph in a few words."""
        bare = copy.copy(self)
        bare.graph = None if self.graph is None else _Summary(self.graph)
        return str(BaseEstimator.__repr__(bare, N_CHAR_MAX))


class _Summary:
    """A graph that is shown by its sizes."""

    def __init__(self, graph: GraphLike) -> None:
        self.graph = graph

    def __repr__(self) -> str:
        if isinstance(self.graph, NodeDataset):
            return f"<{self.graph.name}: {self.graph.num_nodes} nodes>"
        try:
            data = to_arrays(self.graph).data
        except (TypeError, ValueError):  # fitting will say what is wrong with it
            return f"<{type(self.graph).__name__}>"
        return f"<{len(data.x)} nodes, {data.edge_index.shape[1]} arcs>"


def _draw_seed(random_state: Any) -> int | None:
    """A seed of what scikit-learn calls a random state.

    Raises:
        ValueError: for anything else.
    """
    if random_state is None:
        return None
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(np.iinfo(np.int32).max))
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return int(random_state)
    raise ValueError(
        f"Expected `random_state` to be an integer >= 0 or a RandomState (got {random_state!r})"
    )

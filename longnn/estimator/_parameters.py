"""The parameters of an estimator: what scikit-learn gets, sets, clones and shows.

They become a :class:`~longnn.config.Config`; nothing here is fitted.
"""

import copy
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from longnn.config import Config
from longnn.data import NodeDataset
from longnn.estimator._inputs import GraphLike, to_arrays
from longnn.recipes import load_recipe

#: Parameters that are not settings of a configuration under the same name.
OWN = ("graph", "directed", "random_state", "verbose", "model_options")


class Parameters(BaseEstimator):
    """What classifier and regressor have as parameters.

    Every parameter defaults to None, which means: as in :class:`~longnn.config.Config`, the source
    of defaults that the command line has too. ``longnn models --settings`` explains each.

    Args:
        graph: whose nodes the samples are: a PyG ``Data``, a :class:`~longnn.data.NodeDataset`, or
            a tuple (X, edge_index). Its labels and masks are not used. Cloning does not copy it.
            None where ``fit`` is given a graph.
        directed: whether arcs, from the first row of ``edge_index`` to the second, are kept; or
            ``"auto"``: if one has no reverse. By default each edge is made two-way. A
            :class:`~longnn.data.NodeDataset` has decided it for itself.
        direction: what to make of arcs: ``"cover"`` or ``"none"``.
        preset: ``"fast"`` trains one model, ``"default"`` a portfolio of about eight, joined on the
            validation nodes, ``"best"`` a larger one. By default it is ``"default"``, or
            ``"fast"`` where a parameter is set that each of several models has of its own.
        time_limit: seconds that fitting may take; the best until then is kept.
        model: name of the model, see ``longnn models``.
        hidden_channels: hidden units.
        degree: of the filter.
        dropout, input_dropout, filter_dropout: inside the transform, on the features, and just
            before the filter.
        epochs, patience, monitor: when to stop.
        lr_transform, lr_coefficients, lr_factors, lr_basis: learning rates.
        wd_transform, wd_coefficients, wd_factors: weight decays.
        penalty, degree_penalty: weights of the penalties on the filter.
        class_weight: of each class in the loss: ``"balanced"``, or a dict {class: weight}, where
            classes that it does not name have weight 1. By default all weigh the same.
        calibrate: whether probabilities are calibrated on the validation nodes.
        frequencies: ``"train"``: probabilities expect the class frequencies of the training nodes;
            ``"auto"``: those of the validation nodes, if they differ beyond chance.
        threshold: probability from which on the rarer of two classes, or a label, is predicted.
        baselines: whether a report with test nodes compares with models that ignore the graph.
        scale: of the features: ``"auto"``, ``"none"``, ``"row"`` or ``"standard"``.
        seed: of weights, dropout and the validation split.
        random_state: another name of the seed, as scikit-learn has it: an integer, or a
            ``RandomState``, from which every fit draws a new seed.
        repeat: models to train, with seeds seed, seed + 1, ...; predictions are their mean.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        precision: ``"float32"``, ``"float64"`` or ``"tf32"`` (rounded products on a GPU).
        verbose: 1 prints a line every 100 epochs, and one at the end.
        model_options: further options of the model, e.g. ``{"placement": "hidden"}``.
    """

    def __init__(
        self,
        *,
        graph: GraphLike | None = None,
        directed: bool | str | None = None,
        direction: str | None = None,
        preset: str | None = None,
        time_limit: float | None = None,
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
        penalty: float | None = None,
        degree_penalty: float | None = None,
        class_weight: str | Mapping[Any, float] | None = None,
        calibrate: bool | None = None,
        frequencies: str | None = None,
        threshold: float | None = None,
        baselines: bool | None = None,
        scale: str | None = None,
        seed: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        repeat: int | None = None,
        device: str | None = None,
        precision: str | None = None,
        verbose: int | None = None,
        model_options: Mapping[str, Any] | None = None,
    ) -> None:
        # Each is kept as it was given, under its own name: scikit-learn clones by these.
        self.__dict__.update({name: value for name, value in locals().items() if name != "self"})

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

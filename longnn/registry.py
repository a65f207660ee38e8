"""The models, one entry each: name, class, title, paper, formula, defaults, search space.

Everything that lists, explains, builds or searches models reads this table. A new model is a class
and an entry here. The table holds text and the places of classes: reading it does not load torch.
"""

import dataclasses
import functools
import importlib
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from longnn._base.suggestions import did_you_mean

if TYPE_CHECKING:
    from longnn.nn import Model

__all__ = ["get_model"]

#: What an option of a model can be.
Value = bool | int | float | str


@dataclasses.dataclass(frozen=True)
class Paper:
    """The paper of a model."""

    title: str
    authors: str
    year: int
    link: str


@dataclasses.dataclass(frozen=True)
class ModelEntry:
    """One model.

    Args:
        name: as users type it.
        cls: the class, or its place as ``"module:Name"``.
        title: as tables and figures name it.
        summary: its filter in a few words.
        formula: what it computes, in one line of plain text.
        paper: where it comes from, if anywhere.
        space: entries of every search space for this model alone, as a space's TOML has them.
        settings: settings of training whose default differs for this model.

    >>> MODELS["gcn"].options
    {'input_dropout': 0.5, 'dropout': 0.5}
    """

    name: str
    cls: "type[Model] | str"
    title: str
    summary: str
    formula: str
    paper: Paper | None = None
    space: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    settings: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def model(self) -> "type[Model]":
        """The class."""
        if not isinstance(self.cls, str):
            return self.cls
        module, _, name = self.cls.partition(":")
        loaded: type[Model] = getattr(importlib.import_module(module), name)
        return loaded

    @functools.cached_property
    def _options(self) -> dict[str, Value]:
        options: dict[str, Value] = {}
        for cls in self.model.__mro__:
            if "__init__" not in vars(cls) or cls.__name__ == "Model":
                continue
            parameters = inspect.signature(vars(cls)["__init__"]).parameters.values()
            for p in parameters:
                if p.name in options or p.name in _NOT_OPTIONS:
                    continue
                if p.default is not p.empty:
                    options[p.name] = p.default
            if not any(p.kind is p.VAR_KEYWORD for p in parameters):
                break
        return {**options, **self.model.defaults}

    @property
    def options(self) -> dict[str, Value]:
        """The options of the model and their defaults: those of its class, nothing else."""
        return dict(self._options)


#: Arguments of models that take objects, not values.
_NOT_OPTIONS = ("filter", "output_filter", "filter_options", "message", "copies", "types")


@dataclasses.dataclass(frozen=True)
class Option:
    """What an option of a model means, the same in every model that has it."""

    meaning: str
    choices: tuple[str, ...] = ()


OPTIONS: dict[str, Option] = {
    "degree": Option("degree K of the filter: how many hops it reaches"),
    "a": Option("start of the Jacobi parameter a, > -1"),
    "b": Option("start of the Jacobi parameter b, > -1"),
    "learn_basis": Option("train the parameters of the basis: a and b"),
    "orthonormal": Option("divide each polynomial by its norm"),
    "weight": Option(
        "weight function of the basis: the paper's, or scaled to mass one", ("paper", "probability")
    ),
    "coefficients": Option(
        "how coefficients are trained: directly, or decomposed into shared factors (PCD)",
        ("free", "pcd"),
    ),
    "gamma": Option("bound of the factors of PCD, > 0"),
    "shared": Option("one filter for all channels, instead of one per channel"),
    "restart": Option(
        "start as personalised PageRank with this restart probability; 1 is the identity, "
        "0 the parametrisation's own start"
    ),
    "self_loops": Option("what to do with self loops of the graph", ("keep", "add", "remove")),
    "placement": Option(
        "where the filter acts: class scores, hidden units, features, or features and scores",
        ("output", "hidden", "features", "both"),
    ),
    "transform": Option("the feature transform", ("linear", "mlp", "residual")),
    "normalize": Option("divide each node's hidden units by their root mean square"),
    "input_dropout": Option("dropout rate on the features"),
    "dropout": Option("dropout rate on hidden units"),
    "filter_dropout": Option("dropout rate just before the filter"),
    "stacks": Option("parallel ARMA recursions, averaged"),
    "layers": Option("steps of each ARMA recursion"),
    "blocks": Option("depth: how many blocks of message passing"),
    "basis": Option(
        "family of polynomials of the filters: jacobi, chebyshev, legendre, gegenbauer, favard, "
        "monomial, bernstein or interpolation"
    ),
    "norm": Option(
        "norm over each node's hidden units, before each block", ("layer", "rms", "none")
    ),
    "residual": Option("add what enters a block to what leaves it"),
    "jump": Option(
        "what the last map sees: the last block, the largest values of all blocks, or all of them",
        ("none", "max", "cat"),
    ),
    "output_degree": Option("degree of one more filter, on the class scores; 0 for none"),
    "heads": Option("heads of the attention; they must divide the hidden units"),
    "columns": Option(
        "what trees see: a node's own columns; averages over its neighbours, too; or (around) "
        "their spread and extremes as well",
        ("alone", "neighbours", "around"),
    ),
    "leaves": Option("leaves of each tree"),
    "share": Option("share of the columns that each tree may use"),
}

#: LON-GNN as in its paper: a filter for each class channel, PCD, the textbook's weight function.
PAPER_FORM: dict[str, Value] = {
    "placement": "output",
    "weight": "paper",
    "coefficients": "pcd",
    "shared": False,
    "restart": 0.0,
    "self_loops": "keep",
}
#: An MLP of filtered features, its hidden units normalised.
FEATURES_FORM: dict[str, Value] = {"placement": "features", "normalize": True}

_LON = Paper(
    "Spectral GNNs with Learnable Orthonormal Basis",
    "Tao, Wang, Yu, Li and Wei",
    2023,
    "https://arxiv.org/abs/2303.13750",
)
_OPTIMAL = Paper(
    "Graph Neural Networks with Learnable and Optimal Polynomial Bases",
    "Guo and Wei",
    2023,
    "https://arxiv.org/abs/2302.12432",
)
_GCN = Paper(
    "Semi-supervised Classification with Graph Convolutional Networks",
    "Kipf and Welling",
    2017,
    "https://arxiv.org/abs/1609.02907",
)
#: A stack learns at lower rates than one filter.
_DEEP = {"lr_transform": 0.003, "lr_coefficients": 0.02}
#: One weight matrix per degree (ChebNet), or the highest power alone (SGC): degree 10 would be
#: another model.
_TWO_HOPS = {"degree": 2}

_ENTRIES = (
    ModelEntry(
        "lon",
        "longnn.nn:LONGNN",
        "LON-GNN",
        "orthonormal Jacobi, the basis learned",
        "Y = sum_k alpha_k p_k^(a,b)(P) t(X), a and b trained",
        _LON,
    ),
    ModelEntry(
        "jacobi-orthnorm",
        "longnn.nn:JacobiOrthNorm",
        "Jacobi+OrthNorm",
        "orthonormal Jacobi, the basis fixed",
        "Y = sum_k alpha_k p_k^(a,b)(P) t(X)",
        _LON,
        space={"restart": 0.0},
    ),
    ModelEntry(
        "jacobi-learnable",
        "longnn.nn:JacobiLearnable",
        "Jacobi+Learnable",
        "classical Jacobi, the basis learned",
        "Y = sum_k alpha_k P_k^(a,b)(P) t(X), a and b trained",
        _LON,
        space={"restart": 0.0},
    ),
    ModelEntry(
        "jacobi",
        "longnn.nn:JacobiConv",
        "JacobiConv",
        "classical Jacobi, the basis fixed",
        "Y = sum_k alpha_k P_k^(a,b)(P) X W",
        Paper(
            "How Powerful are Spectral Graph Neural Networks",
            "Wang and Zhang",
            2022,
            "https://arxiv.org/abs/2205.11172",
        ),
    ),
    ModelEntry(
        "bern",
        "longnn.nn:BernNet",
        "BernNet",
        "Bernstein, never negative",
        "Y = sum_k theta_k 2^-K binom(K, k) (2I - L)^(K-k) L^k t(X), theta_k >= 0",
        Paper(
            "Learning Arbitrary Graph Spectral Filters via Bernstein Approximation",
            "He et al.",
            2021,
            "https://arxiv.org/abs/2106.10994",
        ),
    ),
    ModelEntry(
        "gpr",
        "longnn.nn:GPRGNN",
        "GPRGNN",
        "powers of the graph (PageRank)",
        "Y = sum_k gamma_k P^k t(X), self loops in P",
        Paper(
            "Adaptive Universal Generalized PageRank Graph Neural Network",
            "Chien et al.",
            2021,
            "https://arxiv.org/abs/2006.07988",
        ),
    ),
    ModelEntry(
        "cheb",
        "longnn.nn:ChebNet",
        "ChebNet",
        "Chebyshev, one weight matrix per degree",
        "H = ReLU(sum_k T_k(L - I) X W_k), Y = sum_k T_k(L - I) H W'_k",
        Paper(
            "Convolutional Neural Networks on Graphs with Fast Localized Spectral Filtering",
            "Defferrard, Bresson and Vandergheynst",
            2016,
            "https://arxiv.org/abs/1606.09375",
        ),
        space=_TWO_HOPS,
    ),
    ModelEntry(
        "cheb2",
        "longnn.nn:ChebNetII",
        "ChebNetII",
        "values at Chebyshev nodes",
        "Y = g(P) t(X), g the polynomial with values gamma_j >= 0 at the Chebyshev nodes",
        Paper(
            "Convolutional Neural Networks on Graphs with Chebyshev Approximation, Revisited",
            "He, Wei and Wen",
            2022,
            "https://arxiv.org/abs/2202.03580",
        ),
    ),
    ModelEntry(
        "even",
        "longnn.nn:EvenNet",
        "EvenNet",
        "even powers of the graph",
        "Y = sum_k w_k P^(2k) t(X)",
        Paper(
            "Ignoring Odd-Hop Neighbors Improves Robustness of Graph Neural Networks",
            "Lei et al.",
            2022,
            "https://arxiv.org/abs/2205.13892",
        ),
    ),
    ModelEntry(
        "appnp",
        "longnn.nn:APPNP",
        "APPNP",
        "personalised PageRank, fixed",
        "Y = sum_k r (1-r)^k P^k t(X) + (1-r)^K P^K t(X), self loops in P",
        Paper(
            "Predict then Propagate: Graph Neural Networks meet Personalized PageRank",
            "Klicpera, Bojchevski and Günnemann",
            2019,
            "https://arxiv.org/abs/1810.05997",
        ),
    ),
    ModelEntry(
        "sgc",
        "longnn.nn:SGC",
        "SGC",
        "one power of the graph, fixed",
        "Y = P^K X W, self loops in P",
        Paper(
            "Simplifying Graph Convolutional Networks",
            "Wu et al.",
            2019,
            "https://arxiv.org/abs/1902.07153",
        ),
        space=_TWO_HOPS,
    ),
    ModelEntry(
        "gcn",
        "longnn.nn:GCN",
        "GCN",
        "one hop per layer, fixed",
        "Y = P ReLU(P X W_1) W_2, self loops in P",
        _GCN,
    ),
    ModelEntry(
        "arma",
        "longnn.nn:ARMA",
        "ARMA",
        "rational",
        "two layers of X' = ReLU(P X' W + X V)",
        Paper(
            "Graph Neural Networks with Convolutional ARMA Filters",
            "Bianchi et al.",
            2022,
            "https://arxiv.org/abs/1901.01343",
        ),
    ),
    ModelEntry(
        "favard",
        "longnn.nn:FavardGNN",
        "FavardGNN",
        "any orthonormal basis, learned",
        "Y = (sum_k alpha_k p_k(P) ReLU(X W_1)) W_2, the recurrence of p_k trained",
        _OPTIMAL,
    ),
    ModelEntry(
        "optbasis",
        "longnn.nn:OptBasisGNN",
        "OptBasisGNN",
        "the basis best for the signal",
        "Y = (sum_k alpha_k v_k(H)) W, v_k orthonormal vectors of the hidden signal H",
        _OPTIMAL,
    ),
    ModelEntry(
        "lon-deep",
        "longnn.nn:DeepLONGNN",
        "Deep LON-GNN",
        "a filter per block, each basis learned",
        "h' = h + W_2 ReLU(W_1 [n(h), g_l(P) n(h)]), g_l = sum_k alpha_lk p_k^(a_l,b_l), L blocks",
        _LON,
        settings=_DEEP,
    ),
    ModelEntry(
        "gcn-deep",
        "longnn.nn:DeepGCN",
        "Deep GCN",
        "one hop per block, fixed",
        "h' = h + W_2 ReLU(W_1 [n(h), P n(h)]), self loops in P, L blocks",
        _GCN,
        settings=_DEEP,
    ),
    ModelEntry(
        "sage-deep",
        "longnn.nn:DeepSAGE",
        "Deep GraphSAGE",
        "the neighbours' mean per block, fixed",
        "h' = h + W_2 ReLU(W_1 [n(h), D^-1 A n(h)]), L blocks",
        Paper(
            "Inductive Representation Learning on Large Graphs",
            "Hamilton, Ying and Leskovec",
            2017,
            "https://arxiv.org/abs/1706.02216",
        ),
        settings=_DEEP,
    ),
    ModelEntry(
        "gat-deep",
        "longnn.nn:DeepGAT",
        "Deep GAT",
        "attention over the neighbours per block",
        "h' = h + W_2 ReLU(W_1 [n(h), alpha(n(h)) n(h) T]), self loops, L blocks",
        Paper(
            "Graph Attention Networks",
            "Veličković et al.",
            2018,
            "https://arxiv.org/abs/1710.10903",
        ),
        settings=_DEEP,
    ),
    ModelEntry(
        "mlp",
        "longnn.nn:MLP",
        "MLP",
        "none: does not use the graph",
        "Y = ReLU(X W_1) W_2",
    ),
    ModelEntry(
        "trees",
        "longnn.nn._trees:BoostedTrees",
        "Boosted trees",
        "neighbours' averages and extremes as columns",
        "Y = sum_t tree_t([X, (P^k X) / (P^k 1), P^k 1, log(1 + neighbours)]), k = 1 ... K",
        Paper(
            "LightGBM: A Highly Efficient Gradient Boosting Decision Tree",
            "Ke et al.",
            2017,
            "https://papers.nips.cc/paper/6907",
        ),
        settings={"lr_transform": 0.05},
    ),
)
#: Every model by its name.
MODELS: dict[str, ModelEntry] = {entry.name: entry for entry in _ENTRIES}
#: Those that are trained by steps of a gradient.
NETWORKS = {name: entry for name, entry in MODELS.items() if name != "trees"}


def find_model(name: str) -> ModelEntry:
    """The entry of a model.

    Raises:
        ValueError: naming the models there are, and the nearest.

    >>> find_model("lon").title
    'LON-GNN'
    """
    if name not in MODELS:
        raise ValueError(
            f"Expected `model` to be one of {', '.join(sorted(MODELS))} (got {name!r})"
            + did_you_mean(name, MODELS)
        )
    return MODELS[name]


def model_options(name: str) -> dict[str, Value]:
    """The options of a model and their defaults.

    >>> model_options("gcn")
    {'input_dropout': 0.5, 'dropout': 0.5}
    """
    return find_model(name).options


def get_model(
    name: str, in_channels: int, hidden_channels: int, out_channels: int, **options: Any
) -> "Model":
    """A model by its name."""
    return find_model(name).model(in_channels, hidden_channels, out_channels, **options)

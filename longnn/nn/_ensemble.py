r"""Several trained models that answer as one: the weighted average of what they predict."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import vmap

from longnn._base.torch_private import reparametrize
from longnn.filters import PolynomialFilter
from longnn.graphs import GraphOperator, Operator
from longnn.graphs._adjacency import SelfLoops
from longnn.nn._model import Model
from longnn.nn._terms import OnRows, Terms
from longnn.nn._transform import Features

#: Numbers (models x nodes x hidden units) of a signal that are held at once.
ROOM = 2**25
#: Fewer models than this are asked one by one: a call under ``vmap`` takes about as long as two.
TOGETHER = 3


def call_each(
    module: nn.Module,
    call: Callable[[Any], Any],
    tables: Mapping[str, Tensor],  # name -> (models, ...)
    *,
    at_once: int | None = None,
) -> Any:
    """What a function makes of a module with each row of the tables as its numbers, stacked.

    The module is called once under ``vmap``: the channels of all models lie side by side, so one
    sparse product serves all. A population is trained so, and alike members are asked so.

    Args:
        module: lends its code.
        call: of the module, to a tensor or a tuple of tensors.
        tables: weights and buffers by name.
        at_once: models of one pass; by default all.

    >>> doubled = {"weight": torch.tensor([[[1.0]], [[2.0]]])}
    >>> line = nn.Linear(1, 1, bias=False)
    >>> call_each(line, lambda module: module(torch.ones(1)), doubled).tolist()
    [[1.0], [2.0]]
    """

    def one(tensors: dict[str, Tensor]) -> Any:
        with reparametrize(module, tensors):
            return call(module)

    return vmap(one, chunk_size=at_once)(dict(tables))


def pays(x: Features | Terms) -> bool:
    """Whether models are asked in one pass: on a GPU, where calls cost more than their work.

    On a CPU the channels of several models no longer fit the cache together, and it is slower.
    """
    if torch.compiler.is_compiling():
        return False
    features = x.features if isinstance(x, Terms) else x
    return features.device.type == "cuda"


def layout(model: nn.Module) -> tuple[object, ...]:
    """Names, shapes and types of a model's numbers: equal where they can be stacked."""
    return tuple((name, t.shape, t.dtype) for name, t in _numbers(model).items())


def _numbers(model: nn.Module) -> dict[str, Tensor]:
    return dict([*model.named_parameters(), *model.named_buffers()])


def scores_together(
    models: Sequence[Model], x: Features | Terms, operator: Operator | OnRows
) -> list[Tensor]:
    """Scores (nodes, outputs) of each of several models that are alike, in evaluation mode.

    Args:
        models: of one class, with the same options and the same :func:`layout`.
        x, operator: as :meth:`Model.scores` takes them.
    """
    first: Any = models[0]
    at_once = ROOM // max(x.shape[0] * first.hidden_channels, 1)
    if len(models) < TOGETHER or at_once < 2:
        return [model.scores(x, operator) for model in models]  # type: ignore[arg-type]
    numbers = [_numbers(model) for model in models]
    tables = {name: torch.stack([of[name] for of in numbers]) for name in numbers[0]}
    found = call_each(first, lambda m: m.scores(x, operator), tables, at_once=at_once)
    return list(found)


#: What is averaged: probabilities of classes, of labels, or values.
Averaged = Literal["classification", "multilabel", "regression"]


class Ensemble(Model):
    r"""The weighted average of models, as one model.

    With scores :math:`s_m`, weights :math:`w_m` and temperatures :math:`T_m` of the members, the
    score of a class is the logarithm of its averaged probability,

    .. math:: s = \log \sum_m w_m \, \mathrm{softmax}(s_m / T_m),

    so that the softmax of the score is the averaged probability itself. For several labels it is
    the logit of the averaged probability, for values :math:`s = \sum_m w_m s_m`.

    Args:
        members: trained models by name, of equal inputs and outputs.
        weights: of the members, > 0 with sum 1.
        temperatures: of the members, > 0; values have none.
        averaged: what the members predict.
        alike: a key for each member; those of one key are of one architecture, and are asked in one
            pass where that is faster. By default none are.

    >>> from longnn.nn import MLP
    >>> members = {"one": MLP(3, 4, 2).eval(), "two": MLP(3, 4, 2).eval()}
    >>> both = Ensemble(members, {"one": 0.5, "two": 0.5}, {"one": 1.0, "two": 1.0})
    >>> x, edges = torch.rand(2, 3), torch.tensor([[0, 1], [1, 0]])
    >>> each = torch.stack([m(x, edges).softmax(1) for m in members.values()])
    >>> torch.allclose(both(x, edges).softmax(1), each.mean(0))
    True
    """

    def __init__(
        self,
        members: Mapping[str, Model],
        weights: Mapping[str, float],
        temperatures: Mapping[str, float],
        averaged: Averaged = "classification",
        alike: Mapping[str, Hashable] | None = None,
    ) -> None:
        if not members:
            raise ValueError("Expected at least one member (got none)")
        # In the order of their names, whatever order a file has them in.
        members = {name: members[name] for name in sorted(members)}
        first = next(iter(members.values()))
        super().__init__(first.in_channels, first.hidden_channels, first.out_channels)
        self.averaged = averaged
        self.alike = dict(alike or {})
        self.members = nn.ModuleDict(members)
        # Parameters, so that they are saved and loaded with the weights of the members.
        self.weights, self.temperatures = (
            nn.Parameter(torch.tensor([float(table[m]) for m in members]), requires_grad=False)
            for table in (weights, temperatures)
        )
        self.self_loops = self.lead.self_loops
        self.direction = self._graphic.direction

    @property
    def shares(self) -> dict[str, float]:
        """The weight of each member."""
        return dict(zip(self.members, self.weights.tolist(), strict=True))

    @property
    def leader(self) -> str:
        """The name of the member with the largest weight among those with a filter, or of all."""
        shares = self.shares
        filtering = [name for name in shares if self._member(name).filters()]
        return max(filtering or shares, key=shares.__getitem__)

    @property
    def lead(self) -> Model:
        """The member with the largest weight among those with a filter, or among all."""
        return self._member(self.leader)

    @property
    def _graphic(self) -> Model:
        """A member that knows what all of them make of arcs: not one that ignores the graph."""
        every = [self._member(name) for name in self.members]
        return next((m for m in every if m.direction != "none"), self.lead)

    def make_operator(
        self,
        graph: Tensor | GraphOperator,
        edge_weight: Tensor | None = None,
        num_nodes: int | None = None,
        **options: Any,
    ) -> GraphOperator:
        """As the members make it."""
        return self._graphic.make_operator(graph, edge_weight, num_nodes, **options)

    def _member(self, name: str) -> Model:
        member = self.members[name]
        assert isinstance(member, Model)
        return member

    def filters(self) -> list[PolynomialFilter]:
        """Those of the leading member."""
        return self.lead.filters()

    @property
    def row_degree(self) -> int | None:
        """The largest of the members, if all have one."""
        each = [self._member(name).row_degree for name in self.members]
        return None if None in each else max(degree for degree in each if degree is not None)

    def scores(self, x: Features | Terms, operator: Operator | OnRows) -> Tensor:
        loops = sorted({self._member(name).self_loops for name in self.members})
        if len(loops) > 1:
            raise ValueError(
                "Expected members that treat self loops alike to be asked on one operator (got "
                f"{', '.join(loops)}); use scores_on, or pass the edges"
            )
        return self.scores_on(x, lambda _: operator)

    def scores_on(
        self, x: Features | Terms, operator_of: Callable[[SelfLoops], Operator | OnRows]
    ) -> Tensor:
        """Scores (nodes, outputs), every member on the operator for its treatment of self loops."""
        return self.join(self.scores_of_each(x, operator_of))

    def scores_of_each(
        self, x: Features | Terms, operator_of: Callable[[SelfLoops], Operator | OnRows]
    ) -> Tensor:
        """The same of every member, (members, nodes, outputs), in the order of their names."""
        found: dict[str, Tensor] = {}
        for names in self._passes(x):
            models = [self._member(name) for name in names]
            scores = scores_together(models, x, operator_of(models[0].self_loops))
            found.update(zip(names, scores, strict=True))
        return torch.stack([found[name] for name in self.members])

    def disagreement(self, values: Tensor) -> Tensor:
        """The deviation of what members say (members, ...) about their weighted mean, (...).

        >>> from longnn.nn import MLP
        >>> members = {name: MLP(3, 4, 1) for name in "ab"}
        >>> both = Ensemble(members, {"a": 0.5, "b": 0.5}, {"a": 1.0, "b": 1.0}, "regression")
        >>> both.disagreement(torch.tensor([[1.0], [3.0]]))
        tensor([1.])
        """
        w = self.weights.to(values).reshape(-1, *(1,) * (values.dim() - 1))
        mean = (w * values).sum(0)
        return (w * (values - mean).square()).sum(0).sqrt()

    def _passes(self, x: Features | Terms) -> list[list[str]]:
        """The names of the members, those in one list that are asked in one pass."""
        passes: dict[Hashable, list[str]] = {}
        for name in self.members:
            model, key = self._member(name), self.alike.get(name)
            together = key is not None and model.by_steps and not model.training and pays(x)
            of = (key, model.self_loops, layout(model)) if together else name
            passes.setdefault(of, []).append(name)
        return list(passes.values())

    def join(self, s: Tensor) -> Tensor:
        """Scores (nodes, outputs) of those of the members, (members, nodes, outputs)."""
        w = self.weights.to(s)[:, None, None]
        if self.averaged == "regression":
            return (w * s).sum(0)
        s = s / self.temperatures.to(s)[:, None, None]
        if self.averaged == "classification":
            return torch.logsumexp(F.log_softmax(s, dim=2) + w.log(), dim=0)
        yes, no = (torch.logsumexp(F.logsigmoid(v) + w.log(), dim=0) for v in (s, -s))
        return yes - no

    def forward(
        self,
        x: Features,
        edge_index: Tensor | GraphOperator,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        if isinstance(edge_index, GraphOperator):
            return self.scores(x, edge_index)
        dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
        made: dict[Any, Operator] = {}

        def operator_of(loops: SelfLoops) -> Operator:
            if loops not in made:
                made[loops] = self.make_operator(
                    edge_index, edge_weight, x.shape[0], self_loops=loops, dtype=dtype
                )
            return made[loops]

        return self.scores_on(x, operator_of)

    def __repr__(self) -> str:
        shares = ", ".join(f"{name!r}: {w:.2f}" for name, w in self.shares.items())
        return f"Ensemble({self.in_channels}, {self.out_channels}, {{{shares}}})"

r"""Models of one architecture, called as one: their channels lie side by side.

Weights and buffers of the models stand in tables, shape (models, ...). One of the models is called
under ``vmap`` with the tables in place of its own numbers, so one sparse product serves all. A
population is trained so, and members of an ensemble that are alike are asked so.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import vmap

from longnn._base.torch_private import reparametrize
from longnn.graphs import Operator
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

"""What goes into a population and what comes out: a member, and the result of its training."""

import dataclasses
from typing import Any, Protocol

from torch import Tensor, nn

from longnn.config import Settings


class TrainableModel(Protocol):
    """The interface of a model, as far as training needs it."""

    def scores(self, x: Any, operator: Any) -> Tensor: ...
    def filters(self) -> list[Any]: ...
    def penalty(self) -> Tensor: ...
    def parameter_groups(self) -> dict[str, list[nn.Parameter]]: ...


@dataclasses.dataclass(frozen=True)
class Member:
    """One model of the population and what is its own.

    >>> import torch
    >>> from longnn.nn import MLP
    >>> train, val = torch.tensor([[True, False], [False, True]])
    >>> member = Member(MLP(2, 4, 2), Settings(epochs=3), seed=0, train=train, val=val)
    >>> member.settings.epochs, member.weight is None
    (3, True)
    """

    model: TrainableModel
    settings: Settings
    seed: int
    train: Tensor  # (nodes,) bool
    val: Tensor  # (nodes,) bool
    weight: Tensor | None = None  # in the losses, (nodes,) or (nodes, outputs); None: all alike


@dataclasses.dataclass
class Result:
    """What the training of a member gave."""

    state: dict[str, Tensor]  # the best weights, by name
    best_epoch: int
    epochs: int
    stopped: str  # patience, epochs, diverged, pruned, halved, time or interrupted
    history: dict[str, Tensor]  # field -> (epochs,)
    filter_path: Tensor | None  # (epochs, degree+1, channels) Chebyshev coefficients
    offset: tuple[float, ...] = (0.0,)  # regression: labels = offset + scale * output, by target
    scale: tuple[float, ...] = (1.0,)
    falling: bool = False  # whether a smaller score is a better one

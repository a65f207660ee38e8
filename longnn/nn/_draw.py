"""Where initial weights come from: torch's global generator, or one of the caller's own.

A model is built by constructors within constructors. The generator reaches them as a context
variable, which every thread has for itself.
"""

import contextlib
import contextvars
from collections.abc import Iterator

import torch
from torch import Tensor, nn

_generator: contextvars.ContextVar[torch.Generator | None] = contextvars.ContextVar(
    "generator", default=None
)


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw the weights of models that are built inside from a generator of their own.

    They are the bits that ``torch.manual_seed(seed)`` would give; the global generators are neither
    read nor changed.

    >>> from longnn.nn import MLP
    >>> with seeded(3):
    ...     one = MLP(2, 4, 2)
    >>> with seeded(3):
    ...     other = MLP(2, 4, 2)
    >>> bool((one.transform.first.weight == other.transform.first.weight).all())
    True
    """
    generator = torch.Generator(torch.get_default_device()).manual_seed(seed)
    token = _generator.set(generator)
    try:
        yield
    finally:
        _generator.reset(token)


def uniform_(weight: Tensor, bound: float) -> None:
    """Fill with numbers between -bound and bound."""
    nn.init.uniform_(weight, -bound, bound, generator=_generator.get())


def xavier_uniform_(weight: Tensor) -> None:
    """Fill by the rule of Glorot and Bengio (2010)."""
    nn.init.xavier_uniform_(weight, generator=_generator.get())

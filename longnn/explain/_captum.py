r"""Integrated gradients, by Captum (Sundararajan, Taly and Yan, 2017).

.. math:: \mathrm{IG}(X) = X \circ \int_0^1 \nabla F(\tau X)\,d\tau, \qquad
          \textstyle\sum \mathrm{IG}(X) = F(X) - F(0)

by Gauss-Legendre quadrature. F has kinks where a unit of ReLU changes sides, so the sum meets the
difference only nearly: callers show the gap.
"""

import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

#: Points of the quadrature.
STEPS = 64
_MISSING = (
    "Expected captum for integrated gradients (it is not installed); install it with: "
    "pip install 'longnn[explain]'"
)


@functools.cache
def _captum() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries that Captum loads
            import captum.attr  # an extra: needed here alone
    except ImportError as error:
        raise ValueError(_MISSING) from error
    return captum.attr


def is_available() -> bool:
    """Whether Captum is installed.

    >>> is_available() in (True, False)
    True
    """
    try:
        _captum()
    except ValueError:
        return False
    return True


def integrate(function: Callable[[Tensor], Tensor], x: Tensor, *, steps: int = STEPS) -> Tensor:
    """Attributions of ``function(x) - function(0)`` to the entries of x, in its shape.

    Args:
        function: from a tensor like x to a scalar.
        x: any shape.
        steps: of the quadrature.

    Raises:
        ValueError: where Captum is not installed.
    """
    if steps < 1:
        raise ValueError(f"Expected `steps` >= 1 (got {steps})")

    def batched(points: Tensor) -> Tensor:  # (batch, *x.shape) -> (batch,)
        return torch.stack([function(point) for point in points])

    method = _captum().IntegratedGradients(batched)
    found: Tensor = method.attribute(
        x.detach()[None], n_steps=steps, method="gausslegendre", internal_batch_size=1
    )
    return found[0].detach()

r"""Shorter filters in a trained model: the degree of every filter by Parseval's identity.

In an orthonormal basis :math:`\|g\|^2 = \sum_k \alpha_k^2`, so the least degree that keeps a share
s of the squared norm is read off the coefficients: the first d with
:math:`\sum_{k \le d}\alpha_k^2 \ge s\,\|g\|^2`, summed over the channels of a filter.
"""

import copy
import math
from typing import TypeVar

from torch import nn

from longnn.filters import PolynomialFilter

Module = TypeVar("Module", bound=nn.Module)


def truncate_filters(model: Module, share: float) -> Module:
    """A copy of a model in which every filter has the least degree for a share of its squared norm.

    Args:
        model: with filters in orthonormal bases, one or a stack of them.
        share: of each filter's squared norm that is kept, in (0, 1].

    Raises:
        ValueError: for another share, a model without filters, or a basis that is not orthonormal.

    >>> from longnn.nn import DeepLONGNN
    >>> stack = DeepLONGNN(5, 8, 3, blocks=2, degree=6, restart=1.0)  # starts as the identity
    >>> count_products(stack), count_products(truncate_filters(stack, 0.999))
    (12, 0)
    """
    if not 0 < share <= 1:
        raise ValueError(f"Expected 0 < `share` <= 1 (got {share:g})")
    tolerance = math.sqrt(1 - share)  # of the norm, as a filter counts it
    shorter = copy.deepcopy(model)
    found = False
    for parent in list(shorter.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, PolynomialFilter):
                found = True
                dtype = next(child.parameters(), next(shorter.parameters())).dtype
                setattr(parent, name, child.truncate(tolerance).filter.to(dtype))
    if not found:
        raise ValueError(f"Expected a model with polynomial filters (got {type(model).__name__})")
    return shorter.train(model.training)


def count_products(model: nn.Module) -> int:
    """How many sparse products the filters of a model take: the sum of their degrees."""
    return sum(f.degree for f in model.modules() if isinstance(f, PolynomialFilter))

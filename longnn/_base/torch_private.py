"""Interfaces of torch that are not public: every use of one is in this file.

Each is here because the public way is slower by more than the work itself. When a new torch
changes one, this is the file to mend; ``tests/test_torch_private.py`` checks each against its
public form.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.stateless import _reparametrize_module


def bare_function(operator: Any) -> Callable[..., Any]:
    """The Python function behind a ``torch.library.custom_op``: 1 us a call instead of 10."""
    function: Callable[..., Any] = operator._init_fn
    return function


def spare_compiler(operator: Any) -> None:
    """Let a ``torch.library.custom_op`` be called without loading ``torch._dynamo`` for seconds.

    Its first call loads it to keep ``torch.compile`` out of the function, whose graphs hold the
    operator itself and never look inside.
    """
    operator._backend_fns[None] = operator._init_fn


def operator_name(operator: Any) -> str:
    """The qualified name of a ``torch.library.custom_op``."""
    return str(operator._qualname)


def transforms_active() -> bool:
    """Whether a ``torch.func`` transform (vmap, grad, ...) is at work."""
    return bool(torch._C._are_functorch_transforms_active())


def apply_bare(function: Any, inputs: tuple[Any, ...]) -> Any:
    """``function.apply(*inputs)`` where no transform is at work and no ``setup_context`` is
    defined, without looking for them again: 2 us a call less."""
    bare: Any = super(torch.autograd.Function, function)
    return bare.apply(*inputs)


def reparametrize(module: nn.Module, tensors: Mapping[str, Tensor]) -> AbstractContextManager[Any]:
    """The module with other weights for a while; ``torch.func.functional_call`` in two halves."""
    return _reparametrize_module(module, dict(tensors))


def copy_each_(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    """``target.copy_(source)`` for all pairs in one call."""
    torch._foreach_copy_(list(targets), list(sources))


def fused_adam_(
    parameters: Sequence[Tensor],
    gradients: Sequence[Tensor],
    means: Sequence[Tensor],
    squares: Sequence[Tensor],
    *,
    epoch: Tensor,  # scalar, counted from 1
    rate: float,
    decay: float,
    betas: tuple[float, float],
    epsilon: float,
) -> None:
    """One step of :class:`torch.optim.Adam` with ``fused=True``, for weights of one rate."""
    torch._fused_adam_(
        list(parameters),
        list(gradients),
        list(means),
        list(squares),
        [],
        [epoch] * len(parameters),
        lr=rate,
        beta1=betas[0],
        beta2=betas[1],
        weight_decay=decay,
        eps=epsilon,
        amsgrad=False,
        maximize=False,
    )

"""Derivatives written by hand, in the forms that torch knows, at the least cost.

:func:`differentiable` joins a function and its backward pass in one callable that works in plain
calls, under the ``torch.func`` transforms and under ``torch.compile``. It knows no formula.
"""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from longnn._base.torch_private import (
    apply_bare,
    bare_function,
    operator_name,
    spare_compiler,
    transforms_active,
)

#: What a function is given outside of tracing.
_PLAIN = {Tensor, torch.nn.Parameter, int, float, bool, type(None)}

Save = Callable[[Any, tuple[Any, ...], Any], None]


def differentiable(
    call: Any,
    backward: Callable[..., Any],
    save: Save,
    *,
    vmap: Callable[..., Any] | Literal["lead", "torch"] = "lead",
) -> Callable[..., Any]:
    """Give a function its derivative rule.

    ``torch.compile`` traces the rule registered with a torch operator; the ``torch.func``
    transforms (grad, jacrev, vmap) need an autograd Function with a ``setup_context``; a plain
    call is cheapest as a Function of the old form around the bare function (6 us, not 31). Under
    vmap the batch becomes one call of the result itself, so that its backward pass is plain.

    Args:
        call: a torch operator of ours, or a function of torch operations.
        backward: gradients of the inputs, from the context and the gradients of the outputs.
        save: ``save(ctx, inputs, output)`` keeps what the backward pass needs.
        vmap: ``vmap(info, in_dims, *inputs)`` as torch has it; or ``"lead"`` if the function
            understands a batch in front of each tensor; or ``"torch"`` to let torch find the rule,
            which is slow.
    """
    operator = hasattr(call, "register_autograd")
    bare = bare_function(call) if operator else call

    def forward(ctx: Any, *inputs: Any) -> Any:
        output = bare(*inputs)
        save(ctx, inputs, output)
        return output

    def lead(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Any, Any]:
        batch = (to_front(t, dim, info.batch_size) for t, dim in zip(inputs, in_dims, strict=True))
        out = apply(*batch)
        return out, (0,) * len(out) if isinstance(out, tuple) else 0

    def back(ctx: Any, *grads: Any) -> Any:
        if all(g is None for g in grads):  # see `first_alone`
            return (None,) * len(ctx.needs_input_grad)
        return backward(ctx, *grads)

    batched = lead if vmap == "lead" else vmap
    options: Any = {"generate_vmap_rule": True}
    under_transforms = {
        **(options if batched == "torch" else {"vmap": staticmethod(batched)}),
        "forward": staticmethod(lambda *inputs: call(*inputs)),
        "setup_context": staticmethod(save),
    }
    # A profiler shows the class' name: that of the operator.
    name = operator_name(call) if operator else call.__name__
    rules: tuple[Any, ...] = tuple(
        type(name, (torch.autograd.Function,), {**of, "backward": staticmethod(back)})
        for of in ({"forward": staticmethod(forward)}, under_transforms)
    )
    plain, transformed = rules
    if operator:
        spare_compiler(call)
        call.register_autograd(back, setup_context=save)
        call.register_vmap(batched)

    def apply(*inputs: Any) -> Any:
        if operator and torch.compiler.is_compiling():
            return call(*inputs)
        if plainly(inputs):
            return apply_bare(plain, inputs)
        return transformed.apply(*inputs)

    apply.__doc__ = bare.__doc__
    return apply


def lean(op: Any) -> Callable[..., Any]:
    """A torch operator without a derivative, called directly where the result is the same.

    That takes 1 us instead of 10.
    """
    bare = bare_function(op)
    spare_compiler(op)
    return lambda *inputs: (bare if plainly(inputs) else op)(*inputs)


def plainly(inputs: tuple[Any, ...]) -> bool:
    """Whether nothing transforms or traces a call: tracing shows in the type of the tensors."""
    if torch.compiler.is_compiling() or transforms_active():
        return False
    return all(type(t) in _PLAIN for t in inputs)


def to_front(value: Any, dim: int | None, batch: int) -> Any:
    """A tensor with its batch in front, the same for all where it has none; a number as it is.

    >>> to_front(torch.zeros(3, 2), 1, 2).shape, to_front(torch.zeros(3), None, 2).shape
    (torch.Size([2, 3]), torch.Size([2, 3]))
    """
    if not isinstance(value, Tensor):
        return value
    return value.expand(batch, *value.shape) if dim is None else value.movedim(dim, 0)


def save_inputs(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Keep the inputs, all of them tensors."""
    ctx.save_for_backward(*inputs)


def first_alone(ctx: Any, output: tuple[Any, ...]) -> None:
    """Only the first result has a gradient; the backward pass is given None for the others.

    torch would make a tensor of zeros for each of them, at every call.
    """
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def side_by_side(call: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """The vmap rule of a function of a graph's three arrays and signals of shape (rows, channels):
    a batch on one graph is one call on more channels. What is no tensor stays as it is."""

    def rule(info: Any, in_dims: Any, crow: Tensor, col: Tensor, values: Tensor, *dense: Any):  # type: ignore[no-untyped-def]
        batch = info.batch_size
        folded = (_fold(t, dim, batch) for t, dim in zip(dense, in_dims[3:], strict=True))
        out = call()(crow, col, values, *folded)
        if isinstance(out, tuple):
            return tuple(t.view(t.shape[0], batch, -1) for t in out), (1,) * len(out)
        return out.view(out.shape[0], batch, -1), 1

    return rule


def _fold(value: Any, dim: int | None, batch: int) -> Any:
    """(rows, channels) with a batch dimension somewhere, or none -> (rows, batch * channels)."""
    if not isinstance(value, Tensor):
        return value
    if dim is None:
        value = value[:, None].expand(-1, batch, -1)
    else:
        value = value.movedim(dim, 1)
    return value.reshape(value.shape[0], -1)

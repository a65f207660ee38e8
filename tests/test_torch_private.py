"""Each private interface of torch that we use does what its public form does.

Adam and calls with other weights: populations are compared with torch's in
``tests/training/test_population.py``.
"""

import torch

from longnn._base import torch_private


def test_many_copies_are_single_copies():
    targets, sources = [torch.zeros(2), torch.zeros(3)], [torch.ones(2), torch.arange(3.0)]
    torch_private.copy_each_(targets, sources)
    assert all(torch.equal(t, s) for t, s in zip(targets, sources, strict=True))


def test_a_bare_call_is_that_of_an_autograd_function():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x**2 * grad

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    found, expected = torch_private.apply_bare(Cube, (x,)), Cube.apply(x)
    assert torch.equal(found, expected)
    (ours,), (theirs,) = (torch.autograd.grad(y.sum(), x) for y in (found, expected))
    assert torch.equal(ours, theirs)


def test_transforms_are_noticed():
    seen = []

    def watched(x):
        seen.append(torch_private.transforms_active())
        return x.sum()

    watched(torch.ones(2))
    torch.func.grad(watched)(torch.ones(2))
    torch.func.vmap(watched)(torch.ones(2, 2))
    assert seen == [False, True, True]


@torch.library.custom_op("longnn_test::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


def test_the_function_behind_an_operator():
    x = torch.arange(3.0)
    assert torch.equal(torch_private.bare_function(twice)(x), twice(x))
    assert torch_private.operator_name(twice) == "longnn_test::twice"

"""What follows a linear map, in place on a CPU, against the steps in turn."""

import pytest
import torch
from torch.autograd import gradcheck

from longnn.matrices import dropout
from longnn.nn._channels import activate_
from tests.helpers import random_tensor

STREAM, RATE = torch.tensor([2**40 + 3, 7]), torch.tensor(0.3)


def in_turn(x, bias, site, first):
    return dropout(torch.relu(x + bias), STREAM, RATE, site, first)


@pytest.mark.parametrize("first", [0, 15])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_in_place_equals_the_steps_in_turn(dtype, first):
    x, bias = random_tensor(9, 5, dtype=dtype), random_tensor(5, dtype=dtype, seed=1)
    upstream = random_tensor(9, 5, dtype=dtype, seed=2)
    leaves = [(x.clone().requires_grad_(), bias.clone().requires_grad_()) for _ in range(2)]
    written = leaves[0][0] * 1
    mine = activate_(written, leaves[0][1], STREAM, RATE, 2, first)
    theirs = in_turn(*leaves[1], 2, first)
    assert mine.data_ptr() == written.data_ptr()
    assert torch.equal(mine, theirs)
    assert 0 < int((mine == 0).sum()) < mine.numel()
    for found, expected in zip(
        torch.autograd.grad(mine, leaves[0], upstream),
        torch.autograd.grad(theirs, leaves[1], upstream),
        strict=True,
    ):
        assert torch.equal(found, expected)


def test_the_derivative_is_right():
    x, bias = random_tensor(4, 3).requires_grad_(), random_tensor(3, seed=1).requires_grad_()
    call = lambda x, bias: activate_(x * 1, bias, STREAM, RATE, 1, 0)  # noqa: E731
    assert gradcheck(call, (x, bias))


def test_what_cannot_be_written_over_is_left_to_others():
    bias = torch.zeros(3)
    assert activate_(torch.zeros(3, 4).T, bias, STREAM, RATE, 0, 0) is None
    assert activate_(torch.zeros(4, 3).bfloat16(), bias, STREAM, RATE, 0, 0) is None

    def one(x):
        assert activate_(x, bias, STREAM, RATE, 0, 0) is None
        return x

    torch.func.vmap(one)(torch.zeros(2, 4, 3))

"""The fused Jacobi matrix against the recurrence differentiated by autograd."""

import pytest
import torch
from torch.autograd import gradcheck

from longnn.polynomials import Jacobi
from longnn.polynomials._fused import jacobi_series

PAIRS = [(0.0, 0.0), (-0.5, -0.5), (-0.9, -0.4), (-0.7, -0.3), (4.0, 7.0), (-0.999, 20.0)]


def matrix(a, b, degree, unit_mass):
    """The series of each term, as the rows of C."""
    terms = torch.eye(degree + 1, dtype=a.dtype).expand(*a.shape, -1, -1)
    return jacobi_series(a, b, terms, degree, unit_mass=unit_mass).mT


def reference(a, b, degree, weight):
    return Jacobi(weight=weight).at(a=a, b=b).chebyshev_matrix(degree)


@pytest.mark.parametrize("weight", ["probability", "paper"])
@pytest.mark.parametrize("degree", [0, 1, 2, 3, 10, 40])
def test_values_and_derivatives_equal_autograd(degree, weight):
    a, b = (
        torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in zip(*PAIRS, strict=True)
    )
    ours = matrix(a, b, degree, unit_mass=weight == "probability")
    theirs = reference(a, b, degree, weight)
    scale = theirs.detach().abs().amax((1, 2), keepdim=True)
    torch.testing.assert_close(ours / scale, theirs / scale, rtol=0, atol=1e-12)
    if degree == 0 and weight == "probability":
        return
    weights = torch.randn(
        ours.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    for mine, other in zip(
        torch.autograd.grad((ours / scale * weights).sum(), (a, b)),
        torch.autograd.grad((theirs / scale * weights).sum(), (a, b)),
        strict=True,
    ):
        torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("unit", [True, False])
def test_gradcheck_also_under_vmap(unit):
    a = torch.tensor([0.3, -0.6], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([-0.2, 5.0], dtype=torch.float64, requires_grad=True)
    f = lambda a, b: matrix(a, b, 6, unit_mass=unit)  # noqa: E731
    assert gradcheck(f, (a, b))
    assert gradcheck(torch.func.vmap(f), (a, b))
    assert gradcheck(torch.func.vmap(f, in_dims=(0, None)), (a, b[0].detach().requires_grad_()))
    torch.testing.assert_close(torch.func.vmap(f)(a, b), f(a, b))

"""The hot loop: agreement with eigendecomposition, derivatives, batching, tracing, memory."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from longnn import GraphOperator, apply_filter
from longnn.graphs._propagate import chebyshev_stack

from .helpers import double_operator, exact_filter, random_graph, random_tensor

NODES = 20


@pytest.fixture(params=["symmetric", "random_walk"])
def operator(request):
    edges = random_graph(NODES, isolated=2)
    return double_operator(edges, NODES, normalization=request.param)


def series(beta):
    """The response of Chebyshev coefficients, by NumPy."""
    return lambda lam: torch.from_numpy(
        np.polynomial.chebyshev.chebval((1 - lam).numpy(), beta.numpy())
    )


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 50])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_equals_eigendecomposition(operator, degree, dtype, tolerance):
    x = random_tensor(NODES, 3)
    beta = random_tensor(degree + 1, 3, seed=1)
    expected = exact_filter(operator, series(beta), x)
    ours = apply_filter(operator.to(dtype), x.to(dtype), beta.to(dtype))
    assert ours.dtype == dtype
    error = (ours.double() - expected).norm() / expected.norm()
    assert error < tolerance
    shared = beta[:, :1].to(dtype)
    each = shared.expand(-1, 3).contiguous()
    x = x.to(dtype)
    ours, kept = apply_filter(operator.to(dtype), x, shared), x.clone()
    torch.testing.assert_close(ours, apply_filter(operator.to(dtype), x, each))
    assert torch.equal(ours, apply_filter(operator.to(dtype), x, shared))
    assert torch.equal(x, kept)


@pytest.mark.parametrize("channels", [1, 2, 5, 7, 8, 30, 33])
def test_any_number_of_channels_with_derivatives(operator, channels):
    """Against autograd through dense powers: a CPU fills channels up to a handy number."""
    x = random_tensor(NODES, channels).requires_grad_()
    beta = random_tensor(4, channels, seed=1).requires_grad_()
    P, one = operator.to_dense(), torch.eye(NODES, dtype=torch.float64)
    terms = (one, P, 2 * P @ P - one, 4 * P @ P @ P - 3 * P)
    expected = sum(T @ x * b for T, b in zip(terms, beta, strict=True))
    ours, upstream = apply_filter(operator, x, beta), random_tensor(NODES, channels, seed=2)
    torch.testing.assert_close(ours, expected)
    found = torch.autograd.grad(ours, (x, beta), upstream)
    torch.testing.assert_close(found, torch.autograd.grad(expected, (x, beta), upstream))
    # It is a tensor of its own, not a view of the loop's memory: it may be changed in place.
    values = apply_filter(operator, x, beta)
    torch.testing.assert_close(values.relu_(), expected.relu())
    values.sum().backward()


def test_bfloat16_is_stored_and_float32_summed():
    """Against float32 on the same rounded signal: only the result is rounded to bfloat16."""
    operator = GraphOperator.from_edge_index(random_graph(NODES), num_nodes=NODES)
    x = random_tensor(NODES, 4, dtype=torch.float32).bfloat16()
    beta = random_tensor(21, 4, dtype=torch.float32, seed=1)
    out = apply_filter(operator, x, beta)
    assert out.dtype == torch.bfloat16
    expected = apply_filter(operator, x.float(), beta)
    torch.testing.assert_close(out, expected.bfloat16(), rtol=0, atol=0)


def test_gradients(operator):
    x = random_tensor(NODES, 2).requires_grad_()
    beta = random_tensor(5, 2, seed=1).requires_grad_()
    f = lambda x, beta: apply_filter(operator, x, beta)  # noqa: E731
    assert gradcheck(f, (x, beta))
    assert gradgradcheck(f, (x, beta))
    shared = random_tensor(5, 1, seed=1).requires_grad_()
    assert gradcheck(f, (x, shared))
    assert gradcheck(f, (x, beta.detach()))  # fixed: there is no gradient of theirs to compute
    assert gradcheck(lambda x: operator @ x, (x,))


@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0), (1, 2)])
def test_vmap_equals_loop_and_has_gradients(operator, in_dims):
    batch = 3
    x, beta = random_tensor(batch, NODES, 2), random_tensor(batch, 5, 2, seed=1)
    loop = [
        apply_filter(
            operator,
            x[0 if in_dims[0] is None else i],
            beta[0 if in_dims[1] is None else i],
        )
        for i in range(batch)
    ]
    inputs = [
        (t[0] if dim is None else t.movedim(0, dim)).clone().requires_grad_()
        for t, dim in zip((x, beta), in_dims, strict=True)
    ]
    f = torch.func.vmap(lambda x, beta: apply_filter(operator, x, beta), in_dims=in_dims)
    torch.testing.assert_close(f(*inputs), torch.stack(loop))
    assert gradcheck(f, inputs)
    if in_dims == (None, 0):  # gradients of each member by vmap(grad)
        loss = lambda beta: apply_filter(operator, x[0], beta).square().sum()  # noqa: E731
        together = torch.func.vmap(torch.func.grad(loss))(beta)
        alone = torch.stack([torch.func.grad(loss)(member) for member in beta])
        torch.testing.assert_close(together, alone)


def test_vmap_of_products(operator):
    x = random_tensor(3, NODES, 2).requires_grad_()
    f = torch.func.vmap(lambda x: operator @ x)
    torch.testing.assert_close(f(x), torch.stack([operator @ member for member in x]))
    assert gradcheck(f, (x,))
    assert gradgradcheck(f, (x,))


def test_operators_pass_torchs_own_check(operator):
    m = operator.matrix
    x = random_tensor(NODES, 2).requires_grad_()
    beta = random_tensor(4, 2, seed=1).requires_grad_()
    torch.library.opcheck(
        torch.ops.longnn.chebyshev_filter.default, (m.crow, m.col, m.values, x, beta)
    )
    arrays = (m.crow, m.col, m.values, m.crow_t, m.col_t, m.values_t)
    torch.library.opcheck(torch.ops.longnn.csr_matmul.default, (*arrays, x))


def test_stack_holds_every_term(operator):
    x = random_tensor(NODES, 2)
    stack = chebyshev_stack(operator, x, 6)
    for j in range(7):
        one = torch.zeros(7, 1, dtype=torch.float64)
        one[j] = 1
        torch.testing.assert_close(stack[j], apply_filter(operator, x, one))


@pytest.mark.parametrize(
    ("x", "beta", "error", "message"),
    [
        (torch.zeros(NODES + 1, 2), torch.zeros(3, 2), ValueError, r"\(20, channels\) \(got \(21"),
        (torch.zeros(NODES), torch.zeros(3, 1), ValueError, r"shape \(20, channels\)"),
        (torch.zeros(NODES, 2), torch.zeros(3, 3), ValueError, r"1 or 2 channels.*\(got 3\)"),
        (torch.zeros(NODES, 2), torch.zeros(3), ValueError, r"\(degree\+1, channels\)"),
        (torch.zeros(NODES, 2), torch.zeros(0, 2), ValueError, r"\(got \(0, 2\)\)"),
        (
            torch.zeros(NODES, 2).float(),
            torch.zeros(3, 2),
            TypeError,
            r"operator.to\(torch.float32",
        ),
    ],
)
def test_errors(operator, x, beta, error, message):
    x = x if error is TypeError else x.double()
    with pytest.raises(error, match=message):
        apply_filter(operator, x, beta)

"""Triton kernels against plain float64 references: under the interpreter here, on a GPU there.

``TRITON_INTERPRET=1`` (set in conftest where there is no GPU) runs the very same kernels on CPU
tensors; with a GPU they are compiled. Either way they are called directly, not through dispatch.
"""

import numpy as np
import pytest
import torch

from longnn import kernels
from longnn._base.contexts import dense_products
from longnn.config import Settings
from longnn.matrices import _noise as noise
from longnn.matrices._sparse import SparseMatrix
from longnn.nn._channels import activate, add_bias, by_kernel
from longnn.nn._transform import fused_narrow_matmul
from longnn.polynomials import Jacobi
from longnn.polynomials._chebyshev import nodes, transform
from longnn.training._history import Standing
from longnn.training._stack import BETA1, BETA2, EPSILON, Packed

from ..helpers import double_operator, random_graph, random_tensor

pytest.importorskip("triton")

from longnn.kernels import _basis as basis
from longnn.kernels import _chebyshev as chebyshev
from longnn.kernels import _dense as dense
from longnn.kernels import _features as features
from longnn.kernels import _rows as rows
from longnn.kernels import _step as step

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
NODES = 37


def hub_graph():
    """A random graph and one node joined to all others: rows of very different degrees."""
    edges = random_graph(NODES, isolated=3, seed=1)
    others = torch.arange(1, NODES - 3)
    hub = torch.stack([torch.zeros_like(others), others])
    return double_operator(torch.cat([edges, hub, hub.flip(0)], dim=1), NODES)


@pytest.mark.parametrize(("longest", "edges"), [(8, 4), (256, 4), (256, 40)])
@pytest.mark.parametrize(("degree", "channels"), [(1, 5), (2, 1), (4, 70)])
def test_chebyshev_filter(degree, channels, longest, edges, monkeypatch):
    """With the hub's row cut into pieces, and as one; tiles for few and for many edges per row."""
    tile = chebyshev._tile(channels, edges, chebyshev.MANY)._replace(longest=longest)
    monkeypatch.setattr(chebyshev, "_tile", lambda *sizes: tile)
    m = hub_graph().to(DEVICE).matrix
    x = random_tensor(NODES, channels).to(DEVICE)
    beta = random_tensor(degree + 1, channels, seed=1).to(DEVICE)
    signal = random_tensor(NODES, channels, seed=2).to(DEVICE)
    terms = [x, m.to_dense() @ x]
    for _ in range(2, degree + 1):
        terms.append(2 * m.to_dense() @ terms[-1] - terms[-2])
    stack = torch.stack(terms)
    kept = x.clone()
    out, nothing = chebyshev.chebyshev_filter(m.crow, m.col, m.values, x, beta)
    expected = torch.einsum("jnc,jc->nc", stack, beta)
    torch.testing.assert_close(out, expected)
    assert nothing is None
    out, moments = chebyshev.chebyshev_filter(m.crow, m.col, m.values, x, beta, signal)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(moments, torch.einsum("jnc,nc->jc", stack, signal))
    assert torch.equal(x, kept)


def test_chebyshev_filter_rounds_wider_coefficients_where_it_reads_them():
    m = hub_graph().to(torch.float32).to(DEVICE).matrix
    x = random_tensor(NODES, 3, dtype=torch.float32).to(DEVICE)
    beta = random_tensor(4, 3, seed=1).to(DEVICE)
    wide, moments = chebyshev.chebyshev_filter(m.crow, m.col, m.values, x, beta, x)
    plain, sums = chebyshev.chebyshev_filter(m.crow, m.col, m.values, x, beta.float(), x)
    assert torch.equal(wide, plain)
    assert moments.dtype == torch.float64
    torch.testing.assert_close(moments.float(), sums)


def sparse_features():
    x = random_tensor(NODES, 11)
    return SparseMatrix.from_dense(x * (x > 0.4)).to(DEVICE)


STREAM = torch.tensor([[3, 1], [4, 7], [2**40 + 5, 1000]])
RATES = torch.tensor([0.0, 0.3, 0.8], dtype=torch.float64)


@pytest.mark.parametrize(("members", "channels", "full"), [(3, 1, 0), (9, 6, 0), (2, 70, 1)])
def test_feature_product(members, channels, full):
    """Short rows, of few members and of many, and long ones."""
    x = SparseMatrix.from_dense(random_tensor(NODES, 40)).to(DEVICE) if full else sparse_features()
    w = random_tensor(members, x.shape[1], channels).to(DEVICE)
    plain = features.feature_product(x.crow, x.col, x.values, w)
    torch.testing.assert_close(plain, x.to_dense() @ w)
    # A batch that is not in front in memory, and a transpose.
    strided = w.movedim(0, 1).contiguous().movedim(1, 0)
    torch.testing.assert_close(features.feature_product(x.crow, x.col, x.values, strided), plain)
    g = random_tensor(members, NODES, channels, seed=4).to(DEVICE)
    back = features.feature_product(x.crow_t, x.col_t, x.values_t, g, members_first=True)
    torch.testing.assert_close(back, x.to_dense().T @ g)


def test_feature_product_with_dropout_equals_masks_on_stored_values():
    x = sparse_features()
    w = random_tensor(3, 11, 6).to(DEVICE)
    stream, p = STREAM.to(DEVICE), RATES.to(DEVICE)
    masks = noise.masks(STREAM, RATES, torch.empty(0, dtype=torch.float64), 2, [x.nnz]).to(DEVICE)
    dense = torch.stack([x.with_values(x.values * m).to_dense() for m in masks])
    out = features.feature_product(x.crow, x.col, x.values, w, stream=stream, p=p, site=2)
    torch.testing.assert_close(out, dense @ w, rtol=1e-6, atol=1e-6)  # the scale is float32
    g = random_tensor(3, NODES, 6, seed=4).to(DEVICE)
    back = features.feature_product(
        x.crow_t, x.col_t, x.values_t, g, stream=stream, p=p, site=2, position=x.order_t
    )
    torch.testing.assert_close(back, dense.mT @ g, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("site", [0, 1, 5])
@pytest.mark.parametrize("layout", ["members first", "members inside"])
def test_dropout_makes_the_numbers_of_noise(layout, site):
    x = random_tensor(3, 13, 7, dtype=torch.float32).to(DEVICE)
    if layout == "members inside":
        x = x.movedim(0, 1).contiguous().movedim(1, 0)
    p = RATES.float()
    masks = noise.masks(STREAM, p, torch.empty(0), site, [13, 7]).to(DEVICE)
    out = rows.dropout(x, STREAM.to(DEVICE), p.to(DEVICE), site)
    torch.testing.assert_close(out, x * masks, rtol=1e-6, atol=0)
    assert out.stride() == x.stride()


@pytest.mark.parametrize("row", [3, 8])
def test_rows_of_a_signal_have_the_numbers_of_the_whole(row):
    x = random_tensor(3, 13, 7, dtype=torch.float32).to(DEVICE)
    keyed = (STREAM.to(DEVICE), RATES.float().to(DEVICE), 2)
    whole = rows.dropout(x, *keyed)
    some = rows.dropout(x[:, row:].contiguous(), *keyed, first=7 * row)
    assert torch.equal(some, whole[:, row:])
    assert rows.dropout(x[:, :0].contiguous(), *keyed).shape == (3, 0, 7)


@pytest.mark.parametrize("drop", [True, False])
@pytest.mark.parametrize("layout", ["members first", "rows first"])
def test_activation_and_its_gradient(layout, drop):
    x = random_tensor(3, 13, 70).to(DEVICE)
    if layout == "rows first":
        x = x.movedim(0, 1).contiguous().movedim(1, 0)
    bias, grad = (random_tensor(*s, seed=4).to(DEVICE) for s in ((3, 70), (3, 13, 70)))
    stream, p = (STREAM.to(DEVICE), RATES.to(DEVICE)) if drop else (None, None)
    masks = noise.masks(STREAM, RATES, x.new_empty(0).cpu(), 2, [13, 70]).to(DEVICE) if drop else 1
    out = rows.dropout(x, stream, p, 2, bias=bias)
    torch.testing.assert_close(out, torch.relu(x + bias[:, None]) * masks)
    back = rows.activation_gradient(grad, out, p)
    torch.testing.assert_close(back, grad * masks * (x + bias[:, None] > 0))
    assert out.stride() == back.stride() == x.stride()


def test_activation_under_autograd_and_vmap():
    x, bias = random_tensor(3, 2, 3).to(DEVICE), random_tensor(3, 3, seed=1).to(DEVICE)
    stream, p = STREAM.to(DEVICE), RATES.to(DEVICE)
    leaves = [t.requires_grad_() for t in (x, bias)]

    def batched(x, bias):
        return torch.vmap(lambda x, bias, s, p: activate(x, bias, s, p, 1, 0))(x, bias, stream, p)

    assert torch.autograd.gradcheck(batched, leaves)
    assert torch.autograd.gradcheck(lambda x, b: activate(x, b, None, None, 1, 0), [x[1], bias[1]])
    alone = torch.stack([activate(*t, 1, 0) for t in zip(x, bias, stream, p, strict=True)])
    torch.testing.assert_close(batched(x, bias), alone)


LAYOUTS = pytest.mark.parametrize("layout", ["members first", "rows first"])


def signal_of(layout, *shape):
    x = random_tensor(*shape).to(DEVICE)
    return x if layout == "members first" else x.movedim(0, 1).contiguous().movedim(1, 0)


@LAYOUTS
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("columns", [1, 7, 300])
def test_norms_and_their_gradients(layout, center, columns):
    """Against torch's layer norm and the formula of the root mean square, a row of zeros too."""
    x = signal_of(layout, 3, 13, columns)
    x[1, 4] = 0.0
    x.requires_grad_()
    mean = x.mean(-1, keepdim=True) if center else 0.0
    expected = (x - mean) * ((x - mean).square().mean(-1, keepdim=True) + 1e-5).rsqrt()
    if center:
        theirs = torch.nn.functional.layer_norm(x, [columns])
        torch.testing.assert_close(expected, theirs)
    out, inverse = rows.normalize(x.detach(), 1e-5, center=center)
    torch.testing.assert_close(out, expected.detach())
    upstream = random_tensor(3, 13, columns, seed=4).to(DEVICE)
    back = rows.normalize_gradient(upstream, out, inverse, center=center)
    torch.testing.assert_close(
        back, torch.autograd.grad((expected * upstream).sum(), x)[0], atol=1e-4, rtol=1e-6
    )
    assert out.stride() == back.stride() == x.stride()


@pytest.mark.parametrize("center", [True, False])
def test_norms_under_autograd_and_vmap(center):
    x = random_tensor(2, 2, 3).to(DEVICE).requires_grad_()

    def batched(x):
        return torch.vmap(lambda x: by_kernel(x, 1e-5, center)[0])(x)

    assert torch.autograd.gradcheck(batched, [x])
    assert torch.autograd.gradcheck(lambda x: by_kernel(x, 1e-5, center)[0], [x[1]])


@LAYOUTS
@pytest.mark.parametrize(("count", "columns"), [(13, 300), (1000, 3)])
def test_bias_residual_and_sums_over_rows(layout, count, columns):
    x = signal_of(layout, 2, count, columns)
    bias = random_tensor(2, columns, seed=4).to(DEVICE)
    residual = random_tensor(2, count, columns, seed=5).to(DEVICE)
    torch.testing.assert_close(rows.add_bias(x, bias), x + bias[:, None])
    out = rows.add_bias(x, bias, residual)
    torch.testing.assert_close(out, x + bias[:, None] + residual)
    assert out.stride() == x.stride()
    torch.testing.assert_close(rows.sum_rows(x), x.sum(1))


def test_bias_under_autograd_and_vmap():
    x, bias = random_tensor(2, 2, 3).to(DEVICE), random_tensor(2, 3, seed=1).to(DEVICE)
    leaves = [t.requires_grad_() for t in (x, bias, x.detach().clone())]
    assert torch.autograd.gradcheck(torch.vmap(add_bias), leaves)
    assert torch.autograd.gradcheck(lambda x, b: add_bias(x, b, None), [x[1], bias[1]])
    shared = torch.vmap(add_bias, in_dims=(0, 0, None))
    assert torch.autograd.gradcheck(shared, [x, bias, leaves[2][0]])


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("count", [40, 1100])
def test_dense_product_with_dropout(count, rounded):
    """Rounded factors have ten bits on a GPU; the interpreter does not round."""
    x = random_tensor(count, 21, dtype=torch.float32).to(DEVICE)
    w = random_tensor(3, 21, 5, dtype=torch.float32).to(DEVICE)
    stream, p = STREAM.to(DEVICE), RATES.float().to(DEVICE)
    even = [count, 22]  # rows count as even in length
    masks = noise.masks(STREAM, RATES, torch.empty(0, dtype=torch.float64), 1, even)[..., :21]
    masked = x.double() * masks.to(DEVICE)
    g = random_tensor(3, count, 5, dtype=torch.float32, seed=4).to(DEVICE)
    with dense_products(rounded=rounded):
        out = dense.dense_product(x, w, stream, p, 1)
        back = dense.dense_product(x, g, stream, p, 1, transposed=True)
    coarse = 100 if rounded and x.is_cuda else 1
    for found, exact in ((out, masked @ w.double()), (back, masked.mT @ g.double())):
        error = (found.double() - exact).norm() / exact.norm()
        assert error < coarse * 1e-5
        assert coarse == 1 or error > 1e-5


@pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS")  # the first product of a thread
@pytest.mark.parametrize(("count", "channels", "columns"), [(40, 5, 1), (1100, 70, 16)])
def test_narrow_product_and_its_gradients(count, channels, columns):
    """Members beside channels in memory, as what is before it leaves them; also one alone."""
    x = random_tensor(count, 3, channels, dtype=torch.float32).to(DEVICE).movedim(1, 0)
    w = random_tensor(3, channels, columns, dtype=torch.float32, seed=1).to(DEVICE)
    g = random_tensor(3, count, columns, dtype=torch.float32, seed=2).to(DEVICE)
    for call, given in (
        (torch.vmap(fused_narrow_matmul), (x, w, g)),
        (fused_narrow_matmul, (x[1], w[1], g[1])),
    ):
        one, other = (t.detach().requires_grad_() for t in given[:2])
        out = call(one, other)
        found = (out, *torch.autograd.grad(out, (one, other), given[2]))
        x64, w64, g64 = (t.double() for t in given)
        for mine, exact in zip(found, (x64 @ w64, g64 @ w64.mT, x64.mT @ g64), strict=True):
            assert mine.shape == exact.shape
            assert (mine.double() - exact).norm() / exact.norm() < 1e-5


@pytest.mark.parametrize(("degree", "channels"), [(0, 3), (1, 5), (2, 130), (10, 1)])
@pytest.mark.parametrize("form", ["given", "raw", "raw with factors, paper's weight"])
def test_jacobi_coefficients_and_their_gradients(degree, channels, form):
    """Against autograd through the recurrence: a and b as they are, and before their constraint."""
    raw, paper = form != "given", "paper" in form
    a = torch.tensor([0.0, -0.5, 3.0, -0.9], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([0.0, -0.5, -0.6, 7.0], dtype=torch.float64, requires_grad=True)
    bound = -1.0 + 1e-6
    weight = random_tensor(4, degree + 1, channels).requires_grad_()
    eta = random_tensor(4, degree, seed=7).requires_grad_() if paper else None
    gamma = torch.tensor([0.5, 1.0, 1.5, 2.0], dtype=torch.float64) if paper else None
    if paper and degree > 1:
        eta.data[0, 1] = 0.0  # no division by a factor
    now = [bound + torch.nn.functional.softplus(t) if raw else t for t in (a, b)]
    C = Jacobi(weight="paper" if paper else "probability").at(a=now[0], b=now[1])
    C = C.chebyshev_matrix(degree)
    alpha = weight
    if eta is not None:
        factors = gamma[:, None] * torch.tanh(eta)
        products = torch.cat([torch.ones(4, 1, dtype=torch.float64), factors], 1).cumprod(1)
        alpha = weight * products[..., None]
    beta = C.mT @ alpha
    moved = [None if t is None else t.detach().to(DEVICE) for t in (a, b, weight, eta, gamma)]
    made = basis.jacobi_coefficients(
        *moved[:3],
        nodes(degree, DEVICE),
        transform(degree, DEVICE),
        bound if raw else None,
        eta=moved[3],
        gamma=moved[4],
        unit_mass=not paper,
    )
    torch.testing.assert_close(made.beta.cpu(), beta, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(made.matrix.cpu(), C, rtol=1e-10, atol=1e-11)
    upstream = random_tensor(*beta.shape, seed=3)
    leaves = (a, b, weight) if eta is None else (a, b, weight, eta)
    expected = torch.autograd.grad((beta * upstream).sum(), leaves, allow_unused=True)
    found = basis.jacobi_gradient(upstream.to(DEVICE), made.slopes, made.matrix, *moved[2:])
    for mine, theirs in zip(found, expected, strict=False):
        wanted = torch.zeros_like(mine.cpu()) if theirs is None else theirs
        torch.testing.assert_close(mine.cpu(), wanted, rtol=1e-9, atol=1e-9)
    if raw:
        found = basis.summary(*moved[:3], bound, eta=moved[3], gamma=moved[4])
        amplitude = alpha.square().sum(1).mean(1).sqrt()
        torch.testing.assert_close(found.cpu(), torch.stack([amplitude, *now], 1).detach())


#: Parameters of two members: one of several blocks, and two that leave gaps.
SHAPES = {"w": (2, 700, 3), "b": (2, 5), "c": (2,)}


def test_adam_update_equals_torch():
    packed = Packed({name: random_tensor(*shape).to(DEVICE) for name, shape in SHAPES.items()})
    p, m = packed.flat, torch.zeros_like(packed.flat)
    v = torch.zeros_like(p)
    rate, decay = (random_tensor(len(SHAPES), 2, seed=s).abs().to(DEVICE) for s in (1, 2))
    own = {
        (i, k): table[k].clone().requires_grad_()
        for i, table in enumerate(packed.values())
        for k in range(2)
    }
    optimizers = [
        torch.optim.Adam([q], lr=float(rate[place]), weight_decay=float(decay[place]))
        for place, q in own.items()
    ]
    constants = (BETA1, BETA2, EPSILON, float(np.log(BETA1)), float(np.log(BETA2)))
    for epoch in range(1, 4):
        each = [random_tensor(*s, seed=epoch).to(DEVICE) for s in SHAPES.values()]
        stream = torch.tensor([[0, epoch], [1, epoch]], device=DEVICE)
        g = torch.cat([t.reshape(-1) for t in each])
        step.adam_(p, g, m, v, rate, decay, stream, packed.blocks, constants)
        for (i, k), optimizer in zip(own, optimizers, strict=True):
            own[i, k].grad = each[i][k].clone()
            optimizer.step()
    for (i, k), q in own.items():
        torch.testing.assert_close(list(packed.values())[i][k], q.detach())


def test_keep_copies_only_the_better_members():
    ones = {name: torch.ones(shape, device=DEVICE) for name, shape in SHAPES.items()}
    best, now = Packed(ones), Packed(ones)
    best.flat.zero_()
    better = torch.tensor([False, True], device=DEVICE)
    step.keep_(best.flat, now.flat, better, now.blocks)
    for kept in best.values():
        assert kept[0].sum() == 0
        assert bool((kept[1] == 1).all())


@pytest.mark.parametrize("monitor", ["score", "loss"])
@pytest.mark.parametrize("falling", [True, False])
def test_a_standing_by_kernel_is_that_of_torch(monitor, falling, monkeypatch):
    """Of members that get better, stay, tie, diverge and run out of patience."""
    members, nan, inf = 6, float("nan"), float("inf")
    weights = Packed({"w": torch.zeros(members, 2, device=DEVICE)})
    like = torch.zeros(members, device=DEVICE)
    settings = Settings(patience=2, monitor=monitor)
    mine, theirs = (Standing(weights, like, settings, falling=falling) for _ in range(2))
    rows = [
        [[1.0, 1.0, 1.0, nan, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0, inf, 1.0], [0.5] * 6],
        [[1.0] * 6, [0.5, 2.0, 0.5, 0.5, 0.5, 1.0], [0.6, 0.4, 0.5, 0.9, 0.9, nan]],
        [[1.0] * 6, [2.0, 2.0, 0.4, 0.4, 0.4, 1.0], [0.4, 0.6, 0.5, 1.0, 1.0, 0.5]],
        [[1.0] * 6, [2.0, 2.0, 0.4, 0.4, 0.4, 1.0], [0.4, 0.4, 0.5, 1.0, 1.0, 0.5]],
    ]
    for number, row in enumerate(rows, 1):
        stream = torch.full((members, 2), number, device=DEVICE)
        weights.flat.fill_(number)
        for standing, kernel in ((mine, True), (theirs, False)):
            monkeypatch.setattr(kernels, "usable", lambda _, kernel=kernel: kernel)
            standing.update(stream[:, 1], torch.tensor(row, device=DEVICE), weights)
        for name, value in theirs.tensors.items():
            assert torch.equal(mine.tensors[name], value), (number, name)
        assert torch.equal(mine.best["w"], theirs.best["w"])
    assert 0 < int(theirs.alive.sum()) < members
    assert 0 < int(theirs.diverged.sum()) < members

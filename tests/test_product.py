"""The product with a sparse matrix, in both of its ways, against SciPy."""

import numpy as np
import pytest
import scipy.sparse
import torch

from longnn.graphs import GraphOperator, apply_filter
from longnn.matrices import SparseMatrix, is_wide
from longnn.matrices import _layout as product_module

from .helpers import random_graph, random_tensor

WIDE = product_module.WIDE


def random_csr(rows, columns, share, index=np.int32, seed=0):
    matrix = scipy.sparse.random(rows, columns, share, "csr", np.float32, rng=seed)
    arrays = (matrix.indptr.astype(index), matrix.indices.astype(index), matrix.data)
    return matrix, tuple(map(torch.from_numpy, arrays))


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("channels", [1, 7, WIDE - 1, WIDE, 64, 65, 200])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5])
def test_it_is_that_of_scipy(channels, share, index):
    matrix, arrays = random_csr(37, 23, share, index)
    dense = random_tensor(23, channels, dtype=torch.float32)
    found = product_module.multiply(*arrays, dense)
    assert is_wide(*arrays, dense) == (channels >= WIDE and share > 0)
    assert found.shape == (37, channels)
    expected = torch.from_numpy(matrix.astype(np.float64) @ dense.double().numpy())
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6)


def test_float64_and_rows_that_are_not_contiguous():
    matrix, (crow, col, values) = random_csr(9, 9, 0.3)
    dense = random_tensor(64, 9, dtype=torch.float32).T
    expected = torch.from_numpy(matrix @ dense.numpy())
    torch.testing.assert_close(product_module.multiply(crow, col, values, dense), expected)
    assert not is_wide(crow, col, values.double(), dense.double())
    torch.testing.assert_close(
        product_module.multiply(crow, col, values.double(), dense.double()).float(), expected
    )


def test_rows_that_nobody_asks_for_do_not_count():
    """A value that is not finite stays where it is, as in a sum over neighbours."""
    dense = torch.ones(3, 64)
    dense[2] = torch.nan
    arrays = (torch.tensor([0, 1, 2]), torch.tensor([0, 1]), torch.tensor([2.0, 3.0]))
    assert torch.equal(
        product_module.multiply(*arrays, dense), torch.tensor([[2.0], [3.0]]).expand(2, 64)
    )


def test_gradients_are_those_of_a_dense_product():
    matrix, _ = random_csr(20, 15, 0.2)
    sparse = SparseMatrix.from_scipy(matrix)
    dense = random_tensor(15, 48, dtype=torch.float32).requires_grad_()
    for form in (sparse, sparse.to_dense()):
        dense.grad = None
        (form @ dense).square().sum().backward()
        if form is sparse:
            found = dense.grad
    torch.testing.assert_close(found, dense.grad)


@pytest.mark.parametrize("degree", [0, 1, 2, 10])
def test_filters_of_many_channels_agree_with_exact_ones(degree):
    operator = GraphOperator.from_edge_index(random_graph(30, isolated=2), num_nodes=30)
    signal = random_tensor(30, 64, dtype=torch.float32)
    beta = random_tensor(degree + 1, 64, dtype=torch.float64, seed=1)
    exact = apply_filter(operator.to(torch.float64), signal.double(), beta)
    found = apply_filter(operator, signal, beta)
    assert (found.double() - exact).norm() < 1e-5 * exact.norm()


def test_members_have_what_each_has_alone():
    matrix, _ = random_csr(20, 15, 0.2)
    sparse = SparseMatrix.from_scipy(matrix)
    dense = random_tensor(3, 15, 40, dtype=torch.float32)
    together = torch.func.vmap(lambda d: sparse @ d)(dense)
    for one, d in zip(together, dense, strict=True):
        torch.testing.assert_close(one, sparse @ d)

"""Dense or CSR: the same values whatever form they come in; SciPy is the reference."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from longnn.matrices import compact, csr_from_scipy, csr_to_scipy, take_columns


def random_matrix(rows: int = 30, columns: int = 20, density: float = 0.1) -> sp.csr_array:
    rng = np.random.default_rng(3)
    return sp.random_array((rows, columns), density=density, rng=rng, format="csr")


def assert_canonical(x: Tensor) -> None:
    assert x.layout is torch.sparse_csr
    assert csr_to_scipy(x).has_canonical_format
    assert bool(x.values().all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil"])
def test_scipy_and_back(kind: str, dtype: torch.dtype) -> None:
    matrix = random_matrix().asformat(kind)
    x = csr_from_scipy(matrix, dtype)
    assert_canonical(x)
    assert torch.equal(x.to_dense(), torch.from_numpy(matrix.toarray()).to(dtype))
    np.testing.assert_array_equal(csr_to_scipy(x).toarray(), x.to_dense().numpy())


def test_a_messy_matrix_becomes_canonical_and_is_left_alone() -> None:
    values = np.array([2.0, 1.0, 0.5, 0.0, 1e-60, 3.0])  # 1e-60 is zero in float32
    indices, indptr = np.array([3, 1, 3, 0, 2, 1]), np.array([0, 4, 4, 6])
    matrix = sp.csr_array((values.copy(), indices.copy(), indptr.copy()), shape=(3, 4))
    x = csr_from_scipy(matrix)
    assert_canonical(x)
    assert x.to_dense().tolist() == [[0, 1, 0, 2.5], [0] * 4, [0, 3, 0, 0]]
    assert x.values().numel() == 3
    np.testing.assert_array_equal(matrix.data, values)
    np.testing.assert_array_equal(matrix.indices, indices)


LAYOUTS = {
    "coo": lambda x: x.to_sparse(),
    "uncoalesced": lambda x: 3 * x.to_sparse() - 2 * x.to_sparse(),
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((2, 2)),
    "hybrid": lambda x: x.to_sparse(1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_any_layout(layout: str, dtype: torch.dtype) -> None:
    dense = torch.from_numpy(10 * random_matrix().toarray()).round().to(dtype)
    x = compact(LAYOUTS[layout](dense))
    assert x.dtype == torch.float32
    assert torch.equal(x.to_dense(), dense.float())
    if layout == "hybrid":
        assert x.layout is torch.strided
    else:
        assert_canonical(x)


@pytest.mark.parametrize("columns", [[19, 0, 7], [3, -1, 3, -1], [], [-1]])
def test_columns(columns: list[int]) -> None:
    x = csr_from_scipy(random_matrix())
    padded = torch.cat([x.to_dense(), torch.zeros(30, 1)], dim=1)
    expected = padded[:, columns]
    assert torch.equal(take_columns(x.to_dense(), columns), expected)
    taken = take_columns(x, columns)
    assert_canonical(taken)
    assert torch.equal(taken.to_dense(), expected)

r"""The common language of all bases: Chebyshev polynomials of the first kind.

Every polynomial of degree :math:`K` on :math:`[-1, 1]` is :math:`\sum_j \beta_j T_j(x)`. The
functions here go between values at the :math:`K + 1` Chebyshev nodes and the coefficients
:math:`\beta`, evaluate a series, and integrate products. They know nothing of graphs.
"""

import functools
import math

import torch
from torch import Tensor


def check_degree(degree: int) -> int:
    """Return ``degree`` if it is a usable polynomial degree, else raise."""
    if isinstance(degree, bool) or not isinstance(degree, int):
        raise TypeError(f"Expected `degree` to be an int (got {degree!r})")
    if not 0 <= degree <= MAX_DEGREE:
        raise ValueError(f"Expected 0 <= `degree` <= {MAX_DEGREE} (got {degree})")
    return degree


#: Above this a (degree + 1)-square float64 matrix no longer is a small tensor.
MAX_DEGREE = 4096


def _constant(build):  # type: ignore[no-untyped-def]
    """Cache a small constant tensor by (degree, device); a compiler traces how it is built."""

    @functools.lru_cache(maxsize=256)
    def cached(degree: int, device: torch.device) -> Tensor:
        # A tensor born in inference mode could never be saved for backward later.
        with torch.inference_mode(False), torch.no_grad():
            return build(degree).to(device)

    @functools.wraps(build)
    def constant(degree: int, device: torch.device | str = "cpu") -> Tensor:
        if torch.compiler.is_compiling():
            return build(degree).to(device)
        return cached(degree, torch.device(device))

    return constant


@_constant
def nodes(degree: int) -> Tensor:
    r"""Chebyshev nodes :math:`x_i = \cos\frac{(i + 1/2)\pi}{K + 1}`, float64, shape (K+1,).

    >>> nodes(1)
    tensor([ 0.7071, -0.7071], dtype=torch.float64)
    """
    i = torch.arange(degree + 1, dtype=torch.float64)
    return torch.cos((i + 0.5) * (math.pi / (degree + 1)))


@_constant
def transform(degree: int) -> Tensor:
    r"""The discrete cosine transform: values at the nodes to Chebyshev coefficients.

    .. math::
        \beta_j = \frac{2 - \delta_{j0}}{K + 1} \sum_i f(x_i) \cos\frac{j (i + 1/2) \pi}{K + 1}

    Returns the matrix of shape (K+1, K+1), rows = coefficients j, columns = nodes i.
    """
    size = degree + 1
    j = torch.arange(size, dtype=torch.int64)[:, None]
    i = torch.arange(size, dtype=torch.int64)
    # Reduce the angle's integer part before the cosine: exact for every degree.
    angle = (j * (2 * i + 1)) % (4 * size)
    matrix = torch.cos(angle.double() * (math.pi / (2 * size))) * (2.0 / size)
    matrix[0] *= 0.5
    return matrix


@_constant
def uniform_gram(degree: int) -> Tensor:
    r"""Gram matrix :math:`\frac12\int_{-1}^1 T_i T_j\,dx`, shape (K+1, K+1), float64.

    With :math:`T_i T_j = (T_{i+j} + T_{|i-j|})/2` and :math:`\frac12\int T_n = 1/(1 - n^2)` for
    even n, 0 for odd n. So :math:`\beta^T G \beta` is the mean square of the series on [-1, 1].
    """
    k = torch.arange(degree + 1)
    mean = lambda n: torch.where(n % 2 == 0, 1.0 / (1.0 - (n * n).double()), 0.0)  # noqa: E731
    return 0.5 * (mean(k[:, None] + k) + mean((k[:, None] - k).abs()))


def evaluate_series(x: Tensor, coefficients: Tensor) -> Tensor:
    r"""Evaluate :math:`\sum_j \beta_j T_j(x)` by Clenshaw's recurrence.

    Args:
        x: points, any shape; the result keeps it as trailing dimensions.
        coefficients: :math:`\beta`, shape (K+1, \*channels).

    Returns:
        shape (\*channels, \*x.shape).

    >>> evaluate_series(torch.tensor([0.5]), torch.tensor([0.0, 0.0, 1.0]))  # T_2 = 2x^2 - 1
    tensor([-0.5000])
    """
    beta = coefficients[(...,) + (None,) * x.dim()]
    b1 = b2 = torch.zeros((), dtype=coefficients.dtype, device=coefficients.device)
    for j in range(coefficients.shape[0] - 1, 0, -1):
        b1, b2 = beta[j] + 2 * x * b1 - b2, b1
    return beta[0] + x * b1 - b2

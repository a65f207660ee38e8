"""How exact is the core? ``python -m longnn.studies._exactness`` prints the measured errors.

Gram matrices of the orthonormal Jacobi basis by Gauss-Jacobi quadrature, the filter against an
exact eigendecomposition, and the peak memory of forward and backward at a low and a high degree.
"""

import subprocess
import sys

import numpy as np
import scipy.special
import torch

from longnn.graphs import GraphOperator, apply_filter
from longnn.polynomials import evaluate_series, jacobi

PAIRS = [(0, 0), (-0.5, -0.5), (-0.9, -0.9), (-0.9, 20), (20, -0.9), (20, 20), (-0.7, -0.6), (3, 7)]
EDGE = [(-0.999, -0.999), (-0.999, 0), (-0.999, 20)]
NODES, DEGREE = 500, 50


def gram_error(a: float, b: float, degree: int = 100) -> float:
    """Largest entry of |G - I| for the polynomials of degree 0..K."""
    x, w = scipy.special.roots_jacobi(degree + 1, a, b)
    values = jacobi(torch.tensor(x), degree, a, b).numpy()
    return float(np.abs((values * w) @ values.T - np.eye(degree + 1)).max())


def eigen_error(dtype: torch.dtype) -> float:
    """Relative error of a random filter of degree 50 against the eigendecomposition."""
    generator = torch.Generator().manual_seed(0)
    upper = torch.rand(NODES, NODES, generator=generator).triu(1) > 0.98
    edges = (upper | upper.T).nonzero().T
    exact = GraphOperator.from_edge_index(edges, num_nodes=NODES, dtype=torch.float64)
    x = torch.randn(NODES, 4, generator=generator, dtype=torch.float64)
    beta = torch.randn(DEGREE + 1, 4, generator=generator, dtype=torch.float64)
    eigenvalues, U = torch.linalg.eigh(exact.to_dense())
    wanted = U @ (evaluate_series(eigenvalues, beta).T * (U.T @ x))
    ours = apply_filter(exact.to(dtype), x.to(dtype), beta.to(dtype)).double()
    return float((ours - wanted).norm() / wanted.norm())


_MEMORY = """
import resource, sys, torch
from longnn import GraphOperator, apply_filter
nodes, degree = 200_000, int(sys.argv[1])
ring = torch.arange(nodes)
edges = torch.stack([ring, (ring + 1) % nodes])
operator = GraphOperator.from_edge_index(edges, num_nodes=nodes, symmetrize=True)
x = torch.randn(nodes, 64, requires_grad=True)
beta = torch.randn(degree + 1, 64, requires_grad=True)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
apply_filter(operator, x, beta).square().sum().backward()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def peak_memory(degree: int) -> float:
    """MiB that forward and backward add on 200,000 nodes x 64 channels, in a fresh process."""
    command = [sys.executable, "-c", _MEMORY, str(degree)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    print("Gram matrix against the identity, degree 100, largest error (SciPy's quadrature):")
    for a, b in PAIRS + EDGE:
        print(f"  a = {a:g}, b = {b:g}: {gram_error(a, b):.1e}")
    print("filter of degree 50 against the eigendecomposition, relative error:")
    for dtype in (torch.float64, torch.float32):
        print(f"  {dtype}: {eigen_error(dtype):.1e}")
    print("peak memory of forward and backward, 200,000 nodes x 64 channels:")
    for degree in (5, 100):
        print(f"  degree {degree}: {peak_memory(degree):.1f} MiB")


if __name__ == "__main__":
    main()

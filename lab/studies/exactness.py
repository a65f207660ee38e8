"""How exact is the core? Measured errors of the basis and the filter, and the memory of a pass.

Gram matrices of the orthonormal Jacobi basis by Gauss-Jacobi quadrature, the filter against an
exact eigendecomposition, and the peak memory of forward and backward at a low and a high degree.
"""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import scipy.special
import torch

from lab.studies._engine import Cell, Cells, Context, read_record
from lab.studies._views import CAPTIONS, ResultTable
from longnn.graphs import GraphOperator, apply_filter
from longnn.polynomials import jacobi
from longnn.polynomials._chebyshev import evaluate_series

TITLE = "How exact the basis and the filter are (not in the paper)"
ORDER = 110

PAIRS = [(0, 0), (-0.5, -0.5), (-0.9, -0.9), (-0.9, 20), (20, -0.9), (20, 20), (-0.7, -0.6), (3, 7)]
EDGE = [(-0.999, -0.999), (-0.999, 0), (-0.999, 20)]
DTYPES = {"float64": torch.float64, "float32": torch.float32}
DEGREES = (5, 100)
#: Degree of the Gram matrix; nodes and degree of the filter; nodes of the memory.
FULL = {"gram_degree": 100, "nodes": 500, "degree": 50, "memory_nodes": 200_000}
QUICK = {"gram_degree": 20, "nodes": 100, "degree": 10, "memory_nodes": 2_000}


def cells(context: Context) -> Cells:
    """One number per cell, an error or MiB of memory; on the CPU."""
    plan = QUICK if context.quick else FULL

    def cell(key: str, measure: Callable[[], float]) -> Cell:
        compute = lambda: {"value": float(f"{measure():.3g}")}  # noqa: E731
        return Cell("record", plan, key, compute, device="cpu")

    for a, b in PAIRS + EDGE:
        yield cell(f"gram/{a:g}/{b:g}", partial(gram_error, a, b, plan["gram_degree"]))
    for name, dtype in DTYPES.items():
        measure = partial(filter_error, dtype, plan["nodes"], plan["degree"])
        yield cell(f"filter/{name}", measure)
    for degree in DEGREES:
        yield cell(f"memory/{degree}", partial(peak_memory, degree, plan["memory_nodes"]))


def gram_error(a: float, b: float, degree: int) -> float:
    """Largest entry of :math:`|G - I|` for the orthonormal polynomials of degree 0 to K."""
    x, w = scipy.special.roots_jacobi(degree + 1, a, b)
    values = jacobi(torch.tensor(x), degree, a, b).numpy()
    return float(np.abs((values * w) @ values.T - np.eye(degree + 1)).max())


def filter_error(dtype: torch.dtype, nodes: int, degree: int) -> float:
    """Relative error of a random filter on a random graph against the eigendecomposition."""
    generator = torch.Generator().manual_seed(0)
    upper = torch.rand(nodes, nodes, generator=generator).triu(1) > 0.98
    edges = (upper | upper.T).nonzero().T
    exact = GraphOperator.from_edge_index(edges, num_nodes=nodes, dtype=torch.float64)
    x = torch.randn(nodes, 4, generator=generator, dtype=torch.float64)
    beta = torch.randn(degree + 1, 4, generator=generator, dtype=torch.float64)
    eigenvalues, U = torch.linalg.eigh(exact.to_dense())
    wanted = U @ (evaluate_series(eigenvalues, beta).T * (U.T @ x))
    ours = apply_filter(exact.to(dtype), x.to(dtype), beta.to(dtype)).double()
    return float((ours - wanted).norm() / wanted.norm())


_MEMORY = """
import resource, sys, torch
from longnn import GraphOperator, apply_filter
degree, nodes = int(sys.argv[1]), int(sys.argv[2])
ring = torch.arange(nodes)
edges = torch.stack([ring, (ring + 1) % nodes])
operator = GraphOperator.from_edge_index(edges, num_nodes=nodes, symmetrize=True)
x = torch.randn(nodes, 64, requires_grad=True)
beta = torch.randn(degree + 1, 64, requires_grad=True)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
apply_filter(operator, x, beta).square().sum().backward()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def peak_memory(degree: int, nodes: int) -> float:
    """MiB that forward and backward add with 64 channels, in a new process."""
    command = [sys.executable, "-c", _MEMORY, str(degree), str(nodes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def tables(folder: Path) -> list[ResultTable]:
    """Errors and memory."""
    record = read_record(folder)
    plan, rows = record.plan, []
    for key, cell in record.below("gram/").items():
        a, b = key.split("/")
        what = f"Gram matrix against the identity, a = {a}, b = {b}, degree {plan['gram_degree']}"
        rows.append([what, f"{cell['value']:.1e}"])
    for key, cell in record.below("filter/").items():
        what = f"filter of degree {plan['degree']} against the eigendecomposition, {key}"
        rows.append([what, f"{cell['value']:.1e}"])
    for key, cell in record.below("memory/").items():
        what = f"memory of forward and backward, degree {key}, {plan['memory_nodes']:,} nodes"
        rows.append([what, f"{cell['value']:.0f} MiB"])
    caption = CAPTIONS["exactness"]["exactness"].format(nodes=plan["nodes"])
    return [ResultTable("exactness", caption, ["what", "measured"], rows)]

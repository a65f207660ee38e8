"""A filter at work: five classical filters on a noisy image, learned in closed form.

Run by ``make demo``; prints one table.
"""

import time

import torch
from torch import Tensor

from longnn.filters import PolynomialFilter
from longnn.graph import GraphOperator
from longnn.polynomials import Jacobi

SIDE = 100
TARGETS = {
    "low-pass": lambda lam: torch.exp(-10 * lam**2),
    "high-pass": lambda lam: 1 - torch.exp(-10 * lam**2),
    "band-pass": lambda lam: torch.exp(-10 * (lam - 1) ** 2),
    "rejection": lambda lam: 1 - torch.exp(-10 * (lam - 1) ** 2),
}


def pixel_grid(side: int) -> GraphOperator:
    """The four-neighbour grid of side x side pixels."""
    pixel = torch.arange(side * side).reshape(side, side)
    right = torch.stack([pixel[:, :-1].flatten(), pixel[:, 1:].flatten()])
    down = torch.stack([pixel[:-1].flatten(), pixel[1:].flatten()])
    edges = torch.cat([right, down], dim=1)
    return GraphOperator.from_edge_index(edges, symmetrize=True, dtype=torch.float64)


def noisy_disc(side: int) -> Tensor:
    """A grey disc with noise, one value per pixel, shape (pixels, 1)."""
    generator = torch.Generator().manual_seed(0)
    axis = torch.linspace(-1, 1, side, dtype=torch.float64)
    disc = (axis[:, None] ** 2 + axis**2 < 0.5).double()
    noise = torch.randn(side, side, generator=generator, dtype=torch.float64)
    return (disc + 0.1 * noise).reshape(-1, 1)


def main() -> None:
    operator, image = pixel_grid(SIDE), noisy_disc(SIDE)
    print(f"{operator}\n")
    print("Each target filter is fitted by an orthonormal Jacobi basis from one image alone:\n")
    print(f"{'target':<12}{'degree 5':>12}{'degree 10':>12}{'degree 20':>12}{'ms each':>10}")
    for name, target in TARGETS.items():
        # 60 Chebyshev terms give these smooth targets to machine precision.
        exact = PolynomialFilter("chebyshev", 60, init=target).double()
        exact.reset_parameters()
        wanted = exact(operator, image).detach()
        errors, start = [], time.perf_counter()
        for degree in (5, 10, 20):
            fit = PolynomialFilter(Jacobi(0.5, 0.5), degree).double()
            error = fit.fit_least_squares(operator, image, wanted).squared_error.item()
            errors.append((error / wanted.square().sum().item()) ** 0.5)
        each = (time.perf_counter() - start) / 3 * 1e3
        print(f"{name:<12}" + "".join(f"{e:>12.1e}" for e in errors) + f"{each:>10.1f}")
    print("\nRelative error of the filtered image. Next: README.md, 'A layer in your own model'.")


if __name__ == "__main__":
    main()

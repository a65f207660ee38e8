"""The terms of other bases by message passing, as their papers write them."""

import math

from lab.textbook import Hop


def monomial_terms(x, edge_index, degree):
    r"""Yield :math:`P^k x`: GPRGNN's terms (add self loops to ``edge_index`` if needed)."""
    hop = Hop()
    yield x
    for _ in range(degree):
        x = hop(x, edge_index)
        yield x


def bernstein_terms(x, edge_index, degree):
    r"""Yield :math:`2^{-K}\binom{K}{k}(2I-L)^{K-k}L^k x`: BernNet's :math:`O(K^2)` products."""
    hop = Hop()
    laplacian = lambda h: h - hop(h, edge_index)  # noqa: E731
    for k in range(degree + 1):
        h = x
        for _ in range(k):
            h = laplacian(h)
        for _ in range(degree - k):
            h = 2 * h - laplacian(h)
        yield math.comb(degree, k) / 2**degree * h


def chebyshev_terms(x, edge_index, degree):
    r"""Yield :math:`T_k(P)\,x` by message passing."""
    hop = Hop()
    before, now = x, x
    yield x
    for k in range(1, degree + 1):
        step = hop(now, edge_index)
        before, now = now, step if k == 1 else 2 * step - before
        yield now

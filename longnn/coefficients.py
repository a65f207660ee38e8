r"""How a filter's coefficients :math:`\alpha` are made from trainable numbers.

A parametrisation returns the *effective* coefficients, shape (terms, channels): what the filter
uses, what its norm is made of, and what a penalty acts on. It does not know which basis they
belong to.
"""

import abc
from typing import Any, Literal

import torch
from torch import Tensor, nn

Parametrization = Literal["free", "pcd", "nonnegative", "fixed"]


class Coefficients(nn.Module, abc.ABC):
    """Effective coefficients of shape (terms, channels)."""

    def __init__(self, terms: int, channels: int) -> None:
        super().__init__()
        self.terms = terms
        self.channels = channels

    @abc.abstractmethod
    def forward(self) -> Tensor:
        """The effective coefficients, shape (terms, channels)."""

    @abc.abstractmethod
    def set_(self, alpha: Tensor) -> None:
        """Make the effective coefficients equal ``alpha``, shape (terms, channels)."""

    def factors(self) -> list[nn.Parameter]:
        """Trainable factors shared by all channels, which some optimise at a rate of their own."""
        return []

    def extra_repr(self) -> str:
        return f"terms={self.terms}, channels={self.channels}"


class Free(Coefficients):
    r""":math:`\alpha` itself is the parameter."""

    def __init__(self, terms: int, channels: int) -> None:
        super().__init__(terms, channels)
        self.weight = nn.Parameter(torch.ones(terms, channels))

    def forward(self) -> Tensor:
        return self.weight

    def set_(self, alpha: Tensor) -> None:
        with torch.no_grad():
            self.weight.copy_(alpha)


class NonNegative(Free):
    r""":math:`\alpha = \max(w, 0)`, as in BernNet and ChebNetII."""

    def forward(self) -> Tensor:
        return torch.relu(self.weight)

    def set_(self, alpha: Tensor) -> None:
        if bool((alpha < 0).any()):
            raise ValueError(f"Expected coefficients >= 0 (got {alpha.min().item():g})")
        super().set_(alpha)


class Fixed(Coefficients):
    r""":math:`\alpha` is given and not trained, as in APPNP and SGC."""

    weight: Tensor

    def __init__(self, terms: int, channels: int) -> None:
        super().__init__(terms, channels)
        self.register_buffer("weight", torch.ones(terms, channels))

    def forward(self) -> Tensor:
        return self.weight

    def set_(self, alpha: Tensor) -> None:
        with torch.no_grad():
            self.weight.copy_(alpha)


class PCD(Coefficients):
    r"""Polynomial coefficient decomposition, from JacobiConv (Wang and Zhang, ICML 2022).

    .. math:: \alpha_{kc} = w_{kc} \prod_{i<k} \gamma \tanh\eta_i

    The factors :math:`\eta` are shared by the channels; they bound how fast coefficients may
    grow with the degree.
    """

    gamma: Tensor

    def __init__(self, terms: int, channels: int, *, gamma: float = 1.0) -> None:
        super().__init__(terms, channels)
        if not gamma > 0:
            raise ValueError(f"Expected `gamma` > 0 (got {gamma:g})")
        self.register_buffer("gamma", torch.tensor(float(gamma)))
        self.weight = nn.Parameter(torch.ones(terms, channels))
        self.eta = nn.Parameter(torch.full((terms - 1,), min(1.0 / gamma, 1.0)))

    def _products(self) -> Tensor:
        steps = cumulative_product(self.gamma * torch.tanh(self.eta))
        return torch.cat([torch.ones_like(self.gamma)[None], steps])  # (terms,)

    def forward(self) -> Tensor:
        return self.weight * self._products()[:, None]

    def set_(self, alpha: Tensor) -> None:
        with torch.no_grad():
            self.weight.copy_(alpha / self._products()[:, None])

    def factors(self) -> list[nn.Parameter]:
        return [self.eta]


class _CumulativeProduct(torch.autograd.Function):
    """torch.cumprod, whose own derivative reads numbers back from the GPU to look for zeros."""

    generate_vmap_rule = True

    @staticmethod
    def forward(f: Tensor) -> Tensor:
        return torch.cumprod(f, dim=0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """d out_k / d f_i is the product of the other factors up to k: row i with f_i set to 1."""
        (f,) = ctx.saved_tensors
        eye = torch.eye(f.shape[0], dtype=torch.bool, device=f.device)
        others = torch.cumprod(torch.where(eye, torch.ones_like(f), f), dim=1).triu()
        return others @ grad


def cumulative_product(factors: Tensor) -> Tensor:
    """Products of the first 1, 2, ... factors, shape (n,); once differentiable, zeros included."""
    return _CumulativeProduct.apply(factors)


PARAMETRIZATIONS: dict[str, type[Coefficients]] = {
    "free": Free,
    "pcd": PCD,
    "nonnegative": NonNegative,
    "fixed": Fixed,
}


def make_coefficients(kind: str, terms: int, channels: int, *, gamma: float = 1.0) -> Coefficients:
    """A parametrisation by its name."""
    if kind not in PARAMETRIZATIONS:
        raise ValueError(
            f"Expected `coefficients` to be one of {sorted(PARAMETRIZATIONS)} (got {kind!r})"
        )
    if kind == "pcd":
        return PCD(terms, channels, gamma=gamma)
    return PARAMETRIZATIONS[kind](terms, channels)

r"""How a filter's coefficients :math:`\alpha` are made from trainable numbers.

A parametrisation returns the *effective* coefficients, shape (terms, channels): what the filter
uses, what its norm is made of, and what a penalty acts on. It does not know which basis they
belong to.
"""

import abc
from typing import Any, Literal

import torch
from torch import Tensor, nn

from longnn._base.autograd import differentiable, save_inputs

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

    def forward(self) -> Tensor:
        return decomposed(self.weight, self.eta, self.gamma)

    def set_(self, alpha: Tensor) -> None:
        with torch.no_grad():
            self.weight.copy_(alpha / _products(self.gamma * torch.tanh(self.eta))[:, None])

    def factors(self) -> list[nn.Parameter]:
        return [self.eta]


def _products(factors: Tensor) -> Tensor:
    """Products of the first 0, 1, 2, ... factors: (..., terms - 1) to (..., terms)."""
    first = factors.new_ones(*factors.shape[:-1], 1)  # at degree 0 it is all there is
    return torch.cat([first, factors], -1).cumprod(-1)


def _decomposed(weight: Tensor, eta: Tensor, gamma: Tensor) -> Tensor:
    return weight * _products(gamma[..., None] * torch.tanh(eta))[..., None]


def _decomposed_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    weight, eta, gamma = ctx.saved_tensors
    return *decomposed_gradient(weight, eta, gamma, grad), None


def decomposed_gradient(
    weight: Tensor, eta: Tensor, gamma: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of weights and eta from that of the effective coefficients.

    The derivative of product k in factor i is the product of the others up to k. torch's own
    derivative of cumprod reads numbers back from the GPU to look for zeros.
    """
    bounded, gamma = torch.tanh(eta), gamma[..., None]
    factors = gamma * bounded
    eye = torch.eye(eta.shape[-1], dtype=torch.bool, device=eta.device)
    # Row i has factor i set to 1 (by a tensor: a number would be copied to the GPU).
    row = factors[..., None, :]
    others = torch.where(eye, torch.ones_like(row), row).cumprod(-1).triu()
    by_products = (grad * weight)[..., 1:, :].sum(-1, keepdim=True)
    d_eta = gamma * (1 - bounded * bounded) * (others @ by_products)[..., 0]
    return grad * _products(factors)[..., None], d_eta


#: Effective coefficients of PCD from its weights (terms, channels), eta (terms-1,) and gamma;
#: once differentiable in the first two, zeros included.
decomposed = differentiable(_decomposed, _decomposed_gradient, save_inputs)


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

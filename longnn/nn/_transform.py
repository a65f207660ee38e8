r"""Feature transforms :math:`t_\theta(X)`: what happens to a node before the graph is seen.

Features may be dense or sparse. Sparse ones stay sparse: the first linear map is a sparse product
and dropout acts on the stored values.

Initial weights come from torch's global generator, or from one of the caller's own. A model is
built by constructors within constructors; the generator reaches them as a context variable, which
every thread has for itself.
"""

import contextlib
import contextvars
import math
from collections.abc import Iterator
from typing import Literal, get_args

import scipy.sparse
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longnn import kernels
from longnn._base.suggestions import check_choice
from longnn.matrices import DenseMatrix, LiftedMatrix, SparseMatrix, dropout
from longnn.nn._channels import (
    activate,
    activate_,
    add_bias,
    fused_narrow_matmul,
    narrow_matmul,
    normalize_rows,
)
from longnn.nn._terms import Terms

_generator: contextvars.ContextVar[torch.Generator | None] = contextvars.ContextVar(
    "generator", default=None
)


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw the weights of models that are built inside from a generator of their own.

    They are the bits that ``torch.manual_seed(seed)`` would give; the global generators are neither
    read nor changed.

    >>> from longnn.nn import MLP
    >>> with seeded(3):
    ...     one = MLP(2, 4, 2)
    >>> with seeded(3):
    ...     other = MLP(2, 4, 2)
    >>> bool((one.transform.first.weight == other.transform.first.weight).all())
    True
    """
    generator = torch.Generator(torch.get_default_device()).manual_seed(seed)
    token = _generator.set(generator)
    try:
        yield
    finally:
        _generator.reset(token)


def uniform_(weight: Tensor, bound: float) -> None:
    """Fill with numbers between -bound and bound."""
    nn.init.uniform_(weight, -bound, bound, generator=_generator.get())


def xavier_uniform_(weight: Tensor) -> None:
    """Fill by the rule of Glorot and Bengio (2010)."""
    nn.init.xavier_uniform_(weight, generator=_generator.get())


Features = Tensor | SparseMatrix | DenseMatrix | LiftedMatrix
TransformKind = Literal["linear", "mlp", "residual"]
#: Fewer output channels than this are few, see ``narrow_matmul``.
NARROW = 16


def as_features(x: Features | Terms) -> Features:
    """Node features as a dense tensor or a :class:`SparseMatrix`; torch sparse is converted."""
    if isinstance(x, Terms):
        return x.features
    if not isinstance(x, Tensor) or x.layout is torch.strided:
        return x
    coo = x.to_sparse_coo().coalesce()
    row, col = coo.indices().cpu().numpy()
    matrix = scipy.sparse.csr_matrix(
        (coo.values().detach().cpu().double().numpy(), (row, col)), shape=tuple(x.shape)
    )
    return SparseMatrix.from_scipy(matrix, dtype=x.dtype).to(x.device)


class Dropout(nn.Module):
    """Dropout of dense features, or of the stored values of sparse ones; off at evaluation.

    On its own it draws from torch's global generator. Training gives it a ``stream`` (seed and
    epoch), and then its numbers depend on those alone (:mod:`longnn.matrices`). Of rows that are a
    share of a batch, ``first_row`` says where in the batch they begin.
    """

    p: Tensor
    stream: Tensor | None

    def __init__(self, p: float = 0.0) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"Expected 0 <= dropout < 1 (got {p:g})")
        self.rate = p
        self.site, self.first_row = 0, 0
        self.register_buffer("p", torch.tensor(float(p)), persistent=False)
        self.register_buffer("stream", None, persistent=False)

    def forward(self, x: Features) -> Features:
        if not self.training or self.rate == 0:
            return x
        if isinstance(x, Tensor):
            if self.stream is None:
                return F.dropout(x, self.rate)
            return dropout(x, self.stream, self.p, self.site, self.first_row * x.shape[-1])
        if self.stream is None:
            return x.with_values(F.dropout(x.values, self.rate))
        return x.dropped(self.stream, self.p, self.site)

    def extra_repr(self) -> str:
        return f"p={self.rate:g}"


class Linear(nn.Module):
    r"""The linear map :math:`X W + b` of dense or sparse features.

    Weights are initialised as in :class:`torch.nn.Linear`, and stored as (in, out), the way a
    sparse product reads them.
    """

    def __init__(self, in_channels: int, out_channels: int, *, bias: bool = True) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.in_channels) if self.in_channels else 0.0
        uniform_(self.weight, bound)
        if self.bias is not None:
            uniform_(self.bias, bound)

    def forward(self, x: Features) -> Tensor:
        return self._add_bias(self.product(x))

    def added(self, x: Features, residual: Tensor) -> Tensor:
        r""":math:`R + X W + b`."""
        return self._add_bias(self.product(x), residual)

    def activated(self, x: Features, dropout: Dropout) -> Tensor:
        r""":math:`\mathrm{dropout}(\mathrm{ReLU}(X W + b))`."""
        out = self.product(x)
        drops = dropout.training and dropout.rate > 0
        known = not drops or dropout.stream is not None
        if self.bias is not None and known:
            stream, p = (dropout.stream, dropout.p) if drops else (None, None)
            place = (dropout.site, dropout.first_row * out.shape[-1])
            if kernels.usable(out):
                return activate(out, self.bias, stream, p, *place)
            if stream is not None and p is not None:
                found = activate_(out, self.bias, stream, p, *place)
                if found is not None:
                    return found
        h = dropout(torch.relu_(self._add_bias(out)))
        assert isinstance(h, Tensor)
        return h

    def product(self, x: Features) -> Tensor:
        """The map without its bias."""
        if x.shape[-1] != self.in_channels:
            raise ValueError(
                f"Expected features with {self.in_channels} columns (got {x.shape[-1]})"
            )
        if isinstance(x, Tensor) and self.out_channels < NARROW:
            if x.device.type == "cpu":
                return narrow_matmul(x, self.weight)
            if kernels.usable(x) and x.dtype == torch.float32 and x.dim() == 2:
                return fused_narrow_matmul(x, self.weight)
        return x @ self.weight

    def _add_bias(self, out: Tensor, residual: Tensor | None = None) -> Tensor:
        if self.bias is not None:
            if kernels.usable(out) and out.dim() == 2:
                return add_bias(out, self.bias, residual)
            # In place a CPU saves a pass; a product may be a view, which autograd protects.
            out = out.add_(self.bias) if out.device.type == "cpu" else out + self.bias
        return out if residual is None else residual + out

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, bias={self.bias is not None}"


class Transform(nn.Module):
    r"""From node features to channels.

    - ``linear``: :math:`X W`
    - ``mlp``: :math:`\mathrm{ReLU}(X W_1)\,W_2`
    - ``residual``: :math:`H = \mathrm{ReLU}(X W_1)`, then :math:`(H + \mathrm{ReLU}(H W_2)) W_3`

    with dropout on the input and before each further map, and under ``normalize`` the rows of
    :math:`X W_1` divided by their root mean square.
    """

    def __init__(
        self,
        kind: TransformKind,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        normalize: bool = False,
        input_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_choice("transform", kind, get_args(TransformKind))
        self.kind = kind
        self.normalize = normalize and kind != "linear"
        self.input_dropout = Dropout(input_dropout)
        self.dropout = Dropout(dropout)
        wide = out_channels if kind == "linear" else hidden_channels
        self.first = Linear(in_channels, wide)
        self.middle = Linear(wide, wide) if kind == "residual" else None
        self.last = None if kind == "linear" else Linear(wide, out_channels)

    def reset_parameters(self) -> None:
        for layer in (self.first, self.middle, self.last):
            if layer is not None:
                layer.reset_parameters()

    def forward(self, x: Features | Terms) -> Tensor:
        features = self.input_dropout(as_features(x))
        if self.last is None:
            return self.first(features)
        if self.middle is None and not self.normalize:
            return self.last(self.first.activated(features, self.dropout))
        h = self.first(features)
        # Not in place after a norm: its gradient is made from what it gave.
        h = torch.relu(normalize_rows(h)) if self.normalize else torch.relu_(h)
        if self.middle is not None:
            h = h + torch.relu_(self.middle(self.dropout(h)))
        return self.last(self.dropout(h))

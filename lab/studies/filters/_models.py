r"""The models of the filter-fitting task, their bases, and Adam for hundreds of them at once.

A model here is a module that returns the Chebyshev coefficients :math:`\beta` of its filter: the
transform, the dropouts and the biases of the node classifiers are left out, as in the papers.

Polynomial models train on the quadratic forms of :class:`Problems`, hundreds in one batch that
never see each other: their parameters are stacked, and Adam acts on each number alone. Networks
with a ReLU have no such form and train on the grid itself, one by one.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

from lab.studies.filters._images import ImageGrid
from lab.studies.filters._task import Problems, grid_operator, quadratic_loss
from longnn.filters import PolynomialFilter
from longnn.nn import ARMA, ChebNet
from longnn.nn._polynomial import personalized_pagerank
from longnn.polynomials import Basis, Jacobi, Monomial

HIDDEN = 32  # channels between ChebNet's layers, and stacks of ARMA

#: The starts (a, b) that are tried: most of the paper's range, and more of it close to -1.
STARTS = [
    (a, b)
    for a in (-0.97, -0.95, -0.9, -0.85, -0.8, -0.75, -0.6, -0.5, 0.0, 0.5, 1.0)
    for b in (-0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
]


class FilterModel(nn.Module):
    """A :class:`~longnn.PolynomialFilter` of one channel as a model of the task."""

    def __init__(self, basis: str | Basis, degree: int, **options: object) -> None:
        super().__init__()
        self.filter = PolynomialFilter(basis, degree, 1, **options).double()  # type: ignore[arg-type]

    def forward(self) -> Tensor:  # (degree+1,)
        """The Chebyshev coefficients of the filter."""
        return self.filter.chebyshev_coefficients()[:, 0]


class FixedPCD(FilterModel):
    """The decomposition with its factors held at the start, as JacobiConv's authors do here."""

    def __init__(self, basis: str | Basis, degree: int) -> None:
        super().__init__(basis, degree, coefficients="pcd")
        (eta,) = self.filter.coefficients.factors()
        eta.requires_grad_(False)


class LinearChebNet(nn.Module):
    r"""Two ChebNet layers of half the degree with 32 channels between them and no ReLU.

    :math:`\sum_h (\sum_j V_{jh}T_j(P))(\sum_k W_{kh}T_k(P))`, a polynomial by
    :math:`T_jT_k = (T_{j+k} + T_{|j-k|})/2`.
    """

    product: Tensor

    def __init__(self, degree: int) -> None:
        super().__init__()
        half = degree // 2
        product = torch.zeros(half + 1, half + 1, degree + 1, dtype=torch.float64)
        for j in range(half + 1):
            for k in range(half + 1):
                product[j, k, j + k] += 0.5
                product[j, k, abs(j - k)] += 0.5
        self.register_buffer("product", product)
        generator = torch.Generator().manual_seed(0)
        shape = (half + 1, HIDDEN)
        bound = (6 / (1 + HIDDEN)) ** 0.5  # Xavier, from 1 to 32 channels and back
        draw = lambda: (2 * torch.rand(shape, generator=generator).double() - 1) * bound  # noqa: E731
        self.first, self.second = nn.Parameter(draw()), nn.Parameter(draw())

    def forward(self) -> Tensor:  # (degree+1,)
        """The Chebyshev coefficients of the filter."""
        return torch.einsum("jh,kh,jkl->l", self.first, self.second, self.product)


class LinearARMA(nn.Module):
    r"""32 ARMA(1) recursions of as many steps as the degree, averaged, without ReLU.

    :math:`X_{t+1} = wPX_t + vX_0`, after T steps :math:`w^TP^T + v\sum_{k<T}w^kP^k`; with
    :math:`|w| < 1` and T growing, the rational :math:`v/(1 - wP)`.
    """

    matrix: Tensor
    powers: Tensor

    def __init__(self, degree: int) -> None:
        super().__init__()
        self.register_buffer("matrix", Monomial().chebyshev_matrix(degree))
        self.register_buffer("powers", torch.arange(degree + 1.0, dtype=torch.float64))
        generator = torch.Generator().manual_seed(0)
        draw = lambda: 2 * torch.rand(HIDDEN, generator=generator).double() - 1  # noqa: E731
        self.w, self.v = nn.Parameter(draw()), nn.Parameter(draw())

    def forward(self) -> Tensor:  # (degree+1,)
        """The Chebyshev coefficients of the filter."""
        powers = self.w[:, None] ** self.powers  # (stacks, degree+1)
        last = torch.zeros_like(powers[0])
        last[-1] = 1.0
        alpha = torch.where(last > 0, powers, self.v[:, None] * powers).mean(0)
        return alpha @ self.matrix


Start = tuple[float, float]

#: The models of the table: from a degree and a start (a, b), where they have one.
MODELS: Mapping[str, Callable[[int, Start], nn.Module]] = {
    "GPRGNN": lambda degree, start: FilterModel(
        "monomial", degree, init=personalized_pagerank(degree, 0.1)
    ),
    "ARMA, linear": lambda degree, start: LinearARMA(degree),
    "ChebNet, linear": lambda degree, start: LinearChebNet(degree),
    "BernNet": lambda degree, start: FilterModel("bernstein", degree, coefficients="nonnegative"),
    "JacobiConv": lambda degree, start: FixedPCD(Jacobi(*start, orthonormal=False), degree),
    "JacobiConv, PCD trained": lambda degree, start: FilterModel(
        Jacobi(*start, orthonormal=False), degree, coefficients="pcd"
    ),
    "LON-GNN": lambda degree, start: lon(degree, start),
    "LON-GNN, a = b = 0": lambda degree, start: lon(degree, (0.0, 0.0)),
}


def lon(degree: int, start: Start) -> FilterModel:
    """LON-GNN: an orthonormal Jacobi basis with trained a, b, free coefficients."""
    return FilterModel(Jacobi(*start, weight="probability"), degree, learn_basis=True)


def conditions(matrix: Tensor, problems: Problems) -> Tensor:
    r"""Condition number of the Hessian :math:`CR^TRC^T` of the coefficients, for each image.

    Args:
        matrix: C of the basis, one for all or one per image.
        problems: the images; the filters do not matter.
    """
    return torch.linalg.cond(problems.R[: problems.images] @ matrix.mT) ** 2


def best_starts(problems: Problems) -> list[Start]:
    """For each image the (a, b) of :data:`STARTS` under which its Hessian is best conditioned.

    It takes the image and not the target: (a, b) is chosen so that the weight
    :math:`(1-x)^a(1+x)^b` is nearest to where the image has its energy.
    """
    bases = [Jacobi(*start, weight="probability") for start in STARTS]
    tried = [conditions(b.chebyshev_matrix(problems.degree), problems) for b in bases]
    return [STARTS[i] for i in torch.stack(tried).argmin(0).tolist()]


#: A loss this near to the floor, relatively, counts as having reached it.
NEAR = 1e-3

#: Networks with a ReLU between two layers, as the library has them, without dropout.
NETWORKS: Mapping[str, Callable[[], nn.Module]] = {
    "ARMA": lambda: ARMA(1, HIDDEN, 1, input_dropout=0.0, dropout=0.0),
    "ChebNet": lambda: ChebNet(1, HIDDEN, 1, degree=2, input_dropout=0.0, dropout=0.0),
}


@dataclasses.dataclass(frozen=True)
class Trained:
    """What training found, for each learning rate, filter and image."""

    rates: Sequence[float]
    best: Tensor  # (rates, filters, images) the least loss on the way
    curve: Tensor  # (steps, rates, filters) the least loss until then, mean over images

    def chosen(self) -> list[int]:
        """For each filter the rate of the least mean loss."""
        return self.best.mean(-1).argmin(0).tolist()

    def losses(self) -> Tensor:
        """(filters, images) at the chosen rates."""
        return torch.stack([self.best[r, f] for f, r in enumerate(self.chosen())])

    def steps_to(self, floor: Tensor) -> Tensor:
        """(rates, filters) steps until the mean loss is near the floor's; 0 where it never is."""
        near = self.curve <= (1 + NEAR) * floor.mean(-1)
        return torch.where(near.any(0), near.int().argmax(0) + 1, 0)

    def fastest(self, floor: Tensor) -> list[int]:
        """For each filter the rate that is near the floor first, or else has the least loss."""
        steps = self.steps_to(floor)
        never = len(self.curve) + 1
        found = []
        for f, fallback in enumerate(self.chosen()):
            first = torch.where(steps[:, f] > 0, steps[:, f], never)
            found.append(int(first.argmin()) if int(first.min()) < never else fallback)
        return found


def train(
    modules: Sequence[nn.Module],
    problems: Problems,
    *,
    rates: Sequence[float],
    steps: int,
    basis_rate: float | None = None,
) -> Trained:
    """Train a polynomial model on every problem at every learning rate.

    Args:
        modules: one, from which every problem starts, or one per image.
        problems: what is to be fitted.
        rates: learning rates, each tried on every problem.
        steps: of Adam.
        basis_rate: of a and b; by default as the coefficients'.
    """
    R, c = (t.repeat(len(rates), *(1,) * (t.dim() - 1)) for t in (problems.R, problems.c))
    rate = torch.tensor(rates, dtype=torch.float64).repeat_interleave(len(problems))
    own = rate if basis_rate is None else torch.full_like(rate, basis_rate)
    params, buffers = stack_module_state(list(modules))
    params, buffers = (
        {k: v.detach().repeat(len(R) // len(modules), *(1,) * (v.dim() - 1)) for k, v in d.items()}
        for d in (params, buffers)
    )
    frozen = {name for name, p in modules[0].named_parameters() if not p.requires_grad}
    speeds = {k: own if "raw_basis" in k else rate for k in params if k not in frozen}

    def loss(p: dict[str, Tensor], q: dict[str, Tensor], R: Tensor, c: Tensor) -> Tensor:
        beta = functional_call(modules[0], (p, q), ())
        return quadratic_loss(beta[:, None], R, c[:, None])[0]

    evaluate = vmap(grad_and_value(loss))

    def shaped(above: Tensor) -> Tensor:  # (members,) -> (rates, filters, images)
        return problems.by_filter(above.view(len(rates), -1) + problems.rho)

    best, curve = adam(lambda p: evaluate(p, buffers, R, c), params, speeds, steps, shaped)
    return Trained(rates, best, curve)


def train_networks(
    make: Callable[[], nn.Module],
    grid: ImageGrid,
    targets: Tensor,  # (filters, nodes, images)
    *,
    rates: Sequence[float],
    steps: int,
    device: torch.device,
) -> Trained:
    """Train a network on every image and filter at every learning rate, one after the other.

    In float32; all start from the same weights (seed 0).
    """
    operator = grid_operator(grid).to(torch.float32).to(device)
    signals, wanted = grid.signals.float().to(device), targets.float().to(device)
    mask = grid.mask[:, None].to(device)
    filters, _, images = targets.shape
    losses = torch.empty(steps, len(rates), filters, images, dtype=torch.float64)
    for r, rate in enumerate(rates):
        for f in range(filters):
            for k in range(images):
                with torch.random.fork_rng():
                    torch.manual_seed(0)
                    module = make().to(device)
                optimizer = torch.optim.Adam(module.parameters(), lr=rate)
                x, y = signals[:, k : k + 1], wanted[f, :, k : k + 1]
                for step in range(steps):
                    optimizer.zero_grad()
                    loss = ((module(x, operator) - y) * mask).square().sum()
                    loss.backward()
                    optimizer.step()
                    losses[step, r, f, k] = loss.detach()
    best = losses.cummin(0).values
    return Trained(rates, best[-1], best.mean(-1))


Params = dict[str, Tensor]


def adam(
    evaluate: Callable[[Params], tuple[Params, Tensor]],
    params: Params,
    speeds: Mapping[str, Tensor],
    steps: int,
    shaped: Callable[[Tensor], Tensor],
) -> tuple[Tensor, Tensor]:
    """Adam (0.9, 0.999), constant rates, no weight decay, on stacked parameters.

    Args:
        evaluate: gradients and losses, shape (members,), of parameters (members, ...).
        params: where to start.
        speeds: learning rates of the parameters to train, shape (members,).
        steps: how many.
        shaped: losses as they are kept, (..., images).

    Returns:
        the least loss of each member on the way, shaped; and its mean over images at each step.
    """
    params = dict(params)
    first = {name: torch.zeros_like(params[name]) for name in speeds}
    second = {name: torch.zeros_like(params[name]) for name in speeds}
    best, curve = None, []
    for step in range(1, steps + 1):
        gradient, value = evaluate(params)
        best = value if best is None else torch.fmin(best, value)
        curve.append(shaped(best).mean(-1))
        for name, speed in speeds.items():
            g = gradient[name]
            first[name].lerp_(g, 0.1)
            second[name].lerp_(g.square(), 0.001)
            root = (second[name] / (1 - 0.999**step)).sqrt() + 1e-8
            rate = speed.view(-1, *(1,) * (g.dim() - 1)) / (1 - 0.9**step)
            params[name] = params[name] - rate * first[name] / root
    assert best is not None
    return shaped(best), torch.stack(curve)

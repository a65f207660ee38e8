r"""Adam for all images, filters and learning rates at once.

Polynomial models train on the quadratic forms of :class:`Problems`, hundreds in one batch that
never see each other: their parameters are stacked, and Adam acts on each number alone. Networks
with a ReLU have no such form and train on the grid itself, one by one.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

from lab.studies.filters._task import Problems, grid_operator, quadratic_loss
from longnn.data._images import ImageGrid
from longnn.nn import ARMA, ChebNet

#: A loss this near to the floor, relatively, counts as having reached it.
NEAR = 1e-3

HIDDEN = 32

#: Networks with a ReLU between two layers, as the library has them, without dropout.
NETWORKS: Mapping[str, Callable[[], nn.Module]] = {
    "ARMA": lambda: ARMA(1, HIDDEN, 1, input_dropout=0.0, dropout=0.0),
    "ChebNet": lambda: ChebNet(1, HIDDEN, 1, degree=2, input_dropout=0.0, dropout=0.0),
}


@dataclasses.dataclass(frozen=True)
class Trained:
    """What training found, for each learning rate, filter and image.

    >>> best = torch.tensor([[[2.0, 2.0]], [[1.0, 3.0]], [[1.0, 1.0]]])  # three rates
    >>> Trained([0.1, 0.2, 0.3], best, best.mean(-1)[None]).chosen()
    [2]
    """

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

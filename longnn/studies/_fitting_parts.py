"""What the filter-fitting experiment measures: each function makes one part of its record."""

import dataclasses
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from longnn.data import ImageGrid
from longnn.filters import PolynomialFilter
from longnn.studies._fitting_models import (
    MODELS,
    FilterModel,
    GivenBasis,
    Start,
    best_starts,
    comparison_bases,
    conditions,
    lon,
    own_bases,
)
from longnn.studies._fitting_rational import PAIRS, factorize, find_poles, fit_rational
from longnn.studies._fitting_task import (
    FILTERS,
    Problems,
    eigenblocks,
    exact_floor,
    grid_operator,
    make_problems,
    make_targets,
)
from longnn.studies._fitting_training import NETWORKS, Trained, train, train_networks

DEGREE = 10
HIGHEST = 40  # of the curve of loss against degree
SAMPLE = 2  # images for the networks with a ReLU
SAMPLE_PART = 4  # of the steps of the others
SAMPLE_RATES = (5e-3, 1e-2)  # and their learning rates
BASIS_RATE = 2e-4  # of a and b in the paper's Table 2
BASIS_RATES = (1e-2, 1e-3, 5e-4, 2e-4, 1e-4)  # of a and b in its Table 6
MARKS = 40  # points of a curve that are kept

Part = dict[str, Any]


#: CPU time: on one thread what an idle machine takes, however busy this one is.
_clock = time.process_time


class Task:
    """Images, targets and quadratic forms, each made when first asked for."""

    def __init__(self, grid: ImageGrid) -> None:
        self.grid = grid
        self._made: dict[str, Any] = {}

    def _once(self, key: str, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    @property
    def blocks(self) -> Any:
        return self._once("blocks", lambda: eigenblocks(self.grid))

    @property
    def targets(self) -> Tensor:
        return self._once("targets", lambda: make_targets(self.grid, self.blocks))

    @property
    def highest(self) -> Problems:
        return self._once("highest", lambda: make_problems(self.grid, self.targets, HIGHEST))

    @property
    def problems(self) -> Problems:
        return self._once("problems", lambda: self.highest.at_degree(DEGREE))

    @property
    def with_loops(self) -> Problems:
        make = lambda: make_problems(self.grid, self.targets, DEGREE, self_loops="add")  # noqa: E731
        return self._once("loops", make)

    @property
    def starts(self) -> list[Start]:  # one an image
        return self._once("starts", lambda: best_starts(self.problems))

    def modules(self, name: str) -> list[nn.Module]:
        """A model of the table for each image."""
        return [MODELS[name](DEGREE, start) for start in self.starts]

    @property
    def floor(self) -> Tensor:  # (filters, images)
        return self.problems.by_filter(self.problems.rho)


def floor_part(task: Task) -> Part:
    """The floor by the eigendecomposition, and the least loss of every degree."""
    exact = torch.from_numpy(exact_floor(task.grid, task.blocks, task.targets, DEGREE))
    degrees = list(range(2, HIGHEST + 1))
    by_degree = [task.highest.at_degree(k) for k in degrees]
    return {
        "losses": _by_filter(exact),
        "starts": task.starts,
        "energy": dict(zip(FILTERS, _energy(task), strict=True)),
        "degrees": degrees,
        "by_degree": {
            name: [_round(float(p.by_filter(p.rho)[f].mean())) for p in by_degree]
            for f, name in enumerate(FILTERS)
        },
    }


def _energy(task: Task) -> list[float]:
    """The loss of no filter at all, the output 0: the scale of the losses."""
    return [_round(float(v)) for v in task.targets[:, task.grid.mask].square().sum(1).mean(1)]


def closed_part(task: Task, degree: int) -> Part:
    """The library's closed form, one image at a time, with its time."""
    operator, grid = grid_operator(task.grid), task.grid
    losses = torch.empty(len(FILTERS), grid.num_images, dtype=torch.float64)
    seconds = []
    warm = PolynomialFilter("jacobi", degree).double()
    warm.fit_least_squares(operator, grid.signals[:, 0], task.targets[0, :, 0], grid.mask)
    for f in range(len(FILTERS)):
        for k in range(grid.num_images):
            began = _clock()
            model = PolynomialFilter("jacobi", degree).double()
            x, y = grid.signals[:, k], task.targets[f, :, k]
            losses[f, k] = model.fit_least_squares(operator, x, y, grid.mask).squared_error[0]
            seconds.append(_clock() - began)
    return {"losses": _by_filter(losses), "ms": _milliseconds(seconds)}


def rational_part(task: Task) -> Part:
    """Rational filters with as many coefficients as the polynomial has."""
    grid = task.grid
    losses = torch.empty(len(FILTERS), grid.num_images, dtype=torch.float64)
    seconds, before, poles = [], [], {}
    for f, (name, response) in enumerate(FILTERS.items()):
        began = _clock()
        found = find_poles(response)
        factors = factorize(grid, found)
        before.append(_clock() - began)
        poles[name] = [[_round(z.real), _round(z.imag)] for z in found.tolist()]
        for k in range(grid.num_images):
            began = _clock()
            x, y = grid.signals[:, k], task.targets[f, :, k]
            losses[f, k] = fit_rational(factors, x, y, grid.mask)
            seconds.append(_clock() - began)
    return {
        "losses": _by_filter(losses),
        "ms": _milliseconds(seconds),
        "ms_before": _milliseconds(before),
        "pairs": PAIRS,
        "poles": poles,
    }


def own_floors_part(task: Task) -> Part:
    """The least losses of two models that are not free polynomials of P."""
    operator, grid = grid_operator(task.grid), task.grid
    bern = torch.empty(len(FILTERS), grid.num_images, dtype=torch.float64)
    for f in range(len(FILTERS)):
        for k in range(grid.num_images):
            model = PolynomialFilter("bernstein", DEGREE, coefficients="nonnegative").double()
            x, y = grid.signals[:, k], task.targets[f, :, k]
            bern[f, k] = model.fit_least_squares(operator, x, y, grid.mask).squared_error[0]
    loops = task.with_loops
    return {"BernNet": _by_filter(bern), "GPRGNN": _by_filter(loops.by_filter(loops.rho))}


def model_part(task: Task, name: str, rates: Sequence[float], steps: int) -> Part:
    problems = task.with_loops if name == "GPRGNN" else task.problems
    modules = task.modules(name)
    trained = train(modules, problems, rates=rates, steps=steps, basis_rate=BASIS_RATE)
    return describe(trained, task.floor)


def network_part(task: Task, name: str, steps: int, device: torch.device) -> Part:
    """A network with a ReLU: its every step runs on the whole grid, so few images and steps."""
    some = dataclasses.replace(task.grid, signals=task.grid.signals[:, :SAMPLE])
    trained = train_networks(
        NETWORKS[name],
        some,
        task.targets[..., :SAMPLE],
        rates=SAMPLE_RATES,
        steps=max(steps // SAMPLE_PART, 1),
        device=device,
    )
    found = describe(trained, task.floor[:, :SAMPLE])
    return {"images": SAMPLE, "rates": SAMPLE_RATES, **found}


def sensitivity_part(task: Task, parts: Mapping[str, Any], steps: int) -> Part:
    """Table 6: the learning rate of a and b, that of the coefficients as chosen before."""
    found: Part = {}
    for name in ("LON-GNN", "LON-GNN, a = b = 0"):
        if f"model/{name}" in parts:
            chosen = parts[f"model/{name}"]["chosen"]
            modules = task.modules(name)
            found[name] = {
                f"{rate:g}": _means_at(task, modules, chosen, rate, steps) for rate in BASIS_RATES
            }
    return found


def _means_at(
    task: Task,
    modules: Sequence[nn.Module],
    chosen: Mapping[str, float],
    basis_rate: float,
    steps: int,
) -> dict[str, float]:
    """Mean losses of the filters, each at its own learning rate of the coefficients."""
    numbers = torch.arange(len(task.problems)).view(len(FILTERS), -1)
    means: dict[str, float] = {}
    for rate in sorted(set(chosen.values())):
        names = [name for name in FILTERS if chosen[name] == rate]
        index = numbers[[list(FILTERS).index(name) for name in names]].flatten()
        trained = train(
            modules, task.problems.select(index), rates=[rate], steps=steps, basis_rate=basis_rate
        )
        means.update(zip(names, trained.best[0].mean(-1).tolist(), strict=True))
    return {name: _round(means[name]) for name in FILTERS}


def times_part(task: Task, parts: Mapping[str, Any]) -> Part:
    """Gradient training of LON-GNN until it is near the floor, all images at once and one alone.

    Everything counts: sparse products, the choice of the start, and every step.
    """
    part = parts["model/LON-GNN"]
    steps = math.ceil((max(part["steps_to"].values()) or part["steps"]) / 10) * 10
    together, alone, plain, ratio = [], [], [], []
    first = dataclasses.replace(task.grid, signals=task.grid.signals[:, :1])
    for f, name in enumerate(FILTERS):
        rate = part["fastest"][name]
        began = _clock()
        problems = make_problems(task.grid, task.targets[f : f + 1], DEGREE)
        modules = [lon(DEGREE, start) for start in best_starts(problems)]
        trained = train(modules, problems, rates=[rate], steps=steps, basis_rate=BASIS_RATE)
        together.append((_clock() - began) / task.grid.num_images)
        ratio.append(float(trained.best.mean() / task.floor[f].mean()))

        began = _clock()
        problem = make_problems(first, task.targets[f : f + 1, :, :1], DEGREE)
        model = lon(DEGREE, best_starts(problem)[0])
        _descend(model, partial(_loss, problem, model), rate, steps)
        alone.append(_clock() - began)
        plain.append(_time_plainly(task, f, rate, steps))
    return {
        "steps": steps,
        "ratio": dict(zip(FILTERS, map(_round, ratio), strict=True)),
        "ms_together": _milliseconds(together),
        "ms_alone": _milliseconds(alone),
        "ms_plain": _milliseconds(plain),
    }


def _descend(model: FilterModel, loss: Callable[[], Tensor], rate: float, steps: int) -> None:
    """Adam on one model by autograd, as :func:`~longnn.studies.train`."""
    basis = list(model.filter.raw_basis.values())
    others = list(model.filter.coefficients.parameters())
    groups = [{"params": others, "lr": rate}, {"params": basis, "lr": BASIS_RATE}]
    optimizer = torch.optim.Adam(groups, fused=True)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()


def _loss(problem: Problems, model: FilterModel) -> Tensor:
    return problem.losses(model()[None])[0]


def _time_plainly(task: Task, f: int, rate: float, steps: int) -> float:
    """Seconds of the same for the first image with a pass of sparse products every step."""
    operator, mask = grid_operator(task.grid), task.grid.mask[:, None]
    x, y = task.grid.signals[:, :1], task.targets[f, :, :1]
    model = lon(DEGREE, task.starts[0])
    began = _clock()
    few = min(steps, 20)
    _descend(model, lambda: ((model.filter(operator, x) - y) * mask).square().sum(), rate, few)
    return (_clock() - began) * steps / few


def basis_modules(task: Task) -> dict[str, list[GivenBasis]]:
    """Modules of free coefficients by the name of their basis: one, or one an image."""
    matrices = comparison_bases(DEGREE, task.starts)
    matrices["orthonormal on the image"] = list(own_bases(task.problems))
    return {name: [GivenBasis(C) for C in found] for name, found in matrices.items()}


def basis_part(
    task: Task, modules: Sequence[GivenBasis], rates: Sequence[float], steps: int
) -> Part:
    """How well a basis conditions the task, and how fast it learns."""
    matrix = torch.stack([module.matrix for module in modules])
    trained = train(modules, task.problems, rates=rates, steps=steps)
    found = describe(trained, task.floor)
    del found["losses"]
    return {
        "condition": _round(float(conditions(matrix, task.problems).median())),
        "condition_scaled": _round(float(conditions(matrix, task.problems, scaled=True).median())),
        **found,
    }


def describe(trained: Trained, floor: Tensor) -> Part:
    """What is kept of a training."""
    chosen, fastest = trained.chosen(), trained.fastest(floor)
    steps = trained.steps_to(floor)
    last = len(trained.curve)
    marks = sorted({round(last ** (i / (MARKS - 1))) for i in range(MARKS)})
    return {
        "losses": _by_filter(trained.losses()),
        "chosen": {name: trained.rates[r] for name, r in zip(FILTERS, chosen, strict=True)},
        "fastest": {name: trained.rates[r] for name, r in zip(FILTERS, fastest, strict=True)},
        "steps": last,
        "steps_to": {name: int(steps[fastest[f], f]) for f, name in enumerate(FILTERS)},
        "marks": marks,
        "curve": {
            name: [_round(float(trained.curve[m - 1, fastest[f], f])) for m in marks]
            for f, name in enumerate(FILTERS)
        },
    }


def _by_filter(losses: Tensor) -> dict[str, list[float]]:
    return {
        name: [_round(v) for v in row] for name, row in zip(FILTERS, losses.tolist(), strict=True)
    }


def _milliseconds(seconds: list[float]) -> dict[str, float]:
    times = [1e3 * s for s in seconds]
    return {"median": _round(statistics.median(times), 4), "max": _round(max(times), 4)}


def _round(value: float, digits: int = 9) -> float:
    return float(f"{value:.{digits}g}")

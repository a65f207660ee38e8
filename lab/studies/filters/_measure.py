"""What is measured: each function makes the values of one cell of the record.

Losses are by filter and image; times are CPU times of one thread.
"""

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from lab.records import Values
from lab.studies._engine import rounded
from lab.studies.filters._images import ImageGrid
from lab.studies.filters._models import (
    MODELS,
    NETWORKS,
    Start,
    Trained,
    best_starts,
    train,
    train_networks,
)
from lab.studies.filters._task import (
    FILTERS,
    Block,
    Problems,
    eigenblocks,
    exact_floor,
    grid_operator,
    make_problems,
    make_targets,
)
from longnn.filters import PolynomialFilter

DEGREE = 10
HIGHEST = 40  # of the curve of loss against degree
SAMPLE = 2  # images for the networks with a ReLU
SAMPLE_SHARE = 4  # they take this share of the steps of the others
SAMPLE_RATES = (5e-3, 1e-2)  # and their learning rates
BASIS_RATE = 2e-4  # of a and b in the paper's Table 2
BASIS_RATES = (1e-2, 1e-3, 5e-4, 2e-4, 1e-4)  # of a and b in its Table 6
MARKS = 40  # points of a curve that are kept
DIGITS = 9  # of losses

#: CPU time: on one thread the time of an idle machine, however busy this one is.
clock = time.process_time


class Task:
    """Images, targets and quadratic forms, each made when first asked for."""

    def __init__(self, grid: ImageGrid) -> None:
        self.grid = grid

    @cached_property
    def blocks(self) -> list[Block]:
        """The eigendecomposition of the grid."""
        return eigenblocks(self.grid)

    @cached_property
    def targets(self) -> Tensor:  # (filters, nodes, images)
        """The images after each filter."""
        return make_targets(self.grid, self.blocks)

    @cached_property
    def highest(self) -> Problems:
        """The quadratic forms at the highest degree."""
        return make_problems(self.grid, self.targets, HIGHEST)

    @cached_property
    def problems(self) -> Problems:
        """The quadratic forms at the degree of the models."""
        return self.highest.at_degree(DEGREE)

    @cached_property
    def with_loops(self) -> Problems:
        """The same with self loops, as GPRGNN has them."""
        return make_problems(self.grid, self.targets, DEGREE, self_loops="add")

    @cached_property
    def starts(self) -> list[Start]:
        """The best start (a, b) of each image."""
        return best_starts(self.problems)

    def modules(self, name: str) -> list[nn.Module]:
        """A model of the table for each image."""
        return [MODELS[name](DEGREE, start) for start in self.starts]

    @property
    def floor(self) -> Tensor:  # (filters, images)
        """The least loss of any polynomial of this degree."""
        return self.problems.by_filter(self.problems.rho)


def measure_floor(task: Task) -> dict[str, Any]:
    """The floor by the eigendecomposition, and the least loss of every degree."""
    exact = torch.from_numpy(exact_floor(task.grid, task.blocks, task.targets, DEGREE))
    degrees = list(range(2, HIGHEST + 1))
    # The loss of no filter at all, the output 0: the scale of the losses.
    energy = task.targets[:, task.grid.mask].square().sum(1).mean(1)
    by_degree = [task.highest.at_degree(k) for k in degrees]
    return {
        "losses": _by_filter(exact),
        "starts": [list(start) for start in task.starts],
        "energy": dict(zip(FILTERS, rounded(energy, DIGITS), strict=True)),
        "degrees": degrees,
        "by_degree": {
            name: rounded([p.by_filter(p.rho)[f].mean() for p in by_degree], DIGITS)
            for f, name in enumerate(FILTERS)
        },
    }


def _fit_each(
    task: Task, fit: Callable[[int, Tensor, Tensor], float]
) -> tuple[dict[str, list[float]], list[float]]:
    """Losses of every filter (by its number) and image, and the seconds of each."""
    losses = torch.empty(len(FILTERS), task.grid.num_images, dtype=torch.float64)
    seconds = []
    for f, targets in enumerate(task.targets):
        for k in range(task.grid.num_images):
            began = clock()
            losses[f, k] = fit(f, task.grid.signals[:, k], targets[:, k])
            seconds.append(clock() - began)
    return _by_filter(losses), seconds


def _least_squares(
    task: Task, basis: str, degree: int, **options: Any
) -> tuple[dict[str, list[float]], list[float]]:
    """The library's closed form, one image at a time."""
    operator, mask = grid_operator(task.grid), task.grid.mask

    def fit(f: int, x: Tensor, y: Tensor) -> float:
        model = PolynomialFilter(basis, degree, **options).double()
        return float(model.fit_least_squares(operator, x, y, mask).squared_error[0])

    fit(0, task.grid.signals[:, 0], task.targets[0, :, 0])  # the first call takes longer
    return _fit_each(task, fit)


def solve_closed(task: Task, degree: int) -> dict[str, Any]:
    """The least loss by the library, with its time."""
    losses, seconds = _least_squares(task, "jacobi", degree)
    return {"losses": losses, "ms": milliseconds(seconds)}


def measure_own_floors(task: Task) -> dict[str, Any]:
    """The least losses of two models that are not free polynomials of P."""
    bern, _ = _least_squares(task, "bernstein", DEGREE, coefficients="nonnegative")
    loops = task.with_loops
    return {"losses": {"BernNet": bern, "GPRGNN": _by_filter(loops.by_filter(loops.rho))}}


def fit_model(task: Task, name: str, rates: Sequence[float], steps: int) -> dict[str, Any]:
    """A polynomial model of the table, trained on every image."""
    problems = task.with_loops if name == "GPRGNN" else task.problems
    modules = task.modules(name)
    trained = train(modules, problems, rates=rates, steps=steps, basis_rate=BASIS_RATE)
    return describe(trained, task.floor)


def fit_network(task: Task, name: str, steps: int, device: torch.device) -> dict[str, Any]:
    """A network with a ReLU: every step runs on the whole grid, so few images and steps."""
    some = dataclasses.replace(task.grid, signals=task.grid.signals[:, :SAMPLE])
    trained = train_networks(
        NETWORKS[name],
        some,
        task.targets[..., :SAMPLE],
        rates=SAMPLE_RATES,
        steps=max(steps // SAMPLE_SHARE, 1),
        device=device,
    )
    described = describe(trained, task.floor[:, :SAMPLE])
    return {**described, "images": SAMPLE, "rates": list(SAMPLE_RATES)}


def measure_sensitivity(task: Task, trained: Mapping[str, Values], steps: int) -> dict[str, Any]:
    """Table 6: the learning rate of a and b, that of the coefficients as chosen before."""
    found = {}
    for name in ("LON-GNN", "LON-GNN, a = b = 0"):
        if name in trained:
            chosen, modules = trained[name]["chosen"], task.modules(name)
            found[name] = {
                f"{rate:g}": _means_at(task, modules, chosen, rate, steps) for rate in BASIS_RATES
            }
    return {"losses": found}


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
    return {name: rounded(means[name], DIGITS) for name in FILTERS}


def describe(trained: Trained, floor: Tensor) -> dict[str, Any]:
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
            name: rounded([trained.curve[m - 1, fastest[f], f] for m in marks], DIGITS)
            for f, name in enumerate(FILTERS)
        },
    }


def _by_filter(losses: Tensor) -> dict[str, list[float]]:
    return dict(zip(FILTERS, rounded(losses, DIGITS), strict=True))


def milliseconds(seconds: list[float]) -> dict[str, float]:
    """Median and largest of times in seconds."""
    times = [1e3 * s for s in seconds]
    return {"median": rounded(statistics.median(times), 4), "max": rounded(max(times), 4)}

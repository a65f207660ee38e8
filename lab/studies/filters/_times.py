"""How long gradient training of LON-GNN takes until it is near the floor."""

import dataclasses
import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from lab.studies.filters._cells import TimesCell, TrainedCell
from lab.studies.filters._measure import (
    BASIS_RATE,
    DEGREE,
    Task,
    clock,
    milliseconds,
    rounded,
)
from lab.studies.filters._models import FilterModel, best_starts, lon
from lab.studies.filters._task import FILTERS, Problems, grid_operator, make_problems
from lab.studies.filters._training import train


def measure_times(task: Task, lon_cell: TrainedCell) -> TimesCell:
    """Gradient training of LON-GNN until it is near the floor, all images at once and one alone.

    Everything counts: sparse products, the choice of the start, and every step.
    """
    steps = math.ceil((max(lon_cell.steps_to.values()) or lon_cell.steps) / 10) * 10
    together, alone, plain, ratio = [], [], [], []
    first = dataclasses.replace(task.grid, signals=task.grid.signals[:, :1])
    for f, name in enumerate(FILTERS):
        rate = lon_cell.fastest[name]
        began = clock()
        problems = make_problems(task.grid, task.targets[f : f + 1], DEGREE)
        modules = [lon(DEGREE, start) for start in best_starts(problems)]
        trained = train(modules, problems, rates=[rate], steps=steps, basis_rate=BASIS_RATE)
        together.append((clock() - began) / task.grid.num_images)
        ratio.append(float(trained.best.mean() / task.floor[f].mean()))

        began = clock()
        problem = make_problems(first, task.targets[f : f + 1, :, :1], DEGREE)
        model = lon(DEGREE, best_starts(problem)[0])
        _descend(model, partial(_loss, problem, model), rate, steps)
        alone.append(clock() - began)
        plain.append(_time_plainly(task, f, rate, steps))
    return TimesCell(
        steps=steps,
        ratio=dict(zip(FILTERS, map(rounded, ratio), strict=True)),
        ms_together=milliseconds(together),
        ms_alone=milliseconds(alone),
        ms_plain=milliseconds(plain),
    )


def _descend(model: FilterModel, loss: Callable[[], Tensor], rate: float, steps: int) -> None:
    """Adam on one model by autograd, as :func:`train` does for many."""
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
    began = clock()
    few = min(steps, 20)
    _descend(model, lambda: ((model.filter(operator, x) - y) * mask).square().sum(), rate, few)
    return (clock() - began) * steps / few

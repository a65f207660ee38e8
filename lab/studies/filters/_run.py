"""Run the study: one record, one cell per model, basis or floor."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from lab.studies._core._context import Context
from lab.studies.filters._cells import (
    ClosedCell,
    FloorCell,
    OwnFloorsCell,
    Plan,
    RationalCell,
    SensitivityCell,
    TimesCell,
    TrainedCell,
)
from lab.studies.filters._measure import (
    BASIS_RATE,
    BASIS_RATES,
    DEGREE,
    Task,
    basis_modules,
    fit_basis,
    fit_model,
    fit_network,
    fit_rationals,
    measure_floor,
    measure_own_floors,
    measure_sensitivity,
    solve_closed,
)
from lab.studies.filters._models import MODELS
from lab.studies.filters._task import load_images
from lab.studies.filters._times import measure_times
from lab.studies.filters._training import NETWORKS
from longnn.training import choose_device

T = TypeVar("T")

RATES = (5e-4, 1e-3, 5e-3, 1e-2, 5e-2)  # the paper's grid
STEPS = 2000


def run(context: Context) -> None:
    """Compute what the record lacks."""
    names = context.choose("models", [*MODELS, *NETWORKS])
    grid = load_images(context.data_dir, quick=context.quick)
    task = Task(grid)
    steps = 15 if context.quick else STEPS
    rates = RATES[3:] if context.quick else RATES
    plan = Plan(
        images=grid.name,
        count=grid.num_images,
        size=[grid.height, grid.width],
        degree=DEGREE,
        steps=steps,
        rates=list(rates),
        basis_rate=BASIS_RATE,
        basis_rates=list(BASIS_RATES),
    )
    record = context.record("record", plan)

    def cell(key: str, kind: type[T], compute: Callable[[], T], device: str = "cpu") -> T:
        if key not in record:
            context.tell(f"{key} ...")
        return record.cell(key, kind, compute, machine=context.machine(device))

    cell("floor", FloorCell, partial(measure_floor, task))
    for degree in (DEGREE, 2 * DEGREE, 4 * DEGREE):
        cell(f"closed/{degree}", ClosedCell, partial(solve_closed, task, degree))
    cell("rational", RationalCell, partial(fit_rationals, task))
    cell("own", OwnFloorsCell, partial(measure_own_floors, task))
    trained = {
        name: cell(f"model/{name}", TrainedCell, partial(fit_model, task, name, rates, steps))
        for name in names
        if name in MODELS
    }
    if "LON-GNN" in names:
        compute = partial(measure_sensitivity, task, trained, steps)
        cell("sensitivity", SensitivityCell, compute)
        cell("times", TimesCell, partial(measure_times, task, trained["LON-GNN"]))
        for name, modules in basis_modules(task).items():
            fit = partial(fit_basis, task, modules, rates, steps)
            cell(f"basis/{name}", TrainedCell, fit)
    device = choose_device(context.device)
    for name in [n for n in NETWORKS if n in names]:
        fit = partial(fit_network, task, name, steps, device)
        cell(f"network/{name}", TrainedCell, fit, device.type)

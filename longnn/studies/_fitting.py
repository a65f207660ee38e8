r"""Tables 2 and 6 of the paper: learning five filters from images.

Each image is a signal on the pixel grid, its target the image after a known filter, and the loss
the sum of squared errors over the interior pixels. All polynomial models of one degree share one
least loss, the *floor*; what differs is how fast they come near it, and that is a matter of
conditioning: in a basis with matrix C the Hessian of the coefficients is
:math:`C\,S^TS\,C^T`, S the Chebyshev terms of the image, and the steps a gradient method needs
grow with its condition number. Images have their energy at small eigenvalues; an orthonormal
Jacobi basis whose weight :math:`(1-x)^a(1+x)^b` lies there too makes the Hessian nearly the
identity, which a basis without norms, or one for an even weight, does not.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from longnn.studies._fitting_figures import draw
from longnn.studies._fitting_models import MODELS
from longnn.studies._fitting_parts import (
    BASIS_RATE,
    BASIS_RATES,
    DEGREE,
    Task,
    basis_modules,
    basis_part,
    closed_part,
    floor_part,
    model_part,
    network_part,
    own_floors_part,
    rational_part,
    sensitivity_part,
    times_part,
)
from longnn.studies._fitting_tables import tables
from longnn.studies._fitting_task import load_images
from longnn.studies._fitting_training import NETWORKS
from longnn.studies._paper import Context
from longnn.studies._record import Record

__all__ = ["TITLE", "draw", "run", "tables"]

TITLE = "Learning five filters from images (Tables 2 and 6)"

RATES = (5e-4, 1e-3, 5e-3, 1e-2, 5e-2)  # the paper's grid
STEPS = 2000


def run(context: Context) -> None:
    """Compute what the record lacks."""
    names = context.choose("models", [*MODELS, *NETWORKS])
    grid = load_images(context.data_dir, quick=context.quick)
    task = Task(grid)
    steps = 15 if context.quick else STEPS
    rates = RATES[3:] if context.quick else RATES
    settings = {
        "images": grid.name,
        "count": grid.num_images,
        "size": [grid.height, grid.width],
        "degree": DEGREE,
        "steps": steps,
        "rates": rates,
        "basis_rate": BASIS_RATE,
        "basis_rates": BASIS_RATES,
    }
    record = Record(context.folder / "record.json", settings, commit=context.commit)

    def part(key: str, compute: Callable[[], dict[str, Any]], device: str = "cpu") -> Any:
        if key not in record.parts:
            context.tell(f"{key} ...")
        return record.part(key, compute, device=device)

    part("floor", lambda: floor_part(task))
    for degree in (DEGREE, 2 * DEGREE, 4 * DEGREE):
        part(f"closed/{degree}", partial(closed_part, task, degree))
    part("rational", lambda: rational_part(task))
    part("own", lambda: own_floors_part(task))
    for name in names:
        if name in MODELS:
            part(f"model/{name}", partial(model_part, task, name, rates, steps))
    if "LON-GNN" in names:
        part("sensitivity", lambda: sensitivity_part(task, record.parts, steps))
        part("times", lambda: times_part(task, record.parts))
        for name, modules in basis_modules(task).items():
            part(f"basis/{name}", partial(basis_part, task, modules, rates, steps))
    device = _device(context.device)
    for name in [n for n in NETWORKS if n in names]:
        part(
            f"network/{name}",
            partial(network_part, task, name, steps, device),
            device.type,
        )


def _device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)

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

import statistics
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.records import Record, Values
from lab.studies._engine import Cell, Cells, Context, read_record
from lab.studies._printed import BASIS_RATE_LOSSES, FILTER_LOSSES
from lab.studies._views import CAPTIONS, ResultTable
from lab.studies.filters import _measure as measure
from lab.studies.filters._measure import BASIS_RATE, BASIS_RATES, DEGREE
from lab.studies.filters._models import MODELS, NETWORKS
from lab.studies.filters._task import FILTERS, load_images
from longnn.report._style import GREY, LINES, ORANGE, colours, in_style, new_figure
from longnn.training import choose_device

TITLE = "Learning five filters from images (Tables 2 and 6)"
ORDER = 10
SAYS = CAPTIONS["filters"]

RATES = (5e-4, 1e-3, 5e-3, 1e-2, 5e-2)  # the paper's grid
STEPS = 2000
PANELS = ("low", "band", "comb")  # high looks like band, and rejection like low
#: Only in the table: one is much like Legendre, the other's curve lies under LON-GNN's.
LEFT_OUT = ("Jacobi (1, 1), orthonormal", "Jacobi of the image, orthonormal")
MARKERS = ("o", "x", "s", "+", "^")


def cells(context: Context) -> Cells:
    """One record, one cell per model, basis or floor."""
    names = context.choose("models", [*MODELS, *NETWORKS])
    grid = load_images(context.data_dir, quick=context.quick)
    task = measure.Task(grid)
    steps = 15 if context.quick else STEPS
    rates = RATES[3:] if context.quick else RATES
    plan = {
        "images": grid.name,
        "count": grid.num_images,
        "size": [grid.height, grid.width],
        "degree": DEGREE,
        "steps": steps,
        "rates": list(rates),
        "basis_rate": BASIS_RATE,
        "basis_rates": list(BASIS_RATES),
    }
    cell = partial(Cell, "record", plan, device="cpu")
    yield cell("floor", partial(measure.measure_floor, task))
    for degree in (DEGREE, 2 * DEGREE, 4 * DEGREE):
        yield cell(f"closed/{degree}", partial(measure.solve_closed, task, degree))
    yield cell("own", partial(measure.measure_own_floors, task))
    trained: dict[str, Values] = {}
    for name in [name for name in names if name in MODELS]:
        fit = partial(measure.fit_model, task, name, rates, steps)
        trained[name] = yield cell(f"model/{name}", fit)
    if "LON-GNN" in names:
        yield cell("sensitivity", partial(measure.measure_sensitivity, task, trained, steps))
    device = choose_device(context.device)
    for name in [n for n in NETWORKS if n in names]:
        fit = partial(measure.fit_network, task, name, steps, device)
        yield Cell("record", plan, f"network/{name}", fit, device=device.type)


def tables(folder: Path) -> list[ResultTable]:
    """All tables that the record of a folder has numbers for."""
    record = read_record(folder)
    plan = record.plan
    height, width = plan["size"]
    starts = zip(*record["floor"]["starts"], strict=True)
    a, b = (statistics.median(values) for values in starts)
    said = {
        "where": f"{plan['count']} images of {height} x {width} ({plan['images']})",
        "degree": plan["degree"],
        "steps": plan["steps"],
        "rates": ", ".join(f"{r:g}" for r in plan["rates"]),
        "basis_rate": f"{plan['basis_rate']:g}",
        "a": f"{a:g}",
        "b": f"{b:g}",
    }
    columns = {
        "times": ["what", "median", "largest"],
        "sensitivity": ["rate of a, b", *FILTERS],
        "bases": ["basis", "condition", "scaled", *FILTERS],
    }
    rows = {
        "losses": _losses(record),
        "printed": _printed(record),
        "times": _times(record),
        "sensitivity": _sensitivity(record),
        "bases": _bases(record),
    }
    return [
        ResultTable(name, SAYS[name].format(**said), columns.get(name, ["model", *FILTERS]), of)
        for name, of in rows.items()
        if of
    ]


def _means(losses: Mapping[str, list[float]]) -> list[float]:
    return [statistics.fmean(losses[name]) for name in FILTERS]


def _losses(record: Record) -> list[list[str]]:
    """Losses of all models with their ratio to the floor, in brackets."""
    floor, closed = record["floor"]["losses"], record.below("closed/")
    bounds, degree = record["own"]["losses"], str(record.plan["degree"])
    losses = {
        "closed form": closed[degree]["losses"],
        **{label: cell["losses"] for label, cell in _trained(record).items()},
        "best GPRGNN (self loops)": bounds["GPRGNN"],
        "best BernNet (coefficients >= 0)": bounds["BernNet"],
        **{f"closed form, degree {d}": of["losses"] for d, of in closed.items() if d != degree},
    }
    if "rational" in record:
        label = f"rational, {record['rational']['pairs']} pole pairs"
        losses[label] = record["rational"]["losses"]
    rows = [["floor (exact least squares)", *(f"{v:.4g}" for v in _means(floor))]]
    for label, of in losses.items():
        images = len(of["low"])  # the networks had only the first few
        least = _means({name: values[:images] for name, values in floor.items()})
        rows.append([label, *(_ratio(v, f) for v, f in zip(_means(of), least, strict=True))])
    return rows


def _trained(record: Record) -> dict[str, Values]:
    """Label -> models, then networks with the number of their images and steps."""
    networks = record.below("network/")
    return {
        **record.below("model/"),
        **{
            f"{name} with ReLU ({cell['images']} images, {cell['steps']} steps)": cell
            for name, cell in networks.items()
        },
    }


def _ratio(value: float, floor: float) -> str:
    """A loss and its ratio to the floor.

    >>> _ratio(0.3, 0.1)
    '0.3 (× 3.0000)'
    """
    ratio = value / floor
    shown = f"{ratio:.4f}" if 0.01 <= ratio < 10 else f"{ratio:.3g}"
    return f"{value:.4g} (× {shown})"


def _printed(record: Record) -> list[list[str]]:
    trained, rows = _trained(record), []
    for name, values in FILTER_LOSSES.items():
        rows.append([f"{name}, paper", *(f"{v:.4f}" for v in values)])
        for label, cell in trained.items():
            if label in (name, f"{name}, linear") or label.startswith(f"{name} with ReLU"):
                rows.append([f"{label}, here", *(f"{v:.6f}" for v in _means(cell["losses"]))])
    return [*rows, ["floor", *(f"{v:.6f}" for v in _means(record["floor"]["losses"]))]]


def _sensitivity(record: Record) -> list[list[str]]:
    if "sensitivity" not in record:
        return []
    rows = [
        [f"{rate}, paper", *(f"{v:.4f}" for v in values)]
        for rate, values in BASIS_RATE_LOSSES.items()
    ]
    labels = {"LON-GNN": "tuned start", "LON-GNN, a = b = 0": "from a = b = 0"}
    for name, label in labels.items():
        for rate, losses in record["sensitivity"]["losses"].get(name, {}).items():
            rows.append([f"{rate}, {label}", *(f"{losses[f]:.6f}" for f in FILTERS)])
    return rows


def _times(record: Record) -> list[list[str]]:
    """Of rational filters and of gradient training they are history: nothing measures them now."""
    ms = {f"closed form, degree {d}": cell["ms"] for d, cell in record.below("closed/").items()}
    if "rational" in record:
        rational = record["rational"]
        ms["rational, one image"] = rational["ms"]
        ms["rational, poles and factors, once per filter"] = rational["ms_before"]
    if "times" in record:
        times = record["times"]
        label = f"LON-GNN, {times['steps']} steps"
        ms[f"{label}, all images at once, per image"] = times["ms_together"]
        ms[f"{label}, one image alone"] = times["ms_alone"]
        ms[f"{label}, one image through the sparse products"] = times["ms_plain"]
    return [[label, f"{of['median']:.3g}", f"{of['max']:.3g}"] for label, of in ms.items()]


def _bases(record: Record) -> list[list[str]]:
    rows, bases = [], record.below("basis/")
    for name, cell in sorted(bases.items(), key=lambda item: -item[1]["condition_scaled"]):
        conditions = [f"{cell[key]:.2g}" for key in ("condition", "condition_scaled")]
        rows.append([name, *conditions, *(_steps(cell, of) for of in FILTERS)])
    if bases:
        lon = record["model/LON-GNN"]
        rows.append(["LON-GNN (a, b trained)", "", "", *(_steps(lon, of) for of in FILTERS)])
    return rows


def _steps(cell: Values, name: str) -> str:
    return str(cell["steps_to"][name] or f"> {cell['steps']}")


def figures(folder: Path) -> dict[str, Figure]:
    """The figures that the record of a folder has numbers for."""
    record = read_record(folder)
    drawn = {"degrees": degrees(record["floor"], record.plan["degree"])}
    if bases := record.below("basis/"):
        drawn["steps"] = distances(record["floor"], bases, record["model/LON-GNN"])
    return drawn


@in_style
def degrees(floor: Values, degree: int) -> Figure:
    """The least loss of every degree, one curve per filter."""
    figure, grid = new_figure("Least loss of a polynomial filter, by degree", height=4.2)
    axes: Axes = grid[0, 0]
    for i, (name, colour) in enumerate(zip(FILTERS, colours(len(FILTERS)), strict=True)):
        axes.plot(
            floor["degrees"],
            floor["by_degree"][name],
            ls=LINES[i],
            marker=MARKERS[i],
            ms=6 if i % 2 else 4,  # pairs of filters share their losses: show both marks
            markevery=2,
            lw=1.4,
            color=colour,
            label=name,
        )
    axes.axvline(degree, color=GREY, lw=1, ls=":")
    axes.text(degree + 0.4, axes.get_ylim()[1], f"degree {degree}: the floor", va="top", fontsize=9)
    axes.set_yscale("log")
    axes.set_xlim(1, floor["degrees"][-1] + 1)
    axes.set_xlabel("degree")
    axes.set_ylabel("sum of squared errors, mean of images")
    figure.legend(loc="outside lower center", ncols=5)
    return figure


@in_style
def distances(floor: Values, bases: Mapping[str, Values], lon: Values) -> Figure:
    """How far above the floor each basis still is, by steps of Adam; one panel per filter."""
    title = "Distance to the floor while training, by basis"
    figure, grid = new_figure(title, height=4.6, rows=2, columns=2)
    names = [name for name in bases if name not in LEFT_OUT]
    names.sort(key=lambda name: -(bases[name]["condition_scaled"]))
    shades = colours(len(names))
    for axes, panel in zip(grid.flat, PANELS, strict=False):
        least = statistics.fmean(floor["losses"][panel])
        for i, name in enumerate(names):
            label = f"{name}: {bases[name]['condition_scaled']:.1g}"
            look = {"ls": LINES[i % len(LINES)], "color": shades[i], "label": label}
            _curve(axes, bases[name], panel, least, **look)
        label = "LON-GNN (a, b from the image, trained)"
        _curve(axes, lon, panel, least, lw=2.6, color=ORANGE, label=label)
        axes.axhline(1e-3, color=GREY, lw=1, ls=":")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(bottom=1e-6)
        axes.minorticks_off()
        axes.set_title(panel)
        axes.set_ylabel("loss / floor − 1")
        axes.set_xlabel("steps of Adam")
    _legend(grid[0, 0], grid[1, 1])
    return figure


def _legend(drawn: Axes, free: Axes) -> None:
    """The legend of one panel in the place of another."""
    free.set_axis_off()
    handles, labels = drawn.get_legend_handles_labels()
    free.legend(
        handles,
        labels,
        loc="center left",
        title="basis: condition number (scaled)\nthin dotted line: 0.1 % above the floor",
        alignment="left",
        fontsize=8,
        title_fontsize=8.5,
    )


def _curve(axes: Axes, cell: Values, name: str, least: float, **options: Any) -> None:
    above = np.array(cell["curve"][name]) / least - 1
    above = np.where(above > 1e-7, above, np.nan)  # below, the digits kept end
    axes.plot(cell["marks"], above, **{"lw": 1.5, **options})


def facts(folder: Path) -> dict[str, Any]:
    """Times, steps and condition numbers of the summary."""
    record = read_record(folder)
    plan, floor, lon = record.plan, record["floor"]["losses"], record["model/LON-GNN"]
    closed, bases = record.below("closed/"), record.below("basis/")
    double = closed[str(2 * plan["degree"])]
    factors = [a / b for a, b in zip(_means(floor), _means(double["losses"]), strict=True)]
    zero = record["model/LON-GNN, a = b = 0"]["losses"]
    least = dict(zip(FILTERS, _means(floor), strict=True))
    above = {name: _means(zero)[i] / value for i, (name, value) in enumerate(least.items())}
    starts = [statistics.median(of) for of in zip(*record["floor"]["starts"], strict=True)]
    best = _means({name: record["own"]["losses"]["BernNet"][name] for name in FILTERS})
    printed = FILTER_LOSSES["BernNet"]
    bern = _means(record["model/BernNet"]["losses"])
    return {
        "images": plan["count"],
        "degree": plan["degree"],
        "double": 2 * plan["degree"],
        "steps": plan["steps"],
        "closed_ms": closed[str(plan["degree"])]["ms"]["median"],
        "double_ms": double["ms"]["median"],
        "factors": factors,
        "most_steps": max(lon["steps_to"].values()),
        "times": record["times"],
        "alone_s": record["times"]["ms_alone"]["median"] / 1000,
        "condition": {name: cell["condition"] for name, cell in bases.items()},
        "above": above,
        "starts": starts,
        "bern_within": 100 * max(a / b - 1 for a, b in zip(bern, best, strict=True)),
        "bern_above": sum(a > b for a, b in zip(best, printed, strict=True)),
    }

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
from lab.studies._views import ResultTable
from lab.studies.filters import _measure as measure
from lab.studies.filters._measure import BASIS_RATE, BASIS_RATES, DEGREE
from lab.studies.filters._models import MODELS, NETWORKS
from lab.studies.filters._task import FILTERS, load_images
from longnn.report import GREY, LINES, ORANGE, colours, in_style, new_figure
from longnn.training import choose_device

TITLE = "Learning five filters from images (Tables 2 and 6)"
ORDER = 10

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
    yield cell("rational", partial(measure.fit_rationals, task))
    yield cell("own", partial(measure.measure_own_floors, task))
    trained: dict[str, Values] = {}
    for name in [name for name in names if name in MODELS]:
        fit = partial(measure.fit_model, task, name, rates, steps)
        trained[name] = yield cell(f"model/{name}", fit)
    if "LON-GNN" in names:
        yield cell("sensitivity", partial(measure.measure_sensitivity, task, trained, steps))
        yield cell("times", partial(measure.measure_times, task, trained["LON-GNN"]))
        for name, modules in measure.basis_modules(task).items():
            fit = partial(measure.fit_basis, task, modules, rates, steps)
            yield cell(f"basis/{name}", fit)
    device = choose_device(context.device)
    for name in [n for n in NETWORKS if n in names]:
        fit = partial(measure.fit_network, task, name, steps, device)
        yield Cell("record", plan, f"network/{name}", fit, device=device.type)


def tables(folder: Path) -> list[ResultTable]:
    """All tables that the record of a folder has numbers for."""
    record = read_record(folder)
    plan, floor = record.plan, record["floor"]
    made = [_losses(record, plan, floor), _printed(record, plan, floor), _times(record)]
    if "sensitivity" in record:
        made.append(_sensitivity(record["sensitivity"], plan, floor))
    if bases := record.below("basis/"):
        made.append(_bases(bases, record["model/LON-GNN"], plan))
    return made


def _where(plan: Values) -> str:
    height, width = plan["size"]
    return f"{plan['count']} images of {height} x {width} ({plan['images']})"


def _means(losses: Mapping[str, list[float]]) -> list[float]:
    return [statistics.fmean(losses[name]) for name in FILTERS]


def _losses(record: Record, plan: Values, floor: Values) -> ResultTable:
    rows = [["floor (exact least squares)", *(f"{v:.4g}" for v in _means(floor["losses"]))]]

    def add(label: str, losses: Values) -> None:
        images = len(losses["low"])  # the networks had only the first few
        least = _means({name: values[:images] for name, values in floor["losses"].items()})
        shown = [_ratio(v, f) for v, f in zip(_means(losses), least, strict=True)]
        rows.append([label, *shown])

    closed = record.below("closed/")
    bounds, rational = record["own"]["losses"], record["rational"]
    add("closed form", closed[str(plan["degree"])]["losses"])
    for label, cell in _trained(record).items():
        add(label, cell["losses"])
    add("best GPRGNN (self loops)", bounds["GPRGNN"])
    add("best BernNet (coefficients >= 0)", bounds["BernNet"])
    for degree, solved in closed.items():
        if degree != str(plan["degree"]):
            add(f"closed form, degree {degree}", solved["losses"])
    add(f"rational, {rational['pairs']} pole pairs", rational["losses"])
    caption = (
        f"Sum of squared errors over the interior pixels, mean over {_where(plan)}; in "
        f"brackets its ratio to the floor of degree {plan['degree']}. Models: degree "
        f"{plan['degree']}, {plan['steps']} steps of Adam, learning rate of "
        f"{', '.join(f'{r:g}' for r in plan['rates'])} chosen by the loss. "
        "JacobiConv and LON-GNN take a and b (fixed, and at the start) from the image, the "
        "best conditioned of a grid; the row a = b = 0 does not. The poles of the rational "
        "filters come from the formulas of the five filters."
    )
    return ResultTable("losses", caption, ["model", *FILTERS], rows)


def _trained(record: Record) -> dict[str, Values]:
    """Label -> models, then networks with the number of their images and steps."""
    networks = record.below("network/")
    labels = {name: _network_label(name, cell) for name, cell in networks.items()}
    return {
        **record.below("model/"),
        **{labels[name]: cell for name, cell in networks.items()},
    }


def _network_label(name: str, cell: Values) -> str:
    return f"{name} with ReLU ({cell['images']} images, {cell['steps']} steps)"


def _ratio(value: float, floor: float) -> str:
    """A loss and its ratio to the floor.

    >>> _ratio(0.3, 0.1)
    '0.3 (× 3.0000)'
    """
    ratio = value / floor
    shown = f"{ratio:.4f}" if 0.01 <= ratio < 10 else f"{ratio:.3g}"
    return f"{value:.4g} (× {shown})"


def _printed(record: Record, plan: Values, floor: Values) -> ResultTable:
    trained, rows = _trained(record), []
    for name, values in FILTER_LOSSES.items():
        rows.append([f"{name}, paper", *(f"{v:.4f}" for v in values)])
        for label, cell in trained.items():
            own = label in (name, f"{name}, linear") or label.startswith(f"{name} with ReLU")
            if own:
                rows.append([f"{label}, here", *(f"{v:.6f}" for v in _means(cell["losses"]))])
    rows.append(["floor", *(f"{v:.6f}" for v in _means(floor["losses"]))])
    caption = (
        "The paper's Table 2 and the same here: sum of squared errors over the interior pixels, "
        f"mean over {_where(plan)} where the row does not say fewer."
    )
    return ResultTable("printed", caption, ["model", *FILTERS], rows)


def _sensitivity(cell: Values, plan: Values, floor: Values) -> ResultTable:
    rows = [
        [f"{rate}, paper", *(f"{v:.4f}" for v in values)]
        for rate, values in BASIS_RATE_LOSSES.items()
    ]
    labels = {"LON-GNN": "tuned start", "LON-GNN, a = b = 0": "from a = b = 0"}
    for name, label in labels.items():
        for rate, losses in cell["losses"].get(name, {}).items():
            rows.append([f"{rate}, {label}", *(f"{losses[f]:.6f}" for f in FILTERS)])
    a, b = (statistics.median(values) for values in zip(*floor["starts"], strict=True))
    caption = (
        f"Loss of LON-GNN by the learning rate of a and b (the paper's Table 6), mean over "
        f"{_where(plan)}; the coefficients' rate as chosen at {plan['basis_rate']:g}. "
        f"The tuned start is the image's own (median a = {a:g}, b = {b:g})."
    )
    return ResultTable("sensitivity", caption, ["rate of a, b", *FILTERS], rows)


def _times(record: Record) -> ResultTable:
    rows = []

    def add(label: str, ms: Values) -> None:
        rows.append([label, f"{ms['median']:.3g}", f"{ms['max']:.3g}"])

    for degree, cell in record.below("closed/").items():
        add(f"closed form, degree {degree}", cell["ms"])
    rational = record["rational"]
    add("rational, one image", rational["ms"])
    add("rational, poles and factors, once per filter", rational["ms_before"])
    if "times" in record:
        times = record["times"]
        label = f"LON-GNN, {times['steps']} steps"
        add(f"{label}, all images at once, per image", times["ms_together"])
        add(f"{label}, one image alone", times["ms_alone"])
        add(f"{label}, one image through the sparse products", times["ms_plain"])
    caption = (
        "Milliseconds per image, CPU time of one thread, everything included: median and largest. "
        "The authors' code of LON-GNN takes 10,000 to 16,000."
    )
    return ResultTable("times", caption, ["what", "median", "largest"], rows)


def _bases(bases: Mapping[str, Values], lon: Values, plan: Values) -> ResultTable:
    rows = []
    for name, cell in sorted(bases.items(), key=lambda item: -item[1]["condition_scaled"]):
        conditions = [f"{cell[key]:.2g}" for key in ("condition", "condition_scaled")]
        rows.append([name, *conditions, *(_steps(cell, of) for of in FILTERS)])
    rows.append(["LON-GNN (a, b trained)", "", "", *(_steps(lon, of) for of in FILTERS)])
    caption = (
        "Condition number of the coefficients' Hessian (median of images; scaled: with unit "
        "diagonal, nearer to what Adam sees) and the steps of Adam until the mean loss is within "
        f"0.1 % of the floor, at the best of the learning rates, over {_where(plan)}."
    )
    return ResultTable("bases", caption, ["basis", "condition", "scaled", *FILTERS], rows)


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

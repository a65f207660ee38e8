"""Tables of filter fitting, from its record."""

import statistics
from collections.abc import Mapping
from pathlib import Path

from lab.records import StudyRecord
from lab.studies._core._context import record_path
from lab.studies._core._printed import BASIS_RATE_LOSSES, FILTER_LOSSES
from lab.studies._core._table import ResultTable
from lab.studies.filters._cells import (
    ByImage,
    ClosedCell,
    FloorCell,
    Milliseconds,
    OwnFloorsCell,
    Plan,
    RationalCell,
    SensitivityCell,
    TimesCell,
    TrainedCell,
)
from lab.studies.filters._task import FILTERS


def tables(folder: Path) -> list[ResultTable]:
    """All tables that the record of a folder has numbers for."""
    record = StudyRecord.load(record_path(folder))
    plan, floor = record.plan(Plan), record.get("floor", FloorCell)
    found = [_losses(record, plan, floor), _printed(record, plan, floor), _times(record)]
    if "sensitivity" in record:
        found.append(_sensitivity(record.get("sensitivity", SensitivityCell), plan, floor))
    bases = record.all(TrainedCell, prefix="basis/")
    if bases:
        found.append(_bases(bases, record.get("model/LON-GNN", TrainedCell), plan))
    return found


def _where(plan: Plan) -> str:
    height, width = plan.size
    return f"{plan.count} images of {height} x {width} ({plan.images})"


def _means(losses: Mapping[str, list[float]]) -> list[float]:
    return [statistics.fmean(losses[name]) for name in FILTERS]


def _losses(record: StudyRecord, plan: Plan, floor: FloorCell) -> ResultTable:
    rows = [["floor (exact least squares)", *(f"{v:.4g}" for v in _means(floor.losses))]]

    def add(label: str, losses: ByImage | None) -> None:
        assert losses is not None
        images = len(losses["low"])  # the networks had only the first few
        least = _means({name: values[:images] for name, values in floor.losses.items()})
        shown = [_ratio(v, f) for v, f in zip(_means(losses), least, strict=True)]
        rows.append([label, *shown])

    closed = record.all(ClosedCell, prefix="closed/")
    own, rational = record.get("own", OwnFloorsCell), record.get("rational", RationalCell)
    add("closed form", closed[str(plan.degree)].losses)
    for label, cell in _trained(record).items():
        add(label, cell.losses)
    add("best GPRGNN (self loops)", own.losses["GPRGNN"])
    add("best BernNet (coefficients >= 0)", own.losses["BernNet"])
    for degree, solved in closed.items():
        if degree != str(plan.degree):
            add(f"closed form, degree {degree}", solved.losses)
    add(f"rational, {rational.pairs} pole pairs", rational.losses)
    caption = (
        f"Sum of squared errors over the interior pixels, mean over {_where(plan)}; in "
        f"brackets its ratio to the floor of degree {plan.degree}. Models: degree {plan.degree}, "
        f"{plan.steps} steps of Adam, learning rate of "
        f"{', '.join(f'{r:g}' for r in plan.rates)} chosen by the loss. "
        "JacobiConv and LON-GNN take a and b (fixed, and at the start) from the image, the "
        "best conditioned of a grid; the row a = b = 0 does not. The poles of the rational "
        "filters come from the formulas of the five filters."
    )
    return ResultTable("losses", caption, ["model", *FILTERS], rows)


def _trained(record: StudyRecord) -> dict[str, TrainedCell]:
    """Label -> models, then networks with the number of their images and steps."""
    networks = record.all(TrainedCell, prefix="network/")
    labels = {name: _network_label(name, cell) for name, cell in networks.items()}
    return {
        **record.all(TrainedCell, prefix="model/"),
        **{labels[name]: cell for name, cell in networks.items()},
    }


def _network_label(name: str, cell: TrainedCell) -> str:
    return f"{name} with ReLU ({cell.images} images, {cell.steps} steps)"


def _ratio(value: float, floor: float) -> str:
    """A loss and its ratio to the floor.

    >>> _ratio(0.3, 0.1)
    '0.3 (× 3.0000)'
    """
    ratio = value / floor
    shown = f"{ratio:.4f}" if 0.01 <= ratio < 10 else f"{ratio:.3g}"
    return f"{value:.4g} (× {shown})"


def _printed(record: StudyRecord, plan: Plan, floor: FloorCell) -> ResultTable:
    trained, rows = _trained(record), []
    for name, values in FILTER_LOSSES.items():
        rows.append([f"{name}, paper", *(f"{v:.4f}" for v in values)])
        for label, cell in trained.items():
            own = label in (name, f"{name}, linear") or label.startswith(f"{name} with ReLU")
            if own and cell.losses is not None:
                rows.append([f"{label}, here", *(f"{v:.6f}" for v in _means(cell.losses))])
    rows.append(["floor", *(f"{v:.6f}" for v in _means(floor.losses))])
    caption = (
        "The paper's Table 2 and the same here: sum of squared errors over the interior pixels, "
        f"mean over {_where(plan)} where the row does not say fewer."
    )
    return ResultTable("printed", caption, ["model", *FILTERS], rows)


def _sensitivity(cell: SensitivityCell, plan: Plan, floor: FloorCell) -> ResultTable:
    rows = [
        [f"{rate}, paper", *(f"{v:.4f}" for v in values)]
        for rate, values in BASIS_RATE_LOSSES.items()
    ]
    labels = {"LON-GNN": "tuned start", "LON-GNN, a = b = 0": "from a = b = 0"}
    for name, label in labels.items():
        for rate, losses in cell.losses.get(name, {}).items():
            rows.append([f"{rate}, {label}", *(f"{losses[f]:.6f}" for f in FILTERS)])
    a, b = (statistics.median(values) for values in zip(*floor.starts, strict=True))
    caption = (
        f"Loss of LON-GNN by the learning rate of a and b (the paper's Table 6), mean over "
        f"{_where(plan)}; the coefficients' rate as chosen at {plan.basis_rate:g}. "
        f"The tuned start is the image's own (median a = {a:g}, b = {b:g})."
    )
    return ResultTable("sensitivity", caption, ["rate of a, b", *FILTERS], rows)


def _times(record: StudyRecord) -> ResultTable:
    rows = []

    def add(label: str, ms: Milliseconds) -> None:
        rows.append([label, f"{ms.median:.3g}", f"{ms.max:.3g}"])

    for degree, cell in record.all(ClosedCell, prefix="closed/").items():
        add(f"closed form, degree {degree}", cell.ms)
    rational = record.get("rational", RationalCell)
    add("rational, one image", rational.ms)
    add("rational, poles and factors, once per filter", rational.ms_before)
    if "times" in record:
        times = record.get("times", TimesCell)
        label = f"LON-GNN, {times.steps} steps"
        add(f"{label}, all images at once, per image", times.ms_together)
        add(f"{label}, one image alone", times.ms_alone)
        add(f"{label}, one image through the sparse products", times.ms_plain)
    caption = (
        "Milliseconds per image, CPU time of one thread, everything included: median and largest. "
        "The authors' code of LON-GNN takes 10,000 to 16,000."
    )
    return ResultTable("times", caption, ["what", "median", "largest"], rows)


def _bases(bases: Mapping[str, TrainedCell], lon: TrainedCell, plan: Plan) -> ResultTable:
    rows = []
    for name, cell in sorted(bases.items(), key=lambda item: -(item[1].condition_scaled or 0.0)):
        conditions = [f"{cell.condition:.2g}", f"{cell.condition_scaled:.2g}"]
        rows.append([name, *conditions, *(_steps(cell, of) for of in FILTERS)])
    rows.append(["LON-GNN (a, b trained)", "", "", *(_steps(lon, of) for of in FILTERS)])
    caption = (
        "Condition number of the coefficients' Hessian (median of images; scaled: with unit "
        "diagonal, nearer to what Adam sees) and the steps of Adam until the mean loss is within "
        f"0.1 % of the floor, at the best of the learning rates, over {_where(plan)}."
    )
    return ResultTable("bases", caption, ["basis", "condition", "scaled", *FILTERS], rows)


def _steps(cell: TrainedCell, name: str) -> str:
    return str(cell.steps_to[name] or f"> {cell.steps}")

"""The tables of the filter-fitting experiment, from its record."""

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longnn.studies._fitting_task import FILTERS
from longnn.studies._record import read_record
from longnn.studies._table import Table

#: The paper's Table 2, in the order of the filters.
PUBLISHED = {
    "GPRGNN": (0.4169, 0.0943, 3.5121, 3.7917, 4.6549),
    "ARMA": (1.8478, 1.8632, 7.6922, 8.2732, 15.121),
    "ChebNet": (0.8220, 0.7867, 2.2722, 2.5296, 4.0735),
    "BernNet": (0.0314, 0.0113, 0.0411, 0.9313, 0.9982),
    "JacobiConv": (0.0003, 0.0011, 0.0213, 0.0156, 0.2933),
    "LON-GNN": (0.0003, 0.0003, 0.0156, 0.0156, 0.2870),
}

#: The paper's Table 6: losses of LON-GNN by the learning rate of a and b.
PUBLISHED_RATES = {
    "0.01": (0.0003, 0.0008, 0.0172, 0.0156, 0.2868),
    "0.001": (0.0003, 0.0004, 0.0158, 0.0156, 0.2869),
    "0.0005": (0.0003, 0.0003, 0.0157, 0.0156, 0.2869),
    "0.0002": (0.0003, 0.0003, 0.0156, 0.0156, 0.2870),
    "0.0001": (0.0003, 0.0003, 0.0156, 0.0156, 0.2870),
}

Parts = Mapping[str, Any]


def tables(folder: Path) -> list[Table]:
    """All tables that the record of a folder has numbers for."""
    record = read_record(folder / "record.json")
    parts, settings = record["parts"], record["settings"]
    found = [_losses(parts, settings), _published(parts, settings), _times(parts)]
    if "sensitivity" in parts:
        found.append(_sensitivity(parts, settings))
    if any(key.startswith("basis/") for key in parts):
        found.append(_bases(parts, settings))
    return found


def _where(settings: Mapping[str, Any]) -> str:
    height, width = settings["size"]
    return f"{settings['count']} images of {height} x {width} ({settings['images']})"


def _means(losses: Mapping[str, list[float]]) -> list[float]:
    return [statistics.fmean(losses[name]) for name in FILTERS]


def _losses(parts: Parts, settings: Mapping[str, Any]) -> Table:
    floors, degree = parts["floor"]["losses"], settings["degree"]
    rows = [["floor (exact least squares)", *(f"{v:.4g}" for v in _means(floors))]]

    def add(label: str, losses: Mapping[str, list[float]]) -> None:
        images = len(losses["low"])  # the networks had the first few only
        least = _means({name: values[:images] for name, values in floors.items()})
        cells = [_ratio(v, f) for v, f in zip(_means(losses), least, strict=True)]
        rows.append([label, *cells])

    add("closed form", parts[f"closed/{degree}"]["losses"])
    for prefix in ("model/", "network/"):
        for key in parts:
            if key.startswith(prefix):
                add(_label(parts, key), parts[key]["losses"])
    add("best GPRGNN (self loops)", parts["own"]["GPRGNN"])
    add("best BernNet (coefficients >= 0)", parts["own"]["BernNet"])
    for key in parts:
        if key.startswith("closed/") and key != f"closed/{degree}":
            add(f"closed form, degree {key.removeprefix('closed/')}", parts[key]["losses"])
    add(f"rational, {parts['rational']['pairs']} pole pairs", parts["rational"]["losses"])
    caption = (
        f"Sum of squared errors over the interior pixels, mean over {_where(settings)}; in "
        f"brackets its ratio to the floor of degree {degree}. Models: degree {degree}, "
        f"{settings['steps']} steps of Adam, learning rate of "
        f"{', '.join(f'{r:g}' for r in settings['rates'])} chosen by the loss. "
        "JacobiConv and LON-GNN take a and b (fixed, and where they start) from the image, the "
        "best conditioned of a grid; the row a = b = 0 does not. The poles of the rational "
        "filters come from the formulas of the five filters."
    )
    return Table("losses", caption, ["model", *FILTERS], rows)


def _label(parts: Parts, key: str) -> str:
    """A model's name; of a network, which had fewer images and steps, how many."""
    kind, _, name = key.partition("/")
    part = parts[key]
    if kind == "model":
        return name
    return f"{name} with ReLU ({part['images']} images, {part['steps']} steps)"


def _ratio(value: float, floor: float) -> str:
    ratio = value / floor
    shown = f"{ratio:.4f}" if 0.01 <= ratio < 10 else f"{ratio:.3g}"
    return f"{value:.4g} (× {shown})"


def _published(parts: Parts, settings: Mapping[str, Any]) -> Table:
    rows = []
    for name, values in PUBLISHED.items():
        rows.append([f"{name}, paper", *(f"{v:.4f}" for v in values)])
        for key in (f"model/{name}", f"model/{name}, linear", f"network/{name}"):
            if key in parts:
                means = _means(parts[key]["losses"])
                rows.append([f"{_label(parts, key)}, here", *(f"{v:.6f}" for v in means)])
    floor = _means(parts["floor"]["losses"])
    rows.append(["floor", *(f"{v:.6f}" for v in floor)])
    caption = (
        "The paper's Table 2 and the same here: sum of squared errors over the interior pixels, "
        f"mean over {_where(settings)} where the row does not say fewer."
    )
    return Table("published", caption, ["model", *FILTERS], rows)


def _sensitivity(parts: Parts, settings: Mapping[str, Any]) -> Table:
    rows = [
        [f"{rate}, paper", *(f"{v:.4f}" for v in values)]
        for rate, values in PUBLISHED_RATES.items()
    ]
    labels = {"LON-GNN": "tuned start", "LON-GNN, a = b = 0": "from a = b = 0"}
    for name, label in labels.items():
        for rate, losses in parts["sensitivity"].get(name, {}).items():
            rows.append([f"{rate}, {label}", *(f"{losses[f]:.6f}" for f in FILTERS)])
    starts = parts["floor"]["starts"]
    a, b = (statistics.median(values) for values in zip(*starts, strict=True))
    caption = (
        f"Loss of LON-GNN by the learning rate of a and b (the paper's Table 6), mean over "
        f"{_where(settings)}; the coefficients' rate as chosen at {settings['basis_rate']:g}. "
        f"The tuned start is the image's own (median a = {a:g}, b = {b:g})."
    )
    return Table("sensitivity", caption, ["rate of a, b", *FILTERS], rows)


def _times(parts: Parts) -> Table:
    rows = []

    def add(label: str, ms: Mapping[str, float]) -> None:
        rows.append([label, f"{ms['median']:.3g}", f"{ms['max']:.3g}"])

    for key in parts:
        if key.startswith("closed/"):
            add(f"closed form, degree {key.removeprefix('closed/')}", parts[key]["ms"])
    rational = parts["rational"]
    add("rational, one image", rational["ms"])
    add("rational, poles and factors, once a filter", rational["ms_before"])
    if "times" in parts:
        times = parts["times"]
        label = f"LON-GNN, {times['steps']} steps"
        add(f"{label}, all images at once, an image", times["ms_together"])
        add(f"{label}, one image alone", times["ms_alone"])
        add(f"{label}, one image through the sparse products", times["ms_plain"])
    caption = (
        "Milliseconds an image, CPU time of one thread, everything included: median and largest. "
        "The published LON-GNN takes 10,000 to 16,000."
    )
    return Table("times", caption, ["what", "median", "largest"], rows)


def _bases(parts: Parts, settings: Mapping[str, Any]) -> Table:
    rows = []
    keys = [key for key in parts if key.startswith("basis/")]
    for key in sorted(keys, key=lambda key: -parts[key]["condition_scaled"]):
        part = parts[key]
        rows.append(
            [
                key.removeprefix("basis/"),
                f"{part['condition']:.2g}",
                f"{part['condition_scaled']:.2g}",
                *(_steps(part, name) for name in FILTERS),
            ]
        )
    part = parts["model/LON-GNN"]
    rows.append(["LON-GNN (a, b trained)", "", "", *(_steps(part, name) for name in FILTERS)])
    caption = (
        "Condition number of the coefficients' Hessian (median of images; scaled: with unit "
        "diagonal, nearer to what Adam sees) and the steps of Adam until the mean loss is within "
        f"0.1 % of the floor, at the best of the learning rates, over {_where(settings)}."
    )
    return Table("bases", caption, ["basis", "condition", "scaled", *FILTERS], rows)


def _steps(part: Parts, name: str) -> str:
    return str(part["steps_to"][name] or f"> {part['steps']}")

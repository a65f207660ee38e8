"""Real tables with nothing set, against what a practitioner would try; and what known answers add.

Tables: seven real ones with edges, the files of which are not part of this package (a folder
``tables`` in the data folder), and one with a class of 3 % behind a threshold. Five splits, 60 % of
the nodes trained on, 20 % for validation. Graphs of the literature have stratified splits, and no
rivals here: they show whether known answers harm where nothing is to be gained.
"""

import time
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lab.studies._engine import Cell, Cells, Context, read_records, rounded
from lab.studies._practice import predict_by_boosting, tuned_gcn
from lab.studies._training import fit_all, headline_scores, make_splits
from lab.studies._views import (
    CAPTIONS,
    ResultTable,
    gain,
    listed,
    metric_words,
    percent,
    points,
    signed_interval,
)
from lab.studies.weights import threshold
from longnn import data
from longnn.data import NodeDataset, Split
from longnn.metrics import headline
from longnn.training import Fitted, combine, complete, ensemble_weights, score

TITLE = "Real tables with nothing set, against what a practitioner would try (not in the paper)"
ORDER = 108

TABLES = (
    "elect80-turnout",
    "traffic-anaheim",
    "boston-tracts",
    "twitch-ptbr-views",
    "fb-reed98-year",
    "german-credit",
    "airports-brazil",
    "threshold",
)
GRAPHS = (
    *("cora", "citeseer", "pubmed", "computers", "photo", "chameleon", "squirrel", "actor"),
    *("texas", "cornell", "minesweeper", "tolokers"),
)
RIVALS = {
    "boosting": "boosting",
    "neighbours": "with neighbours",
    "residuals": "with residuals",
    "gcn": "tuned GCN",
}
COVERAGES = (0.8, 0.9, 0.95)
#: Kinds of members, by what their names begin with, that are left out in turn.
KINDS = {"trees": ("trees",), "deep": ("deep",), "filters": ("scores", "recipe", "hidden", "feat")}
FULL, QUICK = {"splits": 5, "epochs": 0}, {"splits": 2, "epochs": 10}


def cells(context: Context) -> Cells:
    """The default and its rivals; one record per table."""
    plan = QUICK if context.quick else FULL
    usual = ["threshold"] if context.quick else [*TABLES, *GRAPHS]
    for name in context.choose("datasets", usual):
        load = cache(partial(load_table, context, name))
        compute = partial(compute_default, load, plan, context.device)
        yield Cell(name, plan, "default", compute)
        for rival in () if name in GRAPHS else ("boosting",) if context.quick else RIVALS:
            yield Cell(name, plan, rival, partial(compute_rival, rival, load, plan, context.device))


def load_table(context: Context, name: str) -> NodeDataset:
    """A table of this study, or a graph, by its name."""
    if name == "threshold":
        return threshold()
    if name in GRAPHS:
        return context.load(name)
    return data.load(str(Path(context.data_dir or ".") / "tables" / name))


def _splits(dataset: NodeDataset, plan: Mapping[str, int]) -> list[Split]:
    return make_splits(dataset, "stratified", plan["splits"])


def compute_rival(name: str, load: Any, plan: Mapping[str, int], device: str) -> dict[str, Any]:
    """Scores of a rival on each split."""
    dataset = load()
    splits = _splits(dataset, plan)
    if name == "gcn":
        return tuned_gcn(dataset, splits, device)
    said = [predict_by_boosting(name, dataset, split) for split in splits]
    val, test = headline_scores(dataset, said, splits)
    return {"val": val, "test": test}


def compute_default(load: Any, plan: Mapping[str, int], device: str) -> dict[str, Any]:
    """Scores of the default preset with and without known answers and kinds of members, and what
    its intervals cover."""
    dataset = load()
    metric, _ = headline(dataset.data.y, dataset.task)
    limit = {"epochs": plan["epochs"]} if plan["epochs"] else {}
    config, splits = complete({"preset": "default", **limit}, dataset), _splits(dataset, plan)
    began = time.perf_counter()
    (fitted,) = fit_all(dataset, [config], splits, device=device)
    seconds = (time.perf_counter() - began) / len(splits)

    def test(predicted: list[torch.Tensor]) -> list[float]:
        return [
            score(p, dataset, f.split.test, f.readout)[metric]
            for p, f in zip(predicted, fitted, strict=True)
        ]

    names = [m.name for m in fitted[0].members]
    return {
        "fingerprint": dataset.fingerprint(),
        "metric": metric,
        "test": test([f.predicted for f in fitted]),
        "plain": test([f.predicted if f.plain is None else f.plain for f in fitted]),
        "weights": {n: rounded([_named(f)[n].weight for f in fitted]) for n in names},
        "members": {n: test([_named(f)[n].fitted.predicted for f in fitted]) for n in names},
        "without": {k: test([_without(dataset, f, v) for f in fitted]) for k, v in KINDS.items()},
        "covered": {str(c): [_covered(dataset, f, c) for f in fitted] for c in COVERAGES},
        "seconds": rounded(seconds),
    }


def _named(fitted: Fitted) -> dict[str, Any]:
    return {m.name: m for m in fitted.members}


def _without(dataset: NodeDataset, fitted: Fitted, kind: tuple[str, ...]) -> torch.Tensor:
    """What the members of other kinds say together, without known answers."""
    kept = [m.fitted.predicted for m in fitted.members if not m.name.startswith(kind)]
    said, val = torch.stack(kept or [m.fitted.predicted for m in fitted.members]), fitted.split.val
    return combine(said, ensemble_weights(said[:, val], dataset.data.y[val], dataset.task))


def _covered(dataset: NodeDataset, fitted: Fitted, coverage: float) -> list[float]:
    """The share of test nodes that intervals cover; and the mean width in units of the constant
    width that covers as many, or how many classes are plausible."""
    assert fitted.intervals is not None
    test, y = fitted.split.test, dataset.data.y
    if dataset.task == "regression":
        margin = fitted.intervals.margin(
            fitted.predicted, fitted.opinion.signals(dataset.degrees), coverage
        )[test].double()
        off = (y - fitted.predicted)[test].double().abs()
        share = float((off <= margin).double().mean())
        constant = float(off.quantile(share))
        return rounded([share, float(margin.mean()) / max(constant, 1e-12)])
    chosen = fitted.readout.choose(fitted.predicted)
    sets = fitted.intervals.plausible(fitted.predicted, chosen, coverage)[test]
    right = sets.gather(1, y[test][:, None])[:, 0]
    return rounded([float(right.double().mean()), float(sets.double().sum(1).mean())])


def tables(folder: Path) -> list[ResultTable]:
    """Scores beside rivals', what known answers add, what kinds of members are worth, coverage."""
    says, records = CAPTIONS["practice"], read_records(folder, [*TABLES, *GRAPHS])
    scores, known, kinds, cover = [], [], [], []
    for name, record in records.items():
        of = record["default"]
        known.append(
            [
                *(name, metric_words(of["metric"]), f"{percent(of['plain']):.1f}"),
                *(f"{percent(of['test']):.1f}", signed_interval(points(of["test"], of["plain"]))),
            ]
        )
        if name not in TABLES:
            continue
        tests = {rival: record[rival]["test"] for rival in RIVALS if rival in record}
        best = max(tests, key=lambda rival: percent(tests[rival]))
        ahead = signed_interval(points(of["test"], tests[best]))
        each = [f"{percent(tests[rival]):.1f}" if rival in tests else "" for rival in RIVALS]
        scores.append(
            [name, metric_words(of["metric"]), *each, f"{percent(of['test']):.1f}", ahead]
        )
        lost = [f"{gain(of['plain'], of['without'][kind]):+.1f}" for kind in KINDS]
        kinds.append([name, *lost])
        covered = {c: np.mean(of["covered"][str(c)], axis=0) for c in COVERAGES}
        size = f"{covered[0.9][1]:.2f}" + ("" if of["metric"] == "r2" else " classes")
        cover.append([name, *(f"{100 * covered[c][0]:.1f}" for c in COVERAGES), size])
    to = "to the best of them"
    return [
        ResultTable(
            "scores", says["scores"], ["table", "score", *RIVALS.values(), "default", to], scores
        ),
        ResultTable(
            "known",
            says["known"],
            ["graph", "score", "without", "with", "known answers add"],
            known,
        ),
        ResultTable("kinds", says["kinds"], ["table", *KINDS], kinds),
        ResultTable(
            "coverage",
            says["coverage"],
            ["table", *(f"{100 * c:.0f} %" for c in COVERAGES), "width at 90 %"],
            cover,
        ),
    ]


def facts(folder: Path) -> dict[str, Any]:
    """How often the default is ahead and behind, by how much, and what is covered."""
    records = read_records(folder, [*TABLES, *GRAPHS])
    ahead, widths = dict[str, float](), dict[str, float]()
    covered: dict[float, list[float]] = {c: [] for c in COVERAGES}
    for name in TABLES:
        of = records[name]["default"]
        rivals = [percent(records[name][r]["test"]) for r in RIVALS if r in records[name]]
        ahead[name] = percent(of["test"]) - max(rivals)
        for c in COVERAGES:
            covered[c].append(100 * np.mean(of["covered"][str(c)], axis=0)[0])
        if of["metric"] == "r2":
            widths[name] = float(np.mean(of["covered"]["0.9"], axis=0)[1])
    added = {n: gain(r["default"]["test"], r["default"]["plain"]) for n, r in records.items()}
    return {
        "tables": len(TABLES),
        "ahead": sum(v > 0 for v in ahead.values()),
        "by_a_point": sum(v > 1 for v in ahead.values()),
        "behind": listed((n for n, v in ahead.items() if v <= 0), plain=True) or "none",
        "worst": min(ahead.values()),
        "best": max(ahead.values()),
        "added": added,
        "cost": max([-v for n, v in added.items()]),
        "graphs": len(records) - len(TABLES),
        "covered": {round(100 * c): float(np.mean(v)) for c, v in covered.items()},
        "least": min(v - 100 * c for c, values in covered.items() for v in values),
        "narrow": sum(w <= 0.9 for w in widths.values()),
        "numbers": len(widths),
    }

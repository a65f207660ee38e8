"""Known answers: what each choice of the filter gains, on one model and real tables.

One model per table and split (the preset ``fast``, known answers apart), then the filter as it is,
and with one choice undone. The tables are those of the study ``practice``.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from lab.studies._engine import Cell, Cells, Context, read_records
from lab.studies._training import fit_all, make_splits
from lab.studies._views import (
    CAPTIONS,
    ResultTable,
    gain,
    metric_words,
    percent,
    points,
    signed_interval,
)
from lab.studies.practice import FULL, QUICK, TABLES, load_table
from longnn.metrics import headline
from longnn.training import Fitted, complete, score
from longnn.training import _known as known
from longnn.training._known import Around, corrected, learn
from longnn.training._process import COVARIANCES

TITLE = "Known answers: what each choice of their filter gains (not in the paper)"
ORDER = 109

#: What is undone, by a label for tables: settings of the filter, or who is known.
CHOICES: dict[str, tuple[str, Mapping[str, Any]]] = {
    "as it is": ("as it is", {}),
    "always": ("used everywhere", {"CERTAIN": -float("inf")}),
    "near": ("two steps only", {"COVARIANCES": [c for c in COVARIANCES if c.kind == "near"]}),
    "far": ("long reach only", {"COVARIANCES": [c for c in COVARIANCES if c.kind == "far"]}),
    "alike": ("neighbours alike only", {"COVARIANCES": [c for c in COVARIANCES if c.a > 0]}),
    "one": ("one covariance", {"COVARIANCES": [COVARIANCES[4]]}),
    "unscaled": ("training rests as they are", {"_scale": lambda r, train, val: 1.0}),
    "train": ("training answers only", {}),
}


def cells(context: Context) -> Cells:
    """All choices on every table; one record per table."""
    plan = QUICK if context.quick else FULL
    for name in context.choose("datasets", ["threshold"] if context.quick else list(TABLES)):
        load = cache(partial(load_table, context, name))
        yield Cell(name, plan, "choices", partial(_compute, load, plan, context.device))


def _compute(load: Callable[[], Any], plan: Mapping[str, int], device: str) -> dict[str, Any]:
    dataset = load()
    limit = {"epochs": plan["epochs"]} if plan["epochs"] else {}
    config = complete({"preset": "fast", "known_answers": "none", **limit}, dataset)
    splits = make_splits(dataset, "stratified", plan["splits"])
    (fitted,) = fit_all(dataset, [config], splits, device=device)
    metric, _ = headline(dataset.data.y, dataset.task)
    around = Around.of(dataset, torch.float32)
    assert around is not None

    def after(one: Fitted, choice: str) -> float:
        y, split = dataset.data.y, one.split
        with mock.patch.multiple(known, **{"CERTAIN": known.CERTAIN, **CHOICES[choice][1]}):
            learned = learn(
                *(around, one.predicted, y, split.train, split.val, dataset.task),
                only_train=choice == "train",
            )
        said = corrected(one.predicted, learned.change, dataset.task)
        said = said if learned.filter.used else one.predicted
        return score(said, dataset, split.test, one.readout)[metric]

    plain = [score(f.predicted, dataset, f.split.test, f.readout)[metric] for f in fitted]
    scores = {choice: [after(one, choice) for one in fitted] for choice in CHOICES}
    return {"metric": metric, "scores": {"none": plain, **scores}}


def tables(folder: Path) -> list[ResultTable]:
    """What the filter adds to one model, and what undoing each choice costs."""
    rows = []
    for name, record in read_records(folder, list(TABLES)).items():
        of, scores = record["choices"], record["choices"]["scores"]
        added = signed_interval(points(scores["as it is"], scores["none"]))
        row = [name, metric_words(of["metric"]), f"{percent(scores['none']):.1f}", added]
        usual = scores["as it is"]
        undone = [scores[choice] for choice in CHOICES if choice != "as it is"]
        rows.append([*row, *(f"{gain(each, usual):+.1f}" for each in undone)])
    labels = [label for choice, (label, _) in CHOICES.items() if choice != "as it is"]
    columns = ["table", "score", "one model", "the filter adds", *labels]
    return [ResultTable("choices", CAPTIONS["choices"]["choices"], columns, rows)]

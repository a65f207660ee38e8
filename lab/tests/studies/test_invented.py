"""Invented graphs are those of the records; and small versions of the studies on them."""

import pytest
import torch

from lab.records import Record
from lab.studies import presets
from lab.studies._engine import record_path
from lab.studies._invented import DEVELOPMENT, HELD_BACK, STORIES
from lab.studies._training import predict_by_columns
from lab.studies.portfolio._graphs import GRAPHS, KINDS, NAMED, UNSEEN
from longnn.data import make_split
from longnn.metrics import headline
from longnn.training import data_defaults
from tests.commands import ROOT

RESULTS = ROOT / "results"


def recorded():
    """Study, record, cell and maker of every graph that is drawn or bundled."""
    for name, make in DEVELOPMENT.items():
        yield "presets", name, presets.KEY, make
    for name, make in {**STORIES, **HELD_BACK}.items():
        yield "tables", name, "lon", make
    for name, graph in GRAPHS.items():
        if name not in DEVELOPMENT and graph.kind not in NAMED:
            yield "portfolio", name, "candidates", lambda graph=graph: graph.make(None)
    for name, graph in UNSEEN.items():
        yield "portfolio", f"test-unseen-{name}", "test", lambda graph=graph: graph.make(None)


def test_graphs_are_those_of_the_records():
    """To the last bit, with their score; and what tests a choice is not what it was made by."""
    fingerprints = {}
    for study, name, key, make in recorded():
        cell = Record(record_path(RESULTS / study, name))[key]
        dataset = make()
        assert cell["fingerprint"] == dataset.fingerprint(), name
        assert cell["metric"] == headline(dataset.data.y, dataset.task)[0], name
        fingerprints.setdefault(study, []).append(cell["fingerprint"])
        if study == "presets":
            assert cell["configs"]["preset"] == data_defaults(dataset)
            assert cell["made"]["dirty"] is False
    assert not {*fingerprints["presets"]} & {*fingerprints["tables"]}
    assert not {*UNSEEN} & {*GRAPHS}
    assert not {graph.kind for graph in UNSEEN.values()} & {*KINDS}


def test_rivals_learn_from_training_nodes_alone():
    wine = HELD_BACK["wine"]()
    split = make_split(wine, "stratified", 0)
    before = predict_by_columns("linear", wine, split)
    wine.data.y[~split.train] = 0
    after = predict_by_columns("linear", wine, split)
    assert torch.equal(before, after)
    assert before.sum(1).tolist() == pytest.approx([1.0] * 178)

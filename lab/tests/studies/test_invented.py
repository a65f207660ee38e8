"""Invented graphs are those of the records, and what rivals may see of them."""

import pytest
import torch

from lab.records import Record
from lab.studies import presets
from lab.studies._engine import record_path
from lab.studies._invented import HELD_BACK, STORIES, fraud_rings
from lab.studies._training import predict_by_columns
from longnn.data import make_split
from longnn.metrics import headline
from longnn.training import data_defaults
from tests.commands import ROOT

RESULTS = ROOT / "results"


def test_graphs_are_those_of_the_records():
    """To the last bit, with their score and with what is filled in for such data."""
    for name, make in {**STORIES, **HELD_BACK}.items():
        cell = Record(record_path(RESULTS / "tables", name))["lon"]
        dataset = make()
        assert cell["fingerprint"] == dataset.fingerprint(), name
        assert cell["metric"] == headline(dataset.data.y, dataset.task)[0], name
        assert data_defaults(dataset).items() <= cell["config"].items(), name
    rings = Record(record_path(RESULTS / "presets", "fraud"))[presets.KEY]
    assert rings["fingerprint"] == fraud_rings().fingerprint()


def test_rivals_learn_from_training_nodes_alone():
    wine = HELD_BACK["wine"]()
    split = make_split(wine, "stratified", 0)
    before = predict_by_columns("linear", wine, split)
    wine.data.y[~split.train] = 0
    after = predict_by_columns("linear", wine, split)
    assert torch.equal(before, after)
    assert before.sum(1).tolist() == pytest.approx([1.0] * 178)

"""Invented tables, and what is filled in for tables, are those of the records."""

import pytest
import torch
from torch_geometric.data import Data

from lab.records import Record
from lab.studies import presets, weights
from lab.studies._engine import record_path
from longnn.data import from_data
from longnn.training import data_defaults
from tests.commands import ROOT

RESULTS = ROOT / "results"


def test_graphs_are_those_of_the_records():
    """To the last bit."""
    for study, key, name, made in (
        ("tables", "lon", "fraud", weights.fraud),
        ("tables", "lon", "patients", weights.patients),
        ("presets", presets.KEY, "fraud", weights.fraud_rings),
    ):
        recorded = Record(record_path(RESULTS / study, name))[key]
        assert recorded["fingerprint"] == made().fingerprint(), name


@pytest.mark.parametrize(("name", "classes"), [("houses", 0), ("wine", 3)])
def test_defaults_for_tables_are_those_of_the_records(name, classes):
    ring = torch.stack([torch.arange(30), (torch.arange(30) + 1) % 30])
    y = torch.arange(30) % classes if classes else torch.rand(30)
    usual = data_defaults(from_data(Data(x=torch.rand(30, 5), edge_index=ring, y=y)))
    recorded = Record(record_path(RESULTS / "tables", name))["lon"]["config"]
    assert usual
    assert usual.items() <= recorded.items()

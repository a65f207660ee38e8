"""Trainings killed by SIGKILL at random moments: resumed, they end with the same bits."""

import os

import pytest

from longnn.data import Source
from longnn.runs import train
from tests.kills import Kills
from tests.store.graphs import small, write_graph

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
#: Long enough to be hit in the midst of it, and of every kind of work: repeats and baselines.
CONFIG = {"preset": "fast", "epochs": 8, "patience": 8, "degree": 3, "repeat": 2, "device": "cpu"}
SOURCE = Source.resolve("csbm", options={"num_nodes": 60, "num_features": 8})


@pytest.fixture(params=["memory", "disk"])
def kills(request, tmp_path):
    """Of runs on a graph in memory, or on rows of a stored one."""
    if request.param == "memory":
        return Kills(lambda f: train(SOURCE, CONFIG, f, checkpoint_every=0), tmp_path)
    write_graph(tmp_path / "graph", small(120, unlabelled=20))
    config = {**CONFIG, "placement": "features", "batch_rows": 64}
    return Kills(
        lambda f: train(tmp_path / "graph", config, f, memory=1, checkpoint_every=0), tmp_path
    )


def test_a_killed_training_loses_nothing(kills, no_report):
    count, lost = kills.run(3, seed=1)
    assert count >= 3
    assert not lost


@pytest.mark.slow
def test_many_killed_trainings_lose_nothing(kills):
    count, lost = kills.run(15, seed=2)
    assert count >= 15
    assert not lost

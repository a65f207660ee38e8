"""Runs as Python sees them, where the command line's tests do not reach."""

import dataclasses
import os
import signal

import numpy as np
import pytest
import torch

from longnn.config import Config
from longnn.data import DataError, csbm
from longnn.graphs._operator import GraphOperator
from longnn.graphs._spectrum import extreme_eigenvalues
from longnn.runs import _artifacts as artifacts
from longnn.runs import _prediction as prediction
from longnn.runs import _records as records
from longnn.runs import _runs as runs
from longnn.training import Population
from longnn.training import _fit as workflow

SOURCE = {"graph": "csbm", "nodes": None, "options": {"num_nodes": 60, "num_features": 8}}


@pytest.fixture(autouse=True)
def no_report(monkeypatch):
    monkeypatch.setattr("longnn.runs._runs.report.write_report", lambda folder: None)


@pytest.fixture
def dataset():
    return runs.load_source(SOURCE)


def begin(folder, dataset, **keys):
    config = Config.from_dict({"epochs": 6, "degree": 3, "device": "cpu", **keys})
    runs.start_run(folder, dataset, SOURCE, config, command="a test")
    return config


def test_a_signal_waits_for_the_end_of_the_epoch(tmp_path, dataset):
    """SIGTERM, as a cluster sends it: the checkpoint holds whole epochs, and goes on."""
    config = begin(tmp_path / "a", dataset)
    before = signal.getsignal(signal.SIGTERM)

    def at_third(population):
        if population.epoch == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        runs.run_training(tmp_path / "a", dataset, config, on_epoch=at_third)
    assert signal.getsignal(signal.SIGTERM) is before
    seen = []
    runs.run_training(tmp_path / "a", dataset, config, on_epoch=lambda p: seen.append(p.epoch))
    assert seen == [5, 6]
    whole = begin(tmp_path / "b", dataset)
    runs.run_training(tmp_path / "b", dataset, whole)
    left, right = (artifacts.read_weights(tmp_path / n / runs.WEIGHTS)[0] for n in "ab")
    assert all(torch.equal(left[name], right[name]) for name in right)


def test_a_second_signal_does_not_wait(tmp_path, dataset):
    config = begin(tmp_path / "a", dataset)

    def twice(population):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        runs.run_training(tmp_path / "a", dataset, config, on_epoch=twice)
    assert not (tmp_path / "a" / runs.CHECKPOINT).exists()


def test_who_handles_a_signal_keeps_it(tmp_path, dataset):
    """Under nohup, or in a program with handlers of its own, longnn leaves them alone."""
    config = begin(tmp_path / "a", dataset)
    previous = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        during = []
        runs.run_training(
            tmp_path / "a",
            dataset,
            config,
            on_epoch=lambda p: during.append(signal.getsignal(signal.SIGTERM)),
        )
        assert set(during) == {signal.SIG_IGN}
    finally:
        signal.signal(signal.SIGTERM, previous)


def test_leftovers_of_a_killed_write_are_removed(tmp_path, dataset):
    config = begin(tmp_path / "a", dataset)
    (tmp_path / "a" / ".record.json.x1.tmp").write_text("half")
    runs.run_training(tmp_path / "a", dataset, config)
    assert not list((tmp_path / "a").glob(".*"))


def test_words_are_judged_where_the_graph_has_frequencies():
    """Beyond the largest eigenvalue a polynomial may plunge: no signal is there."""
    grid = np.linspace(0, 2, 101)
    response = np.where(grid <= 1.5, grid, -50 * (grid - 1.5))
    described = {"eigenvalues": grid.tolist(), "response": [response.tolist()]}
    assert records.put_in_words(described, 1.5) == "high-pass, peak at 1.5, amplitude 1.5"
    assert "amplitude 25, negative" in records.put_in_words(described, 2.0)


def ring(size):
    node = torch.arange(size)
    there = torch.stack([node, (node + 1) % size])
    return torch.cat([there, there.flip(0)], dim=1).unique(dim=1)


GRAPHS = {
    **{f"ring of {size}": ring(size) for size in (2, 3, 7, 101)},
    **{f"random {s}": csbm(phi=-0.6, num_nodes=150, seed=s).data.edge_index for s in range(3)},
}


@pytest.mark.parametrize("name", GRAPHS)
def test_largest_frequency_is_the_largest_eigenvalue(name):
    operator = GraphOperator.from_edge_index(GRAPHS[name])
    exact = 1 - np.linalg.eigvalsh(operator.matrix.to_scipy().toarray().astype(float))[0]
    assert extreme_eigenvalues(operator)[1] == pytest.approx(exact, abs=0.01)


def test_without_edges_the_largest_frequency_is_one():
    empty = GraphOperator.from_edge_index(torch.zeros(2, 0, dtype=torch.long), num_nodes=5)
    assert extreme_eigenvalues(empty)[1] == pytest.approx(1.0)


def test_predictions_of_a_repeat_that_is_not_there(tmp_path, dataset):
    config = begin(tmp_path / "a", dataset)
    runs.run_training(tmp_path / "a", dataset, config)
    with pytest.raises(DataError, match="repeat 3"):
        prediction.predict_run(tmp_path / "a", dataset, repeat=3)


def test_a_run_of_a_gpu_is_used_without_one(tmp_path, dataset, monkeypatch):
    config = begin(tmp_path / "a", dataset)
    runs.run_training(tmp_path / "a", dataset, config)
    record = artifacts.read_json(tmp_path / "a" / runs.RECORD)
    record["config"]["device"] = "cuda"
    monkeypatch.setattr(prediction, "require_record", lambda folder: record)
    predicted, _ = prediction.predict_run(tmp_path / "a", dataset)
    assert predicted.shape == (60, 2)


def test_own_features_are_scaled_and_published_ones_are_not(dataset):
    own = {"graph": "/somewhere/edges.csv", "nodes": None, "options": {}}
    assert runs.choose_scaling(dataset, SOURCE, Config()).kind == "none"
    assert runs.choose_scaling(dataset, own, Config()).kind == "standard"
    assert runs.choose_scaling(dataset, own, Config(scale="row")).kind == "row"
    identity = {**own, "options": {"features": "identity"}}
    assert runs.choose_scaling(dataset, identity, Config()).kind == "none"


def test_standard_scaling_leaves_constant_columns(dataset):
    x = torch.tensor([[1.0, 5.0], [3.0, 5.0]])
    scaled = workflow.Scaling.fit("standard", x).apply(x)
    assert scaled.tolist() == [[-1.0, 0.0], [1.0, 0.0]]


def test_no_test_nodes_no_test_score(tmp_path, dataset):
    """The user's masks may have none: then the record has none, and nothing fails."""
    data = dataset.data.clone()
    data.train_mask = torch.arange(60) < 40
    data.val_mask = ~data.train_mask
    own = dataclasses.replace(dataset, data=data, default_split="own")
    config = begin(tmp_path / "a", own)
    record = runs.run_training(tmp_path / "a", own, config)
    assert record["summary"]["test"] == {}
    assert record["summary"]["val"]["accuracy"]["count"] == 1
    assert any("no test nodes" in note for note in record["repeats"][0]["split"]["notes"])


def test_folder_names():
    assert runs.folder_name("my graph/lon") == "my-graph-lon"


def short_of_memory(monkeypatch, most):
    """Let memory run out above a number of repeats trained together; returns what is tried."""
    tried, step = [], Population.step

    def limited(self):
        if self.epoch == 3:
            tried.append(self.count)
            if self.count > most:
                raise torch.OutOfMemoryError("fake")
        step(self)

    monkeypatch.setattr(Population, "step", limited)
    return tried


def test_repeats_that_do_not_fit_are_trained_in_turns(tmp_path, dataset, monkeypatch):
    """And such a run goes on where it was, to the same bits."""
    tried = short_of_memory(monkeypatch, 2)
    whole = begin(tmp_path / "whole", dataset, repeat=5)
    record = runs.run_training(tmp_path / "whole", dataset, whole, checkpoint_every=0)
    assert tried == [5, 2, 2, 1]
    assert [repeat["seed"] for repeat in record["repeats"]] == [0, 1, 2, 3, 4]
    stopped = begin(tmp_path / "stopped", dataset, repeat=5)

    def in_the_second(population):
        if population.epoch == 4 and not set(population.stream[:, 0].tolist()) & {0, 1}:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        runs.run_training(tmp_path / "stopped", dataset, stopped, on_epoch=in_the_second)
    names = {path.name for path in (tmp_path / "stopped").glob("checkpoint*")}
    assert names == {"checkpoint.safetensors", "checkpoint-2.safetensors"}
    tried.clear()
    again = runs.run_training(tmp_path / "stopped", dataset, stopped)
    assert tried == [1], "of two that were done and two half done nothing is done again"
    assert again["repeats"] == record["repeats"]
    assert not list((tmp_path / "stopped").glob("checkpoint*"))
    for repeat in range(5):
        left, right = (
            artifacts.read_weights(tmp_path / name / runs.WEIGHTS, repeat)[0]
            for name in ("whole", "stopped")
        )
        assert all(torch.equal(left[name], right[name]) for name in right)

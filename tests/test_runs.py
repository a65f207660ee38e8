"""Runs as Python sees them, where the command line's tests do not reach."""

import dataclasses
import os
import pkgutil
import signal

import numpy as np
import pytest
import torch

from longnn import report
from longnn.config import Config
from longnn.data import DataError, Source
from longnn.data._synthetic import csbm
from longnn.description import put_in_words
from longnn.graphs import GraphOperator
from longnn.graphs._spectrum import outlying_eigenvalues
from longnn.runs import load_run, resume, train
from longnn.training import Population

SOURCE = Source.resolve("csbm", options={"num_nodes": 60, "num_features": 8})


pytestmark = pytest.mark.usefixtures("no_report")


@pytest.fixture
def dataset():
    return SOURCE.load()


def config(**keys):
    """Quick, and without the baselines, which are trained like the rest."""
    quick = {"epochs": 6, "degree": 3, "device": "cpu", "baselines": False}
    return Config.from_dict({**quick, **keys})


def weights(folder, repeat=0):
    return load_run(folder).trained.states[repeat]


def test_a_signal_waits_for_the_end_of_the_epoch(tmp_path, dataset):
    """SIGTERM, as a cluster sends it: the checkpoint holds whole epochs, and goes on."""
    before = signal.getsignal(signal.SIGTERM)

    def at_third(population):
        if population.epoch == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        train(dataset, config(), tmp_path / "a", on_epoch=at_third)
    assert signal.getsignal(signal.SIGTERM) is before
    seen = []
    resume(tmp_path / "a", on_epoch=lambda p: seen.append(p.epoch))
    assert seen == [5, 6]
    train(dataset, config(), tmp_path / "b")
    left, right = (weights(tmp_path / n) for n in "ab")
    assert all(torch.equal(left[name], right[name]) for name in right)


def test_a_run_goes_on_in_the_midst_of_its_baselines(tmp_path, dataset):
    """The MLP is trained after the repeats: they are not trained again."""
    seen = []

    def stop_the_mlp(population):
        seen.append(population.epoch)
        if seen.count(3) == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    beside = config(baselines=True, repeat=2)
    with pytest.raises(KeyboardInterrupt):
        train(dataset, beside, tmp_path / "a", on_epoch=stop_the_mlp)
    left = []
    again = resume(tmp_path / "a", on_epoch=lambda p: left.append(p.epoch)).record
    assert left == [5, 6]
    whole = train(dataset, beside, tmp_path / "b").record
    assert again.to_dict()["baselines"] == whole.to_dict()["baselines"]
    assert again.to_dict()["repeats"] == whole.to_dict()["repeats"]


def test_a_second_signal_does_not_wait(tmp_path, dataset):
    def twice(population):
        signal.raise_signal(signal.SIGTERM)  # Ctrl-C is ignored in shells' background jobs
        signal.raise_signal(signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        train(dataset, config(), tmp_path / "a", on_epoch=twice)
    assert not (tmp_path / "a" / "checkpoint.safetensors").exists()


def test_who_handles_a_signal_keeps_it(tmp_path, dataset):
    """Under nohup, or in a program with handlers of its own, longnn leaves them alone."""
    previous = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        during = []
        train(
            dataset,
            config(),
            tmp_path / "a",
            on_epoch=lambda p: during.append(signal.getsignal(signal.SIGTERM)),
        )
        assert set(during) == {signal.SIG_IGN}
    finally:
        signal.signal(signal.SIGTERM, previous)


def test_words_are_judged_where_the_graph_has_frequencies():
    """Beyond the largest eigenvalue a polynomial may plunge: no signal is there."""
    grid = np.linspace(0, 2, 101)
    response = np.where(grid <= 1.5, grid, -50 * (grid - 1.5))
    assert put_in_words(grid, response[None], 1.5) == "high-pass, peak at 1.5, height 1.5"
    assert "height 25, negative" in put_in_words(grid, response[None], 2.0)


@pytest.mark.parametrize("most", [10, 1000])
def test_the_record_has_the_eigenvalues_outside_the_bulk(tmp_path, monkeypatch, most):
    monkeypatch.setattr("longnn.description.OUTLIER_NODES", most)
    apart = csbm(phi=0.8, num_nodes=400, num_features=8)
    train(apart, config(), tmp_path / "a")
    outliers = load_run(tmp_path / "a").record.data.outliers
    if most < 400:
        assert outliers is None
    else:
        assert outliers == pytest.approx(
            outlying_eigenvalues(GraphOperator.from_data(apart.data)).numpy(), abs=1e-5
        )
        assert len(outliers) == 1


def test_predictions_are_the_mean_of_the_repeats_or_one(tmp_path, dataset):
    run = train(dataset, config(repeat=3), tmp_path / "a")
    loaded = load_run(tmp_path / "a")
    each = [np.array(loaded.predictions(i)["p_plus"]) for i in range(3)]
    np.testing.assert_allclose(loaded.predictions()["p_plus"], np.mean(each, 0), atol=1e-7)
    np.testing.assert_allclose(loaded.predict(dataset)["p_plus"], np.mean(each, 0), atol=1e-7)
    np.testing.assert_allclose(loaded.predict(dataset, 2)["p_plus"], each[2], atol=1e-7)
    for i, table in enumerate(map(run.predictions, range(3))):
        np.testing.assert_allclose(table["p_plus"], each[i], atol=1e-7)
    assert not np.allclose(each[0], each[1])
    for ask in (loaded.predictions, lambda repeat: loaded.predict(dataset, repeat)):
        with pytest.raises(DataError, match=r"a repeat below 3 \(got 3\)"):
            ask(3)


def test_a_set_is_told_where_there_is_one_split(dataset):
    """A test node of one repeat may be a training node of another: then no set is told."""
    run = train(dataset, config(repeat=2))
    assert "set" not in run.predictions().column_names
    told = run.predictions(1)["set"].to_pylist()
    assert [place == "test" for place in told] == run.splits[1].test.tolist()
    data = dataset.data.clone()
    data.train_mask = torch.arange(60) < 40
    own = dataclasses.replace(dataset, data=data, default_split="own")
    assert "set" in train(own, config(repeat=1)).predictions().column_names


def count(monkeypatch, place):
    """Calls of a function from now on; the function works as before."""
    calls, function = [], pkgutil.resolve_name(place)

    def counted(*arguments, **options):
        calls.append(arguments)
        return function(*arguments, **options)

    monkeypatch.setattr(place, counted)
    return calls


def test_ten_repeats_build_ten_models_and_ten_splits(dataset, tmp_path, monkeypatch):
    """And read nothing back: what is written is known."""
    built = count(monkeypatch, "longnn.training._fit.get_model")
    split = count(monkeypatch, "longnn.runs._train.make_split")
    made = count(monkeypatch, "longnn.training._job.make_problem")
    read = count(monkeypatch, "longnn._base.schema.Node.load")
    opened = count(monkeypatch, "safetensors.safe_open")
    run = train(dataset, config(repeat=10), tmp_path / "a")
    assert len(run.record.repeats) == len(built) == len(split) == 10
    assert len(made) == 1
    assert not read + opened


def test_evaluation_opens_everything_once(dataset, tmp_path, monkeypatch):
    """Ten repeats share weights file, record and graph."""
    train(dataset, config(repeat=10), tmp_path / "a")
    made = count(monkeypatch, "longnn.training._trained.make_problem")
    opened = count(monkeypatch, "safetensors.safe_open")
    read = count(monkeypatch, "longnn._base.schema.Node.load")
    scores, _ = load_run(tmp_path / "a").evaluate()
    assert len(scores) == 10
    assert (len(made), len(opened), len(read)) == (1, 1, 2), "run.json and record.json"


def test_no_test_nodes_no_test_score(tmp_path, dataset):
    """The user's masks may have none: then the record has none, and nothing fails."""
    data = dataset.data.clone()
    data.train_mask = torch.arange(60) < 40
    data.val_mask = ~data.train_mask
    own = dataclasses.replace(dataset, data=data, default_split="own")
    record = train(own, config(), tmp_path / "a").record
    assert record.summary["test"] == {}
    assert record.summary["val"]["accuracy"].count == 1
    assert any("no test nodes" in note for note in record.repeats[0].split.notes)


def test_classes_without_test_nodes_are_named_once(dataset):
    """The published split takes small classes whole for training."""
    y = dataset.data.y.clone()
    y[:3] = 2
    data = dataset.data.clone()
    data.y = y
    few = dataclasses.replace(dataset, data=data, classes=(*dataset.classes, "rare"))
    run = train(few, config(split="published", repeat=2))
    assert any("no test node: rare" in note for note in run.splits[0].notes)
    lines = [line for line in report.text_summary(run.record) if "no test node" in line]
    assert len(lines) == 1
    assert "1 of 3 classes has no test node: rare" in lines[0]


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
    five = config(repeat=5)
    record = train(dataset, five, tmp_path / "whole", checkpoint_every=0).record.to_dict()
    assert tried == [5, 2, 2, 1]
    assert [repeat["seed"] for repeat in record["repeats"]] == [0, 1, 2, 3, 4]

    def in_the_second(population):
        if population.epoch == 4 and not set(population.stream[:, 0].tolist()) & {0, 1}:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        train(dataset, five, tmp_path / "stopped", on_epoch=in_the_second)
    names = {path.name for path in (tmp_path / "stopped").glob("checkpoint*")}
    assert names == {"checkpoint.safetensors", "checkpoint-2.safetensors"}
    tried.clear()
    again = resume(tmp_path / "stopped").record.to_dict()
    assert tried == [1], "of two that were done and two half done nothing is done again"
    assert again["repeats"] == record["repeats"]
    assert not list((tmp_path / "stopped").glob("checkpoint*"))
    for repeat in range(5):
        left, right = (weights(tmp_path / n, repeat) for n in ("whole", "stopped"))
        assert all(torch.equal(left[name], right[name]) for name in right)

"""Presets as a user meets them: command, run folder, report, estimator."""

import re
import time

import pytest

import longnn
from longnn.records import RunRecord
from longnn.report import text_summary
from longnn.runs import _train as train_module
from longnn.training import Population
from longnn.training import _group as schedule_module
from longnn.tuning._space import read_config
from tests.commands import TINY, fail, succeed, succeed_json
from tests.commands import longnn as command

FEW = ("--device", "cpu", "--set", "epochs=4", "--set", "baselines=false")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of the default preset: its folder and its record as printed."""
    folder = tmp_path_factory.mktemp("preset") / "run"
    printed = succeed_json("train", *TINY, *FEW, "--repeat", 2, "--output", folder)
    return folder, printed


def test_a_portfolio_is_trained_by_default(finished):
    _, printed = finished
    assert printed["config"]["preset"] == "default"
    assert len(printed["portfolio"]) == 7
    for repeat in printed["repeats"]:
        assert sum(member["weight"] for member in repeat["members"]) == pytest.approx(1)
        assert {m["name"] for m in repeat["members"]} == set(printed["portfolio"])


def test_the_report_shows_members_weights_and_gain(finished):
    folder, printed = finished
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Ensemble of 7 models" in page
    assert "The filters of the members" in page
    assert re.search(r"7 models were trained, and \d of them vote", page)
    assert re.search(r"together they have [\d.]+ % \([+-]?[\d.]+ points\)", page)
    for name in printed["portfolio"]:
        assert name in page
    lines = "\n".join(text_summary(RunRecord.read(folder)))
    assert "The leading model" in lines


def test_a_search_around_an_ensemble_is_around_its_leader(finished):
    folder, printed = finished
    leader = max(printed["repeats"][0]["members"], key=lambda m: m["weight"])["name"]
    assert read_config(folder).to_dict() == printed["portfolio"][leader]


def test_a_key_of_one_model_trains_one_and_says_so(tmp_path, no_report):
    result = command("train", *TINY, *FEW, "--set", "degree=2", "--output", tmp_path)
    assert result.stdout.startswith("Is each node of csbm ")
    assert "one model is trained, since degree is set" in result.stderr
    refused = fail("train", *TINY, "--preset", "default", "--set", "degree=2")
    assert "Expected no `degree` beside preset='default'" in refused


def test_an_unknown_preset_is_refused():
    assert "fast, default, best (got 'quick')" in fail("train", *TINY, "--preset", "quick")


#: More epochs than a test could wait for.
ENDLESS = {"epochs": 20_000, "patience": 20_000}


def test_a_time_limit_is_kept_and_said(tmp_path, monkeypatch, no_report):
    monkeypatch.setattr("longnn.runs._train.FINISHING", (0.0, 0.0))
    words = [word for key, value in ENDLESS.items() for word in ("--set", f"{key}={value}")]
    arguments = (*words, "--device", "cpu", "--time-limit", 1.5)
    printed = succeed("train", *TINY, *arguments, "--output", tmp_path / "run")
    assert "stopped by its time limit" in printed
    assert not list((tmp_path / "run").glob("checkpoint*"))


def test_a_time_limit_counts_from_when_it_is_told(monkeypatch):
    graph = longnn.data.Source.resolve("csbm", options={"num_nodes": 60, "num_features": 8})
    table = {"preset": "fast", "epochs": 3, "time_limit": 500, "device": "cpu", "baselines": False}
    ends = []
    for ago, least in ((None, 0.0), (1000, 0.0), (1000, 0.25)):
        monkeypatch.setattr(train_module, "LEAST", least)
        began = None if ago is None else time.perf_counter() - ago
        (repeat,) = longnn.train(graph, table, began=began).record.repeats
        ends.append((repeat.stopped, repeat.epochs))
    # Where loading took all of it, there is a quarter for training all the same.
    assert ends == [("epochs", 3), ("time", 1), ("epochs", 3)]


def test_an_interrupted_portfolio_is_kept(tmp_path, monkeypatch, ctrl_c):
    """After Ctrl-C, in the second group of members; that it goes on: ``test_kinds.py``."""
    arguments = (*TINY, *FEW, "--set", "patience=4", "--quiet", "--output")
    folder, seen, epoch = tmp_path / "run", [], Population._epoch

    def interrupted(population):
        epoch(population)
        seen.append(population)
        if len(seen) == 6:
            ctrl_c()

    with monkeypatch.context() as patch:
        patch.setattr(Population, "_epoch", interrupted)
        stopped = command("train", *arguments, folder, "--checkpoint-every", 0)
    assert stopped.exit_code == 130
    assert "the best so far is kept" in stopped.stderr
    assert stopped.stderr.endswith(f"continue with: longnn train --resume {folder}\n")
    kept = RunRecord.read(folder)
    assert "interrupted" in {member.stopped for member in kept.repeats[0].members}
    assert "interrupted" in (folder / "report.html").read_text(encoding="utf-8")


def test_turns_of_a_large_graph_are_resumed(tmp_path, monkeypatch, no_report):
    monkeypatch.setattr(schedule_module, "LARGE", 0)
    monkeypatch.setattr(schedule_module, "TURNS", (2, 4))
    table = {"epochs": 6, "device": "cpu", "baselines": False}
    graph = longnn.data.Source.resolve("csbm", options={"num_nodes": 60, "num_features": 8})
    whole = longnn.train(graph, table, tmp_path / "whole")
    seen = []

    def stop(population):
        seen.append(population.epoch)
        if len(seen) == 14:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        longnn.train(graph, table, tmp_path / "run", on_epoch=stop, checkpoint_every=0)
    again = longnn.runs.resume(tmp_path / "run")
    left, right = (run.record.to_dict()["repeats"] for run in (whole, again))
    assert left == right
    assert {m["stopped"] for m in left[0]["members"]} == {"halved", "epochs"}

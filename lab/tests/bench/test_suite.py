"""The benchmark of epochs as a whole; no test here looks at a clock."""

import time

import pytest
import torch

from lab.bench import _epochs as epochs
from lab.bench import read_bench, run_bench
from lab.bench._contenders import LABELS, RIVALS
from lab.bench._measure import (
    WARM_UP,
    Budget,
    compare,
    round_robin,
    run_module,
    summarize,
)
from lab.tests.commands import run

CPU = torch.device("cpu")


@pytest.fixture(scope="module", autouse=True)
def tiny():
    """Budgets and sizes that take no time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(epochs.BUDGETS, "quick", Budget(2, 0.001))
        yield


@pytest.fixture(scope="module")
def record(small, tiny):
    """A record of everything but memory, which has a test of its own."""
    options = {"quick": True, "population": 3, "threads": 1, "commit": "abc"}
    told = []
    found = run_bench([small], on_progress=told.append, **options)
    assert "csbm: epochs, round 2 of 2" in told
    return found


def test_all_is_measured(record):
    result = record["datasets"]["csbm"]
    assert result["failed"] == {}
    assert list(result["contenders"]) == list(LABELS)
    assert [one["models"] for one in result["contenders"].values()] == [1, 3, 1, 1, 1, 1, 1]
    assert all(0 < one["ms"]["low"] <= one["ms"]["high"] for one in result["contenders"].values())
    assert set(result["ratios"]) == set(LABELS) - {"single"}
    assert result["contenders"]["single"]["calls"]["sparse_products"] == 30
    assert {goal["name"] for goal in record["goals"]} >= {"textbook-cora"}


def test_a_contender_that_fails_does_not_stop_the_others(small, monkeypatch):
    """Nor does an interruption at a later dataset, here one that is not known, lose the first."""

    def broken(*sizes):
        raise RuntimeError("out of memory\nand more")

    monkeypatch.setitem(RIVALS, "gcn", broken)
    kept = []
    options = {"quick": True, "contenders": ["single", "gcn"]}
    with pytest.raises(ValueError, match="Did you mean cora"):
        run_bench([small, "kora"], on_dataset=kept.append, **options)
    (record,) = kept
    assert list(record["datasets"]) == ["csbm"]
    result = record["datasets"]["csbm"]
    assert result["failed"] == {"gcn": "out of memory"}
    assert set(result["contenders"]) == {"single"}
    assert result["ratios"] == {}


def test_the_command_writes_after_each_graph(tmp_path):
    options = ("--quick", "--device", "cpu", "--contenders", "single, gcn", "--commit", "a")
    result = run("bench", *options, "--datasets", "csbm,kora", "--output", tmp_path, "--name", "it")
    assert "Did you mean cora" in result.stderr
    record = read_bench(tmp_path / "records" / "it.json")
    assert list(record["datasets"]["csbm"]["contenders"]) == ["single", "gcn"]
    assert record["code"]["commit"] == "a"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"contenders": ["gat"]}, r"Expected contenders among single, .* \(got 'gat'\)"),
        ({"population": 0}, "Expected `population` >= 1 \\(got 0\\)"),
        ({"precision": "tf32"}, "Expected `precision` on cpu among float32 \\(got 'tf32'\\)"),
        ({"threads": 0}, "Expected `threads` >= 1 \\(got 0\\)"),
        ({"device": "abacus"}, "Expected `device`"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        run_bench(**{"quick": True, **options})


# How it is measured


def test_contenders_take_turns():
    turns = []
    calls = {name: lambda name=name: turns.append(name) for name in "abc"}
    times = round_robin(calls, CPU, Budget(rounds=3, seconds=0.0))
    warm = 3 * (WARM_UP + 2)
    assert "".join(turns[warm:]) == "abccbaabc"
    assert {name: len(t) for name, t in times.items()} == dict.fromkeys("abc", 3)


def test_a_slow_contender_has_few_rounds(monkeypatch):
    monkeypatch.setattr("lab.bench._measure.SLOW", 0.01)
    calls = {"slow": lambda: time.sleep(0.02), "fast": lambda: None}
    times = round_robin(calls, CPU, Budget(rounds=5, seconds=0.0))
    assert (len(times["slow"]), len(times["fast"])) == (3, 5)
    assert compare(times["slow"], times["fast"])["median"] > 1


def test_a_noisy_round_counts_once():
    # Something else ran in the second round: both contenders took ten times as long.
    assert compare([4.0, 40.0, 4.0], [1.0, 10.0, 1.0]) == summarize([4.0])
    assert summarize([1.0, 100.0, 2.0])["median"] == 2.0


def test_a_process_that_fails_is_an_error():
    with pytest.raises(RuntimeError, match=r"of nothing to succeed \(got .*No module named"):
        run_module("nothing")

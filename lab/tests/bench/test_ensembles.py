"""The benchmark of ensembles, on a tiny graph; no test here looks at what a clock said."""

import json

import pytest

from lab.bench import EnsembleRecord, ensemble_lines, run_ensembles, write_ensembles
from lab.bench import _suite as suite
from lab.bench._suite import Budgets
from lab.bench._timing import Budget


@pytest.fixture(scope="module")
def record(small):
    told = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(suite.BUDGETS, "quick", Budgets(Budget(2, 0.001), Budget(1, 0.001)))
        found = run_ensembles([small], quick=True, threads=1, commit="abc", on_progress=told.append)
    assert told == ["csbm: default", "csbm: best"]
    return found


def test_members_of_one_architecture_share_a_pass(record):
    found = [(one.preset, one.members, one.passes) for one in record.times]
    assert found == [("default", 8, 6), ("best", 32, 10)]


def test_the_record_names_the_threads_that_were_used(record):
    assert record.machine.threads == 1


def test_both_ways_say_the_same(record):
    assert all(0 <= one.difference < 1e-5 for one in record.times)


def test_the_record_is_written_and_read(record, tmp_path):
    file, page = write_ensembles(record, tmp_path, name="mine")
    assert file == tmp_path / "ensembles" / "mine.json"
    assert EnsembleRecord.from_dict(json.loads(file.read_text())) == record
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Ensembles on ")
    assert "commit: abc" in text
    rows = [line for line in text.splitlines() if line.startswith("| csbm")]
    assert [row.split("|")[2].strip() for row in rows] == ["default", "best"]
    assert len(ensemble_lines(record)) == 3 + 1 + 2

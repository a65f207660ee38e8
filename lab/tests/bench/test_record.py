"""A record is written and read by the same classes, and the committed ones say what they said."""

import copy
import json
from pathlib import Path

import pytest

import longnn
from lab.bench import BenchRecord, check_goals, read_bench, write_bench
from lab.bench._output import to_markdown
from lab.bench._record import Failure, ShareFailure
from lab.tests.bench.conftest import made_up

RESULTS = Path(longnn.__file__).parents[1] / "results" / "bench"
MACHINES = ("cpu", "h200", "tf32-h200")


@pytest.mark.parametrize("name", MACHINES)
def test_committed_records_are_written_as_they_are_read(name):
    file = RESULTS / "records" / f"{name}.json"
    text = json.dumps(read_bench(file).to_dict(), indent=1, ensure_ascii=False) + "\n"
    assert text == file.read_text()


@pytest.mark.parametrize("name", MACHINES)
def test_committed_tables_are_those_of_the_records(name):
    record = read_bench(RESULTS / "records" / f"{name}.json")
    figures = sorted((RESULTS / "figures").glob(f"{name}-*.svg"))
    links = [f"../figures/{figure.name}" for figure in figures]
    assert to_markdown(record, links) == (RESULTS / "tables" / f"{name}.md").read_text()


@pytest.mark.parametrize("name", MACHINES)
def test_committed_goals_follow_from_the_numbers(name):
    record = read_bench(RESULTS / "records" / f"{name}.json")
    assert check_goals(record) == record.goals


def test_several_records_share_a_folder(tmp_path):
    for name in "ab":
        write_bench(made_up(datasets=("cora",)), tmp_path, name=name)
    assert read_bench(tmp_path / "records" / "b.json") == made_up(datasets=("cora",))
    with pytest.raises(ValueError, match=r"Expected one record in records/ \(got a.json, b.json\)"):
        read_bench(tmp_path)


def test_a_folder_without_record(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Expected a record in records/ \(got none\)"):
        read_bench(tmp_path)


def test_failures_are_read_back(tmp_path):
    given = made_up(datasets=("cora",)).to_dict()
    cora = given["datasets"]["cora"]
    given["scaling"] = given["ceilings"] = cora["memory_mib"] = {"error": "no memory"}
    cora["contenders"]["single"]["calls"] = {"error": "no profiler"}
    cora["ceilings"] = [{"error": "too slow", "contender": "single"}]
    record = BenchRecord.from_dict(given)
    assert record.scaling == record.ceilings == Failure(error="no memory")
    assert record.datasets["cora"].ceilings == [ShareFailure(error="too slow", contender="single")]
    assert record.to_dict() == given
    page = write_bench(record, tmp_path)[1].read_text()
    for line in ("- cora, memory: no memory", "- cora, ceilings: too slow", "- ceilings: no"):
        assert line in page


def test_what_is_absent_stays_absent():
    given = made_up(datasets=("cora",)).to_dict()
    del given["scaling"], given["datasets"]["cora"]["memory_mib"]
    record = BenchRecord.from_dict(given)
    assert record.scaling is record.datasets["cora"].memory_mib is None
    assert record.sweeps == []
    assert record.to_dict() == given


def _without(record):
    del record["settings"]["degree"]


def _unknown(record):
    record["datasets"]["cora"]["contenders"]["gcn"]["speed"] = 3


def _words(record):
    record["datasets"]["cora"]["ratios"]["gcn"]["low"] = "little"


def _truth(record):
    record["settings"]["population"] = True


def _list(record):
    record["datasets"]["cora"] = []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_without, r"Expected `record.settings.degree` \(got nothing\)"),
        (_unknown, r"`record.datasets.cora.contenders.gcn` to have fields .*\['speed'\]"),
        (_words, r"`record.datasets.cora.ratios.gcn.low` to be a number \(got 'little'\)"),
        (_truth, r"`record.settings.population` to be of type int \(got True\)"),
        (_list, r"`record.datasets.cora` to be an object \(got \[\]\)"),
    ],
)
def test_a_damaged_record_names_the_place(change, message):
    given = copy.deepcopy(made_up(datasets=("cora",)).to_dict())
    change(given)
    with pytest.raises(ValueError, match=message):
        BenchRecord.from_dict(given)

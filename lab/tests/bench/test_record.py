"""Records, their long table, and its views: committed ones, and some with invented numbers."""

import shutil

import pytest

from lab.bench import check_goals, lines, read_bench, rebuild_bench, rows, write_bench
from lab.bench._goals import GOALS
from lab.bench._record import KINDS, folder_of
from lab.tests.bench.conftest import made_up
from lab.tests.commands import succeed
from tests.commands import ROOT

RESULTS = ROOT / "results" / "bench"
RECORDS = [
    path for kind in KINDS.values() for path in sorted((RESULTS / folder_of(kind)).glob("*.json"))
]


@pytest.fixture
def undrawn(monkeypatch):
    """Figures are made but not drawn, which takes most of the time."""
    monkeypatch.setattr("lab.bench._figures.to_svg", lambda figure: b"")
    monkeypatch.setattr("lab.bench._figures.to_png", lambda figure: b"")


# Committed records


def test_committed_files_are_those_of_the_records(tmp_path, undrawn):
    for path in RECORDS:
        copy = tmp_path / path.relative_to(RESULTS)
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(path, copy)
    assert rebuild_bench(tmp_path) == [path.stem for path in RECORDS]
    files = {path.relative_to(RESULTS) for path in RESULTS.rglob("*") if path.is_file()}
    assert {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()} == files
    for file in files:
        if file.suffix in (".json", ".md"):  # figures are as matplotlib draws them
            assert (tmp_path / file).read_text() == (RESULTS / file).read_text(), file


@pytest.mark.parametrize("path", [p for p in RECORDS if p.parent.name == "records"], ids=str)
def test_committed_goals_follow_from_the_numbers(path):
    record = read_bench(path)
    assert check_goals(record) == record["goals"] != []


def leaves(node):
    """Every number, text and list of numbers in plain data."""
    if isinstance(node, dict):
        node = list(node.values())
    elif not isinstance(node, list) or not all(isinstance(entry, dict) for entry in node):
        return [] if node is None else [repr(node)]
    return [leaf for value in node for leaf in leaves(value)]


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_every_number_of_a_record_is_in_one_row(path):
    found, record = list(rows(read_bench(path))), read_bench(path)
    keys = [(row["what"], row["graph"], row["contender"], row["metric"]) for row in found]
    assert len(set(keys)) == len(keys)
    for about in ("format", "created", "machine", "code", "settings"):
        record.pop(about, None)
    values = [row[end] for row in found for end in ("value", "low", "high")]
    assert sorted(leaves(record)) == sorted(repr(value) for value in values if value is not None)


def test_two_records_are_compared(tmp_path, undrawn):
    for name, ms in (("a", 40.0), ("b", 10.0)):
        write_bench(made_up(ms={"textbook": ms}, datasets=("cora",)), tmp_path, name=name)
    files = [str(tmp_path / "records" / f"{name}.json") for name in "ab"]
    told = succeed("bench", "--compare", *files)
    (line,) = [x for x in told.splitlines() if "textbook" in x and " ms " in x]
    assert line.split() == ["contenders", "cora", "textbook", "ms", "40", "10", "0.25"]


def test_other_files_are_refused(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "b.json").write_text("{")
    with pytest.raises(ValueError, match=r"a\.json: Expected .* \(got another file\)"):
        read_bench(tmp_path / "a.json")
    with pytest.raises(ValueError, match=r"b\.json: Expected the record of a benchmark as JSON"):
        read_bench(tmp_path / "b.json")


# Files and lines


def test_files_of_a_record(tmp_path):
    record = made_up()
    files = write_bench(record, tmp_path)
    figures = [f"cpu-{w}.{k}" for w in ("epoch_times", "memory", "scaling") for k in ("svg", "png")]
    assert [file.name for file in files] == ["cpu.json", "cpu.md", *figures]
    assert read_bench(files[0]) == record
    page = files[1].read_text()
    assert "| cora | 3 | 20 | 70 | - |" in page
    assert "![cpu-scaling](../figures/cpu-scaling.svg)" in page
    text = lines(record)
    head, row = text[text.index("EPOCH TIMES") + 2 :][:2]
    assert head.startswith("dataset")
    assert row.startswith("cora")
    assert len(head) == len(row)


def test_what_failed_is_said(tmp_path, undrawn):
    record = made_up(datasets=("cora",))
    cora = record["datasets"]["cora"]
    cora["failed"] = {"cheb": "too large"}
    cora["contenders"]["single"]["calls"] = {"error": "no profiler"}
    cora["ceilings"] = [{"contender": "single", "error": "too slow"}]
    record["scaling"] = record["ceilings"] = cora["memory_mib"] = {"error": "no memory"}
    said = {
        "- cora, single, contenders: no profiler",
        "- cora, cheb: too large",
        "- cora, memory_mib: no memory",
        "- cora, single, ceilings: too slow",
        "- scaling: no memory",
        "- ceilings: no memory",
    }
    assert set(lines(record)[-6:]) == said
    page, *figures = write_bench(record, tmp_path)[1:]
    assert set(page.read_text().split("## Not measured\n\n")[1].splitlines()[:6]) == said
    assert [figure.name for figure in figures] == ["cpu-epoch_times.svg", "cpu-epoch_times.png"]


# Goals


def checked(record):
    return {goal["name"]: goal for goal in check_goals(record)}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_goals_of_the_device_are_checked(device):
    goals = checked(made_up(device, ms={"single": 0.4, "population": 0.018}))
    assert set(goals) == {goal.name for goal in GOALS.values() if goal.device == device}
    assert {goal["status"] for goal in goals.values()} == {"met"}
    factors = {"cpu": ("population-10", 4 / 2.5), "cuda": ("single-cora", 0.45 / 0.4)}
    name, factor = factors[device]
    assert goals[name]["factor"] == pytest.approx(factor)

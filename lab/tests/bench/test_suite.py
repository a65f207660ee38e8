"""The benchmark as a whole, on a tiny graph; no test here looks at what a clock said."""

import dataclasses
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import longnn
from lab.bench import BenchRecord, Workload, _contenders, lines, read_bench, run_bench, write_bench
from lab.bench import _suite as suite
from lab.bench._contenders import EPOCHS, LABELS
from lab.bench._record import Code, Failure
from lab.bench._scaling import Sizes, fit_exponent, measure_scaling, random_dataset
from lab.bench._suite import BUDGETS, Budgets
from lab.bench._timing import MOST_CALLS, WARM_UP, Budget, compare, round_robin, summarize
from lab.tests.bench.conftest import made_up
from longnn._base.provenance import describe_code

CPU = torch.device("cpu")
TINY = Budgets(Budget(2, 0.001), Budget(1, 0.001))
SWEEPS = Sizes((20, 40), (1, 2), (1, 3), (1, 2), 30, nodes=60, features=12, classes=3)


@pytest.fixture(scope="module")
def record(small):
    """A record of everything but memory, which has a test of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(suite.BUDGETS, "quick", TINY)
        patch.setitem(suite.SIZES, "quick", SWEEPS)
        for name, value in (("_MEMORY", 2**20), ("_CACHE", 2**12), ("_SIDE", 64)):
            patch.setattr(f"lab.bench._ceilings.{name}", {"cpu": value})
        told = []
        found = run_bench(
            [small],
            quick=True,
            population=3,
            threads=1,
            sections=("scaling", "ceilings"),
            commit="abc",
            on_progress=told.append,
        )
    assert "csbm: epochs, round 2 of 2" in told
    assert "scaling: members" in told
    return found


def test_the_record_names_its_maker(record):
    assert record.machine.threads == 1
    assert record.machine.versions["torch"].split("+")[0] == torch.__version__.split("+")[0]
    assert record.code == Code(commit="abc", dirty=None)
    assert record.settings.degree == 10
    assert set(record.settings.contenders) == set(LABELS)


def test_the_record_is_plain_numbers(record):
    written = record.to_dict()
    assert json.loads(json.dumps(written, allow_nan=False)) == written
    assert BenchRecord.from_dict(written) == record


def test_all_is_measured(record):
    result = record.datasets["csbm"]
    assert result.failed == {}
    assert list(result.contenders) == list(LABELS)
    assert result.contenders["population"].models == 3
    assert all(0 < c.ms.low <= c.ms.high for c in result.contenders.values())
    assert set(result.ratios) == set(LABELS) - {"single"}
    assert result.contenders["single"].calls["sparse_products"] == 30
    assert [share.contender for share in result.ceilings] == ["single", "population"]
    assert [sweep.axis for sweep in record.scaling] == [
        "edges",
        "degree",
        "channels",
        "members",
    ]


def test_the_ratio_of_a_population_is_per_model(record):
    result = record.datasets["csbm"]
    ms = {key: result.contenders[key].ms for key in ("single", "population")}
    low = ms["single"].low / ms["population"].high
    high = ms["single"].high / ms["population"].low
    assert 0.5 * low <= result.ratios["population"].median <= 2 * high


def test_files(record, tmp_path):
    folder = tmp_path / "new" / "folder"
    files = write_bench(record, folder, name="mine")
    drawn = [f"{what}.{kind}" for what in ("epoch_times", "scaling") for kind in ("svg", "png")]
    assert {file.relative_to(folder).as_posix() for file in files} == {
        "records/mine.json",
        "tables/mine.md",
        *(f"figures/mine-{name}" for name in drawn),
    }
    assert all(file.stat().st_size > 0 for file in files)
    assert read_bench(folder) == read_bench(files[0]) == record
    page = files[1].read_text()
    for title in ("Goals", "Epoch times", "Ratios", "Calls", "Scaling", "Ceilings"):
        assert f"\n## {title}\n" in page
    assert "![mine-scaling](../figures/mine-scaling.svg)" in page


def test_lines_fit_their_columns(record):
    text = lines(record)
    at = text.index("EPOCH TIMES")
    head, row = text[at + 2], text[at + 3]
    assert head.startswith("dataset")
    assert len(head) == len(row)
    assert row.startswith("csbm")


def test_figures_of_a_made_up_record(tmp_path):
    names = [file.name for file in write_bench(made_up("cpu"), tmp_path)]
    assert "cpu-memory.svg" in names
    assert "| cora | 3 | 20 | 70 | - |" in (tmp_path / "tables" / "cpu.md").read_text()


def test_what_failed_is_said(tmp_path):
    record = made_up("cpu", datasets=("cora",))
    cora = dataclasses.replace(record.datasets["cora"], failed={"cheb": "too large"})
    failure = Failure(error="no memory")
    record = dataclasses.replace(record, scaling=failure, datasets={"cora": cora})
    assert "- scaling: no memory" in lines(record)
    assert "- cora, cheb: too large" in lines(record)
    write_bench(record, tmp_path)
    assert not (tmp_path / "figures" / "cpu-scaling.svg").exists()
    assert read_bench(tmp_path) == record


def test_a_contender_that_fails_does_not_stop_the_others(small, monkeypatch):
    monkeypatch.setitem(suite.BUDGETS, "quick", TINY)

    def fail(*sizes):
        raise RuntimeError("out of memory\nand more")

    monkeypatch.setitem(_contenders.RIVALS, "gcn", fail)
    record = run_bench([small], quick=True, contenders=["single", "gcn"], sections=())
    result = record.datasets["csbm"]
    assert result.failed == {"gcn": "out of memory"}
    assert set(result.contenders) == {"single"}
    assert result.ratios == {}


def test_what_is_measured_is_there_after_each_dataset(small, monkeypatch):
    """An interruption at a later dataset, here one that is not known, does not lose the first."""
    monkeypatch.setitem(suite.BUDGETS, "quick", TINY)
    kept = []
    with pytest.raises(ValueError, match="Did you mean cora"):
        run_bench(
            [small, "kora"],
            quick=True,
            contenders=["single"],
            sections=(),
            on_dataset=kept.append,
        )
    (record,) = kept
    assert list(record.datasets) == ["csbm"]
    assert BenchRecord.from_dict(record.to_dict()) == record
    assert {goal.name for goal in record.goals} >= {"textbook-cora"}


def test_threads_are_set_back():
    before = torch.get_num_threads()
    with suite.limited_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"contenders": ["gat"]}, "Expected contenders among"),
        ({"sections": ["speed"]}, r"Expected sections among memory, .*, ceilings \(got 'speed'\)"),
        ({"population": 0}, "Expected `population` >= 1 \\(got 0\\)"),
        ({"precision": "tf32"}, "Expected `precision` on cpu among float32 \\(got 'tf32'\\)"),
        ({"threads": 0}, "Expected `threads` >= 1 \\(got 0\\)"),
        ({"device": "abacus"}, "Expected `device`"),
        ({"datasets": ["kora"]}, "Did you mean cora"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        run_bench(**{"quick": True, **options})


def test_other_files_are_refused(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "b.json").write_text("{")
    with pytest.raises(ValueError, match="got another file"):
        read_bench(tmp_path / "a.json")
    with pytest.raises(ValueError, match=r"b\.json: Expected the record of a benchmark as JSON"):
        read_bench(tmp_path / "b.json")


def test_contenders_take_turns():
    turns = []
    calls = {name: lambda name=name: turns.append(name) for name in "abc"}
    times = round_robin(calls, CPU, Budget(rounds=3, seconds=0.0))
    warm = 3 * (WARM_UP + 2)
    assert "".join(turns[warm:]) == "abccbaabc"
    assert {name: len(t) for name, t in times.items()} == dict.fromkeys("abc", 3)


def test_a_slow_contender_has_few_rounds(monkeypatch):
    monkeypatch.setattr("lab.bench._timing.SLOW", 0.01)
    calls = {"slow": lambda: time.sleep(0.02), "fast": lambda: None}
    times = round_robin(calls, CPU, Budget(rounds=5, seconds=0.0))
    assert (len(times["slow"]), len(times["fast"])) == (3, 5)
    assert compare(times["slow"], times["fast"]).median > 1


def test_no_contender_runs_out_of_epochs():
    most = max(budgets.epochs.rounds for budgets in BUDGETS.values())
    assert most * MOST_CALLS + 2 * WARM_UP + 10 < EPOCHS


def test_a_noisy_round_counts_once():
    # Something else ran in the second round: both contenders took ten times as long.
    assert compare([4.0, 40.0, 4.0], [1.0, 10.0, 1.0]) == summarize([4.0])
    assert summarize([1.0, 100.0, 2.0]).median == 2.0


def test_exponents_of_powers():
    x = np.array([1, 2, 4, 8, 16, 32])
    assert fit_exponent(x, 3.0 * x**1.5) == pytest.approx((1.5, 3.0, 8))
    overhead = np.maximum(5.0, x)  # flat, then proportional
    assert fit_exponent(x, overhead)[0] == pytest.approx(1.0)


def test_scaling_sweeps_the_sizes_asked_for():
    workload = Workload(hidden=4, degree=2)
    found = measure_scaling(CPU, workload, SWEEPS, Budget(rounds=1, seconds=0.0001))
    assert [sweep.x for sweep in found[1:]] == [[1, 2], [1, 3], [1, 2]]
    assert found[0].x[0] < found[0].x[1] <= 40  # a random graph loses its duplicates
    assert all(len(sweep.ms) == 2 and min(sweep.ms) > 0 for sweep in found)


def test_a_random_dataset_has_the_sizes_asked_for():
    sizes = Sizes((), (), (), (), 1, nodes=300, features=40, density=0.1, classes=3)
    dataset = random_dataset(sizes)
    assert (dataset.num_nodes, dataset.num_features, dataset.num_classes) == (300, 40, 3)
    assert dataset.num_edges == pytest.approx(1500, rel=0.1)
    assert float((dataset.data.x != 0).float().mean()) == pytest.approx(0.1, rel=0.1)


def test_the_commit_is_that_of_the_checkout():
    code = describe_code()
    root = Path(longnn.__file__).parents[1]
    if not (root / ".git").exists():
        assert code == {"commit": None, "dirty": None}
        return
    asked = ["git", "-C", str(root), "rev-parse", "HEAD"]
    head = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    assert code["commit"] == head
    assert isinstance(code["dirty"], bool)


def test_an_installed_copy_has_no_commit(monkeypatch, tmp_path):
    monkeypatch.setattr("longnn._base.provenance._PACKAGE", tmp_path)
    assert describe_code() == {"commit": None, "dirty": None}


def test_it_is_there_without_the_packages_of_search_and_commands():
    program = (
        "import sys; sys.modules.update(dict.fromkeys(('duckdb', 'optuna', 'typer')));"
        "import lab.bench; print('longnn.tuning' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(longnn.__file__).parents[1],
    )
    assert done.stdout.split() == ["False"]

"""Orders, stages, ranks and the graph on paper: each against something independent."""

import dataclasses

import numpy as np
import pytest
import torch

from lab.bench import PAPERS, ScaleRecord, Shape, Size, _orders, _tworanks, propagate_seconds
from lab.bench._forecast import duration, forecast_table, stage_seconds
from lab.bench._record import Code, Machine, Spread
from lab.bench._scalegraph import write_random
from lab.bench._scalerecord import Stage
from lab.bench._stages import STAGES, StageBench, growth
from lab.bench._timing import Budget

CPU = torch.device("cpu")
SIZE = Size(nodes=80, edges=300, columns=4, degree=2)


def made_up(**changes):
    """A record of 1,000 nodes and 10,000 entries, 8 columns, degree 4."""
    times = {"propagate": 3.0, "products": 2.0, "gather": 2.5}
    machine = Machine(platform="p", cpu="a CPU", cores=2, threads=2, device="cpu")
    stage = Stage(seconds=2.0, read=1000, written=500, moved=4000)
    fields = {
        "created": "now",
        "machine": machine,
        "code": Code(commit="c", dirty=False),
        "size": "1,000 nodes, 5,000 edges, 8 columns, degree 4",
        "entries": 10_000,
        "steps": 4,
        "columns": 8,
        "seconds": {key: Spread(median=t, low=t, high=t) for key, t in times.items()},
        "ratios": {},
        "memory_mib": {},
        "disk_gb_s": 1.0,
        "stages": dict.fromkeys(STAGES, stage),
    }
    return ScaleRecord(**{**fields, **changes})


@pytest.mark.parametrize("kind", ["communities and hubs", "a ring of near neighbours"])
def test_an_order_renumbers_and_changes_no_sum(kind):
    matrix = _orders.graphs_of(SIZE)[kind]()
    assert (matrix != matrix.T).nnz == 0
    matrix.data[:] = 1  # a repeated edge counts once in a product
    x = torch.randn(80, 3, generator=torch.Generator().manual_seed(0))
    expected = matrix @ x.numpy()
    for name, find in _orders.ORDERS.items():
        order = find(matrix)
        assert sorted(order.tolist()) == list(range(80)), name
        moved = matrix[order][:, order].sorted_indices()
        found = _orders.product(moved, x[torch.from_numpy(order.astype(np.int64))])().numpy()
        np.testing.assert_allclose(found, expected[order], atol=1e-5)


def test_breadth_first_names_nodes_that_it_does_not_reach():
    matrix = _orders._undirected(np.array([0, 1, 4]), np.array([1, 2, 5]), 7)
    assert _orders.breadth_first(matrix).tolist() == [1, 0, 2, 3, 4, 5, 6]


def test_orders_are_timed():
    matrix = _orders.graphs_of(SIZE)["communities and hubs"]()
    found = _orders.measure_orders(matrix, 4, Budget(1, 0.0))
    assert list(found) == list(_orders.ORDERS)
    assert all(one.product_s > 0 and one.find_s > 0 for one in found.values())


def test_stages_count_the_bytes_of_their_files(tmp_path, monkeypatch):
    monkeypatch.setattr("lab.bench._stages.REPEATS", 1)
    bench = StageBench(tmp_path / "stages", CPU, 1)
    found = bench.measure(SIZE)
    assert list(found) == list(STAGES)
    graph = tmp_path / "stages" / "graph"
    numbers = 80 * 3 * 4  # rows, terms, columns
    (basis,) = graph.glob("basis-*")
    blocks = sum(path.stat().st_size for path in basis.glob("block-*.npy"))
    assert 2 * numbers <= blocks <= found["propagate"].written
    entries = len(np.load(graph / "neighbours.npy"))
    gathered = 4 * 4 * 2 * (entries + 2 * 80)  # bytes, columns, degree
    assert found["propagate"].moved == gathered + found["propagate"].written
    assert found["predict"].read == 2 * numbers
    assert found["train"].read == pytest.approx(0.8 * 2 * numbers, rel=0.05)
    assert found["predict"].written == (tmp_path / "stages" / "predicted.parquet").stat().st_size
    deeper = bench.measure(dataclasses.replace(SIZE, degree=3))
    assert deeper["ingest"] is found["ingest"]  # the same graph serves
    assert deeper["predict"].read == 2 * numbers // 3 * 4


def test_growth_is_fitted():
    sizes = [dataclasses.replace(SIZE, columns=2**k) for k in range(4)]
    stage = lambda s: Stage(seconds=s, read=1, written=1, moved=1)  # noqa: E731
    found = {size: dict.fromkeys(STAGES, stage(3.0 * size.columns**1.5)) for size in sizes}
    sweeps = growth("columns", sizes, found)
    assert [sweep.what for sweep in sweeps] == list(STAGES)
    assert all(sweep.exponent == pytest.approx(1.5) for sweep in sweeps)
    assert sweeps[0].fixed == "80 nodes, 300 edges, degree 2"


@pytest.mark.slow
def test_ranks_are_timed_together(tmp_path):
    write_random(tmp_path / "graph", SIZE, CPU)
    found = _tworanks.measure_ranks(tmp_path / "graph", 2, 1)
    assert found.one.median > 0
    assert found.ratio.median == pytest.approx(found.one.median / found.two.median)
    assert not list((tmp_path / "graph").glob("tmp*"))


@pytest.mark.slow
def test_a_rank_that_fails_is_an_error(tmp_path):
    with pytest.raises(RuntimeError, match=r"Expected 1 rank\(s\) to succeed"):
        _tworanks.seconds_of(1, tmp_path, 2)


class TestPaper:
    same = Shape("the same", nodes=1000, edges=5000, features=8, degree=4, labelled=100)

    def test_what_was_measured_is_forecast(self):
        assert propagate_seconds(self.same, made_up()) == pytest.approx(3.0)

    def test_products_and_bytes_grow_apart(self):
        record = made_up()
        denser = dataclasses.replace(self.same, edges=10_000)
        assert propagate_seconds(denser, record) == pytest.approx(2 * 2.0 + 1.0)
        wider = dataclasses.replace(self.same, features=24)
        assert propagate_seconds(wider, record) == pytest.approx(3 * 3.0)

    def test_without_products_a_gather_stands_for_them(self):
        record = made_up()
        seconds = {key: record.seconds[key] for key in ("propagate", "gather")}
        record = dataclasses.replace(record, seconds=seconds)
        denser = dataclasses.replace(self.same, edges=10_000)
        assert propagate_seconds(denser, record) == pytest.approx(2 * 2.5 + 0.5)

    def test_other_stages_grow_with_their_bytes(self):
        stage = Stage(seconds=2.0, read=self.same.terms_bytes(100), written=1, moved=1)
        assert stage_seconds(self.same, "train", stage) == pytest.approx(2.0)
        assert stage_seconds(self.same, "predict", stage) == pytest.approx(20.0)
        ingest = dataclasses.replace(stage, written=self.same.prepared_bytes // 2)
        assert stage_seconds(self.same, "ingest", ingest) == pytest.approx(4.0, rel=1e-3)

    def test_bytes_of_papers(self):
        assert PAPERS.graph_bytes == 4 * 2 * 1_615_685_872 + 8 * 111_059_956
        assert PAPERS.terms_bytes(1) == 128 * 11 * 2
        assert 28e9 < PAPERS.memory(16) < 30e9

    def test_a_table_without_a_gpu(self):
        rows = forecast_table(self.same, made_up()).rows
        (row,) = [row for row in rows if row[0] == "propagate"]
        assert row == ["propagate", "3 s", "-", "1 s"]

    def test_a_block_that_was_run_checks_it(self):
        seconds = {"propagate": Spread(median=13.0, low=13.0, high=13.0)}
        size = "2,000 nodes, 10,000 edges, 8 columns, degree 4"
        block = made_up(size=size, entries=20_000, seconds=seconds)
        row = forecast_table(self.same, made_up(), None, block).rows[-1]
        assert row == [f"check, one block: {size}", "13 s measured, 6 s on paper", "-", "-"]

    def test_durations(self):
        assert [duration(s) for s in (119, 121, 7300)] == ["119 s", "2 min", "2.0 h"]

"""The benchmark of depth, on a small grid; no test here looks at what a clock said."""

import dataclasses
import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.signal import convolve2d

from lab.bench import DepthRecord, depth_lines, run_depth, write_depth
from lab.bench import _suite as suite
from lab.bench._contenders import plain_epoch
from lab.bench._deepcontenders import (
    DEEP_DESCRIPTIONS,
    DEEP_LABELS,
    RIVALS,
    Depth,
    PlainGCN,
    _rounded,
    make_deep_contender,
    sparse_adjacency,
)
from lab.bench._depth import QUICK_WORK, WORK, _time
from lab.bench._grid import HIDDEN, MINES, MOST, minefield
from lab.bench._suite import Budgets
from lab.bench._timing import Budget
from lab.tests.commands import fail, succeed, succeed_json
from longnn import data
from longnn.data import make_split
from longnn.nn import DeepGCN, DeepLONGNN

CPU = torch.device("cpu")
TINY = Budgets(Budget(2, 0.001), Budget(1, 0.001))
SMALL = Depth(blocks=3, hidden=8, lr=0.01)


@pytest.fixture(scope="module")
def grid():
    return minefield(9)


@pytest.fixture(scope="module")
def record():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(suite.BUDGETS, "quick", TINY)
        told = []
        found = run_depth(quick=True, threads=1, commit="abc", on_progress=told.append)
    assert told[0] == "grid: building lon-deep, float32"
    assert told[-1] == "grid: round 2 of 2"
    return found


# The grid


def test_cells_are_linked_to_those_around_them(grid):
    place = torch.stack([torch.arange(81) // 9, torch.arange(81) % 9], 1).double()
    near = torch.cdist(place, place, p=torch.inf) == 1  # (cells, cells)
    assert torch.equal(sparse_adjacency(grid).to_dense().bool(), near)


def test_features_count_the_mines_around(grid):
    mines = grid.data.y.view(9, 9).numpy()
    around = convolve2d(mines, np.ones((3, 3)), mode="same") - mines
    shown = grid.data.x[:, 0] == 0
    told = grid.data.x[:, 1:].argmax(1)
    assert torch.equal(grid.data.x.sum(1), torch.ones(81))
    assert torch.equal(told[shown], torch.from_numpy(around.clip(max=MOST)).flatten().long()[shown])
    assert int(mines.sum()) == round(MINES * 81)
    assert int((~shown).sum()) == round(HIDDEN * 81)
    assert torch.equal(grid.data.x, minefield(9).data.x)
    assert not torch.equal(grid.data.x, minefield(9, seed=1).data.x)


def test_the_grid_is_like_the_named_dataset(data_dir):
    named, made = data.load("minesweeper", data_dir=data_dir), minefield()
    size = {"size": (10000, 10000)}
    ours, theirs = (
        torch.sparse_coo_tensor(d.data.edge_index, torch.ones(d.data.edge_index.shape[1]), **size)
        for d in (made, named)
    )
    assert (ours - theirs).coalesce().values().abs().max() == 0
    assert made.data.x.shape == named.data.x.shape
    assert torch.equal(made.data.y.bincount(), named.data.y.bincount())
    gap = made.data.x.mean(0) - named.data.x.to_dense().mean(0)
    assert gap.abs().max() < 0.02  # the same kinds of features, other mines


# The contenders


def test_the_work_is_that_of_the_issue():
    config = WORK.config(5)
    assert (config.model, config.hidden_channels, config.seed) == ("lon-deep", 128, 5)
    assert {"blocks": 8, "degree": 3, "dropout": 0.2}.items() <= config.options.items()
    assert set(config.settings.rates("lr").values()) == {WORK.lr}
    rounded = dataclasses.replace(WORK, precision="tf32", model="gcn-deep").config()
    assert (rounded.model, rounded.precision, rounded.options["blocks"]) == ("gcn-deep", "tf32", 8)
    assert set(DEEP_LABELS) == set(DEEP_DESCRIPTIONS)
    assert set(RIVALS) < set(DEEP_LABELS)


def dense_gcn(model, x, edges):
    """The formulas written out with dense matrices: h + P relu(n(h)) W + b."""
    adjacency = torch.eye(len(x), dtype=x.dtype)
    adjacency[edges[0], edges[1]] = 1
    root = adjacency.sum(1).rsqrt()
    operator = root[:, None] * adjacency * root

    def norm(h, own):
        centred = h - h.mean(1, keepdim=True)
        scaled = centred / (h.var(1, unbiased=False, keepdim=True) + own.eps).sqrt()
        return (scaled * own.weight + own.bias).relu()

    h = x @ model.enter.weight.T + model.enter.bias
    for layer in model.layers:
        h = h + operator @ norm(h, layer.norm) @ layer.conv.lin.weight.T + layer.conv.bias
    return norm(h, model.norm) @ model.leave.weight.T + model.leave.bias


@pytest.mark.parametrize("key", RIVALS)
def test_the_rival_is_a_gcn_with_norms_and_residuals(grid, key):
    torch.manual_seed(3)
    model = PlainGCN(7, 2, SMALL).double().eval()
    for p in model.parameters():  # norms and biases start as one and zero, which hides mistakes
        torch.nn.init.normal_(p, std=0.4)
    x = grid.data.x.double()
    with torch.sparse.check_sparse_tensor_invariants(enable=False), torch.no_grad():
        adjacency = sparse_adjacency(grid).double()
        edges = adjacency if key == "pyg_sparse" else grid.data.edge_index
        found = [model(x, edges) for _ in range(2)]  # the second from what is cached
        expected = dense_gcn(model, x, grid.data.edge_index)
    assert expected.shape == (81, 2)
    for scores in found:
        torch.testing.assert_close(scores, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("key", RIVALS)
def test_the_rival_learns(small, key):
    """On the graph on which every rival of the other benchmark learns, by the same mark."""
    torch.manual_seed(0)
    model = PlainGCN(small.num_features, 2, SMALL)
    assert len(model.layers) == SMALL.blocks
    train, y = make_split(small, "published", 0).train, small.data.y
    adjacency = sparse_adjacency(small) if key == "pyg_sparse" else None
    edges = small.data.edge_index if adjacency is None else adjacency

    @torch.no_grad()
    def loss():
        return float(F.cross_entropy(model.eval()(small.data.x, edges)[train], y[train]))

    with torch.sparse.check_sparse_tensor_invariants(enable=False):
        before = loss()
        epoch = plain_epoch(model, small, SMALL, adjacency=adjacency)
        accuracy = max(float(epoch()) for _ in range(60))
    assert loss() < 0.5 * before
    assert accuracy > 0.75


def test_contenders_are_the_models_they_are_called(grid):
    made = {
        key: make_deep_contender(key, grid, SMALL, CPU, population=3)
        for key in ("deep", "deep_population", "gcn_deep")
    }
    assert [contender.models for contender in made.values()] == [1, 3, 1]
    populations = [contender.epoch.__self__ for contender in made.values()]
    assert [p.count for p in populations] == [1, 3, 1]
    assert [p.epoch for p in populations] == [1, 1, 1]
    models = [p.stack.modules[True].model for p in populations]
    assert [type(model) for model in models] == [DeepLONGNN, DeepLONGNN, DeepGCN]
    assert [len(model.blocks) for model in models] == [3, 3, 3]


def test_products_are_rounded_for_one_epoch_only():
    before = torch.get_float32_matmul_precision()
    assert _rounded(torch.get_float32_matmul_precision)() == "high"
    assert torch.get_float32_matmul_precision() == before


# The record


def test_every_contender_is_timed(record):
    assert [one.contender for one in record.times] == list(DEEP_LABELS)
    assert [one.models for one in record.times] == [1, 2, 1, 1, 1]
    assert {one.precision for one in record.times} == {"float32"}
    assert {one.rounds for one in record.times} == {2}
    assert all(one.ms.median > 0 and one.ratio.median > 0 for one in record.times)
    assert len({one.rival for one in record.times} & set(RIVALS)) == 1
    assert (record.machine.threads, record.code.commit) == (1, "abc")
    assert record.settings.blocks == QUICK_WORK.blocks
    assert record.graphs["grid"].nodes == 144


def test_a_ratio_is_to_the_faster_rival_of_the_same_precision():
    each = {
        ("deep", "float32"): [0.006, 0.008],
        ("pyg_sparse", "float32"): [0.004, 0.006],
        ("pyg_edges", "float32"): [0.003, 0.004],
        ("pyg_sparse", "tf32"): [0.001, 0.001],
        ("pyg_edges", "tf32"): [0.002, 0.002],
        ("deep", "tf32"): [0.004, 0.004],
    }
    found = _time("grid", ("deep", "float32"), each, 1)
    assert (found.rival, found.ms.median, found.ratio.median) == ("pyg_edges", 7.0, 2.0)
    found = _time("grid", ("deep", "tf32"), each, 1)
    assert (found.rival, found.ratio.median) == ("pyg_sparse", 4.0)
    assert _time("grid", ("pyg_edges", "tf32"), each, 1).ratio.median == 2.0


def test_a_slow_contender_is_compared_in_the_rounds_it_has():
    each = {
        ("deep", "float32"): [0.003],
        ("pyg_sparse", "float32"): [0.003, 0.001, 0.001],
        ("pyg_edges", "float32"): [0.004, 0.004, 0.004],
    }
    found = _time("grid", ("deep", "float32"), each, 1)
    assert (found.rounds, found.rival, found.ratio.median) == (1, "pyg_sparse", 1.0)


def test_the_record_is_written_and_read(record, tmp_path):
    file, page = write_depth(record, tmp_path, name="mine")
    assert file == tmp_path / "depth" / "mine.json"
    assert DepthRecord.from_dict(json.loads(file.read_text())) == record
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Depth on ")
    assert "commit: abc" in text
    assert "these numbers mean little" in text
    rows = [line.split("|")[1].strip() for line in text.splitlines() if "| grid |" in line]
    assert rows == list(DEEP_LABELS.values())
    assert len(depth_lines(record)) == 4 + 1 + len(DEEP_LABELS)


def test_the_command_measures_and_writes(tmp_path, monkeypatch):
    monkeypatch.setitem(suite.BUDGETS, "quick", TINY)
    options = ("--device", "cpu", "--threads", 1, "--quick", "--part", "depth")
    given = succeed_json("bench", *options, "--population", 3, "--output", tmp_path)
    assert DepthRecord.from_dict(given).times[1].models == 3
    assert json.loads((tmp_path / "depth" / "depth-cpu.json").read_text()) == given
    told = succeed("bench", *options, "--datasets", "csbm")
    assert "csbm: 800 nodes" in told
    assert [line.split("  ")[0] for line in told.splitlines()[-5:]] == list(DEEP_LABELS.values())


def test_a_population_has_members():
    error = fail("bench", "--part", "depth", "--device", "cpu", "--quick", "--population", 0)
    assert "Expected `population` >= 1 (got 0)" in error


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_is_measured_in_both_precisions():
    found = run_depth(quick=True, device="cuda")
    assert [(one.contender, one.precision) for one in found.times] == [
        (key, precision) for precision in ("float32", "tf32") for key in DEEP_LABELS
    ]

"""Contenders do the work they are timed for."""

import dataclasses

import numpy as np
import pytest
import torch
from scipy.signal import convolve2d

from lab.bench import Workload, make_contender
from lab.bench._contenders import (
    RIVALS,
    PlainGCN,
    make_population,
    peak_memory,
    plain_epoch,
    rounded,
    sparse_adjacency,
)
from lab.bench._graphs import HIDDEN, MINES, MOST, minefield
from longnn import data
from longnn.data._synthetic import csbm
from longnn.nn import DeepGCN, DeepLONGNN

CPU = torch.device("cpu")
FAST = Workload(hidden=16, degree=4, lr=0.02, blocks=3)
STACKS = ("pyg_sparse", "pyg_edges")


@pytest.fixture(autouse=True)
def unchecked():
    """PyG makes matrices that torch's checks of sparse tensors refuse."""
    with torch.sparse.check_sparse_tensor_invariants(enable=False):
        yield


@pytest.fixture(scope="module")
def grid():
    return minefield(9)


@pytest.mark.parametrize("key", RIVALS)
def test_a_rival_learns(small, key):
    work = dataclasses.replace(FAST, hidden=8, lr=0.01) if key in STACKS else FAST
    epoch = make_contender(key, small, work, CPU, population=2).epoch
    assert max(float(epoch()) for _ in range(60)) > 0.75


def test_a_population_learns(small):
    population = make_population(small, FAST, CPU, 3)
    for _ in range(80):
        population.step()
    assert population.rows["val_score"].max(0).values.min() > 0.75
    assert torch.equal(population.stream[:, 0], torch.arange(3))  # seeds differ
    rows = population.objective.train.rows
    assert not torch.equal(rows[0], rows[1])  # so do splits


@pytest.mark.parametrize("key", [key for key in RIVALS if key not in STACKS])
def test_dropout_is_off_in_evaluation(small, key):
    model = RIVALS[key](small.num_features, 16, small.num_classes, FAST)
    x, edges = small.data.x, small.data.edge_index
    assert not torch.equal(model(x, edges), model(x, edges))
    plain_epoch(model, small, FAST)()
    assert not model.training
    assert torch.equal(model(x, edges), model(x, edges))


def test_deep_contenders_are_the_models_they_are_called(grid):
    keys = ("deep", "deep_population", "gcn_deep")
    contenders = [make_contender(key, grid, FAST, CPU, population=3) for key in keys]
    assert [contender.models for contender in contenders] == [1, 3, 1]
    populations = [contender.epoch.__self__ for contender in contenders]
    assert [p.count for p in populations] == [1, 3, 1]
    models = [p.stack.modules[True].model for p in populations]
    assert [type(model) for model in models] == [DeepLONGNN, DeepLONGNN, DeepGCN]
    assert [len(model.blocks) for model in models] == [3, 3, 3]


def test_products_are_rounded_for_one_epoch_only(grid):
    before = torch.get_float32_matmul_precision()
    assert rounded(torch.get_float32_matmul_precision)() == "high"
    assert torch.get_float32_matmul_precision() == before
    tf32 = dataclasses.replace(FAST, precision="tf32")
    names = [
        make_contender("pyg_edges", grid, work, CPU, population=1).epoch.__qualname__
        for work in (FAST, tf32)
    ]
    assert [name.split(".")[0] for name in names] == ["plain_epoch", "rounded"]


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


@pytest.mark.parametrize("key", STACKS)
def test_the_rival_of_depth_is_a_gcn_with_norms_and_residuals(grid, key):
    torch.manual_seed(3)
    model = PlainGCN(7, 8, 2, FAST).double().eval()
    assert len(model.layers) == FAST.blocks
    assert all(layer.dropout == FAST.dropout for layer in model.layers)
    for p in model.parameters():  # norms and biases start as one and zero, which hides mistakes
        torch.nn.init.normal_(p, std=0.4)
    x = grid.data.x.double()
    with torch.no_grad():
        adjacency = sparse_adjacency(grid).double()
        edges = adjacency if key == "pyg_sparse" else grid.data.edge_index
        scores = [model(x, edges) for _ in range(2)]  # the second from what is cached
        expected = dense_gcn(model, x, grid.data.edge_index)
    assert expected.shape == (81, 2)
    for score in scores:
        torch.testing.assert_close(score, expected, rtol=1e-10, atol=1e-10)


# The graphs


def test_features_count_the_mines_around(grid):
    mines = grid.data.y.view(9, 9).numpy()
    around = convolve2d(mines, np.ones((3, 3)), mode="same") - mines
    shown = grid.data.x[:, 0] == 0
    told = grid.data.x[:, 1:].argmax(1)
    assert torch.equal(grid.data.x.sum(1), torch.ones(81))
    assert torch.equal(told[shown], torch.from_numpy(around.clip(max=MOST)).flatten().long()[shown])
    assert int(mines.sum()) == round(MINES * 81)
    assert int((~shown).sum()) == round(HIDDEN * 81)
    assert not torch.equal(grid.data.x, minefield(9, seed=1).data.x)


def test_the_grid_is_like_the_named_dataset(data_dir):
    named, ours = data.load("minesweeper", data_dir=data_dir), minefield()
    adjacencies = [sparse_adjacency(dataset).to_sparse_coo() for dataset in (ours, named)]
    assert (adjacencies[0] - adjacencies[1]).coalesce().values().abs().max() == 0
    assert ours.data.x.shape == named.data.x.shape
    assert torch.equal(ours.data.y.bincount(), named.data.y.bincount())
    gap = ours.data.x.mean(0) - named.data.x.to_dense().mean(0)
    assert gap.abs().max() < 0.02  # the same kinds of features, other mines


@pytest.mark.slow
def test_memory_grows_with_the_data():
    # Dropout on dense features makes a copy of them; APPNP's signal is as small as the classes.
    wide = csbm(num_nodes=4000, num_features=2000)
    mib = wide.data.x.nbytes / 2**20
    workload = dataclasses.replace(FAST, degree=2)
    peak = peak_memory(wide, ["single", "appnp"], workload, CPU, population=2)
    assert 1 * mib < peak["appnp"] < 8 * mib
    assert 0 < peak["single"] < 8 * mib

"""Contenders do the work they are timed for."""

import dataclasses

import pytest
import torch

from lab import bench
from lab.bench._contenders import (
    DESCRIPTIONS,
    LABELS,
    RIVALS,
    Workload,
    check_keys,
    make_contender,
    make_population,
    plain_epoch,
)
from lab.bench._memory import peak_memory
from longnn.data import csbm

CPU = torch.device("cpu")
FAST = Workload(hidden=16, degree=4, lr=0.02)


def test_every_contender_is_described():
    assert set(LABELS) == set(DESCRIPTIONS) == {"single", "population", *RIVALS}


@pytest.mark.parametrize("key", RIVALS)
def test_a_rival_learns(small, key):
    epoch = make_contender(key, small, FAST, CPU, population=2).epoch
    accuracy = max(float(epoch()) for _ in range(60))
    assert accuracy > 0.75


def test_a_population_learns(small):
    population = make_population(small, FAST, CPU, 3, epochs=80)
    for _ in range(80):
        population.step()
    assert population.rows["val_score"].max(0).values.min() > 0.75
    assert torch.equal(population.stream[:, 0], torch.arange(3))  # seeds differ
    rows = population.objective.train.rows
    assert not torch.equal(rows[0], rows[1])  # so do splits


def test_the_work_is_that_of_the_workload():
    config = Workload().config(3)
    assert (config.hidden_channels, config.seed) == (64, 3)
    options = {"degree": 10, "input_dropout": 0.5, "dropout": 0.5}
    assert options.items() <= config.options.items()
    assert (config.options["placement"], config.options["weight"]) == ("output", "paper")
    assert set(config.settings.rates("lr").values()) == {Workload().lr}
    assert set(config.settings.rates("wd").values()) == {Workload().weight_decay}


@pytest.mark.parametrize("key", RIVALS)
def test_dropout_is_off_in_evaluation(small, key):
    sizes = (small.num_features, 16, small.num_classes)
    model = RIVALS[key](*sizes, FAST)
    x, edges = small.data.x, small.data.edge_index
    assert not torch.equal(model(x, edges), model(x, edges))
    plain_epoch(model, small, FAST)()
    assert not model.training
    assert torch.equal(model(x, edges), model(x, edges))


def test_the_textbook_model_is_public():
    model = RIVALS["textbook"](5, 4, 3, FAST)
    assert type(model) is bench.textbook.TextbookLONGNN
    assert (model.degree, model.dropout) == (FAST.degree, FAST.dropout)


def test_an_unknown_contender_is_named():
    with pytest.raises(ValueError, match=r"Expected contenders among single, .* \(got 'gat'\)"):
        check_keys(["gcn", "gat"])


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.slow
def test_memory_grows_with_the_data(two_threads):
    """With a pool of threads: a process that has one cannot be copied."""
    # Dropout on dense features makes a copy of them; APPNP's signal is as small as the classes.
    wide = csbm(num_nodes=4000, num_features=2000)
    mib = wide.data.x.nbytes / 2**20
    workload = dataclasses.replace(FAST, degree=2)
    peak = peak_memory(wide, ["single", "appnp"], workload, CPU, population=2)
    assert 1 * mib < peak["appnp"] < 8 * mib
    assert 0 < peak["single"] < 8 * mib

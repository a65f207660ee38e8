"""Contenders do the work they are timed for."""

import pytest
import torch

from lab.bench import Workload, make_contender
from lab.bench._contenders import RIVALS, make_population, plain_epoch

CPU = torch.device("cpu")
FAST = Workload(hidden=16, degree=4, lr=0.02)


@pytest.mark.parametrize("key", RIVALS)
def test_a_rival_learns(small, key):
    epoch = make_contender(key, small, FAST, CPU, population=2).epoch
    assert max(float(epoch()) for _ in range(60)) > 0.75


def test_a_population_learns(small):
    population = make_population(small, FAST, CPU, 3)
    for _ in range(80):
        population.step()
    assert population.rows["val_score"].max(0).values.min() > 0.75
    assert torch.equal(population.stream[:, 0], torch.arange(3))  # seeds differ
    rows = population.objective.train.rows
    assert not torch.equal(rows[0], rows[1])  # so do splits


@pytest.mark.parametrize("key", RIVALS)
def test_dropout_is_off_in_evaluation(small, key):
    model = RIVALS[key](small.num_features, 16, small.num_classes, FAST)
    x, edges = small.data.x, small.data.edge_index
    assert not torch.equal(model(x, edges), model(x, edges))
    plain_epoch(model, small, FAST)()
    assert not model.training
    assert torch.equal(model(x, edges), model(x, edges))

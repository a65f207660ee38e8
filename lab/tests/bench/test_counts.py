"""The gains in speed, guarded by counts that no machine changes: no test here looks at a clock."""

import dataclasses

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from lab.bench import Workload
from lab.bench._contenders import make_population
from lab.bench._measure import count_calls, operators, sparse_products
from longnn import data, training
from longnn.config import Config
from longnn.data._scaling import Scaling

CPU = torch.device("cpu")
K = Workload().degree

#: Torch operators that an epoch of a population of one calls, and those that each further member
#: adds, at degree 10. A change that needs fewer lowers the numbers here, from `operators(counts)`;
#: more than a fifth above them is a regression.
RECORDED = {"dense": 1128, "sparse": 1153}
PER_MEMBER = {"dense": 14, "sparse": 55}


def filter_products(counts):
    """Products with the operator of the graph inside polynomial filters."""
    prefix = "product in longnn::chebyshev_filter"
    return sum(n for name, n in counts.items() if name.startswith(prefix))


def epoch_counts(dataset, members):
    population = make_population(dataset, Workload(epochs=10), CPU, members)
    population.step()
    # So that the next epoch is the best, and is kept.
    population.standing.best_score.fill_(-torch.inf)
    return count_calls(population.step)


@pytest.fixture(scope="module")
def counts(small):
    """Calls of the second epoch, by kind of features and size of the population."""
    rng = np.random.default_rng(0)
    x = torch.from_numpy((rng.random((small.num_nodes, 50)) < 0.05) * 1.0).float()
    words = dataclasses.replace(small, data=Data(**{**small.data, "x": x}))
    datasets = {"dense": small, "sparse": words}
    return {(k, b): epoch_counts(d, b) for k, d in datasets.items() for b in (1, 5, 10)}


@pytest.mark.parametrize("members", [1, 5])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_filter_costs_three_times_its_degree(counts, kind, members):
    # Training, its backward pass, evaluation: K products each, whatever the population's size.
    assert filter_products(counts[kind, members]) == 3 * K


def test_sparse_features_cost_three_products_a_member(counts):
    # In training each member drops other entries, and their wide rows side by side would not fit
    # the cache.
    for members in (1, 5):
        assert sparse_products(counts["dense", members]) == 3 * K
        assert sparse_products(counts["sparse", members]) <= 3 * K + 3 * members


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_an_epoch_calls_few_operators(counts, kind):
    assert operators(counts[kind, 1]) <= 1.2 * RECORDED[kind]
    added = operators(counts[kind, 10]) - operators(counts[kind, 5])
    assert added <= 1.2 * 5 * PER_MEMBER[kind]


@pytest.mark.parametrize("model", ["bern", "cheb2", "gpr"])
def test_every_polynomial_model_costs_three_times_its_degree(small, model):
    # BernNet as published needs of the order of K^2 products.
    config = Config.from_dict({"model": model, "degree": 7, "device": "cpu", "epochs": 5})
    problem = training.make_problem(small, config, Scaling("none"))
    split = data.make_split(small, "published", 0)
    population = training.make_population([config], problem, [split])
    assert filter_products(count_calls(population.step)) == 3 * 7

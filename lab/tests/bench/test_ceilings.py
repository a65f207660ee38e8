"""Bytes and operations are counted right, and shares follow from them."""

import pytest
import torch

from lab.bench import Workload
from lab.bench._ceilings import count_work, features_call, say_bound, weigh, work_of
from lab.bench._contenders import make_population, make_problem
from lab.bench._growth import random_dataset
from lab.bench._measure import count_calls
from lab.tests.bench.test_counts import filter_products

CPU = torch.device("cpu")
SIZE = {
    "nodes": 100,
    "entries": 400,
    "features": 50,
    "feature_entries": None,
    "hidden": 8,
    "classes": 3,
    "degree": 10,
    "members": 2,
    "parameters": 450,
}
CEILINGS = {"memory_gb_s": 1.0, "cache_gb_s": 10.0, "float32_gflop_s": 100.0}


def test_counts_by_hand():
    work = count_work(**SIZE)
    channels = 6
    assert work["filter"]["gather_bytes"] == 30 * 400 * channels * 4
    # Forward 3 + 8 * 4 + 3 rows, twice; backward ten more.
    assert work["filter"]["bytes"] == (38 + 48 + 38) * 100 * channels * 4 + 30 * 400 * 8
    assert work["features"]["flops"] == 3 * 2 * 100 * 50 * 16
    assert work["hidden"]["flops"] == 4 * 2 * 100 * 8 * 3 * 2
    assert work["optimizer"]["bytes"] == 9 * 450 * 2 * 4
    work = count_work(**{**SIZE, "feature_entries": 500})
    assert work["features"]["flops"] == 3 * 2 * 500 * 16
    assert work["features"]["gather_bytes"] == 3 * 500 * 16 * 4


def test_counts_agree_with_what_an_epoch_does(small):
    members = 3
    problem = make_problem(small, Workload(), CPU)
    population = make_population(small, Workload(), CPU, members, problem=problem)
    products = filter_products(count_calls(population.step))
    work = work_of(problem, Workload(), members)
    each = problem.operator.matrix.nnz * small.num_classes * members * 4
    assert work["filter"]["gather_bytes"] == products * each
    parameters = sum(p.numel() for p in population.parameters.values())
    assert work["optimizer"]["bytes"] == 9 * 4 * parameters


@pytest.mark.parametrize(
    ("timed", "epoch", "words"),
    [
        ({"filter": 0.1, "features": 0.1}, 10.0, "neither filter nor feature product"),
        ({"filter": 0.7, "features": 0.1}, 1.0, "filter product takes 70% and is bound by memory"),
        ({"filter": 60.0, "features": 0.1}, 61.0, "bound by latency and overhead"),
    ],
)
def test_the_bound_in_words(timed, epoch, words):
    assert words in say_bound(weigh(count_work(**SIZE), timed, epoch, CEILINGS, 2))


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_the_feature_product_runs_for_both_kinds(small, kind):
    dataset = small if kind == "dense" else random_dataset(200, 50)
    features_call(make_problem(dataset, Workload(), CPU), Workload(hidden=4), 2)()

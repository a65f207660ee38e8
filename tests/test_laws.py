"""What answers must not depend on, and how they move with what they depend on: laws of training
that hold for every task, checked on whole trainings."""

import copy
import dataclasses

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import longnn
from longnn.config import Config
from longnn.data import from_data, make_split
from longnn.data._scaling import Scaling
from longnn.data._synthetic import csbm
from longnn.metrics import bootstrap_interval
from longnn.training import Readout, complete, fit
from longnn.training._fit import make_members, make_problem
from longnn.training._population import Population
from tests.helpers import random_graph

NODES = 160
TASKS = ["two classes", "a rare class", "three classes", "numbers", "several labels"]


def graph(task, *, scale=1.0, offset=0.0):
    """Answers that follow one column, on a random graph."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(NODES, 4, generator=generator)
    noisy = x[:, 0] + 0.7 * torch.randn(NODES, generator=generator)
    y = {
        "two classes": (noisy > 0).long(),
        "a rare class": (noisy > 1.5).long(),
        "three classes": (noisy > -0.5).long() + (noisy > 0.5).long(),
        "numbers": offset + scale * noisy,
        "several labels": torch.stack([noisy > 0, noisy > 1], 1).float(),
    }[task]
    kind = {"numbers": "regression", "several labels": "multilabel"}.get(task, "classification")
    share = torch.rand(NODES, generator=generator)
    masks = {"train_mask": share < 0.5, "test_mask": share > 0.7}
    masks["val_mask"] = ~masks["train_mask"] & ~masks["test_mask"]
    return from_data(Data(x=x, edge_index=random_graph(NODES), y=y, **masks), task=kind)


def train(dataset, preset, **options):
    config = complete({"preset": preset, "epochs": 3, **options}, dataset)
    (fitted,) = fit(dataset, [config], [make_split(dataset, "own", 0)], device="cpu")
    return fitted


def test_filters_see_what_columns_alone_do_not():
    """Where neighbours carry the signal, the model is ahead of baselines without the graph."""
    dataset = csbm(num_nodes=400, num_features=20, phi=-0.9)
    record = longnn.train(dataset, {"preset": "fast", "epochs": 30, "device": "cpu"}).record
    assert record.score().mean > 0.8
    bare = [baseline for baseline in record.baselines if not baseline.uses_graph]
    assert len(bare) > 1
    assert all(baseline.ahead["accuracy"].mean > 0.1 for baseline in bare)


def test_numbers_are_answered_in_their_own_units():
    options = {"precision": "float64"}
    plain = train(graph("numbers"), "fast", **options).predicted
    moved = train(graph("numbers", scale=1000.0, offset=5e4), "fast", **options).predicted
    assert torch.allclose(moved, 5e4 + 1000 * plain, rtol=1e-3)


def test_members_of_a_population_drop_different_units():
    """Two members that differ in the seed of their dropout alone drift apart."""
    dataset = graph("two classes")
    config = Config().replace(epochs=2, dropout=0.5, device="cpu")
    split = make_split(dataset, "own", 0)
    problem = make_problem(dataset, config, Scaling("none"))
    (member,) = make_members([config], problem, [split])
    other = dataclasses.replace(member, model=copy.deepcopy(member.model), seed=member.seed + 1)
    same = dataclasses.replace(member, model=copy.deepcopy(member.model))
    first, second, third = (r.state for r in Population([member, other, same], problem).run())
    apart = {name: (first[name] - second[name]).abs().max() for name in first}
    together = {name: (first[name] - third[name]).abs().max() for name in first}
    assert max(together.values()) < 1e-5 < max(apart.values())


def test_a_shift_is_taken_back_to_what_the_temperature_gives():
    scores = torch.randn(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    readout = Readout("classification", temperature=1.7, shift=(0.5, -1.0, 0.2))
    predicted = readout.predict(scores)
    assert torch.allclose(readout.without_shift(predicted), torch.softmax(scores / 1.7, 1))
    assert torch.allclose(readout.uncalibrated(predicted), torch.softmax(scores, 1))
    labels = Readout("multilabel", temperature=2.5)
    assert torch.allclose(labels.uncalibrated(labels.predict(scores)), torch.sigmoid(scores))


def test_an_interval_of_95_percent_is_as_wide_as_the_normal_one():
    values = np.random.default_rng(0).normal(size=400)
    low, high = bootstrap_interval(values)
    normal = 2 * 1.96 * values.std() / np.sqrt(len(values))  # one of 90 % has 0.84 of it
    assert high - low == pytest.approx(normal, rel=0.08)


@pytest.mark.parametrize(
    ("task", "preset"),
    [*((task, "fast") for task in TASKS), ("a rare class", "default"), ("numbers", "default")],
)
def test_labels_of_test_nodes_change_no_answer(task, preset):
    """Neither weights, nor the epoch, nor votes, temperature, shift, threshold look at them."""
    dataset = graph(task)
    other = graph(task)
    test = make_split(dataset, "own", 0).test.nonzero()[:, 0]
    other.data.y[test] = dataset.data.y[test.roll(len(test) // 2)]  # the same counts of classes
    if task == "numbers":  # of which neither mean nor spread may be used
        other.data.y[test] *= 3
    assert not torch.equal(other.data.y, dataset.data.y)
    one, two = train(dataset, preset), train(other, preset)
    assert torch.equal(one.predicted, two.predicted)
    assert one.readout == two.readout
    assert [m.weight for m in one.members] == [m.weight for m in two.members]


@pytest.mark.parametrize("task", TASKS)
def test_answers_of_test_nodes_do_not_move_intervals(task):
    """Nor predictions: whatever is said of test nodes, the errors that are kept are the same."""
    plain, other = graph(task), graph(task)
    test = other.data.test_mask
    order = torch.randperm(int(test.sum()), generator=torch.Generator().manual_seed(1))
    other.data.y[test] = other.data.y[test][order]
    assert not torch.equal(plain.data.y, other.data.y)
    one, two = (train(dataset, "default").intervals for dataset in (plain, other))
    assert one == two
    assert one.errors[0].count == int(plain.data.val_mask.sum())

"""Goals are arithmetic on a record: tested on made-up ones."""

import dataclasses

import pytest

from lab.bench._goals import DATASETS, GOALS, LARGE, SMALL, check_goals
from lab.bench._record import Spread
from lab.bench._tables import goal_status, goal_value
from lab.tests.bench.conftest import made_up, summary


def checked(record):
    return {goal.name: goal for goal in check_goals(record)}


def change(record, name, kind, key, value):
    """The record with another number on one dataset."""
    result, new = record.datasets[name], Spread(**summary(value))
    if kind == "ms":
        contender = dataclasses.replace(result.contenders[key], ms=new)
        result = dataclasses.replace(result, contenders={**result.contenders, key: contender})
    else:
        result = dataclasses.replace(result, ratios={**result.ratios, key: new})
    return dataclasses.replace(record, datasets={**record.datasets, name: result})


def test_the_ten_datasets_are_divided():
    assert len(DATASETS) == 10
    assert set(SMALL) | set(LARGE) == set(DATASETS)
    assert not set(SMALL) & set(LARGE)
    assert len(SMALL) == 6


def test_only_goals_of_the_device_are_checked():
    assert set(checked(made_up("cpu"))) == {g.name for g in GOALS if g.device == "cpu"}
    assert set(checked(made_up("cuda"))) == {g.name for g in GOALS if g.device == "cuda"}


def test_all_met_on_a_cpu():
    goals = checked(made_up("cpu"))
    assert {goal.status for goal in goals.values()} == {"met"}
    assert goals["textbook-cora"].factor == pytest.approx(20 / 20)
    assert goals["population-10"].factor == pytest.approx(4 / 2.5)


def test_a_mean_is_geometric():
    record = made_up("cpu", ratios={"textbook": 10.0})
    record = change(record, "texas", "ratio", "textbook", 10.0 * 2**10)
    assert checked(record)["textbook-mean"].value == pytest.approx(20.0)


def test_the_worst_dataset_decides():
    record = change(made_up("cpu"), "squirrel", "ratio", "gcn", 0.8)
    goal = checked(record)["gcn"]
    assert (goal.status, goal.dataset) == ("missed", "squirrel")
    assert goal.factor == pytest.approx(0.8)
    assert goal_status(goal) == "missed, by a factor of 1.25"
    assert goal_value(goal) == "0.8x (squirrel)"


def test_times_on_a_gpu_are_upper_limits():
    record = made_up("cuda", ms={"single": 0.4, "population": 0.018})
    assert {goal.status for goal in checked(record).values()} == {"met"}
    record = change(record, "pubmed", "ms", "single", 5.0)
    record = change(record, "actor", "ms", "population", 0.06)
    goals = checked(record)
    assert goals["single"].factor == pytest.approx(0.5)
    assert goals["population-64-small"].dataset == "actor"
    assert goals["population-64-small"].status == "missed"
    assert goals["population-64-large"].status == "met"
    assert goals["single-cora"].status == "met"
    assert goal_value(goals["single"]) == "5 ms (pubmed)"


def test_a_goal_that_is_partly_measured_is_not_met():
    goals = checked(made_up("cpu", datasets=("cora", "texas")))
    assert goals["textbook-cora"].status == "met"
    assert goals["gcn"].status == "partial"
    assert goals["textbook-mean"].status == "partial"
    assert goal_status(goals["gcn"]) == "met until now on 2 of 10, by a factor of 2.50"


def test_one_miss_is_enough_even_where_others_are_not_measured():
    goals = checked(made_up("cpu", datasets=("texas",), ratios={"gcn": 0.5, "textbook": 2.0}))
    assert goals["gcn"].status == "missed"
    assert goals["textbook-mean"].status == "partial"  # the others may make up for it
    assert goals["textbook-cora"].status == "not measured"
    assert goal_status(goals["textbook-cora"]) == "not measured"
    assert goal_value(goals["textbook-cora"]) == "-"


def test_a_population_of_another_size_is_no_answer():
    assert checked(made_up("cpu", population=5))["population-10"].status == "not measured"

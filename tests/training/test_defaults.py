"""Defaults by the data: each rule on a small dataset, and what a user sets comes first."""

import dataclasses

import pytest
import torch
from torch_geometric.data import Data

from longnn.data import from_data, make_split
from longnn.data._synthetic import csbm
from longnn.training import complete, data_defaults, fit

RING = torch.stack([torch.arange(20), (torch.arange(20) + 1) % 20])


def table(x, y):
    return from_data(Data(x=x, edge_index=RING, y=y))


@pytest.fixture
def houses():
    return table(torch.rand(20, 5), torch.rand(20))


def words(columns, share):
    """A table of which the given share of values is not zero."""
    x = torch.zeros(20 * columns)
    x[: int(share * len(x))] = 1.0
    return table(x.reshape(columns, 20).T, torch.arange(20) % 2)


def test_data_that_are_ready_keep_the_defaults(houses):
    assert data_defaults(csbm(num_nodes=20, num_features=5)) == {}
    assert data_defaults(dataclasses.replace(houses, ready=True)) == {}


@pytest.mark.parametrize(("columns", "share"), [(300, 0.5), (150, 0.05)], ids=["dense", "few"])
def test_other_columns_are_a_table(columns, share):
    assert data_defaults(words(columns, share))["placement"] == "hidden"


def test_regression_drops_no_column_and_has_a_filter_per_hidden_unit(houses):
    options = complete({}, houses).options
    assert options["input_dropout"] == options["filter_dropout"] == 0
    assert options["shared"] is False


def test_what_is_set_comes_first(houses):
    config = complete({"dropout": 0.7, "lr_transform": 0.3}, houses)
    assert config.options["dropout"] == 0.7
    assert config.settings.lr_transform == 0.3
    assert config.options["placement"] == "hidden"


def test_other_models_get_the_keys_that_they_have(houses):
    config = complete({"model": "gcn"}, houses)
    assert config.options == {"input_dropout": 0.0, "dropout": data_defaults(houses)["dropout"]}
    assert config.settings.lr_transform == data_defaults(houses)["lr_transform"]


@pytest.mark.parametrize("given", [{"model": "gpr"}, {"model": "mlp"}, {"orthonormal": False}])
def test_no_penalty_on_the_degree_without_an_orthonormal_basis(houses, given):
    assert data_defaults(houses)["degree_penalty"] > 0
    config = complete({**given, "epochs": 1}, houses)
    assert config.settings.degree_penalty == 0
    fit(houses, [config], [make_split(houses, "stratified", 0)])  # no error

"""Features that say nothing, all zero or all alike, are legal: the graph may say enough."""

import dataclasses

import pytest
import torch

from longnn.config import Config
from longnn.data import make_split
from longnn.data._synthetic import csbm
from longnn.registry import NETWORKS
from longnn.training import fit
from tests.helpers import one_per_architecture

ZERO, CONSTANT = torch.zeros(40, 5), torch.ones(40, 5)


def check(features, name, seeds, **keys):
    known = csbm(num_nodes=40, num_features=5)
    data = known.data.clone()
    data.x = features
    dataset = dataclasses.replace(known, data=data)
    keys = {"model": name, "epochs": 2, "input_dropout": 0.5, "device": "cpu", **keys}
    configs = [Config.from_dict({**keys, "hidden_channels": 4, "seed": s}) for s in seeds]
    for fitted in fit(dataset, configs, [make_split(dataset, None, s) for s in seeds]):
        assert fitted.result.epochs == 2
        assert bool(torch.isfinite(fitted.predicted).all())


@pytest.mark.parametrize("name", one_per_architecture(NETWORKS))
def test_every_model_is_trained_on_zeros(name):
    """They are sparse, without a stored value: their dropout mask is empty."""
    check(ZERO, name, [0])


@pytest.mark.parametrize("scale", ["none", "standard", "columns", "row"])
@pytest.mark.parametrize("features", [ZERO, ZERO.to_sparse_csr(), CONSTANT])
def test_every_form_and_scaling(features, scale):
    """Two members at once: their masks are made together."""
    check(features, "mlp", [0, 1], scale=scale)

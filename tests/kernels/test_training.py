"""Training through the kernels gives the numbers of training without them.

Under Triton's interpreter on a CPU, on a graph of a few nodes: so what a GPU runs is tested as a
whole where there is none. ``tests/test_gpu.py`` does the same with compiled kernels.
"""

import pytest
import torch

from longnn import kernels
from longnn.config import Config
from longnn.data import make_split
from longnn.data._synthetic import csbm
from longnn.training._fit import Scaling, make_population, make_problem

pytest.importorskip("triton")


def train(**keys):
    dataset = csbm(num_nodes=12, num_features=4, seed=3)
    base = {"epochs": 2, "hidden_channels": 4, "precision": "float64", "dropout": 0.3}
    configs = [Config.from_dict({**base, "device": "cpu", "seed": seed, **keys}) for seed in (0, 1)]
    problem = make_problem(dataset, configs[0], Scaling("none"))
    splits = [make_split(dataset, "stratified", config.seed) for config in configs]
    return make_population(configs, problem, splits).run()


@pytest.mark.skipif(torch.cuda.is_available(), reason="kernels are compiled where there is a GPU")
@pytest.mark.parametrize(
    "keys",
    [
        {"model": "lon", "normalize": True, "degree": 3},
        {"model": "lon", "coefficients": "pcd", "weight": "paper", "degree": 2},
        pytest.param({"model": "lon-deep", "blocks": 2, "degree": 2}, marks=pytest.mark.slow),
        {"model": "lon-deep", "blocks": 1, "norm": "rms", "degree": 2, "residual": False},
        {"model": "gcn"},
    ],
    ids=lambda keys: "-".join(map(str, keys.values())),
)
def test_training_through_kernels_equals_training_without(keys, monkeypatch):
    plain = train(**keys)
    monkeypatch.setattr(kernels, "usable", lambda tensor: True)
    for mine, theirs in zip(train(**keys), plain, strict=True):
        torch.testing.assert_close(mine.history["train_loss"], theirs.history["train_loss"])
        for name, value in theirs.state.items():
            torch.testing.assert_close(mine.state[name], value, rtol=1e-5, atol=1e-6)

"""The weights of a seed: always the same bits, whatever else draws random numbers."""

import threading

import pytest
import torch

from longnn.config import Config
from longnn.registry import NETWORKS, get_model
from longnn.training import make_model

OPTIONS = {
    "lon": [{"placement": "hidden"}, {"placement": "both"}, {"transform": "residual"}],
    "arma": [{"stacks": 2, "layers": 2}],
}


def config(name, seed=5, **options):
    return Config.from_dict({"model": name, "hidden_channels": 8, "seed": seed, **options})


def weights(model):
    return [p.detach() for p in model.parameters()]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_seed_gives_the_weights_that_torch_gives_by_it(name):
    """Recorded results depend on them: they are those of ``torch.manual_seed``."""
    for options in ({}, *OPTIONS.get(name, [])):
        asked = config(name, **options)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(asked.seed)
            expected = get_model(name, 9, 8, 4, **asked.options)
        made = make_model(asked, 9, 4)
        assert all(map(torch.equal, weights(made), weights(expected)))


def test_threads_with_one_seed_build_equal_models():
    expected = weights(make_model(config("arma"), 40, 4))
    built, begin = [], threading.Barrier(4)

    def build():
        begin.wait()
        for _ in range(50):
            torch.rand(3)  # somebody else uses the global generator
            built.append(weights(make_model(config("arma"), 40, 4)))

    threads = [threading.Thread(target=build) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 200
    different = [b for b in built if not all(map(torch.equal, b, expected))]
    assert not different

"""A stack of filters as a run: trained by command, truncated, in every task, alone and together."""

import pytest
import torch

from longnn import load_run
from longnn.config import Config
from longnn.data import load, make_split
from longnn.training import _fit as workflow
from longnn.training import make_population, make_problem
from tests.commands import TINY, succeed, succeed_json, without_report

SMALL = {"model": "lon-deep", "blocks": 3, "degree": 3, "hidden_channels": 8, "device": "cpu"}
FLAGS = [
    flag
    for key in ("blocks", "degree", "hidden_channels")
    for flag in ("--set", f"{key}={SMALL[key]}")
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("deep") / "run"
    with without_report():
        flags = (*FLAGS, "--set", "epochs=8", "--repeat", 2, "--output", path)
        succeed("train", *TINY, "--model", "lon-deep", "--device", "cpu", *flags)
    return path


def test_evaluate_shows_scores_against_products(folder):
    run = load_run(folder)
    first, *_ = run.truncation()
    assert (first[0].share, first[0].degrees, first[0].products) == (1.0, (3, 3, 3), 9)
    (scores, _), _ = run.evaluate()
    assert first[0].test == pytest.approx(scores["test"])
    products = [point.products for point in first]
    assert products == sorted(products, reverse=True)
    assert all(point.products == sum(point.degrees) for point in first)
    printed = succeed("evaluate", folder, "--truncate")
    assert "accuracy with truncated filters, nothing trained again" in printed
    assert "3 3 3" in printed
    plain = succeed_json("evaluate", folder, "--truncate")
    assert [p["products"] for p in plain["repeats"][0]] == products


OTHER_FORMS = [
    {"jump": "cat", "norm": "rms", "basis": "bernstein"},
    {"jump": "max", "basis": "favard", "shared": True},
    {"residual": False, "norm": "none", "basis": "chebyshev", "learn_basis": False},
    {"output_degree": 2, "norm": "rms"},
]


@pytest.mark.parametrize("options", OTHER_FORMS, ids=str)
def test_members_together_are_what_they_are_alone(options):
    """With penalties on the norms of all filters, and a penalty that only one of them has."""
    dataset = load("csbm", num_nodes=40, num_features=6)
    base = Config.from_dict({**SMALL, **options, "epochs": 5, "precision": "float64"})
    configs = [base, base.replace(seed=1, penalty=0.3, dropout=0.4, lr_transform=0.01)]
    problem = make_problem(dataset, base, workflow.Scaling("none"))
    splits = [make_split(dataset, None, c.seed) for c in configs]
    together = make_population(configs, problem, splits).run()
    for config, split, result in zip(configs, splits, together, strict=True):
        (alone,) = make_population([config], problem, [split]).run()
        for name, value in alone.state.items():
            torch.testing.assert_close(result.state[name], value, rtol=1e-9, atol=1e-11)

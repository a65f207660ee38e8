"""Learning filters from images: targets, floor, loss and the whole study, small."""

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from lab.studies.filters._images import image_grid, read_image_grid
from lab.studies.filters._models import (
    MODELS,
    NETWORKS,
    best_starts,
    conditions,
    lon,
    train,
    train_networks,
)
from lab.studies.filters._task import (
    FILTERS,
    eigenblocks,
    exact_floor,
    grid_operator,
    load_images,
    make_problems,
    make_targets,
)
from longnn.filters import PolynomialFilter
from longnn.polynomials import Jacobi

SHARED = os.environ.get("LONGNN_DATA") or Path(__file__).parents[4] / "shared" / "data"
DATA = Path(SHARED) / "images"


@dataclasses.dataclass
class Small:
    grid: object
    blocks: list
    targets: torch.Tensor
    problems: object


@pytest.fixture(scope="module")
def small():
    grid = image_grid(size=21, images=3)  # odd: the middle row is its own mirror image
    blocks = eigenblocks(grid)
    targets = make_targets(grid, blocks)
    return Small(grid, blocks, targets, make_problems(grid, targets, 10))


def test_targets_are_those_of_the_whole_eigendecomposition(small):
    values, U = np.linalg.eigh(grid_operator(small.grid).to_dense().numpy())
    for target, response in zip(small.targets.numpy(), FILTERS.values(), strict=True):
        whole = U @ (response(1 - values)[:, None] * (U.T @ small.grid.signals.numpy()))
        np.testing.assert_allclose(target, whole, atol=1e-12)


def test_the_closed_form_is_the_floor_to_six_digits(small):
    floor = exact_floor(small.grid, small.blocks, small.targets, 10)
    operator = grid_operator(small.grid)
    for f, target in enumerate(small.targets):
        model = PolynomialFilter("jacobi", 10, small.grid.num_images).double()
        fit = model.fit_least_squares(operator, small.grid.signals, target, small.grid.mask)
        np.testing.assert_allclose(fit.squared_error.numpy(), floor[f], rtol=1e-6)
    ours = small.problems.by_filter(small.problems.rho).numpy()
    np.testing.assert_allclose(ours, floor, rtol=1e-6)


def test_the_quadratic_form_is_the_loss_and_the_gradient_of_the_hot_loop(small):
    model = lon(10, (-0.5, 0.5))
    with torch.no_grad():
        model.filter.coefficients.weight.add_(torch.linspace(-1, 1, 11).double()[:, None])
    x, y = small.grid.signals[:, 1:2], small.targets[2, :, 1:2]
    out = model.filter(grid_operator(small.grid), x)
    plain = (out - y)[small.grid.mask].square().sum()
    problem = small.problems.select(torch.tensor([2 * 3 + 1]))
    quick = problem.losses(model()[None])[0]
    assert quick.item() == pytest.approx(plain.item(), rel=1e-12)
    params = list(model.parameters())
    assert len(params) == 3  # coefficients, a, b
    for one, other in zip(
        torch.autograd.grad(plain, params), torch.autograd.grad(quick, params), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


def test_a_lower_degree_is_the_leading_block(small):
    lower = make_problems(small.grid, small.targets, 6)
    torch.testing.assert_close(small.problems.at_degree(6).rho, lower.rho)


def test_starts_are_the_best_conditioned(small):
    starts = best_starts(small.problems)
    assert all(a < -0.5 for a, _ in starts)  # energy near x = 1
    plain = Jacobi(0.0, 0.0, weight="probability").chebyshev_matrix(10)
    best = torch.stack([Jacobi(*s, weight="probability").chebyshev_matrix(10) for s in starts])
    assert (conditions(best, small.problems) < conditions(plain, small.problems)).all()


@pytest.mark.parametrize("name", MODELS)
def test_models_learn_and_stay_above_the_floor(name, small):
    module = MODELS[name](10, (-0.9, 0.5))
    trained = train([module], small.problems, rates=[0.001, 0.02], steps=25, basis_rate=1e-3)
    assert trained.best.shape == (2, 5, 3)
    assert (trained.curve[-1] < trained.curve[0]).any(0).all()
    assert (trained.losses() >= small.problems.by_filter(small.problems.rho)).all()


def test_training_in_a_batch_is_training_alone_with_adam(small):
    trained = train([lon(10, (-0.9, 0.5))], small.problems, rates=[0.02], steps=15)
    model = lon(10, (-0.9, 0.5))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    problem = small.problems.select(torch.tensor([3]))  # image 0 under the second filter
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        loss = problem.losses(model()[None])[0]
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
    assert trained.best[0, 1, 0].item() == pytest.approx(min(losses), rel=1e-9)


def test_lon_reaches_the_floor(small):
    start = best_starts(small.problems)[0]
    first = small.problems.select(torch.arange(0, 15, 3))  # one image, five filters
    first = dataclasses.replace(first, images=1)
    trained = train([lon(10, start)], first, rates=[0.05], steps=500, basis_rate=2e-4)
    floor = first.by_filter(first.rho)
    torch.testing.assert_close(trained.losses(), floor, rtol=1e-3, atol=0)
    assert (trained.steps_to(floor) > 0).all()


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_learn(name, small):
    trained = train_networks(
        NETWORKS[name],
        small.grid,
        small.targets,
        rates=[0.01],
        steps=5,
        device=torch.device("cpu"),
    )
    assert (trained.curve[-1] < trained.curve[0]).all()


def test_photographs_where_the_file_is_absent(tmp_path):
    assert load_images(None, quick=True).name == "photographs"
    assert load_images(str(tmp_path)).num_images == 48


@pytest.mark.slow
def test_targets_and_floors_of_the_papers_images():
    if not (DATA / "targets.npz").is_file():
        pytest.skip("no targets.npz of the paper's images; set LONGNN_DATA to a folder of them")
    grid = read_image_grid(DATA / "2Dgrid.mat")
    given = np.load(DATA / "targets.npz")
    blocks = eigenblocks(grid)
    targets = make_targets(grid, blocks)
    for target, name in zip(targets.numpy(), FILTERS, strict=True):
        np.testing.assert_allclose(target, given[f"y_{name}"], atol=1e-6)
    floor = exact_floor(grid, blocks, targets, 10).mean(1)
    known = [0.00024958, 0.00024958, 0.01561524, 0.01561524, 0.2867122]
    np.testing.assert_allclose(floor, known, rtol=2e-5)

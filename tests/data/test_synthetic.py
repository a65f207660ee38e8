"""Generated and bundled graphs: their laws, their determinism, their limits."""

import math

import numpy as np
import pytest
import scipy.io
import torch
from sklearn.datasets import load_digits
from torch_geometric.utils import grid as pyg_grid

from longnn.data import DataError, load
from longnn.data._card import homophily
from longnn.data._catalog import list_bundled
from longnn.data._errors import MissingFileError
from longnn.data._images import grid_edges, image_grid, read_image_grid
from longnn.data._synthetic import csbm, digits


class TestCsbm:
    def test_same_seed_same_graph(self):
        assert csbm(seed=1).fingerprint() == csbm(seed=1).fingerprint()
        assert csbm(seed=1).fingerprint() != csbm(seed=2).fingerprint()

    @pytest.mark.parametrize("phi", [-1.0, -0.5, 0.0, 0.5, 1.0])
    def test_edges_follow_the_model(self, phi):
        """Mean degree d, and edge homophily (1 + lambda / sqrt d) / 2, within 5 sigma."""
        n, d, eps = 4000, 5.0, 3.25
        graph = csbm(phi=phi, num_nodes=n, num_features=2, degree=d, eps=eps)
        edges = n * d / 2
        assert abs(graph.num_edges - edges) < 5 * math.sqrt(edges) + d
        lam = math.sqrt(1 + eps) * math.sin(math.pi * phi / 2)
        expected = (1 + lam / math.sqrt(d)) / 2
        found = homophily(graph)[0]
        assert found is not None
        spread = math.sqrt(expected * (1 - expected) / edges)
        assert abs(found - expected) < 5 * spread + 1e-3
        assert int(graph.data.y.sum()) == n // 2

    @pytest.mark.parametrize("phi", [0.0, 0.6, 1.0])
    def test_features_follow_the_model(self, phi):
        """v^T X / n has mean sqrt(mu / n) u, |u|^2 ~ 1; the noise has variance 1 / f."""
        n, f, eps = 2000, 800, 3.25
        graph = csbm(phi=phi, num_nodes=n, num_features=f, eps=eps)
        sign = 2.0 * graph.data.y.double() - 1
        x = graph.data.x.double()
        centre = sign @ x / n
        mu = math.sqrt(n / f * (1 + eps)) * math.cos(math.pi * phi / 2)
        # |centre|^2 = mu / n |u|^2 + |noise|^2, of mean (mu + 1) / n
        assert float(centre @ centre) * n == pytest.approx(mu + 1, rel=0.25)
        noise = x - sign[:, None] * centre
        assert float(noise.var()) == pytest.approx(1 / f, rel=0.02)

    def test_pairs_are_drawn_evenly(self):
        """Over many seeds every pair of a class is hit equally often."""
        hits = np.zeros((8, 8))
        for seed in range(400):
            graph = csbm(phi=0.0, num_nodes=8, num_features=1, degree=3.0, eps=0.0, seed=seed)
            hits[tuple(graph.data.edge_index.numpy())] += 1
        rates = hits[np.triu_indices(8, 1)] / 400
        sigma = math.sqrt(3 / 8 * 5 / 8 / 400)
        assert np.abs(rates - 3 / 8).max() < 4.5 * sigma
        assert np.abs(rates.mean() - 3 / 8) < 4.5 * sigma / math.sqrt(28)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"phi": 1.5}, r"`phi` in \[-1, 1\] \(got 1.5\)"),
            ({"num_nodes": 1}, "num_nodes >= 2 and num_features >= 1 .got 1 and 320"),
            ({"degree": 0.0}, "degree > 0 and eps > -1 .got 0.0 and 3.25"),
            ({"eps": -1.0}, "eps > -1"),
            ({"eps": math.nan}, r"finite degree > 0 and eps > -1 \(got 5.0 and nan\)"),
            ({"degree": math.inf}, "finite degree > 0"),
            (
                {"num_nodes": 10**12},
                r"times degree, <= 100000000 \(got 1000000000000 nodes with 320",
            ),
            ({"num_nodes": 10**400}, "<= 100000000 .got 1000"),
            ({"num_features": 10**9}, r"<= 100000000 \(got 800 nodes with 1000000000 features"),
            ({"num_nodes": 10**7, "num_features": 1, "degree": 1e6}, r"degree 1e\+06\)"),
            ({"seed": -1}, r"`seed` >= 0 \(got -1\)"),
            ({"phi": 1.0, "degree": 2.0}, r"probabilities in \[0, 1\] .*raise `degree`"),
            ({"num_nodes": 4, "degree": 5.0}, r"probabilities in \[0, 1\]"),
        ],
    )
    def test_refuses(self, options, message):
        with pytest.raises(DataError, match=message):
            csbm(**options)


class TestDigits:
    def test_links_are_nearest_neighbours_either_way(self):
        graph = digits(neighbours=3)
        x = load_digits().data / 16
        assert torch.equal(graph.data.x, torch.from_numpy(x).float())
        gram = x @ x.T
        distance = np.diag(gram)[:, None] + np.diag(gram)[None] - 2 * gram
        np.fill_diagonal(distance, np.inf)
        third = np.sort(distance, axis=1)[:, 2]
        row, col = graph.data.edge_index.numpy()
        near = distance[row, col] <= np.maximum(third[row], third[col]) + 1e-9
        assert near.all()
        assert np.bincount(row).min() >= 3

    def test_classes_and_limits(self):
        graph = digits()
        assert graph.classes == tuple("0123456789")
        assert graph.num_nodes == 1797
        with pytest.raises(DataError, match=r"`neighbours` in 1..1796 \(got 0\)"):
            digits(neighbours=0)


class TestImages:
    def test_grid_is_pygs_transposed(self):
        (row, col), _ = pyg_grid(3, 5)
        apart = (row - col).abs()
        straight = (row != col) & ((apart == 1) & (row // 5 == col // 5) | (apart == 5))
        pairs = {tuple(sorted(p)) for p in torch.stack([row, col])[:, straight].t().tolist()}
        # PyG numbers row by row, we column by column
        ours = {(i % 5 * 3 + i // 5, j % 5 * 3 + j // 5) for i, j in pairs}
        both = ours | {(j, i) for i, j in ours}
        assert sorted(both) == [tuple(p) for p in grid_edges(3, 5).t().tolist()]

    def test_patches_tile_the_photographs(self):
        grid = image_grid()
        assert (grid.num_images, grid.num_nodes) == (48, 10_000)
        assert float(grid.signals.min()) >= 0
        assert float(grid.signals.max()) <= 1
        assert int(grid.mask.sum()) == 96 * 96
        few = image_grid(images=5)
        assert torch.equal(few.signals, grid.signals[:, :5])  # the first few are the same
        other = image_grid(seed=1)
        assert not torch.equal(other.signals, grid.signals)
        assert torch.equal(other.signals.sum(0).sort()[0], grid.signals.sum(0).sort()[0])

    def test_neighbours_on_the_grid_are_neighbours_in_the_picture(self):
        grid = image_grid(size=50, images=1)
        picture = grid.image(0)
        node = torch.arange(2500)
        assert torch.equal(picture[node % 50, node // 50], grid.signals[:, 0])
        down = (picture[1:] - picture[:-1]).square().sum()
        right = (picture[:, 1:] - picture[:, :-1]).square().sum()
        row, col = grid.edge_index
        energy = (grid.signals[row, 0] - grid.signals[col, 0]).square().sum() / 2
        torch.testing.assert_close(energy, down + right)
        assert repr(grid) == "ImageGrid('photographs', 1 images, 50x50)"

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"size": 4}, r"`size` in 5..427 \(got 4\)"),
            ({"images": 49}, r"`images` in 1..48 for patches of size 100 \(got 49\)"),
        ],
    )
    def test_refuses(self, options, message):
        with pytest.raises(DataError, match=message):
            image_grid(**options)


def save_mat(path, grid, **changes):
    n = grid.num_nodes
    adjacency = np.zeros((n, n), dtype=np.uint8)
    adjacency[tuple(grid.edge_index.numpy())] = 1
    mask = grid.mask.numpy().astype(np.uint8)[:, None]
    content = {"A": adjacency, "F": grid.signals.numpy(), "mask": mask, **changes}
    scipy.io.savemat(path, {k: v for k, v in content.items() if v is not None})
    return path


class TestMatFile:
    def test_round_trip(self, tmp_path):
        grid = image_grid(size=12, images=3)
        back = read_image_grid(save_mat(tmp_path / "g.mat", grid))
        assert torch.equal(back.edge_index, grid.edge_index)
        assert torch.equal(back.signals, grid.signals)
        assert torch.equal(back.mask, grid.mask)
        assert (back.height, back.width, back.name) == (12, 12, "g")

    def test_the_images_of_bernnet(self, shared_data):
        grid = read_image_grid(shared_data / "images" / "2Dgrid.mat")
        assert (grid.num_images, grid.num_nodes, grid.edge_index.shape[1]) == (50, 10_000, 39_600)
        assert torch.equal(grid.mask, image_grid(images=1).mask)
        levels = grid.signals * 255
        torch.testing.assert_close(levels, levels.round(), rtol=0, atol=1e-9)

    def test_refuses(self, tmp_path):
        grid = image_grid(size=8, images=2)
        with pytest.raises(MissingFileError, match=r"none\.mat: Expected a file here"):
            read_image_grid(tmp_path / "none.mat")
        lacking = save_mat(tmp_path / "a.mat", grid, mask=None)
        with pytest.raises(DataError, match=r"variables A, F and mask \(no \['mask'\]\)"):
            read_image_grid(lacking)
        ring = np.roll(np.eye(64, dtype=np.uint8), 1, axis=1)
        with pytest.raises(DataError, match="square 4-neighbour grid"):
            read_image_grid(save_mat(tmp_path / "b.mat", grid, A=ring + ring.T))
        spoiled = np.full((64, 2), np.nan)
        with pytest.raises(DataError, match="finite signals"):
            read_image_grid(save_mat(tmp_path / "c.mat", grid, F=spoiled))
        whole = save_mat(tmp_path / "d.mat", grid).read_bytes()
        for content in (b"", b"garbage", whole[: len(whole) // 2]):
            (tmp_path / "d.mat").write_bytes(content)
            with pytest.raises(DataError, match="readable, complete mat file"):
                read_image_grid(tmp_path / "d.mat")


def test_bundled_table_makes_what_it_names():
    for entry in list_bundled():
        assert entry.make().name == entry.name == load(entry.name).name

"""Images on the pixel grid: of photographs, and of MATLAB files."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import torch
from torch_geometric.utils import grid as pyg_grid

from lab.studies.filters._images import grid_edges, image_grid, read_image_grid

SHARED = os.environ.get("LONGNN_DATA") or Path(__file__).parents[4] / "shared" / "data"
DATA = Path(SHARED) / "images"


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

    def test_the_images_of_bernnet(self):
        if not (DATA / "2Dgrid.mat").is_file():
            pytest.skip("no 2Dgrid.mat; set LONGNN_DATA to a folder that has it")
        grid = read_image_grid(DATA / "2Dgrid.mat")
        assert (grid.num_images, grid.num_nodes, grid.edge_index.shape[1]) == (50, 10_000, 39_600)
        assert torch.equal(grid.mask, image_grid(images=1).mask)
        levels = grid.signals * 255
        torch.testing.assert_close(levels, levels.round(), rtol=0, atol=1e-9)

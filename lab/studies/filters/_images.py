"""Grey images as signals on the pixel grid, for fitting filters.

Bundled photographs, or the 50 images of BernNet's ``2Dgrid.mat``; both in one form, so that an
experiment can use either.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

BORDER = 2  # pixels left out of losses, as in 2Dgrid.mat


@dataclass(frozen=True, eq=False, repr=False)
class ImageGrid:
    """Images as signals on one pixel grid.

    Args:
        name: name of the collection.
        edge_index: 4-neighbour grid, both directions, sorted, int64 (2, arcs).
        signals: grey values in [0, 1], float64 (nodes, images).
        mask: the interior pixels, on which losses are taken, bool (nodes,).
        height, width: size of an image. Node i is the pixel in row ``i % height``, column
            ``i // height`` (column-major, as in MATLAB).
    """

    name: str
    edge_index: Tensor
    signals: Tensor
    mask: Tensor
    height: int
    width: int

    @property
    def num_nodes(self) -> int:
        """The number of pixels of an image."""
        return int(self.signals.shape[0])

    @property
    def num_images(self) -> int:
        """The number of images."""
        return int(self.signals.shape[1])

    def image(self, k: int) -> Tensor:  # (height, width)
        """Image k as rows and columns of pixels."""
        return self.signals[:, k].reshape(self.width, self.height).t()

    def __repr__(self) -> str:
        return f"ImageGrid({self.name!r}, {self.num_images} images, {self.height}x{self.width})"


def image_grid(*, size: int = 100, images: int | None = None, seed: int = 0) -> ImageGrid:
    """Square grey patches of scikit-learn's two photographs.

    Patches do not overlap; ``seed`` shuffles them, so that the first few are a fair sample.

    Args:
        size: pixels along a side, from 5 to 427.
        images: number of patches (default: all; 48 of size 100).
        seed: seed of the shuffle.
    """
    from sklearn.datasets import load_sample_images  # slow to load

    luma = np.array([0.299, 0.587, 0.114])  # ITU-R BT.601
    patches = []
    for photo in load_sample_images().images:
        grey = photo @ luma / 255.0
        for top in range(0, grey.shape[0] - size + 1, size):
            for left in range(0, grey.shape[1] - size + 1, size):
                patches.append(grey[top : top + size, left : left + size])
    order = np.random.default_rng(seed).permutation(len(patches))[:images]
    signals = np.stack([patches[k].reshape(-1, order="F") for k in order], axis=1)
    return ImageGrid(
        "photographs",
        grid_edges(size, size),
        torch.from_numpy(signals),
        _interior(size, size),
        size,
        size,
    )


def read_image_grid(path: str | Path) -> ImageGrid:
    """The images of a MATLAB file with ``A`` (adjacency), ``F`` (signals) and ``mask``."""
    import scipy.io  # slow to load, and for this alone

    content = scipy.io.loadmat(path)
    adjacency = sp.coo_array(sp.csr_array(content["A"]))
    signals = np.asarray(content["F"], dtype=np.float64)
    mask = np.asarray(content["mask"]).reshape(-1).astype(bool)
    side = round(len(signals) ** 0.5)
    index = torch.from_numpy(np.stack([adjacency.row, adjacency.col]).astype(np.int64))
    if not torch.equal(index, grid_edges(side, side)):
        raise ValueError(f"{path}: Expected the adjacency of a square 4-neighbour grid")
    parts = (torch.from_numpy(signals), torch.from_numpy(mask))
    return ImageGrid(Path(path).stem, index, *parts, side, side)


def grid_edges(height: int, width: int) -> Tensor:  # (2, arcs)
    """The 4-neighbour grid, column-major, both directions, sorted."""
    node = torch.arange(height * width).reshape(width, height)  # [column, row]
    down = torch.stack([node[:, :-1].reshape(-1), node[:, 1:].reshape(-1)])
    right = torch.stack([node[:-1].reshape(-1), node[1:].reshape(-1)])
    arcs = torch.cat([down, down.flip(0), right, right.flip(0)], dim=1)
    return arcs[:, torch.argsort(arcs[0] * height * width + arcs[1])]


def _interior(height: int, width: int) -> Tensor:  # (nodes,)
    mask = torch.zeros(width, height, dtype=torch.bool)
    mask[BORDER:-BORDER, BORDER:-BORDER] = True
    return mask.reshape(-1)

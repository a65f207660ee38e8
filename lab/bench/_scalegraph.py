"""Random graphs to time large ones on: a size, and a prepared folder of that size."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from longnn.store import GraphStore, Manifest

FILES = ["offsets.npy", "neighbours.npy", "features.npy", "labels.npy"]


@dataclass(frozen=True)
class Size:
    """A random graph, and the terms to compute of it.

    >>> print(Size(10_000, 50_000, 16, 10))
    10,000 nodes, 50,000 edges, 16 columns, degree 10
    """

    nodes: int
    edges: int
    columns: int
    degree: int

    def __str__(self) -> str:
        return (
            f"{self.nodes:,} nodes, {self.edges:,} edges, {self.columns} columns, degree "
            f"{self.degree}"
        )


def write_random(folder: Path, size: Size, device: torch.device, *, seed: int = 0) -> GraphStore:
    """A prepared folder with a random undirected graph, made on the device."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator(device).manual_seed(seed)
    keys = _random_keys(size, generator)
    rows = keys // size.nodes
    offsets = torch.zeros(size.nodes + 1, dtype=torch.int64)
    offsets[1:] = torch.bincount(rows, minlength=size.nodes).cumsum(0).cpu()
    np.save(folder / FILES[0], offsets.numpy())
    np.save(folder / FILES[1], (keys - rows * size.nodes).int().cpu().numpy())
    del keys, rows
    features = np.lib.format.open_memmap(
        folder / FILES[2], "w+", np.float32, (size.nodes, size.columns), fortran_order=True
    )
    for column in range(size.columns):
        features[:, column] = torch.randn(size.nodes, generator=generator, device=device).cpu()
    features.flush()
    np.save(folder / FILES[3], np.zeros(size.nodes, dtype=np.int32))
    Manifest.of("graph", {"name": "random"}, folder, FILES).write(folder)
    return GraphStore.open(folder)


def _random_keys(size: Size, generator: torch.Generator) -> torch.Tensor:
    """Both directions of each edge as row * nodes + column, sorted, none twice: int64."""
    shape, device = (2, size.edges), generator.device
    a, b = torch.randint(size.nodes, shape, generator=generator, device=device)
    keys = torch.cat([a * size.nodes + b, b * size.nodes + a])
    del a, b
    if device.type == "cpu":
        keys.numpy().sort()  # several times faster than torch's sort there
    else:
        keys = keys.sort().values
    return torch.unique_consecutive(keys)

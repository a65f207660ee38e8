r"""Rows of stored terms in the place of features: read in batches, scaled, and no more at a time.

A pass over rows in random order would read the disk row by row. So the rows are cut into blocks of
neighbours on the disk, whole blocks are drawn, and the rows of a few blocks, a *window*, are
shuffled in memory: the disk reads long runs, and a batch mixes rows of many places. The order
depends on the pass alone, so a resumed training sees the batches that it would have seen. The next
window is read by a thread while the last one is trained on. Ranks that train together see the same
batches, and each reads its share of every one.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
import torch

from longnn.data._scaling import Scaling
from longnn.graphs._adjacency import SelfLoops
from longnn.nn._terms import Terms
from longnn.store._arrays import ahead
from longnn.store._basis import BasisStore
from longnn.store._ranks import Ranks

#: Rows of a block, and blocks of a window, at least.
BLOCK, BLOCKS = 128, 256
#: Bytes of a window, at most, where a batch itself is smaller.
WINDOW = 1 << 26


@dataclasses.dataclass(frozen=True, eq=False)
class StoredTerms:
    """The terms of the rows of a dataset, on disk.

    Args:
        stores: by what became of self loops.
        places: the row of each node of the dataset in each store, int64 (copies, rows): two where
            arcs are kept.
        scaling: of the features, by columns.
        degree: up to which terms are read.
        device, dtype: of what is read.
        neighbours: how many each row has, (rows,).
        columns: int64 (features,), which columns these are; None for all as they are.
        types: the same by the edges of each type alone; None for one that has no edges.
    """

    stores: Mapping[SelfLoops, BasisStore]
    places: Mapping[SelfLoops, np.ndarray]
    scaling: Scaling
    degree: int
    device: torch.device
    dtype: torch.dtype
    neighbours: np.ndarray
    columns: np.ndarray | None = None
    types: tuple["StoredTerms | None", ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        rows = next(iter(self.places.values())).shape[1]
        columns = next(iter(self.stores.values())).num_columns
        return rows, columns if self.columns is None else len(self.columns)

    def narrowed(self, loops: SelfLoops, degree: int) -> "StoredTerms":
        """The terms up to a degree under one treatment of self loops: what one model needs."""
        stores, places = {loops: self.stores[loops]}, {loops: self.places[loops]}
        types = tuple(each and each.narrowed(loops, degree) for each in self.types)
        return dataclasses.replace(self, stores=stores, places=places, degree=degree, types=types)

    def read(self, rows: np.ndarray) -> Terms:
        """The terms of some rows of the dataset, scaled."""
        values, ones = {}, {}
        for key, store in self.stores.items():
            places = self.places[key][:, rows].reshape(-1)
            found, constant = store.read(places, min(self.degree, store.degree))
            if self.columns is not None:
                found = np.where(self.columns >= 0, found[..., self.columns], np.float32(0))
            if self.scaling.mean is not None and self.scaling.deviation is not None:
                # T_j(P) (x - m 1) / d = (T_j(P) x - m T_j(P) 1) / d
                found -= constant[..., None] * self.scaling.mean.numpy().astype(np.float32)
                found /= self.scaling.deviation.numpy().astype(np.float32)
            values[key] = torch.from_numpy(found).to(self.device, self.dtype)
            ones[key] = torch.from_numpy(constant).to(self.device, self.dtype)
        degrees = torch.from_numpy(self.neighbours[rows]).to(self.device, self.dtype)
        made = Terms(values, ones, degrees, self.copies)
        types = tuple(made.without_edges() if t is None else t.read(rows) for t in self.types)
        return dataclasses.replace(made, types=types)

    @property
    def copies(self) -> int:
        """Rows of the operator per node."""
        return len(next(iter(self.places.values())))

    def in_order(self, rows: np.ndarray, size: int) -> Iterator[tuple[np.ndarray, Terms]]:
        """Batches of rows as they come: places among ``rows``, and the terms."""
        every = np.arange(len(rows))
        parts = [every[i : i + size] for i in range(0, len(rows), size)] or [every]
        jobs = [partial(self.read, rows[part]) for part in parts]
        yield from zip(parts, ahead(jobs), strict=True)

    def shuffled(
        self, rows: np.ndarray, size: int, passes: int, ranks: Ranks
    ) -> Iterator[tuple[int, np.ndarray, Terms]]:
        """The same in the random order of a pass, whose number is given; of each batch the share
        of this rank, with where in the batch it begins."""
        width = self.copies * self.shape[1] * len(self.stores) * (1 + len(self.types))
        room = WINDOW // (4 * (self.degree + 1) * width)
        windows = shuffled_windows(len(rows), size, passes, room=room)
        shares = [own_shares(window, size, ranks) for window in windows]
        wanted = [np.concatenate([part for _, part in share]) for share in shares]
        jobs = [partial(self.read, rows[np.sort(window)]) for window in wanted]
        for share, window, terms in zip(shares, wanted, ahead(jobs), strict=True):
            read_to = np.argsort(np.argsort(window))  # where each row of the window was read to
            places = np.split(read_to, np.cumsum([len(part) for _, part in share])[:-1])
            for (first, part), place in zip(share, places, strict=True):
                yield first, part, terms.take(torch.from_numpy(place).to(self.device))


def shuffled_windows(count: int, size: int, passes: int, *, room: int) -> list[np.ndarray]:
    """The rows 0..count-1 in the random order of a pass, a window of whole batches at a time.

    >>> [len(w) for w in shuffled_windows(1000, 100, 1, room=300)]
    [300, 300, 300, 100]
    """
    generator = np.random.default_rng([passes, count, size])
    starts = np.arange(0, count, BLOCK)
    generator.shuffle(starts)
    blocks = [np.arange(s, min(s + BLOCK, count)) for s in starts.tolist()]
    order = np.concatenate(blocks) if blocks else np.arange(0)
    window = size * max(1, min(room // size, -(-BLOCK * BLOCKS // size)))
    windows = [order[i : i + window] for i in range(0, count, window)]
    for one in windows:
        generator.shuffle(one)
    return windows


def own_shares(window: np.ndarray, size: int, ranks: Ranks) -> list[tuple[int, np.ndarray]]:
    """The share of a rank in each batch of a window: where in the batch it begins, and its rows.

    >>> own_shares(np.arange(10, 17), 4, Ranks(1, 2))
    [(2, array([12, 13])), (1, array([15, 16]))]
    """
    batches = [window[start : start + size] for start in range(0, len(window), size)]
    return [(ranks.share(len(b)).start, b[ranks.share(len(b))]) for b in batches]

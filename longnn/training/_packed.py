"""Tables of a population in one piece of memory: one call changes or copies all of them.

An epoch on a small graph takes the time of its calls, and a model has a dozen parameters.
"""

import functools
from collections.abc import Iterator, Mapping
from typing import Self

import torch
from torch import Tensor

from longnn import kernels
from longnn._base.torch_private import copy_each_

#: Numbers to a multiple of which tables are filled up, so that each begins where a GPU reads
#: well.
ALIGNED = 16


class Packed(Mapping[str, Tensor]):
    """Tensors by name, each contiguous and of shape (members, ...), that lie in ``flat``.

    Args:
        tables: name -> (members, ...), of one type and device; they are copied.

    >>> packed = Packed({"w": torch.ones(2, 3), "b": torch.ones(2)})
    >>> packed.flat.zero_().shape, packed["w"].sum()
    (torch.Size([32]), tensor(0.))
    """

    def __init__(self, tables: Mapping[str, Tensor]) -> None:
        starts = [0]
        for table in tables.values():
            starts.append(starts[-1] + -(-table.numel() // ALIGNED) * ALIGNED)
        first = next(iter(tables.values()))
        self.starts = starts[:-1]
        self.flat = first.detach().new_zeros(starts[-1])
        self._views = {
            name: self.flat[start : start + table.numel()].view(table.shape)
            for (name, table), start in zip(tables.items(), self.starts, strict=True)
        }
        with torch.no_grad():
            copy_each_([*self._views.values()], [t.detach() for t in tables.values()])

    def __getitem__(self, name: str) -> Tensor:
        return self._views[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def take(self, rows: Tensor) -> Self:
        """Those of some members."""
        return type(self)({name: t.detach()[rows] for name, t in self._views.items()})

    @functools.cached_property
    def blocks(self) -> Tensor:
        """Where kernels find the numbers of one member and table, see :func:`kernels.cut`."""
        shapes = [tuple(t.shape) for t in self._views.values()]
        return kernels.cut(shapes, self.starts).to(self.flat.device)

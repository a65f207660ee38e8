"""What a run was trained on, as far as a later graph is compared with it.

Values beyond all that training saw are predicted from a guess: they are said. A label that training
knew is no test of it: it is not scored again. Kept are two ends per feature, and one number per
labelled node.
"""

import dataclasses
import hashlib
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from longnn.data import NodeDataset
from longnn.data._errors import few

#: Fewer nodes beyond an end are chance: a share of all.
SHARE = 0.01


@dataclasses.dataclass(frozen=True, eq=False)
class Seen:
    """What of a graph is kept to compare others with.

    Args:
        ends: float64 (features + 1, 2), the least and the largest value of each feature, NaN of
            words; and of the number of neighbours.
        labelled: int64 (labelled,), ascending, a number of the id of each node with a label.
    """

    ends: Tensor
    labelled: Tensor

    @classmethod
    def of(cls, dataset: NodeDataset) -> Self:
        """Of all nodes of a graph."""
        ends = [(float(v.min()), float(v.max())) for v in dataset.backing.each_feature()]
        ends = ends or [(math.nan, math.nan)] * dataset.num_features
        degrees = dataset.degrees
        ends.append((float(degrees.min()), float(degrees.max())))
        ids = itertools.compress(dataset.ids, dataset.labelled.tolist())
        return cls(torch.tensor(ends, dtype=torch.float64), _numbers(ids).sort().values)

    def knew(self, ids: Iterable[Any]) -> Tensor:  # bool (ids,)
        """Of which of some nodes the label was known."""
        return torch.isin(_numbers(ids), self.labelled)

    def outside(
        self, names: Sequence[str], features: Iterable[np.ndarray], degrees: np.ndarray
    ) -> str:
        """One sentence on what of some nodes lies beyond the ends, or nothing.

        >>> Seen(torch.tensor([[1.0, 3.0], [0.0, 9.0]]), torch.tensor([])).outside(
        ...     ["age"], [np.array([2.0, 4.0, 3.0, 7.0])], np.array([1, 2, 3, 4])
        ... )
        '1 of 2 columns lies outside what was trained on: age (50 % of nodes above 3).'
        """
        names, columns = [*names, "number of neighbours"], itertools.chain(features, [degrees])
        found = []
        for name, (low, high), values in zip(names, self.ends.tolist(), columns, strict=True):
            told = [
                f"{100 * far.mean():.0f} % of nodes {where} {_short(end)}"
                for where, end, far in (
                    ("above", high, values > high),
                    ("below", low, values < low),
                )
                if far.any() and far.mean() >= SHARE
            ]
            found += [f"{name} ({', '.join(told)})"] if told else []
        if not found:
            return ""
        verb = "lies" if len(found) == 1 else "lie"
        what = f"{len(found)} of {len(names)} columns {verb} outside what was trained on"
        return f"{what}: {few(found, most=3)}."


def _short(end: float) -> str:
    return f"{end:,.0f}" if 1000 <= abs(end) < 1e12 else f"{end:.4g}"


def _numbers(ids: Iterable[Any]) -> Tensor:
    """A number of 64 bits for each id, as text; that two share one is next to impossible.

    >>> bool((_numbers([3, "four"]) == _numbers(["3", "four"])).all())
    True
    """
    text = b"".join(hashlib.blake2b(str(one).encode(), digest_size=8).digest() for one in ids)
    return torch.from_numpy(np.frombuffer(text, dtype="<i8").astype(np.int64))

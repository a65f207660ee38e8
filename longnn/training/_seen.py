"""What a run was trained on, as far as a later graph is compared with it.

Values beyond all that training saw are predicted from a guess: they are said. A label that training
knew is no test of it: it is not scored again. Kept are two ends per feature, and one number per
labelled node.
"""

import dataclasses
import hashlib
import itertools
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
        ends: float64 (features + 1, 2), the least and the largest value of each feature, and of
            the number of neighbours; of that alone where features are words.
        labelled: int64 (labelled,), ascending, a number of the id of each node with a label.
    """

    ends: Tensor
    labelled: Tensor

    @classmethod
    def of(cls, dataset: NodeDataset) -> Self:
        """Of all nodes of a graph."""
        columns = itertools.chain(dataset.backing.each_feature(), [dataset.degrees.numpy()])
        ends = [(float(values.min()), float(values.max())) for values in columns]
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
        *ends, last = self.ends.tolist()
        named = zip(names or map("feature {}".format, itertools.count()), ends, features)  # noqa: B905
        found = []
        for name, (low, high), values in itertools.chain(
            named, [("number of neighbours", last, degrees)]
        ):
            sides = (("above", high, values > high), ("below", low, values < low))
            told = [
                f"{100 * far.mean():.0f} % of nodes {side} {end:,.6g}"
                for side, end, far in sides
                if far.any() and far.mean() >= SHARE
            ]
            found += [f"{name} ({', '.join(told)})"] if told else []
        verb = "lies" if len(found) == 1 else "lie"
        what = f"{len(found)} of {len(ends) + 1} columns {verb} outside what was trained on"
        return f"{what}: {few(found, most=3)}." if found else ""


def _numbers(ids: Iterable[Any]) -> Tensor:
    """A number of 64 bits for each id, as text; that two share one is next to impossible.

    >>> bool((_numbers([3, "four"]) == _numbers(["3", "four"])).all())
    True
    """
    texts = (str(one).encode(errors="surrogatepass") for one in ids)
    digests = b"".join(hashlib.blake2b(text, digest_size=8).digest() for text in texts)
    return torch.from_numpy(np.frombuffer(digests, dtype="<i8").astype(np.int64))

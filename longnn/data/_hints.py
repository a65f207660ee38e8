"""Notes that save a day: columns that give the answer away, ids, sentinels, outliers of the target.

Looks at one column after the other, in memory and on disk, and changes nothing. Each note is one
sentence with its remedy. Tests of a shape, not of a name; nothing is said of fewer than 20 nodes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longnn.data._columns import Category, LeftOut, Number, Text

LEAST = 20  # nodes
SAMPLE = 20_000  # nodes that a column is judged by
ALONE = 0.99  # share of the answers' spread that a column alone explains
SENTINELS = tuple(sign * (10**digits - 1) for digits in range(2, 7) for sign in (-1, 1))
FAR = 50  # times the middle nine tenths, from which on a target is an outlier
UNSEEN = 1 / 2  # share of test nodes


def outlying(y: Tensor) -> Tensor:  # (nodes,), NaN where unknown -> bool (nodes,)
    """Which numbers to predict lie so far out that they drown all others."""
    far = torch.zeros_like(y, dtype=torch.bool)
    known = y[~torch.isnan(y)].double().numpy()
    if len(known) >= LEAST:
        low, middle, high = np.quantile(known, (0.05, 0.5, 0.95))
        if high > low:
            far = (y.double() - middle).abs() > FAR * (high - low)  # false for NaN
    return far


class Hints:
    """What strikes in the columns of a table.

    Args:
        y: labels as a dataset has them, or None.
        beside: masks of the user's own split, or groups that stay together, or nothing.
        targets: names of the numbers that ``y`` has.
    """

    def __init__(
        self, y: Tensor | None, beside: dict[str, Tensor], targets: Sequence[str] = ()
    ) -> None:
        self._y = None if y is None or y.dim() > 1 else y.numpy()
        alone = {key: values.numpy() for key, values in beside.items() if values.dim() == 1}
        self._train, self._test = alone.get("train_mask"), alone.get("test_mask")
        self._group = alone.get("node_group")
        self.alone: list[str] = []
        self.ids: list[str] = []
        self.sentinels: list[str] = []
        self.unseen: list[str] = []
        if y is not None:
            for name, values in zip(targets, y.reshape(len(y), -1).T.numpy(), strict=False):
                self._see_sentinels(name, np.sort(values[~np.isnan(values)]))

    @property
    def notes(self) -> list[str]:
        """One sentence for each kind of finding."""
        said = (
            ("Almost every label follows from one column alone ({}): if it is known only with the "
             "answer, leave it out with drop_columns.", self.alone),
            ("Columns that seem to be ids ({}) say nothing of a new node: leave them out with "
             "drop_columns.", self.ids),
            ("Numbers that seem to stand for gaps ({}): make them gaps with "
             "missing_words=default,NUMBER.", self.sentinels),
            ("Most test nodes have values that no training node has ({}), so that nothing is "
             "learned of them: leave the column out with drop_columns.", self.unseen),
        )  # fmt: skip
        return [text.format(", ".join(columns)) for text, columns in said if columns]

    def see(self, column: Any, cells: Any, block: Any) -> None:
        """Look at a column, what its cells hold, and the features made of it."""
        if isinstance(column, Text | LeftOut):
            return
        if isinstance(column, Number) and not column.many:
            self._see_numbers(column.column, cells)
        if isinstance(column, Category):
            values = np.array(cells.dictionary_encode().indices.fill_null(-1))
            if self._are_unseen(values) > UNSEEN:
                self.unseen.append(column.column)
        if self._y is not None and self._gives_away(block):
            self.alone.append(column.column)

    def _are_unseen(self, values: np.ndarray) -> float:
        """The share of test nodes whose value no training node has: where groups stay together,
        of nodes whose value occurs in one group alone."""
        if self._train is not None and self._test is not None:
            test = values[self._test]
            unseen = ~np.isin(test, values[self._train])
        elif self._group is not None:
            groups = self._group.max() + 2  # a gap is one, too
            pairs = np.unique((values + 1) * groups + self._group + 1)
            unseen = np.bincount(pairs // groups)[values + 1] == 1
        else:
            return 0.0
        return float(unseen.mean()) if len(unseen) >= LEAST else 0.0

    def _see_numbers(self, name: str, values: np.ndarray) -> None:
        known = np.sort(values[~np.isnan(values)])
        if len(known) < LEAST:
            return
        distinct = np.unique(known)
        whole = bool((known == np.round(known)).all())
        if whole and len(distinct) >= 0.99 * len(known):
            in_order = distinct[-1] - distinct[0] < 1.01 * len(known)
            if in_order or distinct[0] >= 10**9:
                self.ids.append(name)
        self._see_sentinels(name, known)

    def _see_sentinels(self, name: str, known: np.ndarray) -> None:
        distinct = np.unique(known)
        if len(known) < LEAST or len(distinct) < 3:
            return
        for end, rest in ((distinct[0], distinct[1:]), (distinct[-1], distinct[:-1])):
            if end not in SENTINELS or (known == end).sum() < 2:
                continue
            if min(abs(end - rest[0]), abs(end - rest[-1])) > rest[-1] - rest[0]:
                self.sentinels.append(f"{end:g} in {name}")

    def _gives_away(self, block: Any) -> bool:
        """Whether a tree of a few leaves on one column explains nearly all of the answers."""
        y = self._y
        assert y is not None
        numeric = y.dtype.kind == "f"
        known = np.flatnonzero(~np.isnan(y) if numeric else y >= 0)
        known = known[:: len(known) // SAMPLE + 1]
        y = y[known]
        if len(known) < LEAST or len(np.unique(y)) < 2:
            return False
        x = block[known]
        x = x if isinstance(x, np.ndarray) else x.toarray()
        if numeric:
            if x.shape[1] == 1 and np.ptp(x) > 0:
                both = np.stack([x[:, 0].astype(float), y])
                ranks = [np.unique(values, return_inverse=True)[1] for values in both]
                return any(np.corrcoef(a, b)[0, 1] ** 2 > ALONE for a, b in (both, ranks))
            if _largest_r2(x, y) <= ALONE:
                return False
            from sklearn.tree import DecisionTreeRegressor  # slow to load, and rarely needed

            tree: Any = DecisionTreeRegressor(max_leaf_nodes=len(known) // 10, min_samples_leaf=5)
            return bool(tree.fit(x, y).score(x, y) > ALONE)
        _, counts = np.unique(y, return_counts=True)
        chance = counts.max() / len(y)
        if len(counts) > len(y) // 10:
            return False
        leaves, most = 2 * len(counts), (1 - ALONE) * (1 - chance)
        if _fewest_errors(x, y, leaves) >= most * len(y):
            return False
        from sklearn.tree import DecisionTreeClassifier  # slow to load, and rarely needed

        tree = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0)
        return bool(1 - tree.fit(x, y).score(x, y) < most)


def _largest_r2(x: np.ndarray, y: np.ndarray) -> float:
    """No function of some columns explains more: R² of the mean over the nodes of equal rows."""
    _, group = np.unique(x, axis=0, return_inverse=True)
    group = group.reshape(-1)
    mean = np.bincount(group, y) / np.bincount(group)
    return 1 - float(np.mean((y - mean[group]) ** 2) / max(y.var(), 1e-300))


def _fewest_errors(x: np.ndarray, y: np.ndarray, leaves: int) -> float:
    """No tree of so many leaves makes fewer errors.

    Of nodes with equal rows all but the most frequent class are errors. On one column a leaf is a
    stretch of nodes in its order, and r runs of one class in it are at least (r - 1) / 2 errors.

    >>> x = np.arange(6.0)[:, None]
    >>> _fewest_errors(x, np.array([0, 1, 0, 1, 0, 1]), 2), _fewest_errors(x // 3, x[:, 0] % 2, 2)
    (2.0, 2.0)
    """
    _, group = np.unique(x, axis=0, return_inverse=True)
    group, (_, label) = group.reshape(-1), np.unique(y, return_inverse=True)
    pairs, count = np.unique(np.stack([group, label]), axis=1, return_counts=True)
    largest = np.zeros(int(group.max()) + 1, dtype=np.int64)
    np.maximum.at(largest, pairs[0], count)
    errors = float(len(y) - largest.sum())
    if x.shape[1] == 1:
        runs = 1 + int((np.diff(label[np.lexsort((label, group))]) != 0).sum())
        errors = max(errors, (runs - leaves) / 2)
    return errors

r"""Gradient-boosted trees on a node's own columns and on those of its neighbours.

A table has, beside the columns :math:`X`, averages of them over walks of one to K steps, each
divided by what the walk makes of a column of ones, so that a row is a weighted mean,

.. math:: M_k = (P^k X) \oslash (P^k 1),

and what says how many neighbours there are: the logarithm of their number, and :math:`P^k 1`. On
arcs there is one such table along them and one against. :math:`P^k` is a sum of
:math:`T_j(P)`, so stored terms will do in place of a graph. They will not do for what is no average
of columns: how much neighbours differ, and the smallest and the largest value among them.

The trees are kept as LightGBM writes them, as text: data, and no program. It is checked before
compiled code reads it.
"""

import functools
import math
import re
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import torch
from numpy.polynomial.chebyshev import poly2cheb
from torch import Tensor, nn

from longnn.graphs import GraphOperator, Operator
from longnn.graphs._edges import EdgeOperator
from longnn.matrices import DenseMatrix, LiftedMatrix
from longnn.nn._model import Model
from longnn.nn._terms import OnRows, Terms
from longnn.nn._transform import Features

Columns = Literal["alone", "neighbours", "around"]
#: Averages are rounded to multiples of this. Sums in another order, of the same nodes under other
#: numbers, differ in the last digit, and a tree would tell them apart.
GRID = 2.0**-16
_DAMAGED = "Expected the text of boosted trees (it is damaged: {})"


@functools.cache
def lightgbm() -> Any:
    """The library, which is slow to load and needed for trees alone.

    Raises:
        ValueError: where it cannot be loaded; says what to do.
    """
    try:
        import lightgbm as library
    except (ImportError, OSError) as error:  # without libgomp it is there and does not load
        raise ValueError(
            f"Expected LightGBM for model='trees' ({error}); install it with: pip install "
            "lightgbm (and OpenMP: apt install libgomp1, or brew install libomp)"
        ) from error
    return library


class BoostedTrees(Model):
    """Gradient-boosted trees on columns and on their averages over neighbours.

    The trees are those of `"LightGBM: A Highly Efficient Gradient Boosting Decision Tree"
    <https://papers.nips.cc/paper/6907>`_ (Ke et al., 2017).

    Args:
        in_channels, hidden_channels, out_channels: features, nothing, outputs.
        columns: ``"alone"`` for a node's own, ``"neighbours"`` for the averages too, ``"around"``
            for their spread, smallest and largest value as well.
        degree: the longest walk of an average.
        leaves: of each tree.
        share: of the columns that a tree may use.
        copies: rows of the operator per node, two on arcs.

    >>> BoostedTrees(3, 1, 2, degree=2).width
    12
    """

    by_steps: ClassVar[bool] = False
    joins_copies: ClassVar[bool] = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        columns: Columns = "neighbours",
        degree: int = 3,
        leaves: int = 15,
        share: float = 0.6,
        copies: int = 1,
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels)
        if columns not in get_args(Columns):
            raise ValueError(
                f"Expected `columns` to be one of {', '.join(get_args(Columns))} (got {columns!r})"
            )
        if not 1 <= degree <= 20:
            raise ValueError(f"Expected `degree` within 1..20 (got {degree})")
        if not 2 <= leaves <= 1000:
            raise ValueError(f"Expected `leaves` within 2..1000 (got {leaves})")
        if not 0 < share <= 1:
            raise ValueError(f"Expected 0 < `share` <= 1 (got {share})")
        self.columns, self.degree, self.leaves, self.share = columns, degree, leaves, share
        self.copies = copies
        self.forest: Forest | None = None
        #: What LightGBM wrote; nothing before training.
        self.text = nn.Parameter(torch.zeros(0, dtype=torch.uint8), requires_grad=False)

    @property
    def row_degree(self) -> int | None:
        """That of the longest walk; none on arcs, nor for spreads and extremes."""
        if self.columns == "alone":
            return 0
        return self.degree if self.copies == 1 and self.columns == "neighbours" else None

    @property
    def more(self) -> int:
        """Columns per feature and way of arcs that are no averages."""
        return 3 if self.columns == "around" else 0

    @property
    def width(self) -> int:
        """Columns of the table."""
        if self.columns == "alone":
            return self.in_channels
        f = self.in_channels
        return f + self.copies * (1 + self.degree * (1 + f) + self.more * f)

    def table(self, x: Features | Terms, operator: Operator | OnRows | EdgeOperator) -> Tensor:
        """What the trees see, (nodes, width): the node's own columns first, then for each way of
        arcs the count of neighbours, by length of the walk the mass and the averages, and last
        the spread, the smallest and the largest value of neighbours."""
        own = x.features if isinstance(x, Terms) else dense(x)
        if self.columns == "alone":
            return own
        if isinstance(x, Terms):
            assert isinstance(operator, OnRows)
            assert x.degrees is not None
            walks, counts = [self._walks_of_terms(x, operator)], [x.degrees]
        else:
            assert not isinstance(operator, OnRows)
            walks = walk_sums(own, operator, self.copies, self.degree)
            counts = neighbour_counts(operator, self.copies, own.shape[0])
            if self.more:
                squares = walk_sums(own.square(), operator, self.copies, 1)
                extremes = neighbour_extremes(own, operator, self.copies)
        parts = [own]
        for way, (lengths, count) in enumerate(zip(walks, counts, strict=True)):
            parts.append(torch.log1p(count.to(own))[:, None])
            for sums in lengths:  # (nodes, features + 1), the last one of ones
                mass = sums[:, -1:]
                mean = sums[:, :-1] / torch.where(mass > 1e-6, mass, 1.0)
                parts += [rounded(mass), rounded(torch.where(mass > 1e-6, mean, 0.0))]
            if self.more:
                parts += [_spread(lengths[0], squares[way][0]), *extremes[way]]
        return torch.cat(parts, dim=1)

    def _walks_of_terms(self, x: Terms, operator: OnRows) -> list[Tensor]:
        """The same of stored terms: P^k as a sum of T_j(P)."""
        values, ones = x.values[operator.self_loops], x.ones[operator.self_loops]
        found = []
        for k in range(1, self.degree + 1):
            by_term = torch.as_tensor(poly2cheb([0] * k + [1])).to(values)  # (k + 1,)
            sums = torch.einsum("j,jrf->rf", by_term, values[: k + 1])
            found.append(torch.cat([sums, (by_term @ ones[: k + 1])[:, None]], dim=1))
        return found

    def scores(self, x: Features | Terms, operator: Operator | OnRows) -> Tensor:
        if len(self.text) == 0:  # not trained
            own = x.features if isinstance(x, Terms) else x
            shape = own.shape[0], self.out_channels
            return torch.zeros(shape, dtype=own.dtype, device=own.device)
        table = self.table(x, operator)
        if self.forest is not None:  # in a program
            return self._outputs(self.forest(table)).to(table)
        return self.read(table)

    def read(self, table: Tensor) -> Tensor:
        """The scores of a table, (nodes, outputs)."""
        return self._outputs(torch.from_numpy(self.ask(table, raw_score=True))).to(table)

    def ask(self, table: Tensor, **how: Any) -> np.ndarray:
        """What LightGBM says of a table, side by side for several outputs, (nodes, ...)."""
        X = table.detach().cpu().double().numpy()
        return np.concatenate(
            [
                np.asarray(b.predict(X, num_threads=torch.get_num_threads(), **how)).reshape(
                    len(X), -1
                )
                for b in boosters(bytes(self.text.cpu().numpy().tobytes()), self.width)
            ],
            axis=1,
        )

    def _outputs(self, raw: Tensor) -> Tensor:
        """Of two classes the trees have one score, that of the second."""
        if raw.shape[1] == 1 and self.out_channels == 2:
            return torch.cat([-raw / 2, raw / 2], dim=1)
        return raw

    def plant(self) -> None:
        """Keep the trees as operations of torch, too, for programs; nothing before training."""
        if len(self.text) == 0:
            return
        text = bytes(self.text.cpu().numpy().tobytes()).decode()
        self.forest = Forest([read_trees(one, self.width) for one in split_texts(text)])

    def __repr__(self) -> str:
        return f"BoostedTrees({self.in_channels}, {self.out_channels}, columns={self.columns!r})"


def dense(x: Features) -> Tensor:
    """Features as one table."""
    if isinstance(x, Tensor):
        return x.to_dense() if x.layout is not torch.strided else x
    assert not isinstance(x, LiftedMatrix)
    return x.values if isinstance(x, DenseMatrix) else x.to_dense()


def rounded(values: Tensor) -> Tensor:
    """Averages on a grid, so that the order of a sum does not matter."""
    return torch.round(values / GRID) * GRID


def walk_sums(x: Tensor, operator: Any, copies: int, degree: int) -> list[list[Tensor]]:
    """P^k [X, 1], (nodes, features + 1), of every length k from 1 on, by way of arcs."""
    n = x.shape[0]
    at = torch.cat([torch.cat([x, x.new_ones(n, 1)], dim=1)] * copies)
    found: list[list[Tensor]] = [[] for _ in range(copies)]
    for _ in range(degree):
        at = operator @ at  # on arcs [N h_2; N^T h_1]
        for way in range(copies):
            found[way].append(at[way * n : (way + 1) * n])
        if copies == 2:  # so that the next step goes on the way it came
            at = torch.cat([at[n:], at[:n]])
    return found


def neighbour_counts(operator: Any, copies: int, nodes: int) -> list[Tensor]:
    """Neighbours of each node, (nodes,), by way of arcs."""
    if isinstance(operator, EdgeOperator):
        there = (operator.values != 0).to(operator.values.dtype)
        every = there.new_zeros(copies * nodes).index_add(0, operator.row, there)
    else:
        assert isinstance(operator, GraphOperator)
        every = (operator.matrix.crow[1:] - operator.matrix.crow[:-1]).to(operator.dtype)
    return list(every.view(copies, nodes))


def _spread(sums: Tensor, squares: Tensor) -> Tensor:
    """The standard deviation over neighbours, of sums and sums of squares (nodes, features + 1)."""
    mass = torch.where(sums[:, -1:] > 1e-6, sums[:, -1:], torch.inf)
    mean = sums[:, :-1] / mass
    # On the grid before the root, which would blow up what is left of a difference of equals.
    return rounded(squares[:, :-1] / mass - mean.square()).clamp_min(0).sqrt()


def neighbour_extremes(x: Tensor, operator: Any, copies: int) -> list[tuple[Tensor, Tensor]]:
    """The smallest and the largest value among neighbours, (nodes, features) each, by way of arcs;
    zero where there are none."""
    n = x.shape[0]
    if isinstance(operator, EdgeOperator):
        row, col, there = operator.row, operator.col % n, operator.values != 0
    else:
        assert isinstance(operator, GraphOperator)
        crow = operator.matrix.crow
        row = torch.arange(copies * n, device=x.device).repeat_interleave(crow[1:] - crow[:-1])
        col = operator.matrix.col.long() % n
        there = torch.ones_like(col, dtype=torch.bool)

    def extreme(how: Literal["amin", "amax"], none: float) -> Tensor:  # (copies, nodes, features)
        each = []
        for values in x.T:  # a column at a time: memory for one
            given = torch.where(there, values[col], none)
            found = values.new_full((copies * n,), none).scatter_reduce(0, row, given, how)
            each.append(torch.where(found == none, 0.0, found))
        return torch.stack(each, dim=1).view(copies, n, -1)

    return list(zip(extreme("amin", math.inf), extreme("amax", -math.inf), strict=True))


def split_texts(text: str) -> list[str]:
    """The texts of several models, one for each output, that were written one after the other."""
    return [part for part in re.split(r"(?m)^(?=tree$)", text) if part]


@functools.lru_cache(maxsize=64)
def boosters(text: bytes, width: int) -> list[Any]:
    """The models of LightGBM that a text holds, once it is seen to be sound."""
    made = []
    for one in split_texts(_decoded(text)):
        read_trees(one, width)
        made.append(lightgbm().Booster(model_str=one))
    return made


def _decoded(text: bytes) -> str:
    try:
        return text.decode("ascii")
    except UnicodeDecodeError as error:
        raise ValueError(_DAMAGED.format("it is no text")) from error


def check_trees(text: bytes) -> None:
    """Raise where a text is not one of boosted trees.

    Raises:
        ValueError: saying what is wrong.
    """
    parts = split_texts(_decoded(text))
    if not parts:
        raise ValueError(_DAMAGED.format("no trees"))
    for one in parts:
        fields = _fields(one.partition("\nTree=")[0])
        read_trees(one, _whole(fields, "max_feature_idx") + 1)


#: Of a tree: (feature, threshold, left, right) of its inner nodes, then the values of its leaves.
#: A child below zero is a leaf: -1 the first, -2 the second.
Tree = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def read_trees(text: str, width: int) -> tuple[int, list[Tree]]:
    """How many scores a model has, and its trees, those of the scores in turn; each checked.

    Raises:
        ValueError: for a text that is damaged, or trees of other columns than ``width``.
    """
    head, *bodies = text.split("\nTree=")
    fields = _fields(head)
    count = _whole(fields, "num_tree_per_iteration")
    if _whole(fields, "max_feature_idx") + 1 != width or not 1 <= count <= 100_000:
        raise ValueError(_DAMAGED.format(f"trees of other columns than {width}"))
    if not bodies or len(bodies) % count or not bodies[-1].rstrip().endswith("end of trees"):
        raise ValueError(_DAMAGED.format("it breaks off"))
    return count, [_read_tree(_fields(body), width) for body in bodies]


def _read_tree(fields: dict[str, str], width: int) -> Tree:
    leaves = _whole(fields, "num_leaves")
    if not 1 <= leaves <= 100_000 or _whole(fields, "num_cat") != 0:
        raise ValueError(_DAMAGED.format("a tree of another kind"))
    if fields.get("is_linear", "0") != "0":
        raise ValueError(_DAMAGED.format("a tree of another kind"))
    inner = leaves - 1
    feature, left, right, kinds = (
        _numbers(fields, key, inner, np.int64)
        for key in ("split_feature", "left_child", "right_child", "decision_type")
    )
    threshold = _numbers(fields, "threshold", inner, np.float64)
    for key in ("internal_count", "internal_weight", "internal_value", "split_gain"):
        _numbers(fields, key, inner, np.float64)
    value = _numbers(fields, "leaf_value", leaves, np.float64)
    at = np.arange(inner)
    children = np.stack([left, right])
    # A child is a later node or a leaf, and each is the child of one: so it is a tree.
    sound = ((children > at) | (children < 0)).all() and np.array_equal(
        np.sort(children, axis=None), np.r_[-leaves:0, 1:inner] if inner else np.zeros(0)
    )
    if not sound or (feature < 0).any() or (feature >= width).any() or (kinds & 1).any():
        raise ValueError(_DAMAGED.format("a tree with impossible branches"))
    return feature, threshold, left, right, value


def _fields(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines())
    return {key: value for key, sign, value in pairs if sign}


def _whole(fields: dict[str, str], key: str) -> int:
    text = fields.get(key, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ValueError(_DAMAGED.format(f"{key}={text[:20]!r}"))
    return int(text)


def _numbers(fields: dict[str, str], key: str, count: int, kind: Any) -> np.ndarray:
    words = fields.get(key, "").split()
    try:
        found = np.array([kind(word) for word in words], dtype=kind)
    except (ValueError, OverflowError) as error:
        raise ValueError(_DAMAGED.format(key)) from error
    if len(found) != count or not np.isfinite(found).all():
        raise ValueError(_DAMAGED.format(key))
    return found


class Forest(nn.Module):
    """Boosted trees as operations of torch: every row goes down all trees, a level at a time.

    Args:
        models: how many scores each has, and its trees, see :func:`read_trees`.
    """

    feature: Tensor
    threshold: Tensor
    left: Tensor
    right: Tensor
    value: Tensor
    place: Tensor

    def __init__(self, models: list[tuple[int, list[Tree]]]) -> None:
        super().__init__()
        trees = [tree for _, own in models for tree in own]
        place: list[int] = []
        self.count = 0
        for count, own in models:  # the scores of a model have their trees in turn
            place += [self.count + t % count for t in range(len(own))]
            self.count += count
        inner = max(1, *(len(tree[0]) for tree in trees))
        leaves = inner + 1
        self.depth = max(_depth(tree) for tree in trees)

        def packed(k: int, size: int, rest: float) -> Tensor:
            made = np.full((len(trees), size), rest)
            for row, tree in zip(made, trees, strict=True):
                row[: len(tree[k])] = tree[k]
            return torch.from_numpy(made)

        # A tree of one leaf goes there from its root.
        for name, k, rest in (("feature", 0, 0), ("left", 2, -1), ("right", 3, -1)):
            self.register_buffer(name, packed(k, inner, rest).long())
        self.register_buffer("threshold", packed(1, inner, math.inf))
        self.register_buffer("value", packed(4, leaves, 0.0))
        self.register_buffer("place", torch.tensor(place))

    def forward(self, table: Tensor) -> Tensor:  # (nodes, columns) -> (nodes, scores)
        n, every = table.shape[0], torch.arange(len(self.place))
        at = torch.zeros(1, len(self.place), dtype=torch.int64).expand(n, -1)
        for _ in range(self.depth):
            node = at.clamp_min(0)
            cell = table.gather(1, self.feature[every, node])
            down = cell.double() <= self.threshold[every, node]
            ahead = torch.where(down, self.left[every, node], self.right[every, node])
            at = torch.where(at < 0, at, ahead)
        said = self.value[every, -at - 1]  # (nodes, trees)
        return said.new_zeros(n, self.count).index_add(1, self.place, said)


def _depth(tree: Tree) -> int:
    """Steps from the root to the farthest leaf."""
    _, _, left, right, _ = tree
    depth = np.ones(max(len(left), 1), dtype=np.int64)
    for node in range(len(left)):  # children have larger numbers
        for child in (left[node], right[node]):
            if child >= 0:
                depth[child] = depth[node] + 1
    return int(depth.max())

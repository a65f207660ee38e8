r"""Deep models: blocks of message passing with normalisation and residuals.

.. math:: h \leftarrow h + W_2\,\mathrm{ReLU}\big(W_1\,[n(h),\; m(n(h))]\big)

with a norm n over the channels of a node and a message m: a polynomial filter with its own basis in
every block (:class:`DeepLONGNN`), or one hop of GCN, GraphSAGE or GAT. The message is all that
differs between them: it takes an operator and a signal (nodes, channels) and gives a signal of the
same shape, without weights that mix channels.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longnn._base.suggestions import check_choice
from longnn.filters import PolynomialFilter
from longnn.graphs import GraphOperator, Operator
from longnn.graphs._adjacency import SelfLoops, check_self_loops
from longnn.graphs._edges import EdgeOperator
from longnn.matrices import SparseMatrix
from longnn.nn._channels import NORMS, Norm
from longnn.nn._model import Model
from longnn.nn._polynomial import pagerank_response
from longnn.nn._transform import Dropout, Features, Linear, as_features, xavier_uniform_
from longnn.nn._typed import TypedFilter
from longnn.polynomials import Basis, get_basis
from longnn.polynomials._families import OrthogonalBasis

#: The slope of the leaky ReLU of attention for negative numbers, as its authors have it.
SLOPE = 0.2


class Hop(nn.Module):
    r""":math:`P\,H`, GCN's message: with self loops in P that of Kipf and Welling.

    >>> pair = GraphOperator.from_edge_index(torch.tensor([[0, 1], [1, 0]]), self_loops="add")
    >>> Hop()(pair, torch.tensor([[1.0], [3.0]])).tolist()
    [[2.0], [2.0]]
    """

    def forward(self, operator: Operator, signal: Tensor) -> Tensor:
        return operator @ signal


class Mean(nn.Module):
    r"""The mean over the neighbours, GraphSAGE's message; 0 for a node without any.

    .. math:: M(H)_i = \frac{1}{|N(i)|} \sum_{j \in N(i)} H_j

    It asks which nodes are neighbours; weights of edges play no role.
    """

    def forward(self, operator: Operator, signal: Tensor) -> Tensor:
        if isinstance(operator, EdgeOperator):
            present = (operator.values != 0).to(signal.dtype)
            sums = EdgeOperator(operator.row, operator.col, present) @ signal
            count = torch.zeros_like(signal[:, 0]).index_add(0, operator.row, present)
        else:
            matrix = _matrix(operator)
            ones = torch.ones_like(matrix.values)
            crow, col = matrix.crow, matrix.col
            sums = SparseMatrix(crow, col, ones, crow, col, None, ones) @ signal
            count = (crow[1:] - crow[:-1]).to(signal.dtype)
        return sums / count.clamp_min(1)[:, None]


class Attention(nn.Module):
    r"""A mean over the neighbours with learned weights, GAT's message.

    .. math:: M(H)_i = \sum_{j \in N(i)} \alpha_{ij}\, \Theta^T H_j, \qquad
              \alpha_{ij} = \mathrm{softmax}_{j \in N(i)}\,
              \mathrm{LeakyReLU}(s^T \Theta^T H_j + t^T \Theta^T H_i)

    for each of several heads, which share the channels out among them.
    """

    def __init__(self, channels: int, heads: int = 1) -> None:
        super().__init__()
        if heads < 1 or channels % heads:
            raise ValueError(
                f"Expected `heads` >= 1 that divide the {channels} hidden channels (got {heads})"
            )
        self.heads = heads
        self.linear = Linear(channels, channels, bias=False)
        self.source = nn.Parameter(torch.empty(heads, channels // heads))
        self.target = nn.Parameter(torch.empty(heads, channels // heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for weight in (self.linear.weight, self.source, self.target):
            xavier_uniform_(weight)

    def forward(self, operator: Operator, signal: Tensor) -> Tensor:
        row, col, present = _entries(operator)
        x = self.linear(signal).unflatten(-1, (self.heads, -1))  # (nodes, heads, channels of one)
        by_source, by_target = (x * self.source).sum(-1), (x * self.target).sum(-1)
        e = F.leaky_relu(by_source[col] + by_target[row], SLOPE)  # (entries, heads)
        e = torch.where(present[:, None], e, -torch.inf)
        # Less the largest of each node, which changes no weight and keeps exp in range.
        where = row[:, None].expand_as(e)
        least = torch.full_like(by_source, -torch.inf).detach()
        top = least.scatter_reduce(0, where, e.detach(), "amax")
        top = torch.where(torch.isfinite(top), top, 0.0)  # a node without neighbours
        weight = torch.exp(e - top[row])
        total = torch.zeros_like(by_source).index_add(0, row, weight)
        terms = weight[..., None] * x[col]  # (entries, heads, channels of one)
        sums = torch.zeros_like(x).index_add(0, row, terms)
        return (sums / total.clamp_min(torch.finfo(x.dtype).tiny)[..., None]).flatten(-2)


def _entries(operator: Operator) -> tuple[Tensor, Tensor, Tensor]:
    """Rows and columns of the stored entries, int64, and which of them are edges."""
    if isinstance(operator, EdgeOperator):
        return operator.row, operator.col, operator.values != 0
    matrix = _matrix(operator)
    counts = (matrix.crow[1:] - matrix.crow[:-1]).long()
    nodes = torch.arange(len(counts), device=counts.device)
    row = torch.repeat_interleave(nodes, counts, output_size=matrix.nnz)
    return row, matrix.col.long(), matrix.values != 0


def _matrix(operator: object) -> SparseMatrix:
    """The matrix of a graph whose edges are its entries."""
    if not isinstance(operator, GraphOperator):
        raise TypeError(
            "Expected an undirected graph for means and attention over neighbours (got "
            f"{type(operator).__name__}); use filters or gcn blocks"
        )
    return operator.matrix


Jump = Literal["none", "max", "cat"]


class Block(nn.Module):
    r""":math:`h + W_2\,\mathrm{ReLU}(W_1\,[n(h),\, m(n(h))])`, with dropout before the second map.

    Args:
        channels: of the signal.
        message: m, from an operator and a signal to a signal.
        norm: n, one of :data:`~longnn.nn._channels.NORMS`.
        residual: whether h is added.
        dropout: its rate.
        depth: how many blocks there are: the second map starts smaller by its square root.
        copies: rows of the operator per node, 2 on arcs: a node hears as a source and as a target,
            and both enter the first map. So L blocks reach every word of L letters N and N^T.
        types: signals that the message gives side by side, one per type of edges.

    >>> from longnn.graphs import GraphOperator
    >>> pair = GraphOperator.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
    >>> Block(3, Hop(), norm="layer")(pair, torch.eye(2, 3)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        channels: int,
        message: nn.Module,
        *,
        norm: Norm,
        residual: bool = True,
        dropout: float = 0.0,
        depth: int = 1,
        copies: int = 1,
        types: int = 1,
    ) -> None:
        super().__init__()
        self.normalize = NORMS[norm]
        self.message = message
        self.residual = residual
        self.copies = copies
        self.first = Linear((1 + copies * types) * channels, channels)
        self.second = Linear(channels, channels)
        self.dropout = Dropout(dropout)
        self.scale = 1 / math.sqrt(depth) if residual else 1.0
        self._scale_start()

    def reset_parameters(self) -> None:
        """Draw the weights again; the message goes back to its start."""
        for part in (self.message, self.first, self.second):
            reset = getattr(part, "reset_parameters", None)
            if callable(reset):
                reset()
        self._scale_start()

    @torch.no_grad()
    def _scale_start(self) -> None:
        """What L blocks add has then the variance of what one would add."""
        for p in self.second.parameters():
            p.mul_(self.scale)

    def forward(self, operator: Operator, h: Tensor) -> Tensor:
        own = self.normalize(h)  # (nodes, channels)
        # (copies nodes, types channels), then (nodes, (1 + copies types) channels)
        sent = own if self.copies == 1 else own.repeat(self.copies, 1)
        heard = self.message(operator, sent)
        # One copy is not chunked: an exported model would then be bound to its number of nodes.
        each = [heard] if self.copies == 1 else heard.chunk(self.copies)
        joined = torch.cat([own, *each], -1)
        hidden = self.first.activated(joined, self.dropout)
        return self.second.added(hidden, h) if self.residual else self.second(hidden)


class DeepGNN(Model):
    r"""A linear map, L blocks, a norm and a linear map; a subclass chooses the message.

    .. math:: h_0 = n(X W_0), \qquad
              h_l = h_{l-1} + W_2\,\mathrm{ReLU}(W_1 [n(h_{l-1}), m_l(n(h_{l-1}))]), \qquad
              \hat Y = n(h_L)\,W

    Args:
        in_channels, hidden_channels, out_channels: features, hidden units, classes.
        message: makes the message of a block from its number.
        blocks: L.
        norm: ``"layer"``, ``"rms"`` or ``"none"``.
        residual: add what enters a block to what leaves it.
        jump: what the last map sees: the last block (``"none"``), or the largest values
            (``"max"``) or all (``"cat"``) of the blocks' outputs, each normalised.
        input_dropout: on the features.
        dropout: inside the blocks and before the last map.
        copies: rows of the operator per node: 2 inside of :class:`~longnn.nn.Directed`.
        types: of edges, if the message tells them apart: a block hears each of them.
    """

    joins_copies = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        message: Callable[[int], nn.Module],
        blocks: int = 8,
        norm: Norm = "layer",
        residual: bool = True,
        jump: Jump = "none",
        input_dropout: float = 0.0,
        dropout: float = 0.2,
        copies: int = 1,
        types: int = 0,
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels)
        self.copies = copies
        if blocks < 1:
            raise ValueError(f"Expected `blocks` >= 1 (got {blocks})")
        check_choice("norm", norm, get_args(Norm))
        check_choice("jump", jump, get_args(Jump))
        self.input_dropout = Dropout(input_dropout)
        self.enter = Linear(in_channels, hidden_channels)
        options: dict[str, Any] = {"norm": norm, "residual": residual, "dropout": dropout}
        options |= {"copies": copies, "types": max(types, 1)}
        self.blocks = nn.ModuleList(
            Block(hidden_channels, message(number), depth=blocks, **options)
            for number in range(blocks)
        )
        self.normalize = NORMS[norm]
        self.jump = jump
        self.dropout = Dropout(dropout)
        self.leave = Linear(hidden_channels * (blocks if jump == "cat" else 1), out_channels)
        self.output: nn.Module | None = None  # a message on the scores, if a subclass has one

    def reset_parameters(self) -> None:
        """Draw all weights again."""
        for part in (self.enter, *self.blocks, self.leave, self.output):
            if part is not None:
                part.reset_parameters()

    def states(self, x: Features, operator: Operator) -> list[Tensor]:
        """The signals h_0, ..., h_L before and after every block, each (nodes, hidden)."""
        h = self.normalize(self.enter(self.input_dropout(as_features(x))))
        states = [h]
        for block in self.blocks:
            h = block(operator, h)
            states.append(h)
        return states

    def scores(self, x: Features, operator: Operator) -> Tensor:
        states = self.states(x, operator)
        if self.jump == "none":
            h = self.normalize(states[-1])
        elif self.jump == "cat":
            h = torch.cat([self.normalize(h) for h in states[1:]], -1)
        else:
            h = torch.stack([self.normalize(h) for h in states[1:]]).amax(0)
        return self._smooth(self.leave(self.dropout(h)), operator)

    def _smooth(self, scores: Tensor, operator: Operator) -> Tensor:
        """What the graph makes of the scores (nodes, out); on arcs the mean over both copies."""
        if self.output is None:
            return scores
        if self.copies == 1:
            return self.output(operator, scores)
        heard = self.output(operator, scores.repeat(self.copies, 1))
        return torch.stack(heard.chunk(self.copies)).mean(0)


class DeepLONGNN(DeepGNN):
    r"""A stack of LON-GNN's filters, `"Spectral GNNs with Learnable Orthonormal Basis"
    <https://arxiv.org/abs/2303.13750>`_ (Tao, Wang, Yu, Li and Wei, 2023), as blocks of depth.

    .. math:: h \leftarrow h + W_2\,\mathrm{ReLU}\big(W_1\,[n(h),\; g_l(P)\,n(h)]\big), \qquad
              g_l = \sum_{k=0}^{K} \alpha_{lk}\, p_k^{(a_l,b_l)}

    Every block has a filter per channel and an orthonormal Jacobi basis of its own, whose a and b
    are trained; or another basis, for comparison. With ``output_degree`` one more filter acts on
    the class channels, as in the paper: :math:`\hat Y = g(P)\,n(h_L)\,W`. The last map of a stack
    sees every node alone; so the neighbours of a node vote on its class, whatever depth learned.

    Args:
        in_channels, hidden_channels, out_channels: features, hidden units, classes.
        degree: K, one for all blocks or one per block.
        basis: the family of polynomials; orthogonal ones are orthonormal, for a weight of mass one.
        a, b: where a Jacobi basis starts, > -1.
        learn_basis: train the parameters of the basis, if it has any.
        shared: one filter for all channels of a block instead of one each.
        restart: start as personalised PageRank with this restart probability, in (0, 1], where 1 is
            the identity, and so is 0.
        self_loops: ``"keep"``, ``"add"`` or ``"remove"`` those of the graph.
        output_degree: of a filter on the scores, which starts as the others do; 0 for none.
        types: of edges, each with a filter of its own in every block:
            :math:`W_1\,[n(h), g_{l1}(P_1)\,n(h), \dots, g_{lR}(P_R)\,n(h)]`.
        options: of :class:`DeepGNN` (blocks, norm, residual, jump, dropouts).

    >>> [f.degree for f in DeepLONGNN(5, 8, 3, blocks=3, degree=[4, 2, 1]).filters()]
    [4, 2, 1]
    >>> DeepLONGNN(5, 8, 3, blocks=1, degree=2, output_degree=5).output.channels
    3
    """

    takes_types = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        blocks: int = 8,
        degree: int | Sequence[int] = 6,
        basis: str = "jacobi",
        a: float = 0.5,
        b: float = 1.0,
        learn_basis: bool = True,
        shared: bool = False,
        restart: float = 0.2,
        self_loops: SelfLoops = "keep",
        output_degree: int = 0,
        types: int = 0,
        **options: Any,
    ) -> None:
        degrees = [degree] * blocks if isinstance(degree, int) else list(degree)
        if len(degrees) != blocks:
            raise ValueError(f"Expected one `degree` for each of {blocks} blocks (got {degree})")
        family = _family(basis, a, b)

        def message(number: int) -> nn.Module:
            make = partial(one, degrees[number], hidden_channels)
            return TypedFilter(make, types, join="cat") if types else make()

        def one(degree: int, channels: int) -> PolynomialFilter:
            return PolynomialFilter(
                family,
                degree,
                1 if shared else channels,
                init=partial(pagerank_response, degree, restart) if restart else None,
                learn_basis=learn_basis and bool(family.parameters),
            )

        sizes = (in_channels, hidden_channels, out_channels)
        super().__init__(*sizes, message=message, blocks=blocks, types=types, **options)
        self.self_loops = check_self_loops(self_loops)
        if output_degree:
            make = partial(one, output_degree, out_channels)
            self.output = TypedFilter(make, types) if types else make()


def _family(name: str, a: float, b: float) -> Basis:
    """The basis of a name; orthogonal ones orthonormal for a weight of mass one."""
    basis = get_basis(name, **({"a": a, "b": b} if name == "jacobi" else {}))
    if isinstance(basis, OrthogonalBasis):
        return get_basis(basis, orthonormal=True, weight="probability")
    return basis


class DeepGCN(DeepGNN):
    r"""Blocks of GCN, `"Semi-supervised Classification with Graph Convolutional Networks"
    <https://arxiv.org/abs/1609.02907>`_ (Kipf and Welling, 2017): one hop each, with self loops.

    .. math:: h \leftarrow h + W_2\,\mathrm{ReLU}\big(W_1\,[n(h),\; \tilde P\,n(h)]\big)

    >>> DeepGCN(5, 8, 3, blocks=2)(torch.ones(2, 5), torch.tensor([[0, 1], [1, 0]])).shape
    torch.Size([2, 3])
    """

    self_loops: SelfLoops = "add"

    def __init__(self, *sizes: int, **options: Any) -> None:
        super().__init__(*sizes, message=lambda _: Hop(), **options)


class DeepSAGE(DeepGNN):
    r"""Blocks of GraphSAGE, `"Inductive Representation Learning on Large Graphs"
    <https://arxiv.org/abs/1706.02216>`_ (Hamilton, Ying and Leskovec, 2017): the mean over the
    neighbours.

    .. math:: h \leftarrow h + W_2\,\mathrm{ReLU}\big(W_1\,[n(h),\; D^{-1}A\,n(h)]\big)
    """

    def __init__(self, *sizes: int, **options: Any) -> None:
        super().__init__(*sizes, message=lambda _: Mean(), **options)


class DeepGAT(DeepGNN):
    r"""Blocks of GAT, `"Graph Attention Networks" <https://arxiv.org/abs/1710.10903>`_
    (Veličković et al., 2018): a mean over the neighbours with learned weights, with self loops.

    .. math:: h \leftarrow h + W_2\,\mathrm{ReLU}\big(W_1\,[n(h),\; \alpha(n(h))\,n(h)\,\Theta]\big)

    Args:
        heads: of the attention; they share the hidden channels out among them.
        options: of :class:`DeepGNN` (blocks, norm, residual, jump, dropouts).
    """

    self_loops: SelfLoops = "add"

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        heads: int = 1,
        **options: Any,
    ) -> None:
        sizes = (in_channels, hidden_channels, out_channels)
        message = partial(_attention, hidden_channels, heads)
        super().__init__(*sizes, message=message, **options)


def _attention(channels: int, heads: int, number: int) -> nn.Module:
    return Attention(channels, heads)

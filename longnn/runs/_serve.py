r"""One new node now: what it hears of the run's graph, in milliseconds.

Models hear of a graph by products with P, and what each of them gave in the run's graph is kept. A
new node makes new edges, and changes the degrees that P is divided by. In a ball around it all is
computed again, with the degrees of the grown graph; from its rim on everything stays as it was. A
product carries a change one step, so that it takes r products to leave a ball of radius r, and as
many to come back: with R of them in a row :math:`2r \ge R` is exact, and a smaller ball leaves out
what went r steps away and came back.

Known answers solve a system over the whole graph. It is solved again in the ball alone, which
leaves out what goes farther; it is exact where the ball is all that the node is connected with.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow
import scipy.sparse as sp
import torch
from torch import Tensor

from longnn._base.memory import usable_memory
from longnn.data import DataError, NodeDataset
from longnn.data._options import FileOptions
from longnn.data._tables import Table
from longnn.explain._subject import find_ids
from longnn.graphs import GraphOperator
from longnn.graphs._adjacency import SelfLoops, read_adjacency, with_self_loops
from longnn.graphs._edges import EdgeOperator
from longnn.matrices import SparseMatrix
from longnn.nn._deep import Attention, Mean
from longnn.nn._nonpolynomial import OptBasisFilter
from longnn.runs._predictions import forecast_table
from longnn.training import Trained
from longnn.training._intervals import Opinion
from longnn.training._problem import self_loops_of
from longnn.training._process import COVARIANCES, solved, solved_nearby, spread

#: A node's columns, or its features; ids of its neighbours, perhaps with weights of the edges.
Row = Mapping[str, Any] | Sequence[float]
Neighbours = Sequence[Any] | Mapping[Any, float]
#: Nodes inside a ball, unless a node has more neighbours.
INSIDE = 1000
#: Steps, there and back, in which known answers are solved again at least.
STEPS = 12


@dataclasses.dataclass(frozen=True, eq=False)
class Whole(EdgeOperator):
    """The run's graph, which keeps what each product gives."""

    operator: GraphOperator
    kept: list[Tensor]
    room: list[int]  # bytes that are left

    by_rows: ClassVar[bool] = False
    device: ClassVar[torch.device] = torch.device("cpu")
    dtype = property(lambda self: self.values.dtype)

    def __matmul__(self, signal: Tensor) -> Tensor:
        self.room[0] -= signal.numel() * signal.element_size()
        if self.room[0] < 0:
            raise DataError(
                "Expected memory for what models hear at every node of the graph (it is not "
                "enough); give more, or use run.predict_new, or longnn predict RUN --add NEW"
            )
        self.kept.append(self.operator @ signal)
        return self.kept[-1]


@dataclasses.dataclass(frozen=True, eq=False)
class Ball(EdgeOperator):
    """The grown graph around a new node: its row is the first, then those inside, then the rim,
    where products give what they gave in the run's graph."""

    inside: sp.csr_array  # (inside, inside + rim)
    rim: Tensor  # int64, nodes of the run's graph
    kept: Iterator[Tensor] | None = None

    by_rows, device, dtype = Whole.by_rows, Whole.device, Whole.dtype

    def __matmul__(self, signal: Tensor) -> Tensor:
        assert self.kept is not None
        return torch.cat([self.product(signal), next(self.kept)[self.rim]])

    def product(self, signal: Tensor) -> Tensor:
        """Of those inside."""
        return torch.from_numpy(self.inside @ signal.numpy())


class Variants(dict[SelfLoops, Any]):
    """An operator for each treatment of self loops, made anew for every model that asks."""

    def __init__(self, make: Callable[[SelfLoops], EdgeOperator]) -> None:
        self.make = make

    def __missing__(self, loops: SelfLoops) -> EdgeOperator:
        return self.make(loops)


class Served:
    """A run that is asked about one new node after the other.

    Args:
        trained: its models.
        dataset: its graph, which has to fit into memory.
        memory: bytes that what products gave may take.

    Raises:
        DataError: for a graph or a model of which one node cannot be predicted so.
    """

    def __init__(self, trained: Trained, dataset: NodeDataset, memory: int | None = None) -> None:
        config, source = trained.config.replace(device="cpu"), dataset.source
        self.trained = trained = dataclasses.replace(trained, config=config)
        encoding, alone = trained.encoding, (Attention, Mean, OptBasisFilter)
        parts = [part for model in trained.models for part in model.modules()]
        table = source is None or source.is_named
        if encoding is not None:
            table = len(encoding.feature_names) == trained.features
        for right, wanted in (
            (not (trained.edge_types or dataset.directed), "edges of one kind that go both ways"),
            (not any(isinstance(p, alone) for p in parts), "models that hear by products alone"),
            (table, "features that are columns of a table"),
        ):
            if not right:
                raise DataError(
                    f"Expected {wanted}, to predict one node (got others); use run.predict_new, or "
                    "longnn predict RUN --add NEW"
                )
        self.options = {} if source is None or source.is_named else source.options
        self.dataset, _ = dataset.backing.neighbourhood(dataset, np.arange(0), None)
        self.places = {str(node): place for place, node in enumerate(self.dataset.ids)}
        problem = trained.problem(self.dataset, known="run")
        self.problem, self.known = dataclasses.replace(problem, known=None), problem.known
        x, room = problem.features, [usable_memory(memory)]
        self.x = x.to_scipy() if isinstance(x, SparseMatrix) else x.values.numpy()
        # What each product gave, by repeat, by model, in turn.
        self.kept: list[list[list[Tensor]]] = [[] for _ in range(trained.repeats)]
        for repeat, models in enumerate(self.kept):
            self._ask(repeat, functools.partial(self._whole, models, room), x)
        self.products = max(len(one) for models in self.kept for one in models)
        index, weight = self.dataset.data.edge_index, self.dataset.data.get("edge_weight")
        edges = read_adjacency(index, weight, len(self.places), "sum", problem.dtype)
        every: set[SelfLoops] = {"keep", *problem.variants}
        self.edges = {loops: with_self_loops(edges, loops) for loops in every}
        self.degrees = {loops: np.asarray(e.sum(axis=1)).ravel() for loops, e in self.edges.items()}
        self.solved = [self._solved(repeat) for repeat in range(trained.repeats)]

    def _ask(self, repeat: int, make: Callable[[SelfLoops], EdgeOperator], x: Any) -> Opinion:
        """What a repeat says of some rows."""
        own = {"features": x, "operator": make(self_loops_of(self.trained.config))}
        problem = dataclasses.replace(self.problem, **own, variants=Variants(make))
        ((said,),) = self.trained.opinion_batches(problem, repeat=repeat)
        return said

    def _whole(self, models: list[list[Tensor]], room: list[int], loops: SelfLoops) -> Whole:
        """The run's graph as one more model hears of it."""
        models.append([])
        operator = self.problem.variants[loops]
        crow, col, values = operator.matrix.crow, operator.matrix.col, operator.matrix.values
        row = torch.arange(len(crow) - 1).repeat_interleave(crow.diff().long())
        return Whole(row, col, values, operator, models[-1], room)

    def _solved(self, repeat: int) -> tuple[Tensor, Tensor, list[Tensor]] | None:
        """The rests of known nodes, where these are, and the solutions of their systems."""
        around = self.known and self.known.around
        rests = self.known.rests[repeat] if self.known and around else None
        if not around or rests is None:
            return None
        r, there = rests.r.nan_to_num(0.0), (~rests.r.isnan()).to(rests.r)
        return r, there, [solved(around.product, c, r, there) for c in COVARIANCES]

    def predict(self, row: Row, neighbours: Neighbours, coverage: float | None) -> dict[str, Any]:
        """See :meth:`longnn.runs.Run.predict_one`; None for no intervals."""
        x, (near, weight) = self._features(row), self._edges(neighbours)
        opinions, exact = self._hear(self.trained.scaling.apply(x), near, weight)
        degree = torch.tensor([len(near)])
        forecast = self.trained.forecast(opinions, coverage, degree)
        table = forecast_table(pyarrow.nulls(1), forecast, self.trained.readout(), self.trained)
        return {**table.drop(["id"]).to_pylist()[0], "exact": exact}

    def _features(self, row: Row) -> Tensor:  # (1, features)
        """The features of a node, from columns as they would stand in a file, or as they are."""
        encoding, count = self.trained.encoding, self.trained.features
        if isinstance(row, Mapping) and encoding is not None:
            cells = {str(k): pyarrow.array(["" if v is None else str(v)]) for k, v in row.items()}
            table = Table(cells, frame="the row")
            return encoding.apply(FileOptions.from_dict(self.options).meaning(table))
        if isinstance(row, Mapping) or encoding is not None or len(row) != count:
            what = f"{count} numbers" if encoding is None else "a mapping from columns to values"
            raise DataError(f"Expected the row of a node as {what} (got {row!r:.80})")
        return torch.tensor([[float(value) for value in row]])

    def _edges(self, neighbours: Neighbours) -> tuple[np.ndarray, np.ndarray]:
        """The places of the neighbours, and the weights of the edges."""
        weighted = self.dataset.backing.weighted
        if len(neighbours) and isinstance(neighbours, Mapping) != weighted:
            what = "a mapping from ids to weights" if weighted else "a list of ids"
            raise DataError(f"Expected neighbours as {what} (got {neighbours!r:.80})")
        ids = list(dict.fromkeys(map(str, neighbours)))
        if not ids and self.options.get("isolated") == "drop":
            raise DataError("Expected a neighbour (got none, and the run has isolated=drop)")
        if unknown := [node for node in ids if node not in self.places]:
            find_ids(self.dataset.ids, unknown)  # the error names the nearest
        weight = np.ones(len(ids))
        if isinstance(neighbours, Mapping):
            weight = np.array([float(value) for value in neighbours.values()])
        if not (np.isfinite(weight) & (weight > 0)).all():
            raise DataError(f"Expected finite weights above 0 (got {neighbours!r:.80})")
        return np.array([self.places[node] for node in ids], dtype=np.int64), weight

    def _hear(self, x: Tensor, near: np.ndarray, weight: np.ndarray) -> tuple[list[Opinion], bool]:
        """What each repeat says of a node with such features, and whether that is exact."""
        layers, rim = self._layers(near)
        nodes = np.concatenate([*layers, rim])
        balls = {loops: self._ball(loops, nodes, rim, weight) for loops in self.edges}
        others = self.x[nodes]
        others = others.toarray() if sp.issparse(others) else others
        rows, opinions = torch.cat([x.to(self.problem.dtype), torch.from_numpy(others)]), []
        outer = len(layers[-1]) if len(rim) else 0
        for repeat, models in enumerate(map(iter, self.kept)):

            def ball(loops: SelfLoops, models: Iterator[list[Tensor]] = models) -> Ball:
                return dataclasses.replace(balls[loops], kept=iter(next(models)))

            predicted, apart = self._ask(repeat, ball, rows)
            said = Opinion(predicted[:1], None if apart is None else apart[:1])
            if self.solved[repeat] is not None:
                change = self._change(repeat, balls["keep"], nodes, outer)
                said = said.corrected(change, self.trained.task)
            opinions.append(said)
        far = any(self.solved) or 2 * len(layers) < self.products
        return opinions, not (far and len(rim))

    def _layers(self, near: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """The nodes inside the ball by their distance, and those of the rim."""
        edges = self.edges["keep"]
        seen, layers = np.zeros(edges.shape[0], dtype=bool), [near]
        seen[near] = True
        steps = max(self.products, STEPS) if any(self.solved) else self.products
        while True:
            ahead = np.unique(edges[layers[-1]].indices).astype(np.int64)
            ahead = ahead[~seen[ahead]]
            full = sum(map(len, layers)) + len(ahead) > INSIDE
            if full or not len(ahead) or 2 * len(layers) >= steps:
                return layers, ahead
            seen[ahead] = True
            layers.append(ahead)

    def _ball(
        self, loops: SelfLoops, nodes: np.ndarray, rim: np.ndarray, weight: np.ndarray
    ) -> Ball:
        """The grown graph there; the first nodes are the neighbours, by edges of such weights."""
        rows, own, count = self.edges[loops][nodes], int(loops == "add"), 1 + len(nodes)
        edge = np.zeros(len(nodes))
        edge[: len(weight)] = weight
        blocks = [[np.full((1, 1), own), edge[None]], [edge[:, None], rows[:, nodes]]]
        degree = np.concatenate([[weight.sum() + own], self.degrees[loops][nodes] + edge])
        scale = sp.diags_array(1 / np.sqrt(np.where(degree > 0, degree, 1.0)))
        matrix = sp.csr_array(scale @ sp.block_array(blocks, format="csr") @ scale)
        # Neighbours are counted in the whole of each row, of the rim, too.
        counts = np.concatenate([[len(weight) + own], np.diff(rows.indptr) + (edge > 0)])
        row = torch.arange(count).repeat_interleave(torch.from_numpy(counts))
        ones = torch.ones(len(row), dtype=self.problem.dtype)
        inside = matrix[: count - len(rim)].astype(ones.numpy().dtype)
        return Ball(row, row, ones, inside, torch.from_numpy(rim))

    def _change(self, repeat: int, ball: Ball, nodes: np.ndarray, outer: int) -> Tensor:
        """What known answers change at the node; so many nodes inside touch the rim."""
        inside, count = ball.inside.shape
        held = self.solved[repeat]
        assert self.known is not None
        assert held is not None

        def product(signal: Tensor) -> Tensor:
            rows = ball.product(signal).to(signal)
            return torch.cat([rows, rows.new_zeros(count - inside, rows.shape[1])])

        def grown(values: Tensor) -> Tensor:
            return torch.cat([values.new_zeros(1, values.shape[1]), values[nodes]])

        r, there, signals = grown(held[0]), grown(held[1]), []
        for covariance, before in zip(COVARIANCES, held[2], strict=True):
            free = torch.zeros(count, 1, dtype=r.dtype)
            free[: inside - (outer if covariance.kind == "near" else 0)] = 1
            after = solved_nearby(product, covariance, r, there, grown(before), free)
            signals.append(spread(product, covariance, after)[:1])
        return self.known.filters[repeat].change(torch.stack(signals))

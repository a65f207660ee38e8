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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow
import scipy.sparse as sp
import torch
from torch import Tensor

from longnn.data import DataError, NodeDataset
from longnn.data._errors import require_memory
from longnn.data._options import FileOptions
from longnn.data._tables import Table
from longnn.explain._subject import find_ids
from longnn.graphs._adjacency import SelfLoops, read_adjacency, with_self_loops
from longnn.graphs._edges import EdgeOperator
from longnn.matrices import SparseMatrix
from longnn.nn._deep import Attention, Mean
from longnn.nn._nonpolynomial import OptBasisFilter
from longnn.runs._predictions import forecast_table
from longnn.training import Trained
from longnn.training._intervals import Opinion
from longnn.training._problem import self_loops_of
from longnn.training._process import COVARIANCES, solved, spread

#: A node's columns, or its features; ids of its neighbours, perhaps with weights of the edges.
Row = Mapping[str, Any] | Sequence[float]
Neighbours = Sequence[Any] | Mapping[Any, float]
#: Nodes inside a ball, unless a node has more neighbours.
INSIDE = 1000
#: Steps, there and back, in which known answers are solved again at least.
STEPS = 12


@dataclasses.dataclass(frozen=True, eq=False)
class Part(EdgeOperator):
    """A new node, the first row, and nodes of the run's graph: those inside, then the rim, where
    products give what they gave before."""

    inside: sp.csr_array  # (inside, inside + rim)
    rim: np.ndarray  # int64
    before: Iterator[Tensor] = dataclasses.field(default_factory=lambda: iter(()))
    heard: list[Tensor] = dataclasses.field(default_factory=list)

    def __matmul__(self, signal: Tensor) -> Tensor:
        self.heard.append(torch.from_numpy(self.inside @ signal.numpy()))
        if not len(self.rim):
            return self.heard[-1]
        return torch.cat([self.heard[-1], next(self.before)[1 + self.rim]])


class Parts(dict[SelfLoops, Part]):
    """A part of the graph by its treatment of self loops, for one model after the other.

    Args:
        parts: the same for all.
        before: what products gave, by model, in turn.
    """

    def __init__(self, parts: Mapping[SelfLoops, Part], before: Iterable[list[Tensor]] = ()):
        super().__init__(parts)
        self.before, self.heard = iter(before), list[list[Tensor]]()

    def __getitem__(self, loops: SelfLoops) -> Part:
        part, last = super().__getitem__(loops), self.heard[-1:]
        if not len(part.rim):  # the whole graph: the next model will take about as much
            needed = sum(heard.nbytes for model in last for heard in model)
            require_memory(needed, "what models hear at every node")
        self.heard.append([])
        before = iter(next(self.before, ()))
        return dataclasses.replace(part, before=before, heard=self.heard[-1])


class Served:
    """A run that is asked about one new node after the other.

    Args:
        trained: its models.
        dataset: its graph, which has to fit into memory.

    Raises:
        DataError: for a graph or a model of which one node cannot be predicted so.
    """

    def __init__(self, trained: Trained, dataset: NodeDataset) -> None:
        source, encoding = dataset.source, trained.encoding
        self.options = {} if source is None or source.is_named else source.options
        table = source is None or source.is_named
        if encoding is not None:
            table = len(encoding.feature_names) == trained.features
        inner = [part for model in trained.models for part in model.modules()]
        others = any(isinstance(part, Attention | Mean | OptBasisFilter) for part in inner)
        for wrong, wanted in (
            (trained.edge_types or dataset.directed, "edges of one kind that go both ways"),
            (others, "models that hear by products alone"),
            (not table, "features that are columns of a table"),
        ):
            if wrong:
                raise DataError(
                    f"Expected {wanted}, to predict one node (got others); use run.predict_new, or "
                    "longnn predict RUN --add NEW"
                )
        config = trained.config.replace(device="cpu")
        self.trained = trained = dataclasses.replace(trained, config=config)
        self.dataset, _ = dataset.backing.neighbourhood(dataset, np.arange(0), None)
        self.places = {str(node): place for place, node in enumerate(self.dataset.ids)}
        problem = trained.problem(self.dataset, known="run")
        self.problem, self.known, x = problem, problem.known, problem.features
        self.x = x.to_scipy() if isinstance(x, SparseMatrix) else x.values.numpy()
        index, weight = self.dataset.data.edge_index, self.dataset.data.get("edge_weight")
        edges = read_adjacency(index, weight, len(self.places), "sum", problem.dtype)
        every: set[SelfLoops] = {"keep", *problem.variants}
        self.edges = {loops: with_self_loops(edges, loops) for loops in every}
        self.degrees = {loops: np.asarray(e.sum(axis=1)).ravel() for loops, e in self.edges.items()}
        # What each product gave, by repeat and model, beside a node without edges.
        nodes, nothing = np.arange(len(self.places)), torch.zeros(1, trained.features)
        self.heard = []
        for repeat in range(trained.repeats):
            whole = Parts(self._parts(nodes, nodes[:0], np.zeros(0)))
            self._ask(repeat, whole, nothing, nodes)
            self.heard.append(whole.heard)
        self.products = max(len(model) for models in self.heard for model in models)
        self.solved = [self._solved(repeat) for repeat in range(trained.repeats)]

    def predict(self, row: Row, neighbours: Neighbours, coverage: float | None) -> dict[str, Any]:
        """See :meth:`longnn.runs.Run.predict_one`; no coverage is no interval."""
        x, (near, weight) = self._features(row), self._edges(neighbours)
        layers, rim = self._ball(near)
        nodes, outer = np.concatenate([*layers, rim]), len(layers[-1]) if len(rim) else 0
        parts, opinions = self._parts(nodes, rim, weight), []
        for repeat, heard in enumerate(self.heard):
            every = self._ask(repeat, Parts(parts, heard), self.trained.scaling.apply(x), nodes)
            apart = None if every.disagreement is None else every.disagreement[:1]
            said = Opinion(every.predicted[:1], apart)
            if self.solved[repeat]:
                change = self._change(repeat, parts["keep"], nodes, outer)
                said = said.corrected(change, self.trained.task)
            opinions.append(said)
        far = any(self.solved) or 2 * len(layers) < self.products
        forecast = self.trained.forecast(opinions, coverage, torch.tensor([len(near)]))
        table = forecast_table(pyarrow.nulls(1), forecast, self.trained.readout(), self.trained)
        return {**table.drop(["id"]).to_pylist()[0], "exact": not (far and len(rim))}

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
        weights = neighbours if isinstance(neighbours, Mapping) else dict.fromkeys(neighbours, 1.0)
        weight = np.array([*weights.values()], dtype=np.float64)
        if not (np.isfinite(weight) & (weight > 0)).all():
            raise DataError(f"Expected finite weights above 0 (got {neighbours!r:.80})")
        if not len(weight) and self.options.get("isolated") == "drop":
            raise DataError("Expected a neighbour (got none, and the run has isolated=drop)")
        if any(str(node) not in self.places for node in weights):
            find_ids(self.dataset.ids, [*weights])  # the error names the nearest
        return np.array([self.places[str(node)] for node in weights], dtype=np.int64), weight

    def _ball(self, near: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """The nodes inside by their distance, and those of the rim."""
        edges, seen, layers = self.edges["keep"], np.zeros(len(self.places), dtype=bool), [near]
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

    def _parts(
        self, nodes: np.ndarray, rim: np.ndarray, weight: np.ndarray
    ) -> dict[SelfLoops, Part]:
        """The grown graph of some nodes; the first have edges of such weights to the new one."""
        parts: dict[SelfLoops, Part] = {}
        edge, count = np.zeros(len(nodes)), 1 + len(nodes)
        edge[: len(weight)] = weight
        for loops, edges in self.edges.items():
            rows, own = edges[nodes], int(loops == "add")
            blocks = [[np.full((1, 1), own), edge[None]], [edge[:, None], rows[:, nodes]]]
            degree = np.concatenate([[weight.sum() + own], self.degrees[loops][nodes] + edge])
            scale = sp.diags_array(1 / np.sqrt(np.where(degree > 0, degree, 1.0)))
            matrix = sp.csr_array(scale @ sp.block_array(blocks, format="csr") @ scale)
            inside = matrix[: count - len(rim)].astype(str(self.problem.dtype).rpartition(".")[2])
            # Neighbours are counted in whole rows, of the rim, too.
            counts = np.concatenate([[len(weight) + own], np.diff(rows.indptr) + (edge > 0)])
            row = torch.arange(count).repeat_interleave(torch.from_numpy(counts))
            ones = torch.ones(len(row), dtype=self.problem.dtype)
            parts[loops] = Part(row, row, ones, inside, rim)
        return parts

    def _ask(self, repeat: int, parts: Parts, x: Tensor, nodes: np.ndarray) -> Opinion:
        """What a repeat says of a node with such features, and of nodes around."""
        others = self.x[nodes]
        others = torch.from_numpy(others.toarray() if sp.issparse(others) else others)
        how: Any = {"operator": parts[self_loops_of(self.trained.config)], "variants": parts}
        rows = torch.cat([x.to(self.problem.dtype), others])
        problem = dataclasses.replace(self.problem, features=rows, known=None, **how)
        ((said,),) = self.trained.opinion_batches(problem, repeat=repeat)
        return said

    def _solved(self, repeat: int) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Of each covariance the rests of known nodes, where these are, and the solution."""
        around = None if self.known is None else self.known.around
        rests = None if self.known is None or around is None else self.known.rests[repeat]
        if around is None or rests is None:
            return []
        r, there = rests.r.nan_to_num(0.0), (~rests.r.isnan()).to(rests.r)
        return [(r, there, solved(around.product, c, r, there)) for c in COVARIANCES]

    def _change(self, repeat: int, part: Part, nodes: np.ndarray, outer: int) -> Tensor:
        """What known answers change at the node; so many nodes inside touch the rim."""
        inside, count = part.inside.shape

        def product(signal: Tensor) -> Tensor:
            rows = torch.from_numpy(part.inside @ signal.numpy()).to(signal)
            return torch.cat([rows, rows.new_zeros(count - inside, rows.shape[1])])

        signals = []
        for covariance, held in zip(COVARIANCES, self.solved[repeat], strict=True):
            new = held[0].new_zeros(1, held[0].shape[1])
            r, there, before = (torch.cat([new, each[nodes]]) for each in held)
            free = torch.zeros(count, 1, dtype=held[0].dtype)
            free[: inside - (outer if covariance.kind == "near" else 0)] = 1
            solution = solved(product, covariance, r, there, before, free)
            signals.append(spread(product, covariance, solution)[:1])
        assert self.known is not None
        return self.known.filters[repeat].change(torch.stack(signals))

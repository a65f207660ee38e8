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
from collections.abc import Iterator, Mapping, Sequence
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
#: Products in a row, at least, where there are known answers.
STEPS = 20


@dataclasses.dataclass(frozen=True, eq=False)
class Part(EdgeOperator):
    """A new node, the first row, and nodes of the run's graph: those inside, then the rim, where
    products give what they gave before."""

    inside: sp.csr_array  # (inside, inside + rim)
    rim: np.ndarray  # int64
    heard: list[Tensor]  # what each product gives inside
    before: Iterator[Tensor]  # what it gave in the run's graph, beside a node without edges

    def __matmul__(self, signal: Tensor) -> Tensor:
        self.heard.append(torch.from_numpy(self.inside @ signal.numpy()))
        if not len(self.rim):
            return self.heard[-1]
        return torch.cat([self.heard[-1], next(self.before)[1 + self.rim]])


class Served:
    """A run, and its graph in memory, asked about one new node after the other."""

    @torch.no_grad()
    def __init__(self, trained: Trained, dataset: NodeDataset) -> None:
        source, encoding = dataset.source, trained.encoding
        plain = source is None or source.is_named
        self.options = {} if source is None or plain else source.options
        members = [m for e in trained.models for m in getattr(e, "members", {"": e}).values()]
        inner = [part for member in members for part in member.modules()]
        # Without an encoding the features of files are made of the graph, and change with it.
        columns = plain if encoding is None else len(encoding.feature_names) == trained.features
        others = any(isinstance(part, Attention | Mean | OptBasisFilter) for part in inner)
        if others or not columns or trained.edge_types or dataset.directed:
            raise DataError(
                "Expected features that are columns of a table, edges of one kind that go both "
                "ways, and models that hear by products alone, to predict one node (got others); "
                "use run.predict_new, or longnn predict RUN --add NEW"
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
        nodes, x = np.arange(len(self.places)), torch.zeros(1, trained.features).to(problem.dtype)
        alone = [list[Tensor]() for _ in members]  # what each member hears at one node
        for member, heard in zip(members, alone, strict=True):
            part = self._parts(nodes[:0], nodes[:0], np.zeros(0))[member.self_loops]
            member.scores(x, dataclasses.replace(part, heard=heard))
        #: Products in a row.
        self.products = max(map(len, alone))
        bytes_each = sum(t.nbytes for heard in alone for t in heard)
        require_memory(bytes_each * len(nodes), "what models hear at every node")
        graph = self._parts(nodes, nodes[:0], np.zeros(0))
        #: What each product gave, by repeat, in turn, with a row for a node without edges.
        self.heard = [self._ask(repeat, graph, x, nodes)[1] for repeat in range(trained.repeats)]
        self.solved = [self._solved(repeat) for repeat in range(trained.repeats)]

    def predict(self, row: Row, neighbours: Neighbours, coverage: float | None) -> dict[str, Any]:
        """See :meth:`longnn.runs.Run.predict_one`; no coverage is no interval."""
        raw, (near, weight) = self._features(row), self._edges(neighbours)
        x, (layers, rim) = self.trained.scaling.apply(raw), self._ball(near)
        nodes, opinions = np.concatenate([*layers, rim]), []
        parts = self._parts(nodes, rim, weight)
        free = torch.zeros(1 + len(nodes), 1)  # two steps from here are inside
        free[: 1 + sum(map(len, layers[:-1] if len(rim) else layers))] = 1
        for repeat, heard in enumerate(self.heard):
            (predicted, apart), _ = self._ask(repeat, parts, x, nodes, heard)
            said = Opinion(predicted[:1], None if apart is None else apart[:1])
            if self.solved[repeat]:
                change = self._change(repeat, parts["keep"], nodes, free)
                said = said.corrected(change, self.trained.task)
            opinions.append(said)
        far = any(self.solved) or 2 * len(layers) < self.products
        degree = torch.tensor([len(near)])
        forecast = self.trained.forecast(opinions, coverage, degree)
        table = forecast_table(pyarrow.nulls(1), forecast, self.trained.readout(), self.trained)
        seen, names = self.trained.seen, self.trained.feature_names
        outside = seen.outside(names, raw.T.numpy(), degree.numpy()) if seen else ""
        told = {"exact": not (far and len(rim)), "outside": outside}
        return {**table.drop(["id"]).to_pylist()[0], **told}

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
        weighted, given = self.dataset.backing.weighted, isinstance(neighbours, Mapping)
        if len(neighbours) and given != weighted:
            what = "a mapping from ids to weights" if weighted else "a list of ids"
            raise DataError(f"Expected neighbours as {what} (got {neighbours!r:.80})")
        if not len(neighbours) and self.options.get("isolated") == "drop":
            raise DataError("Expected a neighbour (got none, and the run has isolated=drop)")
        edges = {str(k): neighbours[k] if given else 1.0 for k in neighbours}
        weight = np.array([*edges.values()], dtype=np.float64)
        if not (np.isfinite(weight) & (weight > 0)).all():
            raise DataError(f"Expected finite weights above 0 (got {neighbours!r:.80})")
        if not edges.keys() <= self.places.keys():
            find_ids(self.dataset.ids, [*edges])  # the error names the nearest
        return np.array([self.places[node] for node in edges], dtype=np.int64), weight

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
        edge, count = np.pad(weight, (0, len(nodes) - len(weight))), 1 + len(nodes)
        for loops, edges in self.edges.items():
            rows, own = edges[nodes], int(loops == "add")
            blocks = [[np.full((1, 1), own), edge[None]], [edge[:, None], rows[:, nodes]]]
            degree = np.concatenate([[weight.sum() + own], self.degrees[loops][nodes] + edge])
            scale = sp.diags_array(1 / np.sqrt(np.where(degree > 0, degree, 1.0)))
            matrix = sp.csr_array(scale @ sp.block_array(blocks, format="csr") @ scale)
            # Neighbours are counted in whole rows, of the rim, too.
            counts = np.concatenate([[len(weight) + own], np.diff(rows.indptr) + (edge > 0)])
            row = torch.arange(count).repeat_interleave(torch.from_numpy(counts))
            col = row.clone()  # of the new node alone, whose neighbours follow it, are ends needed
            col[: counts[0]] = torch.arange(counts[0]) + 1 - own
            ones = torch.ones(len(row), dtype=self.problem.dtype)
            inside = matrix[: count - len(rim)].astype(ones.numpy().dtype)
            parts[loops] = Part(row, col, ones, inside, rim, [], iter(()))
        return parts

    def _ask(
        self,
        repeat: int,
        parts: Mapping[SelfLoops, Part],
        x: Tensor,
        nodes: np.ndarray,
        before: Sequence[Tensor] = (),
    ) -> tuple[Opinion, list[Tensor]]:
        """What a repeat says of a node with such features and of others, and what products gave."""
        others, heard, told = self.x[nodes], list[Tensor](), iter(before)
        others = torch.from_numpy(others.toarray() if sp.issparse(others) else others)
        each = {k: dataclasses.replace(p, heard=heard, before=told) for k, p in parts.items()}
        problem = dataclasses.replace(
            self.problem,
            features=torch.cat([x.to(others), others]),
            operator=each[self_loops_of(self.trained.config)],
            variants=each,
            known=None,
        )
        ((said,),) = self.trained.opinion_batches(problem, repeat=repeat)
        return said, heard

    def _solved(self, repeat: int) -> list[Tensor]:
        """The rests of known nodes, where these are, and the solution for each covariance."""
        around = None if self.known is None else self.known.around
        rests = None if self.known is None or around is None else self.known.rests[repeat]
        if around is None or rests is None:
            return []
        r, there = rests.r.nan_to_num(0.0), (~rests.r.isnan()).to(rests.r)
        return [r, there, *(solved(around.product, c, r, there) for c in COVARIANCES)]

    def _change(self, repeat: int, part: Part, nodes: np.ndarray, free: Tensor) -> Tensor:
        """What known answers change at the new node; solutions change where they are free."""
        inside, count = part.inside.shape

        def product(signal: Tensor) -> Tensor:
            rows = torch.from_numpy(part.inside @ signal.numpy()).to(signal)
            return torch.cat([rows, rows.new_zeros(count - inside, rows.shape[1])])

        every = [torch.cat([t.new_zeros(1, t.shape[1]), t[nodes]]) for t in self.solved[repeat]]
        r, there, *solutions = every
        signals = [
            spread(product, c, solved(product, c, r, there, before, free.to(r)))[:1]
            for c, before in zip(COVARIANCES, solutions, strict=True)
        ]
        assert self.known is not None
        return self.known.filters[repeat].change(torch.stack(signals))

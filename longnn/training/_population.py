r"""The one training loop: it trains a population of one or more models at once.

Members share graph, features and architecture and differ in seed, split and hyperparameters.
Their models are stacked (:mod:`longnn.training`) and called as one. Dropout numbers depend
on the member's seed and the epoch alone: a member's result is the one it would get alone. The
loop knows a model only through :class:`~longnn.nn.Model`'s interface.
"""

import copy
import dataclasses
import logging
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from longnn._base.contexts import dense_products
from longnn.config import Settings
from longnn.nn._inputs import WithInputs
from longnn.store._ranks import Ranks
from longnn.training._feed import Batch, make_feed
from longnn.training._history import History, Standing
from longnn.training._objective import Objective
from longnn.training._problem import Problem, choose_form
from longnn.training._stack import Packed, PopulationAdam, Stack, TrainableModel, Watched


@dataclasses.dataclass(frozen=True)
class Member:
    """One model of the population and what is its own.

    >>> import torch
    >>> from longnn.nn import MLP
    >>> train, val = torch.tensor([[True, False], [False, True]])
    >>> member = Member(MLP(2, 4, 2), Settings(epochs=3), seed=0, train=train, val=val)
    >>> member.settings.epochs, member.weight is None
    (3, True)
    """

    model: TrainableModel
    settings: Settings
    seed: int
    train: Tensor  # (nodes,) bool
    val: Tensor  # (nodes,) bool
    weight: Tensor | None = None  # in the losses, (nodes,) or (nodes, outputs); None: all alike


def behind_inputs(members: Sequence[Member], problem: Problem) -> tuple[Sequence[Member], Problem]:
    """What is trained where models see other inputs than the features: the models inside, on
    inputs that are computed once. Members are alike in their inputs."""
    first = members[0].model
    if not isinstance(first, WithInputs):
        return members, problem
    x = choose_form(
        first.to(problem.device).encode(problem.features, problem.operator), problem.device
    )
    inside = [dataclasses.replace(m, model=cast(WithInputs, m.model).model) for m in members]
    return inside, dataclasses.replace(problem, features=x.to(problem.dtype))


@dataclasses.dataclass
class Result:
    """What the training of a member gave."""

    state: dict[str, Tensor]  # the best weights, by name
    best_epoch: int
    epochs: int
    stopped: str  # patience, epochs, diverged, pruned, halved, time or interrupted
    history: dict[str, Tensor]  # field -> (epochs,)
    filter_path: Tensor | None  # (epochs, degree+1, channels) Chebyshev coefficients
    offset: tuple[float, ...] = (0.0,)  # regression: labels = offset + scale * output, by target
    scale: tuple[float, ...] = (1.0,)
    falling: bool = False  # whether a smaller score is a better one


#: Ordinary epochs before one is captured as a CUDA graph (the first compiles kernels and opens
#: libraries, which a capture cannot), and epochs between looks at a GPU.
WARM_UP, CHECK_EVERY = 1, 10


class Population:
    """Members in training: :meth:`run` trains them to the end, :meth:`step` one epoch.

    :func:`~longnn.training.save_checkpoint` writes its state, and
    :func:`~longnn.training.load_checkpoint` restores it in a new population, bit by bit.

    Args:
        members: at least one; all models alike in architecture.
        problem: what they learn.
        record_filters: keep the first filter's coefficients at every epoch.

    >>> from longnn.config import Settings
    >>> from longnn.graphs import GraphOperator
    >>> from longnn.nn import MLP
    >>> P = GraphOperator.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
    >>> problem = Problem.make(torch.eye(2), P, torch.tensor([0, 1]))
    >>> every = torch.ones(2, dtype=torch.bool)
    >>> member = Member(MLP(2, 4, 2), Settings(epochs=3), 0, every, every)
    >>> [result.epochs for result in Population([member], problem).run()]
    [3]
    """

    def __init__(
        self, members: Sequence[Member], problem: Problem, *, record_filters: bool = False
    ) -> None:
        if not members:
            raise ValueError("Expected at least one member (got none)")
        shared = [(m.settings.epochs, m.settings.patience, m.settings.monitor) for m in members]
        if len(set(shared)) > 1:
            raise ValueError("Expected the same epochs, patience and monitor in all members")
        self.problem = problem
        self.limits = members[0].settings
        self.count = len(members)
        #: For a display: how many members of a job were before these, and how many it has.
        self.before, self.total = 0, self.count
        self.record_filters = record_filters and bool(members[0].model.filters())
        self.epoch = 0
        self.index = torch.arange(self.count)  # which member each row of the stack is
        self._stack(members)
        self._aim(members)
        self.results: dict[int, Result] = {}
        self._graph: torch.cuda.CUDAGraph | None = None
        self._eager = 0  # epochs run outside a CUDA graph since the stack last changed

    def _stack(self, members: Sequence[Member]) -> None:
        """Stack weights and buffers, shape (members, ...), and set up dropout and Adam."""
        problem, device = self.problem, self.problem.device
        # Copies: dropout below becomes the population's, and members stay as their owner made them.
        models = [Watched(copy.deepcopy(m.model)).to(device, problem.dtype) for m in members]
        rates = [[d.rate for d in _dropouts(m)] for m in models]
        for model, member in zip(models, members, strict=True):
            for site, dropout in enumerate(_dropouts(model)):
                dropout.site = site
                dropout.rate = max(r[site] for r in rates)  # off only if off in every member
                dropout.stream = torch.tensor([member.seed, 0], device=device)
        self.stream = torch.tensor([[m.seed, 0] for m in members], device=device)
        self.stack = Stack(models, {"stream": self.stream})
        self._dropouts = _dropouts(self.stack.modules[True])
        roles = {}
        of = models[0].model.parameter_groups()
        names = {id(p): name for name, p in models[0].named_parameters()}
        for role, parameters in of.items():
            roles.update({names[id(p)]: role for p in parameters})

        def table(kind: Any) -> dict[str, Tensor]:
            values = [m.settings.rates(kind) for m in members]
            return {
                name: torch.tensor(
                    [v[roles[name]] for v in values], dtype=problem.dtype, device=device
                )
                for name in self.parameters
            }

        self.adam = PopulationAdam(self.parameters, table("lr"), table("wd"))

    @property
    def parameters(self) -> Packed:
        """The weights now: name -> (members, ...)."""
        return self.stack.parameters

    def _aim(self, members: Sequence[Member]) -> None:
        """What is learned, and what becomes of it, each with one row per member."""
        problem, dtype, device = self.problem, self.problem.dtype, self.problem.device
        self.objective = Objective(
            problem,
            [m.train for m in members],
            [m.val for m in members],
            weights=[m.weight for m in members],
            monitor=self.limits.monitor,
        )
        self.feed = make_feed(
            problem,
            [m.train for m in members],
            [m.val for m in members],
            size=self.limits.batch_rows,
            degree=getattr(members[0].model, "row_degree", None),
        )
        if self.feed.by_rows:
            self.objective.number_by_rows()
        self.penalty = torch.tensor(
            [[m.settings.penalty, m.settings.degree_penalty] for m in members],
            dtype=dtype,
            device=device,
        )
        self.penalties = tuple((self.penalty > 0).any(0).tolist())  # which any member uses
        like = self.penalty[:, 0]
        falling = self.objective.falling
        self.standing = Standing(self.parameters, like, self.limits, falling=falling)
        self.history = History(self.limits.epochs, like, self._filter_coefficients())

    @property
    def rows(self) -> dict[str, Tensor]:
        """What was written down until now: field -> (epochs, members in the stack)."""
        return self.history.rows(self.epoch)

    def train_epoch(self) -> Tensor:
        """A step of every member for each batch; returns the losses before it, without penalties.

        The loss of a batch is its share of the whole loss times the number of batches: their mean
        is the whole loss, and so is that of their gradients. Likewise the loss of a batch is the
        sum over the ranks that share its rows, and so are its gradients.
        """
        losses = [self._train_step(batch) for batch in self.feed.train(self.epoch)]
        return losses[0] if len(losses) == 1 else torch.stack(losses).mean(0)

    def _train_step(self, batch: Batch) -> Tensor:
        self.stream[:, 1].add_(1)
        for dropout in self._dropouts:
            dropout.first_row = batch.first
        x, operator = batch.features, batch.operator
        scores, *penalties = self.stack.each(
            lambda model: model.train_scores(x, operator, self.penalties), training=True
        )
        losses = self.objective.train_loss(scores, batch.place, parts=self.feed.steps)
        total, ranks = losses, self.feed.ranks
        used = (weight for weight, some in zip(self.penalty.T, self.penalties, strict=True) if some)
        for weight, penalty in zip(used, penalties, strict=True):
            total = total + weight * penalty if ranks.first else total  # once, whoever adds up
        found = self.stack.gradients(total)
        *gradients, losses = ranks.add([*found.values(), losses.detach()])
        self.adam.step(self.parameters, dict(zip(found, gradients, strict=True)), self.stream)
        return losses

    @torch.no_grad()
    def validate(self) -> tuple[Tensor, ...]:
        """Validation loss and score, amplitude, a and b of every member, each (members,)."""
        parts = []
        for batch in self.feed.validate():
            x, operator = batch.features, batch.operator
            scores, *watched = self.stack.each(
                lambda model: model.watched_scores(x, operator),  # noqa: B023
                training=False,
            )
            parts.append(scores)
        scores = self.feed.gather(parts[0] if len(parts) == 1 else torch.cat(parts, 1))
        return *self.objective.validate(scores), *watched

    def step(self) -> None:
        """One epoch: train, validate, write down, keep the best, see who is done.

        On a GPU the epoch becomes one CUDA graph after an ordinary one.
        """
        if self.history.make_room(self.epoch + 1):
            self._graph, self._eager = None, 0  # it writes into the tables that were
        if self._graph is not None:
            self._graph.replay()
        else:
            cuda = self.problem.device.type == "cuda"
            # Whether numbers stay finite is seen to at the end.
            with np.errstate(all="ignore"), dense_products(rounded=cuda and self.problem.rounded):
                self._epoch()
                self._eager += 1
                if cuda and self._eager == WARM_UP and not self.feed.by_rows:
                    self._capture()
        self.epoch += 1

    def rehearse(self) -> None:
        """Take the memory that an epoch takes: by an epoch, or on rows by a step and scores of
        zeros, since an epoch there is long. What it learns is of no use."""
        if not self.feed.by_rows:
            self.step()
            return
        batch = next(iter(self.feed.train(self.epoch)))
        ranks, self.feed.ranks = self.feed.ranks, Ranks()  # the others need not be there
        self._train_step(batch)
        self.feed.ranks = ranks
        with torch.no_grad():
            shape = (len(self.index), len(self.objective.val_target[0]), self.problem.outputs)
            self.objective.validate(self.penalty.new_zeros(shape))

    def _capture(self) -> None:
        """Capture an epoch as a CUDA graph; a model that cannot be captured goes on without."""
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self._epoch()
        except RuntimeError as error:
            torch.cuda.synchronize()
            logging.getLogger(__name__).warning("no CUDA graph: %s", str(error).splitlines()[0])
        else:
            self._graph = graph

    def _epoch(self) -> None:
        """All of an epoch that happens on the device: no number is read back."""
        row = torch.stack([self.train_epoch(), *self.validate()])  # (fields, members)
        steps, epoch = self.feed.steps, self.stream[:, 1]
        epoch = epoch if steps == 1 else epoch // steps  # the stream counts steps
        self.history.write(epoch[:1] - 1, row, self._filter_coefficients())
        self.standing.update(epoch, row, self.parameters)

    @torch.no_grad()
    def _filter_coefficients(self) -> Tensor | None:
        """The first filter's Chebyshev coefficients, shape (members, degree+1, channels)."""
        if not self.record_filters:
            return None
        found = self.stack.each(
            lambda model: model.filters[0].chebyshev_coefficients(), training=False
        )
        coefficients: Tensor = found.float()
        return coefficients

    def _retire(self) -> None:
        """Write the results of members that are done, and drop them where that pays.

        Dropping rows changes the shapes, which on a GPU costs a new graph: wait for half.
        """
        standing = self.standing
        alive = standing.alive.cpu()
        if self.epoch >= self.limits.epochs:
            alive = torch.zeros_like(alive)
        if bool(alive.all()):
            return
        if self.problem.device.type == "cuda" and 2 * int(alive.sum()) > len(alive):
            return
        diverged, stops = standing.diverged.cpu(), standing.stop_epoch.cpu()
        for row in (~alive).nonzero()[:, 0].tolist():
            patient = bool(standing.alive[row])
            why = "diverged" if diverged[row] else "epochs" if patient else "patience"
            self.results[int(self.index[row])] = self._result(row, why, int(stops[row]))
        self._take(alive.nonzero()[:, 0])

    def stop(self, members: Sequence[int], why: str = "pruned") -> None:
        """End the training of some members now, by their number; the others go on."""
        rows = torch.isin(self.index, torch.tensor(list(members), dtype=torch.int64))
        for row in rows.nonzero()[:, 0].tolist():
            self.results[int(self.index[row])] = self._result(row, why, self.epoch)
        if bool(rows.any()):
            self._take((~rows).nonzero()[:, 0])

    def _result(self, row: int, stopped: str, epochs: int) -> Result:
        standing, path, prefix = self.standing, self.history.path, len("model.")
        own = lambda t: t.detach().cpu().clone()  # noqa: E731  # a view would keep the whole stack
        return Result(
            state={name[prefix:]: own(p[row]) for name, p in standing.best.items()},
            best_epoch=int(standing.best_epoch[row]),
            epochs=epochs,
            stopped=stopped,
            history={f: own(v[:epochs, row]) for f, v in self.rows.items()},
            filter_path=None if path is None else own(path[:epochs, row]),
            offset=tuple(self.objective.offset[row].tolist()),
            scale=tuple(self.objective.scale[row].tolist()),
            falling=self.objective.falling,
        )

    def _take(self, rows: Tensor) -> None:
        """Keep only the given rows of everything that is stacked."""
        self.index = self.index[rows]
        rows = rows.to(self.problem.device)
        self.stream = self.stream[rows]
        self.penalty = self.penalty[rows]
        self.stack.take(rows, {"stream": self.stream})
        for part in (self.adam, self.objective, self.standing, self.history):
            part.take(rows)
        self._graph, self._eager = None, 0

    def epochs_left(self, member: int) -> int:
        """The least that a member in training, by its number, still takes: it is patient."""
        (row,) = (self.index == member).nonzero()[:, 0].tolist()
        end = min(int(self.standing.best_epoch[row]) + self.limits.patience, self.limits.epochs)
        return max(end - self.epoch, 1)

    @property
    def finished(self) -> bool:
        """Whether every member has stopped."""
        return len(self.index) == 0

    def run(
        self,
        on_epoch: Callable[["Population"], None] | None = None,
        *,
        until: int | None = None,
    ) -> list[Result]:
        """Train until every member has stopped; results in the order of the members.

        Args:
            on_epoch: called after every epoch, on a GPU after every ten.
            until: at most to this epoch; the results are then those of the members that stopped.
        """
        interval = CHECK_EVERY if self.problem.device.type == "cuda" else 1
        last = self.limits.epochs if until is None else min(until, self.limits.epochs)
        if self.epoch >= self.limits.epochs:  # resumed after the last one, before they were retired
            self._retire()
        while not self.finished and self.epoch < last:
            for _ in range(min(interval, last - self.epoch)):
                self.step()
            if on_epoch is not None:
                on_epoch(self)
            if not self.finished:
                self._retire()
        return [self.results[i] for i in sorted(self.results)]

    def rest(self) -> None:
        """Give back what only the next epoch would need: others may train in between."""
        self._graph, self._eager = None, 0


def _dropouts(model: nn.Module) -> list[Any]:
    return [m for m in model.modules() if hasattr(m, "stream") and hasattr(m, "rate")]

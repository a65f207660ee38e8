"""Members that are trained together, what they have in common, and who is trained how long.

Two configurations of equal shape may be trained together on one graph, and each gives the result
that it gives alone. They may differ in the seed, the split and what :data:`VARYING` names.

A portfolio goes to its end by turns. Between turns members are compared by their validation losses.
On a large graph the worse half stops at fixed epochs. Under a time limit as many of the better ones
go on as can still come to their end.
"""

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from longnn.config import Config
from longnn.config._config import AFTERWARDS, RATES
from longnn.nn._inputs import WithInputs
from longnn.training._lanes import can_fork, train_side_by_side
from longnn.training._memory import count_fitting, fits
from longnn.training._population import Member, Population, Result, behind_inputs
from longnn.training._problem import Problem
from longnn.training._watcher import Watcher

if TYPE_CHECKING:
    from longnn.training._trees import TreeGroup

#: Settings and options in which the members of one population may differ.
VARYING = frozenset(
    [
        *RATES,
        *("penalty", "degree_penalty", "input_dropout", "dropout", "filter_dropout"),
        *("a", "b", "gamma", "restart"),
    ]
)
#: Values that say where and how often to train, and what to do afterwards.
_CIRCUMSTANCES = frozenset(
    ["seed", "repeat", "device", "split", "preset", "time_limit", *AFTERWARDS]
)


def architecture_of(config: Config) -> tuple[tuple[str, object], ...]:
    """What decides on the structure of a trained model: a key, equal where only numbers differ.

    Models of one architecture can be asked in one pass, however they were trained.

    >>> base = Config()
    >>> architecture_of(base) == architecture_of(base.replace(a=1.0, monitor="loss", seed=7))
    True
    >>> architecture_of(base) == architecture_of(base.replace(degree=4))
    False
    """
    structure = {**config.options, "model": config.model, "hidden": config.hidden_channels}
    structure |= {"direction": config.direction, "inputs": config.inputs}
    return tuple(sorted((k, v) for k, v in structure.items() if k not in VARYING))


def shape_of(config: Config) -> tuple[tuple[str, object], ...]:
    """What a configuration shares with all that may be trained with it: a key for grouping.

    The model, the precision and the scaling of the features belong to it. So are a and b where
    the norm penalty is used in a basis that is neither learned nor orthonormal: the norm of a
    filter then depends on a and b, and a population computes it with one pair for all members.

    Args:
        config: of one member.

    Returns:
        (name, value) pairs, sorted by name.

    >>> base = Config()
    >>> shape_of(base) == shape_of(base.replace(lr_transform=0.5, a=1.0, seed=7))
    True
    >>> shape_of(base) == shape_of(base.replace(degree=4))
    False
    """
    values = config.to_dict()
    varying = VARYING
    own_basis = values.get("learn_basis", False) or values.get("orthonormal", False)
    if config.settings.penalty > 0 and not own_basis:
        varying = VARYING - {"a", "b"}
    return tuple(sorted((k, v) for k, v in values.items() if k not in varying | _CIRCUMSTANCES))


class Group:
    """Members of one shape in training.

    Usually they are one population. Where memory is short they are several, one after the other; a
    member's result does not depend on who is trained with it.

    Args:
        places: the numbers of the members among all of a job.
        members: the members.
        problem: what they learn.
        record_filters: keep the first filter's coefficients at every epoch.
        memory: bytes that this program may take; by default a share of what is free.

    >>> import torch
    >>> from longnn.config import Settings
    >>> from longnn.graphs import GraphOperator
    >>> from longnn.nn import MLP
    >>> P = GraphOperator.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
    >>> every = torch.ones(2, dtype=torch.bool)
    >>> member = Member(MLP(2, 4, 2), Settings(epochs=3), 0, every, every)
    >>> group = Group([7], [member], Problem.make(torch.eye(2), P, torch.tensor([0, 1])))
    >>> group.train(3, Watcher())
    >>> group.results[7].epochs
    3
    """

    def __init__(
        self,
        places: Sequence[int],
        members: Sequence[Member],
        problem: Problem,
        *,
        record_filters: bool = False,
        memory: int | None = None,
    ) -> None:
        self.memory = memory
        self.before, self.total = 0, len(members)  # members of the whole job, for a display
        self.places, self.members, self.problem = places, members, problem
        self._inside, self._seen = behind_inputs(members, problem)
        self.record_filters = record_filters
        self.results: dict[int, Result] = {}  # of those that have ended, by number
        self._live: dict[int, Population] = {}  # by the place of the first member in the group
        self._made = 0  # members that populations were made of
        self._size = 0  # members of the next population; 0 where it is not known yet
        self._begun: dict[int, int] = {}

    def expect(self, begun: Mapping[int, int]) -> None:
        """Make populations as they were made before: {number of the first member: how many}."""
        self._begun = {self.places.index(i): n for i, n in begun.items() if i in self.places}

    def train(self, until: int, watcher: Watcher) -> None:
        """Train all members up to an epoch.

        Raises:
            MemoryError: where a single member does not fit.
        """
        for start, population in list(self._live.items()):
            self._turn(start, population, until, watcher)
        while self._made < len(self.members):
            start = self._made
            size = min(self._begun.get(start) or self._next_size(), len(self.members) - start)
            if fits(lambda: self._first_turn(start, size, until, watcher), self.problem.device):  # noqa: B023
                self._made += size
                continue
            if self.problem.ranks.count > 1:  # the others wait for a step of so many members
                raise MemoryError(
                    f"Expected room for {size} models on {self.problem.device} (it ran out of "
                    "memory); give less with --memory, or use fewer repeats"
                )
            if size == 1:
                raise MemoryError(
                    f"Expected room for one model on {self.problem.device} (it ran out of memory); "
                    "use fewer hidden channels or another device"
                )
            self._begun.pop(start, None)
            self._live.pop(start, None)
            self._size = size // 2

    def _next_size(self) -> int:
        if not self._size:
            make, device = lambda n: self._make(0, n), self.problem.device
            found = count_fitting(make, len(self.members), device, self.memory)
            self._size = self.problem.ranks.least(found)
        return self._size

    def _make(self, start: int, size: int) -> Population:
        chunk = self._inside[start : start + size]
        return Population(chunk, self._seen, record_filters=self.record_filters)

    def _first_turn(self, start: int, size: int, until: int, watcher: Watcher) -> None:
        population = self._make(start, size)
        population.before, population.total = self.before + start, self.total
        watcher.begin(population, self.places[start])
        self._live[start] = population
        try:
            self._turn(start, population, until, watcher)
        except (RuntimeError, MemoryError) as error:
            self._live.pop(start, None)
            watcher.failed(error, self.places[start])
            raise

    def _turn(self, start: int, population: Population, until: int, watcher: Watcher) -> None:
        first = self.places[start]
        population.run(lambda p: watcher.watch(p, first), until=until)
        population.rest()
        watcher.rest(population, first)
        if population.finished:
            self._collect(start)

    def _collect(self, start: int) -> None:
        """Keep the results of a population that has ended."""
        population = self._live.pop(start)
        for i, result in population.results.items():
            model = self.members[start + i].model
            if isinstance(model, WithInputs):
                result = dataclasses.replace(result, state=model.whole_state(result.state))
            self.results[self.places[start + i]] = result

    def stop(self, why: str) -> None:
        """End the training of all members that are still in training."""
        for start, population in list(self._live.items()):
            population.stop(population.index.tolist(), why)
            self._collect(start)

    def _find(self, number: int) -> tuple[Population, int]:
        """The population of a member in training, and its place there."""
        place = self.places.index(number)
        start = max(s for s in self._live if s <= place)
        return self._live[start], place - start

    @property
    def epochs_done(self) -> int:
        """Epochs that its members were trained, all together."""
        live = sum(p.epoch * len(p.index) for p in self._live.values())
        ended = [r for p in self._live.values() for r in p.results.values()]
        return live + sum(r.epochs for r in (*ended, *self.results.values()))

    def epochs_left(self, number: int) -> int:
        """The least that a member is still trained: the rest of its patience; 0 if it has ended."""
        if self._result(number) is not None:
            return 0
        population, place = self._find(number)
        return population.epochs_left(place)

    def loss(self, number: int, until: int) -> float:
        """The least validation loss of a member up to an epoch."""
        result = self._result(number)
        if result is not None:
            history = result.history["val_loss"]
        else:
            population, place = self._find(number)
            (row,) = (population.index == place).nonzero()[:, 0].tolist()
            history = population.rows["val_loss"][:, row]
        known = history[:until][torch.isfinite(history[:until])]
        return float(known.min()) if len(known) else torch.inf

    def _result(self, number: int) -> Result | None:
        """Of a member that has ended, if others of its population have or not."""
        if number in self.results:
            return self.results[number]
        population, place = self._find(number)
        return population.results.get(place)

    def was_running(self, number: int, until: int) -> bool:
        """Whether a member was still in training when it came to an epoch."""
        result = self._result(number)
        if result is None or result.epochs > until:
            return True
        return result.stopped == "halved" and result.epochs == until

    def halve(self, number: int) -> None:
        """End the training of a member for which others are better; it may have ended already."""
        if self._result(number) is None:
            population, place = self._find(number)
            population.stop([place], "halved")
            if population.finished:
                self._collect(self.places.index(number) - place)


#: Epochs at which the worse half of a portfolio stops on a large graph.
TURNS = (20, 60, 180, 540)
#: An epoch before which the time of one is not known: memory is probed and kernels are compiled.
WARM = 3
#: Under a time limit: epochs until members are first compared, and the growth of the turns.
FIRST, GROWTH = 20, 1.5
#: Nodes and stored edges, both ways, from which on a graph is large.
LARGE = 1_000_000
#: Nodes up to which groups are trained side by side on a CPU: an operation on the hidden units of
#: so many takes about as long as it takes to wake a second thread.
SMALL = 5_000
#: Members of a portfolio that are trained to the end in any case.
KEPT = 2


class Schedule:
    """The training of groups by turns: all to one epoch, then those that are to go on.

    Args:
        groups: who is trained together.
        portfolios: the numbers of the members that are joined in the end, by configuration; one
            alone never stops early.
        epochs: the most that any member is trained.
        watcher: looks on, and has the deadline.
    """

    def __init__(
        self,
        groups: Sequence["Group | TreeGroup"],
        portfolios: Sequence[Sequence[int]],
        epochs: int,
        watcher: Watcher,
    ) -> None:
        self.groups, self.portfolios = groups, portfolios
        self.epochs, self.watcher = epochs, watcher
        several = any(len(members) > 1 for members in portfolios)
        self._large = several and max(g.problem.size for g in groups) > LARGE
        self._timed = several and watcher.deadline is not None
        self._of = {number: group for group in groups for number in group.places}
        self._pace: dict[Group | TreeGroup, float] = {}  # seconds of an epoch of one member

    def run(self) -> None:
        """Train all groups. Raises what :meth:`Watcher.watch` raises."""
        if self._is_aside():
            by_steps = [group for group in self.groups if isinstance(group, Group)]
            others = [group for group in self.groups if group not in by_steps]
            train_side_by_side(others, by_steps, self.epochs, self.watcher)
            return
        for until in self._turns():
            for group in self.groups:
                self._train(group, until)
            if until == self.epochs:
                return
            if self._large and until in TURNS:
                for members in self.portfolios:
                    self._halve(members, until)
            if self._timed and until > WARM:
                self._keep_in_time()

    def _is_aside(self) -> bool:
        """Whether groups are trained side by side: several of a small graph, to their end."""
        if not self.watcher.aside or self._large or self._timed or len(self.groups) == 1:
            return False
        problem = self.groups[0].problem  # all have the same nodes
        small = problem.num_nodes <= SMALL and not problem.by_rows
        return small and can_fork() and all(g.problem.device.type == "cpu" for g in self.groups)

    def _turns(self) -> Iterator[int]:
        """The epochs at which turns end, the last one too."""
        found = set(TURNS) if self._large else set()
        if self._timed:
            found.add(WARM)
            until = FIRST
            while until < self.epochs:
                found.add(until)
                until = max(until + FIRST, int(GROWTH * until))
        yield from sorted(turn for turn in found if turn < self.epochs)
        yield self.epochs

    def _train(self, group: "Group | TreeGroup", until: int) -> None:
        """Train a group up to an epoch, and see how long an epoch of a member takes."""
        began, before = time.perf_counter(), group.epochs_done
        group.train(until, self.watcher)
        done = group.epochs_done - before
        if until > WARM and done:
            self._pace[group] = (time.perf_counter() - began) / done

    def _halve(self, members: Sequence[int], until: int) -> None:
        """Stop the half of a portfolio with the larger validation losses up to an epoch."""
        running = [i for i in members if self._of[i].was_running(i, until)]
        kept = max(KEPT, (len(running) + 1) // 2)
        for i in sorted(running, key=lambda i: self._of[i].loss(i, until))[kept:]:
            self._of[i].halve(i)

    def _keep_in_time(self) -> None:
        """Stop the worse members of portfolios where not all can come to their end in time.

        A member has at least the rest of its patience before it, so what is left of the time
        limit when the others have ended is at most about the time of one of those that stopped.
        """
        assert self.watcher.deadline is not None
        left = self.watcher.deadline - time.perf_counter()
        alone = [members[0] for members in self.portfolios if len(members) == 1]
        ranked = [self._ranked(members) for members in self.portfolios if len(members) > 1]
        left -= sum(map(self._seconds, alone))
        kept = max(map(len, ranked))
        while kept > KEPT and sum(self._seconds(i) for own in ranked for i in own[:kept]) > left:
            kept -= 1
        kept = self.watcher.ranks.agree(kept)  # by the clock of the first
        for own in ranked:
            for i in own[kept:]:
                self._of[i].halve(i)

    def _ranked(self, members: Sequence[int]) -> list[int]:
        """Those that are still in training, the best first."""
        running = [i for i in members if self._of[i].epochs_left(i)]
        return sorted(running, key=lambda i: self._of[i].loss(i, self.epochs))

    def _seconds(self, number: int) -> float:
        """The least time that a member still takes."""
        group = self._of[number]
        return self._pace.get(group, 0.0) * group.epochs_left(number)

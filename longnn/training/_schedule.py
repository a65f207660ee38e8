"""Who is trained how long: a portfolio goes to its end by turns, and the worse members stop early.

Between turns members are compared by their validation losses. On a large graph the worse half
stops at fixed epochs. Under a time limit as many of the better ones go on as can still come to
their end. Knows groups and the clock, nothing of models.
"""

import time
from collections.abc import Iterator, Sequence

from longnn.training._group import Group, Watcher

#: Epochs at which the worse half of a portfolio stops on a large graph.
TURNS = (20, 60, 180, 540)
#: An epoch before which the time of one is not known: memory is probed and kernels are compiled.
WARM = 3
#: Under a time limit: epochs until members are first compared, and the growth of the turns.
FIRST, GROWTH = 20, 1.5
#: Nodes and stored edges, both ways, from which on a graph is large.
LARGE = 1_000_000
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
        groups: Sequence[Group],
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
        self._pace: dict[Group, float] = {}  # seconds of an epoch of one member

    def run(self) -> None:
        """Train all groups. Raises what :meth:`Watcher.watch` raises."""
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

    def _train(self, group: Group, until: int) -> None:
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

r"""The Chebyshev recurrence of some columns, on whole columns, in two arrays.

With :math:`U_j = D^{-1/2} T_j(P) X` and :math:`P = D^{-1/2} A D^{-1/2}`, the recurrence
:math:`T_{j+1} = 2 P T_j - T_{j-1}` becomes

.. math:: U_{j+1} = 2 D^{-1} A U_j - U_{j-1}, \qquad T_j(P) X = D^{1/2} U_j,

so that a step is a sum of neighbours' rows, one scaling and one subtraction, written over
:math:`U_{j-1}` stretch by stretch. A stretch is small enough to stay in the cache between the sum
and the rest. Stretches are independent: threads take the next one as they become free.
"""

from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import torch
from torch import Tensor

from longnn.store._adjacency import Adjacency, Stretch
from longnn.store._arrays import ahead

#: Numbers of a stretch: what a core's own cache holds; on a GPU, what fills it.
NUMBERS = {"cpu": 1 << 17, "cuda": 1 << 26}
#: Reads rows first..last of the columns, float32 (rows, columns), on the device.
Load = Callable[[int, int], Tensor]
#: Takes rows of a term: degree, first row, (rows, columns). Called by several threads.
Put = Callable[[int, int, Tensor], None]


class Team:
    """Threads that share stretches; a team of one is the caller itself.

    Each runs torch on one thread: a stretch is too little work to share, and nobody waits for the
    slowest at the end of every operation. Torch has as many threads afterwards as before.
    """

    def __init__(self, threads: int) -> None:
        self._pool = None
        if threads > 1:
            one = torch.set_num_threads
            self._pool = ThreadPoolExecutor(threads, initializer=one, initargs=(1,))

    def __enter__(self) -> "Team":
        self._before = torch.get_num_threads()
        torch.set_num_threads(1)
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
        torch.set_num_threads(self._before)

    def each(self, work: Callable[[Any], None], items: list[Any]) -> None:
        """``work(item)`` for all items, in any order; after an error nobody works on."""
        if self._pool is None:
            for item in items:
                work(item)
            return
        futures = [self._pool.submit(work, item) for item in items]
        done, waiting = wait(futures, return_when=FIRST_EXCEPTION)
        for future in waiting:
            future.cancel()
        wait(futures)
        for future in done:
            future.result()


class Recurrence:
    """Two arrays of some columns, and how one becomes the next."""

    def __init__(self, adjacency: Adjacency, columns: int, team: Team) -> None:
        self.adjacency, self.team = adjacency, team
        self.columns, device = columns, adjacency.device
        rows = max(256, NUMBERS[device.type] // columns)
        self.stretches = adjacency.stretches(rows)
        self.current = torch.zeros(adjacency.nodes, columns, device=device)  # U_j
        self.previous = torch.zeros_like(self.current)  # U_{j-1}, then U_{j+1}

    def run(self, load: Load, put: Put, degree: int, on_step: Callable[[], None]) -> None:
        """Put T_0(P) X, ..., T_K(P) X; ``on_step`` hears of each degree that is done."""
        self.team.each(lambda span: self._begin(span, load, put), self.stretches)
        self._turn()
        on_step()
        for j in range(1, degree + 1):
            reads = [partial(self.adjacency.read, *span) for span in self.stretches]
            if self.adjacency.device.type == "cpu":
                work = lambda read, j=j: self._advance(read(), j, put)  # noqa: E731
                self.team.each(work, reads)
            else:
                for some in ahead(reads):
                    self._advance(some, j, put)
            self._turn()
            on_step()

    def _begin(self, span: tuple[int, int], load: Load, put: Put) -> None:
        first, last = span
        x = load(first, last)
        put(0, first, x)
        own, degree = self._own(first, last)
        torch.div(x, degree.sqrt(), out=own)  # U_0 = D^{-1/2} X

    def _advance(self, some: Stretch, j: int, put: Put) -> None:
        own, degree = self._own(some.first, some.last)
        sums = self.adjacency.product(some, self.current)  # A U_{j-1}, (rows, columns)
        if j == 1:
            torch.div(sums, degree, out=own)
        else:  # U_j = 2 D^{-1} A U_{j-1} - U_{j-2}
            torch.sub(sums.mul_(2 / degree), own, out=own)
        self.adjacency.done(some)
        put(j, some.first, own * degree.sqrt())

    def _turn(self) -> None:
        """What was written becomes the current term."""
        self.previous, self.current = self.current, self.previous

    def _own(self, first: int, last: int) -> tuple[Tensor, Tensor]:
        """Some rows of what is written, (rows, columns), and their degrees, (rows, 1)."""
        return self.previous[first:last], self.adjacency.degree[first:last, None]

"""Groups of members side by side: whichever process is free trains the next one.

An epoch on a small graph is a thousand short calls. A second core is of no use to them, but it can
train another group. By processes, since threads of Python would wait for each other at every call;
forked, since all that they need is in memory. Each trains on one thread, so that a member's numbers
do not depend on how many cores there are.

A process leaves checkpoints as its parent does, and ends with it. What one leaves undone, because
of an error or since it was killed, the parent trains itself, and so sees the error.
"""

import contextlib
import ctypes
import os
import pickle
import select
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from longnn._base.contexts import one_thread
from longnn.training._watcher import StopTraining, Watcher

#: Of Linux: which signal a process gets when its parent ends.
PARENT_DEATH_SIGNAL = 1
#: Bytes of a number in a queue.
WORD = 4
#: Seconds between looks at the watcher while others still train.
PAUSE = 0.1


def train_side_by_side(
    here: Sequence[Any], anywhere: Sequence[Any], until: int, watcher: Watcher
) -> None:
    """Train groups up to an epoch, on one thread each and as many at once as torch has threads.

    Args:
        here: groups that this process trains: trees have threads that do not live through a fork.
        anywhere: the others, those that take longest first.
        until: the epoch, their last one.
        watcher: looks on; in the other processes it shows nothing.

    Raises:
        StopTraining: as the watcher does, in any of them.
    """
    processes = min(torch.get_num_threads(), len(anywhere) + bool(here))
    queue = _Queue(len(anywhere))
    with one_thread(), contextlib.ExitStack() as ending:
        lanes = [_Lane(anywhere, queue, until, watcher) for _ in range(processes - 1)]
        for lane in lanes:
            ending.callback(lane.end)
        try:
            for group in here:
                group.train(until, watcher)
            for number in queue:
                anywhere[number].train(until, watcher)
            while waiting := [lane.answer for lane in lanes if not lane.heard]:
                for file in select.select(waiting, [], [], PAUSE)[0]:
                    next(lane for lane in lanes if lane.answer is file).hear()
                watcher.check()
        except StopTraining as stop:
            for lane in lanes:
                lane.stop(told=stop.reason != "time")
            raise
        for group in anywhere:
            if len(group.results) < len(group.places):
                group.train(until, watcher)


def can_fork() -> bool:
    """Whether a process can be forked that trains: CUDA does not live through it."""
    return sys.platform == "linux" and not torch.cuda.is_initialized()


class _Queue:
    """Numbers 0, 1, ..., each given out once, to whoever asks first in any process."""

    def __init__(self, count: int) -> None:
        self._reading, writing = os.pipe()
        os.write(writing, b"".join(number.to_bytes(WORD, "little") for number in range(count)))
        os.close(writing)

    def __iter__(self) -> Iterator[int]:
        while number := os.read(self._reading, WORD):
            yield int.from_bytes(number, "little")

    def __del__(self) -> None:
        os.close(self._reading)


class _Lane:
    """A process that trains groups from a queue, until it is empty or training is stopped."""

    def __init__(self, groups: Sequence[Any], queue: _Queue, until: int, watcher: Watcher) -> None:
        self.groups, self.heard = groups, False
        receiving, sending = os.pipe()
        parent = os.getpid()
        with warnings.catch_warnings():
            # Threads of the parent are not there; torch on one thread needs none of them.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process = os.fork()
        if self.process == 0:
            try:
                ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop
                watcher.on_epoch = None
                if os.getppid() == parent:
                    said = pickle.dumps(_train(groups, queue, until, watcher))
                    with os.fdopen(sending, "wb") as file:
                        file.write(said)
            finally:
                os._exit(0)
        os.close(sending)
        self.answer = os.fdopen(receiving, "rb")

    def hear(self) -> None:
        """Take the results; there are none where it was killed."""
        self.heard = True
        said = self.answer.read()
        for number, results in (pickle.loads(said) if said else {}).items():
            self.groups[number].results.update(results)

    def stop(self, *, told: bool) -> None:
        """Let it end with its epoch, told by a signal if not by its clock; take what it reached."""
        if told and not self.heard:
            os.kill(self.process, signal.SIGTERM)
        if not self.heard:
            self.hear()

    def end(self) -> None:
        """It is over, whatever it does."""
        self.answer.close()
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)


def _train(groups: Sequence[Any], queue: _Queue, until: int, watcher: Watcher) -> dict[int, Any]:
    """The results of the groups that a process trained, by number."""
    trained = []
    try:
        for number in queue:
            trained.append(number)
            groups[number].train(until, watcher)
    except StopTraining as stop:
        for number in trained:
            groups[number].stop(stop.reason)
    return {number: groups[number].results for number in trained}

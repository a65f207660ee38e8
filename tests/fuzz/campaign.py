"""Many inputs, several processes at a time; failures are kept with what repeats them.

A process is forked for a few inputs. It ends with the first that fails, which is then tried again
in a process of its own; those after it go to the next process.
"""

import collections
import dataclasses
import functools
import gc
import itertools
import os
import select
import shutil
import tempfile
import traceback
import warnings
from pathlib import Path

from tests.fuzz import material
from tests.fuzz.cases import RARE, load_formats
from tests.fuzz.sandbox import GOOD, OUTPUT, Verdict, judge_end, run_inputs

#: How many inputs a process is given: a fork takes longer than most of them.
BATCH = 10


@dataclasses.dataclass(frozen=True)
class Failure:
    """An input that was neither fine nor a clean error."""

    format: str
    number: int
    seed: int
    verdict: Verdict

    def command(self):
        """What repeats it."""
        arguments = f"--only {self.format} --seed {self.seed} --first {self.number} --count 1"
        return f"python -m tests.fuzz {arguments}"

    def describe(self):
        verdict = self.verdict
        return f"{verdict.kind}: {verdict.reason}\n  at {verdict.cause}\n  {self.command()}"


@dataclasses.dataclass
class Tally:
    """What became of all inputs."""

    seed: int
    counts: dict[str, collections.Counter[str]] = dataclasses.field(default_factory=dict)
    failures: list[Failure] = dataclasses.field(default_factory=list)

    def enter(self, name, number, verdict):
        self.counts.setdefault(name, collections.Counter())[verdict.kind] += 1
        if verdict.kind not in GOOD:
            self.failures.append(Failure(name, number, self.seed, verdict))

    def table(self):
        """Lines: one per format, how many of each kind."""
        for name, counts in sorted(self.counts.items()):
            each = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
            yield f"{name:>16}: {each}"

    def causes(self):
        """Failures by format, kind and cause, the most frequent first."""
        found = collections.defaultdict(list)
        for failure in self.failures:
            found[failure.format, failure.verdict.kind, failure.verdict.cause].append(failure)
        return sorted(found.items(), key=lambda item: -len(item[1]))


def choose(count, first, only=None):
    """The (format, number) of each input: the formats in turn."""
    formats = load_formats()
    if only is not None:
        if only not in formats:
            raise ValueError(f"Expected a format: {', '.join(sorted(formats))} (got {only!r})")
        return [(only, number) for number in range(first, first + count)]
    turns = (
        (name, turn // RARE.get(name, 1))
        for turn in itertools.count()
        for name in sorted(formats)
        if turn % RARE.get(name, 1) == 0
    )
    return list(itertools.islice(turns, first, first + count))


def run_campaign(
    inputs, seed, *, keep=None, jobs=2, formats=None, prepare=material.prepare, on_end=None
):
    """Put inputs through longnn; returns the :class:`Tally`.

    Args:
        inputs: (format, number) pairs.
        seed: of all of them.
        keep: folder for the inputs of failures.
        jobs: how many processes at a time.
        formats: functions that make inputs, by name; all by default.
        prepare: makes what inputs are made from, in a process of its own.
        on_end: called with format, number and verdict of each input.
    """
    formats = formats or load_formats()
    tally = Tally(seed)
    with tempfile.TemporaryDirectory(prefix="longnn-fuzz-") as scratch:
        material.place = Path(scratch, "material")
        material.place.mkdir()
        _in_child(functools.partial(prepare, material.place))
        gc.collect()
        gc.freeze()  # children then share memory that a collection would touch
        try:
            for name, number, verdict, folder in _Pool(formats, seed, Path(scratch), jobs, inputs):
                tally.enter(name, number, verdict)
                if keep is not None and verdict.kind not in GOOD:
                    _keep(folder, Path(keep) / f"{name}-{number}", tally.failures[-1])
                if on_end is not None:
                    on_end(name, number, verdict)
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            gc.unfreeze()
    return tally


class _Pool:
    """Processes with a few inputs each; iterating gives (format, number, verdict, folder)."""

    def __init__(self, formats, seed, scratch, jobs, inputs):
        self.formats, self.seed, self.scratch, self.jobs = formats, seed, scratch, jobs
        self.waiting = collections.deque(inputs)
        self.suspects = collections.deque()  # failed in company
        self.running = {}  # (process, inputs) by the descriptor of the process

    def __iter__(self):
        poll = select.poll()
        while self.running or self.waiting or self.suspects:
            while len(self.running) < self.jobs and (self.waiting or self.suspects):
                poll.register(self._start(), select.POLLIN)
            for descriptor, _ in poll.poll():
                poll.unregister(descriptor)
                yield from self._finish(descriptor)

    def _start(self):
        if self.suspects:
            batch = [self.suspects.popleft()]
        else:
            fair = max(1, len(self.waiting) // self.jobs)
            batch = [self.waiting.popleft() for _ in range(min(BATCH, fair, len(self.waiting)))]
        process = os.fork()
        if process == 0:
            try:
                run_inputs([self._input(*each) for each in batch])
            finally:
                os._exit(99)
        descriptor = os.pidfd_open(process)
        self.running[descriptor] = process, batch
        return descriptor

    def _input(self, name, number):
        return self.formats[name], f"{self.seed}/{name}/{number}", self._folder(name, number)

    def _folder(self, name, number):
        return self.scratch / f"{name}-{number}"

    def _finish(self, descriptor):
        process, batch = self.running.pop(descriptor)
        os.close(descriptor)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        begun = [each for each in batch if (self._folder(*each) / OUTPUT).exists()]
        self.waiting.extendleft(reversed(batch[len(begun) :]))
        if not begun:
            raise RuntimeError(f"a process ended with {code} before its first input")
        for each in begun:
            folder = self._folder(*each)
            verdict = judge_end(code, folder)
            if verdict.kind not in GOOD and len(batch) > 1:
                shutil.rmtree(folder)
                self.suspects.append(each)
            else:
                yield *each, verdict, folder


def _keep(folder, target, failure):
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    if (folder / "input").exists():
        shutil.copytree(folder / "input", target / "input", symlinks=True)
    what = folder / "what.txt"
    said = what.read_text(errors="replace") if what.exists() else ""
    text = f"{failure.describe()}\n\n{said}\n\n{failure.verdict.trace}\n"
    (target / "failure.txt").write_text(text, errors="replace")


def _in_child(work):
    """Do something in a forked process, so that this one stays as it is."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            warnings.simplefilter("ignore")
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(process, 0)
    if status:
        raise RuntimeError("the material of the inputs could not be made")

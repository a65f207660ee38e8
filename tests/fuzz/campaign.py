"""Many inputs, each built and read in a process of its own, in limits, and the verdict on each.

The process is forked from one that has longnn loaded already. What it finds is a file, so that a
crash is noticed by its absence. Inputs of failures are kept with what repeats them.
"""

import contextlib
import dataclasses
import dis
import faulthandler
import functools
import gc
import itertools
import json
import os
import resource
import shutil
import signal
import socket
import tempfile
import traceback
import warnings
from pathlib import Path

import longnn
from tests.fuzz import material
from tests.fuzz.archives import CANARY
from tests.fuzz.cases import RARE, load_formats
from tests.fuzz.draw import Draw
from tests.kills import finish, forked

SECONDS = 10  # of computing
PATIENCE = 60  # seconds of any kind: a process that waits, or gets little of a busy machine
BYTES = 2 * 2**30  # beyond what the process has before it reads
VERDICT, OUTPUT = "verdict.json", "output.txt"
GOOD = ("fine", "clean")
_OURS = str(Path(longnn.__file__).parent) + os.sep
_MEMORY = ("allocate", "bad_alloc", "malloc", "out of memory", "Insufficient memory")


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What became of an input: ``fine``, ``clean``, or the kind of failure, and the reason."""

    kind: str
    reason: str = ""
    trace: str = ""


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


def command_of(name, number, seed):
    """What repeats an input."""
    return f"python -m tests.fuzz --only {name} --seed {seed} --first {number} --count 1"


def run_campaign(inputs, seed, *, keep=None, jobs=2, formats=None, prepare=material.prepare):
    """Put inputs through longnn; yields format, number and verdict of each as it ends.

    Args:
        inputs: (format, number) pairs.
        seed: of all of them.
        keep: folder for the inputs of failures.
        jobs: how many processes at a time.
        formats: functions that make inputs, by name; all by default.
        prepare: makes what inputs are made from, in a process of its own.
    """
    formats, waiting, running = formats or load_formats(), list(reversed(inputs)), {}
    with tempfile.TemporaryDirectory(prefix="longnn-fuzz-") as scratch:
        material.place = Path(scratch, "material")
        material.place.mkdir()
        if finish(forked(lambda: prepare(material.place))):
            raise RuntimeError("the material of the inputs could not be made")
        gc.collect()
        gc.freeze()  # children then share memory that a collection would touch
        while waiting or running:
            while waiting and len(running) < jobs:
                name, number = waiting.pop()
                folder = Path(scratch, f"{name}-{number}")
                folder.mkdir()
                given = formats[name], f"{seed}/{name}/{number}", folder
                running[forked(functools.partial(_attempt, *given))] = name, number, folder
            process, status = os.wait()
            name, number, folder = running.pop(process)
            verdict = judge_end(os.waitstatus_to_exitcode(status), folder)
            if keep is not None and verdict.kind not in GOOD:
                _keep(
                    folder, Path(keep, f"{name}-{number}"), verdict, command_of(name, number, seed)
                )
            shutil.rmtree(folder, ignore_errors=True)
            yield name, number, verdict
        gc.unfreeze()


def _keep(folder, target, verdict, command):
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    if (folder / "input").exists():
        shutil.copytree(folder / "input", target / "input", symlinks=True)
    what = folder / "what.txt"
    said = what.read_text(errors="replace") if what.exists() else ""
    text = f"{verdict.kind}: {verdict.reason}\n  {command}\n\n{said}\n\n{verdict.trace}\n"
    (target / "failure.txt").write_text(text, errors="replace")


# In the process of an input


def _attempt(make, name, folder):
    """Build an input and read it; leaves a verdict in its folder."""
    os.setsid()
    with (folder / OUTPUT).open("wb") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    faulthandler.enable(2)
    for late in (signal.SIGALRM, signal.SIGPROF):  # the default action comes after the stack
        faulthandler.register(late, 2, chain=True)
    with (
        open(1, "w", closefd=False) as out,
        open(2, "w", closefd=False) as err,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        verdict = _verdict(make, name, folder)
    (folder / VERDICT).write_text(json.dumps(vars(verdict)))


def _verdict(make, name, folder):
    inside = folder / "input"
    inside.mkdir()
    _isolate(folder, inside)
    try:
        case = make(Draw(name), inside)
    except Exception as error:
        return Verdict("fuzzer", f"the input could not be made: {error!r}", traceback.format_exc())
    (folder / "what.txt").write_text(case.what, errors="replace")
    names, stage = case.names, "read"
    try:
        with _limited():
            found = case.read()
            names, stage = (), "used"
            if case.use is not None:
                case.use(found)
    except SystemExit as error:
        if error.code not in (None, 0, 1, 2):
            return Verdict("raw", f"exit code {error.code!r}", traceback.format_exc())
        return Verdict("fine" if error.code in (None, 0) else "clean")
    except BaseException as error:
        verdict = judge(error, names)
        return dataclasses.replace(verdict, reason=f"when {stage}: {verdict.reason}")
    return Verdict("fine")


def _isolate(folder, inside):
    """Nothing outside the input's folder is written, and nothing is asked of the network."""
    os.chdir(inside)
    for key in ("scratch", "cache"):
        (folder / key).mkdir()
    os.environ |= {"TMPDIR": str(folder / "scratch"), "XDG_CACHE_HOME": str(folder / "cache")}
    os.environ |= {"HOME": str(folder), "LONGNN_DEBUG": "1", "COLUMNS": "100"}
    os.environ.pop("LONGNN_DATA", None)
    tempfile.tempdir = None
    warnings.simplefilter("ignore")

    def refuse(*arguments, **options):
        raise OSError("no network here")

    socket.socket.connect = socket.getaddrinfo = refuse


@contextlib.contextmanager
def _limited():
    """The limits of one input: memory beyond what there is now, and time."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (now + BYTES, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


# Verdicts


def judge(error, names=()):
    """The verdict on an exception: clean, if longnn raised it on purpose and it names its file."""
    trace = "".join(traceback.format_exception(error))[-20_000:]
    text = str(error)
    reason = f"{type(error).__name__}: {text[:300]}"
    if any(not raised_by_us(one) and _is_memory(one) for one in _chain(error)):
        return Verdict("memory", reason, trace)
    user = isinstance(error, ValueError | TypeError | OSError | MemoryError)
    # What the system says about a file is one clear line, too.
    told = isinstance(error, OSError) and error.strerror and error.filename
    if not user or not (raised_by_us(error) or told):
        return Verdict("raw", reason, trace)
    if names and not any(name in text for name in names):
        return Verdict("unnamed", reason, trace)
    return Verdict("clean", reason)


def _chain(error):
    seen = []
    while error is not None and error not in seen:
        seen.append(error)
        error = error.__cause__ or error.__context__
    return seen


def _is_memory(error):
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, RuntimeError | OSError) and any(t in str(error) for t in _MEMORY)


def raised_by_us(error):
    """Whether a ``raise`` of longnn made the exception, and not the interpreter or a library."""
    at = error.__traceback__
    if at is None:
        return False
    while at.tb_next is not None:
        at = at.tb_next
    code = at.tb_frame.f_code
    ours = code.co_filename.startswith(_OURS)
    return ours and dis.opname[code.co_code[at.tb_lasti]] == "RAISE_VARARGS"


def judge_end(code, folder):
    """The verdict on an input whose process has ended with a code."""
    if (folder / "input" / CANARY).exists():
        return Verdict("code", "code in the input was run")
    said = (folder / OUTPUT).read_text(errors="replace")[-20_000:]
    if (folder / VERDICT).exists():
        verdict = Verdict(**json.loads((folder / VERDICT).read_text()))
        if verdict.kind in GOOD and "Traceback (most recent call last)" in said:
            return Verdict("raw", "a traceback was printed", said)
        return verdict
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    if name in ("SIGALRM", "SIGPROF"):
        return Verdict("time", f"more than {SECONDS} s of computing, or {PATIENCE} s in all", said)
    return Verdict("memory" if any(text in said for text in _MEMORY) else "crash", name, said)

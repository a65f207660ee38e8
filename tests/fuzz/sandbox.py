"""One input in a process of its own, in limits, and the verdict on what came out.

The process is forked from one that has longnn loaded already. It builds the input, limits itself
and reads it; the verdict is a file, so that a crash is noticed by its absence.
"""

import contextlib
import dataclasses
import dis
import faulthandler
import json
import os
import resource
import signal
import socket
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

import longnn
from tests.fuzz.archives import CANARY
from tests.fuzz.draw import Draw

SECONDS = 10  # of computing
PATIENCE = 60  # seconds of any kind: a process that waits, or gets little of a busy machine
BYTES = 2 * 2**30  # beyond what the process has before it reads
VERDICT, OUTPUT = "verdict.json", "output.txt"
GOOD = ("fine", "clean")
_OURS = str(Path(longnn.__file__).parent) + os.sep
_MEMORY = (
    "allocate",
    "bad_alloc",
    "malloc",
    "out of memory",
    "Insufficient memory",
    "not enough mem",
)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What became of an input: ``fine``, ``clean``, or the kind of failure, and the reason."""

    kind: str
    reason: str = ""
    trace: str = ""
    cause: str = ""


def run_inputs(inputs):
    """Build and read inputs one after the other; for a forked process alone, which ends here.

    Args:
        inputs: (function that makes it, name of the draw, folder) of each.
    """
    os.setsid()
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    faulthandler.enable(sys.stderr)
    for late in (signal.SIGALRM, signal.SIGPROF):  # the default action comes after the stack
        faulthandler.register(late, sys.stderr, chain=True)
    for make, name, folder in inputs:
        folder.mkdir()
        with (folder / OUTPUT).open("wb") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        verdict = _attempt(make, name, folder)
        sys.stdout.flush()
        sys.stderr.flush()
        (folder / VERDICT).write_text(json.dumps(vars(verdict)))
        if verdict.kind not in GOOD:
            break  # what follows begins anew
    os._exit(0)


def _attempt(make, name, folder):
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


def judge(error, names=()):
    """The verdict on an exception: clean, if longnn raised it on purpose and it names its file."""
    trace = "".join(traceback.format_exception(error))[-20_000:]
    text = str(error)
    reason = f"{type(error).__name__}: {text[:300]}"
    for one in _chain(error):
        if not raised_by_us(one) and _is_memory(one):
            return Verdict("memory", reason, trace, _cause(one))
    user = isinstance(error, ValueError | TypeError | OSError | MemoryError)
    # What the system says about a file is one clear line, too.
    told = isinstance(error, OSError) and error.strerror and error.filename
    if not user or not (raised_by_us(error) or told):
        return Verdict("raw", reason, trace, _cause(error))
    if names and not any(name in text for name in names):
        return Verdict("unnamed", reason, trace, _cause(error))
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


def _cause(error):
    """Where it was raised: the last line of longnn, and the type."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(_OURS)]
    place = "elsewhere"
    if ours:
        file = Path(ours[-1].filename).relative_to(_OURS)
        place = f"{file}:{ours[-1].lineno} {ours[-1].name}"
    return f"{type(error).__name__} at {place}"


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
    kind = "crash"
    if name in ("SIGALRM", "SIGPROF"):
        kind, name = "time", f"more than {SECONDS} s of computing, or {PATIENCE} s in all"
    elif any(text in said for text in _MEMORY):
        kind = "memory"
    return Verdict(kind, name, said, _stack_cause(said))


def _stack_cause(said):
    """The innermost line of longnn that faulthandler wrote."""
    lines = [line.strip() for line in said.splitlines() if f'File "{_OURS}' in line]
    return lines[0].replace(_OURS, "") if lines else ""

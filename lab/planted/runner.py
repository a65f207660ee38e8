"""Runs the tests that should notice a planted bug, each in a copy of the tree.

It uses the standard library alone, so that it runs wherever the tests run.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lab.planted.bugs import Bug, read_bugs, read_sources

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300.0
#: Copied where there is no git to list files; the folders of tools are left out.
LEFT_OUT = (".git", ".venv", "build", "dist", "node_modules", "demo-run", "carry-wheels")
MARKS = "not slow and not gpu and not wheel"
CAUGHT, SURVIVED, NOT_PLANTED, GONE = "caught", "survived", "not planted", "gone"
BROKEN, TOO_LONG = "broken tests", "out of time"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a bug."""

    name: str
    kind: str
    about: str
    result: str
    by: str = ""  # the test that failed first, or what went wrong
    file: str = ""
    seconds: float = 0.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of ``python -m lab planted`` and of ``python -m lab.planted``."""
    asked = _parser().parse_args(arguments)
    bugs = [bug for bug in read_bugs() if not asked.only or bug.name in asked.only]
    unknown = sorted(set(asked.only or ()) - {bug.name for bug in bugs})
    if unknown:
        raise SystemExit(f"error: Expected names of bugs (got {', '.join(unknown)}); see --list")
    root = asked.root.resolve()
    if asked.list:
        _show_list(bugs, root)
        return
    suite = tuple(asked.suite or ())
    done = _all(lambda bug: _try(root, bug, suite, asked.seconds), bugs, asked)
    raise SystemExit(_show_summary(done, asked.against))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m lab planted", description=__doc__)
    add = parser.add_argument
    add("--list", action="store_true", help="show the bugs, and whether each can be planted")
    add("--only", metavar="NAME", nargs="+", help="these bugs")
    add("--jobs", type=int, default=1, help="bugs that are tried at once")
    add("--suite", metavar="PATH", nargs="+", help="these tests instead of those of each bug")
    add("--output", type=Path, metavar="FILE", help="JSON file to write the outcomes to")
    add("--against", type=Path, metavar="FILE", help="outcomes that must not have become worse")
    add("--root", type=Path, default=ROOT, help="the tree to plant in (default: this one)")
    add("--seconds", type=float, default=SECONDS, help="limit of the tests of one bug")
    return parser


def _all(
    call: Callable[[Any], Outcome], items: Sequence[object], asked: argparse.Namespace
) -> list[Outcome]:
    """The outcomes in the order of the items; each is told, and written, when it is there."""
    done: dict[object, Outcome] = {}
    lock = threading.Lock()

    def tell(item: object) -> None:
        outcome = call(item)
        with lock:
            done[item] = outcome
            shown = f"{outcome.result:12} {outcome.name:28} {outcome.seconds:5.0f} s  {outcome.by}"
            print(shown[:160], flush=True)
            if asked.output:
                table = [dataclasses.asdict(done[each]) for each in items if each in done]
                asked.output.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")

    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        list(pool.map(tell, items))
    return [done[item] for item in items]


def _try(root: Path, bug: Bug, suite: Sequence[str], seconds: float) -> Outcome:
    """Plant one bug in a copy of the tree and run its tests there."""

    def outcome(result: str, by: str = "", file: str = "", taken: float = 0.0) -> Outcome:
        return Outcome(bug.name, bug.kind, bug.about, result, by, file, round(taken, 1))

    found = bug.find(read_sources(root))
    if found is None:
        gone = bug.status == GONE
        return outcome(GONE if gone else NOT_PLANTED, "its code does not occur exactly once")
    path, text = found
    file = str(path.relative_to(root))
    try:
        compile(text, file, "exec") if path.suffix == ".py" else None
    except SyntaxError as error:
        return outcome(NOT_PLANTED, f"no longer Python: {error}", file)
    tests = [path for path in suite or bug.tests if (root / path.partition("::")[0]).exists()]
    if not tests:
        return outcome(BROKEN, "no test to run", file)
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        copy = copy_tree(root, Path(folder) / "tree")
        (copy / file).write_text(text, encoding="utf-8")
        began = time.monotonic()
        code, said = run_tests(copy, tests, seconds)
        result, by = _judge(code, said)
        return outcome(result, by, file, time.monotonic() - began)


def _judge(code: int | None, said: str) -> tuple[str, str]:
    """The result, and the first test that failed, by what pytest returned and printed."""
    if code is None:
        return TOO_LONG, ""
    if code == 0:
        return SURVIVED, ""
    first = re.search(r"^(?:FAILED|ERROR) (.*)$", said, flags=re.MULTILINE)
    if first is not None or code == 1:
        return CAUGHT, "" if first is None else first[1]
    last = said.strip().splitlines()[-1:] or [""]
    return BROKEN, f"pytest ended with {code}: {last[0]}"


def run_tests(tree: Path, paths: Sequence[str], seconds: float) -> tuple[int | None, str]:
    """Exit code of pytest in a tree (None: out of time) and what it printed."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", MARKS]
    environment = os.environ | {
        # For the processes that tests start, too; what else was there comes after.
        "PYTHONPATH": os.pathsep.join([str(tree), os.environ.get("PYTHONPATH", "")]).rstrip(":"),
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",  # the tests of everybody are those of a CPU
        "COLUMNS": "160",
    }
    environment.pop("LONGNN_DATA", None)
    process = subprocess.Popen(
        [*command, *paths],
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=seconds)
        return process.returncode, said
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, ""


def copy_tree(root: Path, target: Path) -> Path:
    """Copy the files that git knows, or all but those of tools where there is no git."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
    )
    if listed.returncode or not (root / ".git").exists():
        skip = shutil.ignore_patterns(*LEFT_OUT, "__pycache__", ".*_cache", "*.egg-info")
        return Path(shutil.copytree(root, target, ignore=skip))
    for name in filter(None, listed.stdout.split("\0")):
        if (root / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target / name)
    return target


def _show_list(bugs: Sequence[Bug], root: Path) -> None:
    sources = read_sources(root)
    for bug in bugs:
        found = bug.find(sources)
        where = NOT_PLANTED if found is None else str(found[0].relative_to(root))
        print(f"{bug.name:28} {bug.kind:44} {where}")
    count = sum(bug.find(sources) is not None for bug in bugs)
    print(f"{count} of {len(bugs)} bugs can be planted, of {len({b.kind for b in bugs})} kinds")


def _show_summary(done: Sequence[Outcome], against: Path | None) -> int:
    """Print the counts and what is worse than before; 1 where something is."""
    counts = collections.Counter(outcome.result for outcome in done)
    print(", ".join(f"{count} {result}" for result, count in counts.most_common()))
    if against is None:
        return int(bool(counts[BROKEN]))
    before = {entry["name"]: entry["result"] for entry in json.loads(against.read_text())}
    lost = [o for o in done if before.get(o.name) == CAUGHT and o.result not in (CAUGHT, GONE)]
    for outcome in lost:
        print(f"was caught, now {outcome.result}: {outcome.name} ({outcome.about})")
    return int(bool(lost or counts[BROKEN]))

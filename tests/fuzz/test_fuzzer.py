"""The fuzzer: it notices what it is there for, and what longnn reads is fine or one clear error."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import longnn
from longnn.config._values import parse_assignment
from tests.fuzz.campaign import GOOD, choose, judge
from tests.fuzz.cases import load_formats

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


def start(*arguments):
    """A module of the fuzzer as a program."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}
    command = [sys.executable, "-W", "ignore", "-m", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_what_is_planted_is_found_and_kept_with_what_repeats_it(tmp_path):
    done = start("tests.fuzz.planted", tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len({(name, number) for name, number, _ in found}) == len(found) == 15
    assert all(name.partition("-")[0] == kind for name, _, kind in found), found
    kept = {path.name: (path / "failure.txt").read_text() for path in tmp_path.iterdir()}
    assert kept.keys() == {f"{name}-0" for name, _, kind in found if kind not in GOOD}
    assert "crash: SIGSEGV" in kept["crash-0"]
    assert "python -m tests.fuzz --only crash --seed 0 --first 0 --count 1" in kept["crash-0"]
    assert "planted.py" in kept["crash-0"], "the stack"
    assert "planted.py" in kept["time-0"]
    assert "KeyError" in kept["raw-0"]
    assert (tmp_path / "code-0" / "input" / "graph.npz").exists()


def raised(call):
    with pytest.raises(Exception) as caught:
        call()
    return caught.value


def test_only_what_longnn_raises_is_clean():
    ours = raised(lambda: parse_assignment("x"))
    assert judge(ours).kind == "clean"
    assert judge(ours, ("a.toml",)).kind == "unnamed"
    line = compile("int('x')", longnn.__file__, "exec")
    foreign = raised(lambda: exec(line))
    assert judge(foreign).kind == "raw", "the interpreter raised it in a line of longnn"
    missing = raised(Path("nowhere/at/all").read_text)
    assert judge(missing, ("nowhere",)).kind == "clean", "the system names the file"


def test_every_format_has_its_turn():
    inputs = choose(1000, 0)
    assert len(set(inputs)) == 1000
    assert {name for name, _ in inputs} == set(load_formats())
    assert inputs[10:20] == choose(10, 10)
    assert choose(2, 5, "npz-arrays") == [("npz-arrays", 5), ("npz-arrays", 6)]
    with pytest.raises(ValueError, match=r"Expected a format: checkpoint, .* \(got 'nothing'\)"):
        choose(1, 0, "nothing")


@pytest.mark.parametrize("count", [50, pytest.param(5000, marks=pytest.mark.slow)])
def test_hostile_inputs_of_every_format(count, tmp_path):
    done = start("tests.fuzz", "--count", count, "--seed", 7, "--keep", tmp_path)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nkept in {tmp_path}"
    assert re.search(rf"^{count} inputs, 0 failures$", done.stdout, re.MULTILINE)
    fine = sum(int(number) for number in re.findall(r"(\d+) fine", done.stdout))
    assert fine > 0.15 * count, "most mutations are small: some inputs are still read to the end"

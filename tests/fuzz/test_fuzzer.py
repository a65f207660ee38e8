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
from tests.fuzz.campaign import choose
from tests.fuzz.cases import load_formats
from tests.fuzz.sandbox import judge

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


def start(*arguments):
    """A module of the fuzzer as a program."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}
    command = [sys.executable, "-W", "ignore", "-m", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    keep = tmp_path_factory.mktemp("keep")
    done = start("tests.fuzz.planted", keep)
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "keep": keep}


def test_what_is_planted_is_found(planted):
    """Every input once, whatever those before it did to their process."""
    assert len(planted["found"]) == 15
    wrong = [each for each in planted["found"] if each[0].partition("-")[0] != each[2]]
    assert not wrong
    assert len({(name, number) for name, number, _ in planted["found"]}) == 15


def test_failures_are_kept_with_what_repeats_them(planted):
    kept = {path.name for path in planted["keep"].iterdir()}
    assert kept == set(planted["failures"])
    assert not any(name.startswith(("fine", "clean")) for name in kept)
    text = (planted["keep"] / "crash-0" / "failure.txt").read_text()
    assert "crash: SIGSEGV" in text
    assert "python -m tests.fuzz --only crash --seed 0 --first 0 --count 1" in text
    assert "planted.py" in text, "the stack"
    assert (planted["keep"] / "code-0" / "input" / "graph.npz").exists()
    assert "KeyError" in (planted["keep"] / "raw-0" / "failure.txt").read_text()
    assert "planted.py" in (planted["keep"] / "time-0" / "failure.txt").read_text()


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


def put_through(count, seed, keep):
    """What ``python -m tests.fuzz`` prints; the inputs of failures are left in a folder."""
    done = start("tests.fuzz", "--count", count, "--seed", seed, "--keep", keep)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nkept in {keep}"
    assert re.search(rf"^{count} inputs, 0 failures$", done.stdout, re.MULTILINE)
    return done.stdout


@pytest.mark.parametrize("count", [50, pytest.param(1000, marks=pytest.mark.slow)])
def test_hostile_inputs_of_every_format(count, tmp_path):
    text = put_through(count, 7, tmp_path)
    fine = sum(int(number) for number in re.findall(r"(\d+) fine", text))
    assert fine > 0.15 * count, "most mutations are small: some inputs are still read to the end"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 105))
def test_ten_thousand_hostile_inputs(seed, tmp_path):
    put_through(2000, seed, tmp_path)

"""The fuzzer itself: it must notice what it is there for."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import longnn
from longnn.config._values import parse_assignment
from tests.fuzz.archives import mutate_npy, mutate_safetensors, mutate_zip, npy, write_zip, zip_bomb
from tests.fuzz.campaign import choose
from tests.fuzz.cases import load_formats
from tests.fuzz.draw import Draw, finish_json, mutate_bytes, mutate_rows, mutate_tree
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


def test_a_draw_can_be_repeated():
    content = bytes(range(256))
    assert mutate_bytes(Draw("1/a/2"), content) == mutate_bytes(Draw("1/a/2"), content)
    assert mutate_bytes(Draw("1/a/2"), content) != mutate_bytes(Draw("1/a/3"), content)
    rows = [["a", "b"], ["1", "2"], ["3", "4"]]
    assert mutate_rows(Draw("r"), rows) == mutate_rows(Draw("r"), rows)
    assert rows == [["a", "b"], ["1", "2"], ["3", "4"]], "what is given is not changed"


def test_most_mutations_keep_the_structure(tmp_path):
    """Else every input ends at the first check."""
    array = npy(np.arange(6.0).reshape(2, 3))
    archive = write_zip([("a.npy", array), ("b.npy", array)])
    tensors = safetensors.numpy.save({"a": np.zeros(3)}, metadata={"about": json.dumps({"x": [1]})})
    kept = {"npy": 0, "zip": 0, "safetensors": 0, "json": 0}
    for i in range(200):
        draw = Draw(str(i))
        kept["npy"] += mutate_npy(draw, array).startswith(b"\x93NUMPY")
        changed = mutate_zip(draw, archive)
        (tmp_path / "a.zip").write_bytes(changed)
        kept["zip"] += zipfile.is_zipfile(tmp_path / "a.zip") and changed != archive
        try:
            safetensors.numpy.load(mutate_safetensors(draw, tensors))
            kept["safetensors"] += 1
        except Exception:
            pass
        tree = {"a": [1, {"b": "c"}], "d": 1.5}
        mutate_tree(draw, tree)
        kept["json"] += tree != {"a": [1, {"b": "c"}], "d": 1.5}
        assert not re.search("@(deep|digits)@", finish_json(json.dumps(tree)))
    assert min(kept.values()) > 100, kept


def test_a_bomb_is_small_and_unpacks_to_much(tmp_path):
    content = zip_bomb("x.npy", b"head", 3 * 2**27)
    assert len(content) < 2**20
    (tmp_path / "bomb.zip").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "bomb.zip") as archive, archive.open("x.npy") as member:
        assert archive.getinfo("x.npy").file_size == 3 * 2**27 + 4
        assert member.read(6) == b"head\0\0"


def test_every_format_has_its_turn():
    inputs = choose(1000, 0)
    assert len(set(inputs)) == 1000
    assert {name for name, _ in inputs} == set(load_formats())
    assert inputs[10:20] == choose(10, 10)
    assert choose(2, 5, "npz-arrays") == [("npz-arrays", 5), ("npz-arrays", 6)]
    with pytest.raises(ValueError, match=r"Expected a format: checkpoint, .* \(got 'nothing'\)"):
        choose(1, 0, "nothing")

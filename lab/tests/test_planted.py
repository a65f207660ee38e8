"""Every bug of the table is bound to code that is there; the runner tells what became of it."""

import json
import shutil

import pytest

from lab.planted.bugs import read_bugs, read_sources
from lab.planted.runner import ROOT, main
from lab.tests.commands import run

BUGS = read_bugs()
SOURCES = read_sources(ROOT)


@pytest.mark.parametrize(
    "bug", [b for b in BUGS if b.old and b.status != "gone"], ids=lambda b: b.name
)
def test_a_bug_can_be_planted_once(bug):
    found = bug.find(SOURCES)
    assert found is not None, "its code was changed: say in bugs.toml how it reads now"
    path, text = found
    assert text != SOURCES[path]
    if path.suffix == ".py":
        compile(text, str(path), "exec")
    assert any((ROOT / path).exists() for path in bug.tests)


def test_bugs_are_many_and_of_many_kinds():
    planted = [found for bug in BUGS if (found := bug.find(SOURCES)) is not None]
    packages = {path.relative_to(ROOT).parts[1] for path, _ in planted}
    assert len(planted) >= 66
    assert len({bug.kind for bug in BUGS}) >= 40
    every = {path.name for path in (ROOT / "longnn").iterdir() if (path / "__init__.py").exists()}
    assert every - packages <= {"kernels", "_base"}  # kernels need a GPU; the base has no logic


@pytest.fixture
def tree(tmp_path):
    """A small tree with one function, a test that notices a wrong sign, and one that does not."""
    root = tmp_path / "tree"
    for name, text in {
        "longnn/__init__.py": "",
        "longnn/sums.py": "def add(a, b):\n    return a + b\n",
        "tests/test_sign.py": "from longnn.sums import add\ndef test_it(): assert add(1, 1) == 2\n",
        "tests/test_zero.py": "from longnn.sums import add\ndef test_it(): assert add(1, 0) == 1\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def outcomes(tree, tmp_path, monkeypatch, *, old="return a + b", tests, arguments=()):
    table = tmp_path / "bugs.toml"
    table.write_text(
        f'[sign]\nkind = "sign"\nabout = "-"\nold = {json.dumps(old)}\nnew = "return a - b"\n'
        f"tests = {json.dumps(tests)}\n"
    )
    monkeypatch.setattr("lab.planted.runner.read_bugs", lambda: read_bugs(table))
    output = tmp_path / "outcomes.json"
    with pytest.raises(SystemExit) as ended:
        main(["--root", str(tree), "--output", str(output), *arguments])
    return ended.value.code, json.loads(output.read_text())


def test_a_bug_is_caught_or_survives(tree, tmp_path, monkeypatch, capsys):
    code, (found,) = outcomes(tree, tmp_path, monkeypatch, tests=["tests/test_sign.py"])
    assert (code, found["result"], found["file"]) == (0, "caught", "longnn/sums.py")
    assert "test_sign" in found["by"]
    before = shutil.copy(tmp_path / "outcomes.json", tmp_path / "before.json")
    code, (found,) = outcomes(
        tree,
        tmp_path,
        monkeypatch,
        tests=["tests/test_zero.py"],
        arguments=["--against", str(before)],
    )
    assert (code, found["result"]) == (1, "survived")
    assert "was caught, now survived: sign" in capsys.readouterr().out
    assert "a + b" in (tree / "longnn" / "sums.py").read_text()


def test_what_cannot_be_tried_is_never_caught(tree, tmp_path, monkeypatch):
    _, (found,) = outcomes(tree, tmp_path, monkeypatch, old="return b", tests=["tests"])
    assert found["result"] == "not planted"
    (tree / "tests" / "test_zero.py").write_text("")
    code, (found,) = outcomes(tree, tmp_path, monkeypatch, tests=["tests/test_zero.py"])
    assert (code, found["result"]) == (1, "broken tests")


def test_the_command_lists_bugs():
    said = run("planted", "--list").stdout
    assert f"of {len(BUGS)} bugs can be planted" in said

"""The wheel as users get it: built, installed in a new environment, used from an empty folder.

Run by ``make wheel``, in this order: the search is checked first without its extra, then with it.
"""

import os
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

import pytest

import longnn
from tests.commands import ROOT

pytestmark = pytest.mark.wheel

PACKAGE = ROOT / "longnn"
#: A graph of 60 nodes, and few epochs.
TINY = ["--data", "num_nodes=60", "--data", "num_features=8"]
FEW = ["--set", "epochs=5", "--device", "cpu"]

ESTIMATOR = """
from longnn import LONGNNClassifier
from longnn.data import load

data = load("csbm", phi=-0.6, num_nodes=60, num_features=8).data
classifier = LONGNNClassifier(epochs=5, device="cpu").fit(data)
print(*classifier.predict_proba(data).shape)
"""


def run(*command, folder):
    """What a program has printed; nothing but the new environment is on its path."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LONGNN_DATA")}
    environment = {**kept, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def succeed(*command, folder):
    done = run(*command, folder=folder)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def folder():
    """An empty folder outside the checkout, removed at the end: an environment takes 1.5 GB."""
    with tempfile.TemporaryDirectory(prefix="longnn-wheel-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def wheel(folder):
    """The wheel, built from a source distribution: what is not in that is not in the wheel."""
    built = folder / "dist"
    command = (sys.executable, "-m", "build", "--no-isolation", "--outdir", built, ROOT)
    succeed(*command, folder=folder)
    (found,) = built.glob("*.whl")
    return found


class Environment:
    """A new virtual environment, with versions as in constraints.txt, and a folder to work in."""

    def __init__(self, folder):
        venv.create(folder / "venv", with_pip=True)
        self.bin, self.work = folder / "venv" / "bin", folder / "work"
        self.work.mkdir()

    def install(self, *packages):
        pinned = ("--constraint", ROOT / "constraints.txt")
        options = ("--quiet", "--disable-pip-version-check", "--no-compile", *pinned)
        succeed(self.bin / "python", "-m", "pip", "install", *options, *packages, folder=self.work)

    def longnn(self, *arguments):
        return succeed(self.bin / "longnn", *arguments, folder=self.work)

    def python(self, program):
        return succeed(self.bin / "python", "-c", program, folder=self.work)

    def has(self, module):
        program = f"import importlib.util; print(importlib.util.find_spec({module!r}) is not None)"
        return self.python(program) == "True\n"


@pytest.fixture(scope="module")
def base(wheel, folder):
    """The wheel and what it depends on, no extras."""
    environment = Environment(folder)
    environment.install("torch")
    environment.install(wheel)
    return environment


@pytest.fixture(scope="module")
def tune(wheel, base):
    """The same with the extra of the search."""
    base.install(f"{wheel}[tune]")
    return base


def test_the_wheel_holds_the_package_and_its_data(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {f"longnn/{path.relative_to(PACKAGE).as_posix()}" for path in PACKAGE.rglob("*.py")}
    data = {
        f"longnn/{path.relative_to(PACKAGE).as_posix()}"
        for path in (*PACKAGE.glob("recipes/**/*.toml"), *PACKAGE.glob("tuning/spaces/*.toml"))
    }
    assert len(data) > 3
    assert {*wanted, *data, "longnn/py.typed"} <= names
    beside = {name for name in names if not name.startswith("longnn")}
    assert not beside
    assert wheel.name.startswith(f"longnn-{longnn.__version__}-")


def test_it_is_the_wheel_that_is_used(base):
    place = Path(base.python("import longnn; print(longnn.__file__)").strip())
    assert base.bin.parent in place.parents
    assert base.longnn("--version") == f"{longnn.__version__}\n"


def test_the_base_has_no_extras(base):
    for module in ("optuna", "sqlalchemy", "psycopg", "pytest", "mypy"):
        assert not base.has(module), module


def test_lists(base):
    assert "cora" in base.longnn("datasets")
    assert re.search(r"^lon ", base.longnn("models"), re.MULTILINE)
    assert "csbm" in base.longnn("models", "lon").rpartition("recipe")[2]


def test_train_and_predict(base):
    base.longnn("train", "csbm", "--recipe", *TINY, *FEW, "--output", "run")
    assert (base.work / "run" / "report.html").stat().st_size > 10_000
    base.longnn("predict", "run", "--output", "again.csv")
    assert len((base.work / "again.csv").read_text().splitlines()) == 61


def test_the_estimator(base):
    assert base.python(ESTIMATOR) == "60 2\n"


def test_no_command_warns(base):
    command = (base.bin / "longnn", "train", "csbm", *TINY, *FEW, "--output", "calm")
    done = run(*command, folder=base.work)
    assert done.returncode == 0
    assert "arning" not in done.stderr


def test_the_search_names_its_extra(base):
    done = run(base.bin / "longnn", "tune", "csbm", *TINY, folder=base.work)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert 'pip install "longnn[tune]"' in line


def test_the_search(tune):
    assert tune.has("optuna")
    few = ("--model", "lon", "--set", "epochs=5", "--trials", "3", "--repeats", "1")
    tune.longnn("tune", "csbm", *TINY, *few, "--device", "cpu", "--output", "search")
    recipe = tune.work / "search" / "recipe.toml"
    tune.longnn("train", "csbm", *TINY, "--config", recipe, "--output", "tuned")

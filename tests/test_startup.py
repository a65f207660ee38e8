"""Starting is quick: a command loads what it needs and no more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from longnn import __main__
from longnn.cli._train import CHECKPOINT_EVERY
from longnn.runs import _train
from tests.commands import ROOT

HEAVY = {"torch_geometric", "torch._dynamo", "sklearn", "scipy.stats", "scipy.optimize", "scipy.io"}
HEAVY |= {"matplotlib", "optuna", "lightgbm", "pandas"}
SLOW = {*HEAVY, "pyarrow"}


def modules_after(program, code=0):
    """What is loaded when a program has ended."""
    told = "import atexit, sys\natexit.register(lambda: print('loaded', *sys.modules))\n"
    command = [sys.executable, "-c", told + program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == code, done.stderr
    return set(done.stdout.rpartition("loaded")[2].split())


def loaded(*arguments, code=0):
    """What a command has loaded when it is done."""
    return modules_after(f"from longnn.cli import app\napp({list(arguments)!r})", code)


QUICK = [["--help"], ["train", "--help"], ["--version"]]
QUICK += [["models"], ["models", "--settings"], ["datasets"]]


@pytest.mark.parametrize("arguments", QUICK, ids=" ".join)
def test_what_only_prints_does_not_wait_for_torch(arguments):
    assert not {"torch", "numpy", *SLOW} & loaded(*arguments)


def test_a_hint_does_not_wait_for_torch():
    assert not {"torch", "numpy", *SLOW} & loaded("train", "cora", "--epochs", "10", code=2)


def test_options_of_one_model_load_nothing_slow_but_torch():
    assert not SLOW & loaded("models", "lon")


def test_all_of_python_is_there_without_what_only_some_need():
    late = {"pyarrow.compute", "scipy.special"}
    assert not (HEAVY | late) & modules_after("import longnn, longnn.runs, longnn.estimator")


def test_training_and_predicting_need_neither_pyg_nor_figures():
    """Nor what only some columns, some members or the report need; pyarrow itself loads pandas."""
    program = (
        "import longnn\n"
        "data = longnn.data.load('csbm', num_nodes=60, num_features=8)\n"
        "run = longnn.train(data, {'model': 'lon', 'epochs': 3, 'baselines': False})\n"
        "run.predict(data)"
    )
    assert not (HEAVY - {"scipy.optimize", "pandas"} | {"sympy"}) & modules_after(program)


def test_commands_need_no_pandas():
    program = (
        "import contextlib\nfrom longnn.cli import main\n"
        "sys.argv = ['longnn', 'info', 'examples/club']\n"
        "with contextlib.suppress(SystemExit):\n    main()"
    )
    assert not HEAVY & modules_after(program)


def test_the_default_shown_is_the_default():
    assert CHECKPOINT_EVERY == _train.CHECKPOINT_EVERY


@pytest.mark.parametrize(
    ("load", "policy"),
    [(0.1, None), (1.5, "passive")],
)
def test_idle_threads_spin_where_nobody_else_wants_the_cores(load, policy, monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "x")  # so that it is put back
    monkeypatch.delenv("OMP_WAIT_POLICY")
    monkeypatch.setattr(__main__, "others_running", lambda: load)
    monkeypatch.setattr("longnn.cli.main", lambda: None)
    __main__.main()
    assert os.environ.get("OMP_WAIT_POLICY") == policy


def test_what_ran_a_minute_ago_does_not_count(monkeypatch, tmp_path):
    """Nor a program that wants a core for a moment; where the system says less, its load does."""
    said = iter([1, 1, 4, 1, 1, 2, 1, *[3] * __main__.LOOKS])
    monkeypatch.setattr(os, "getloadavg", lambda: (2.5, 0.0, 0.0))
    monkeypatch.setattr(Path, "read_text", lambda path: f"cpu 7 0\nprocs_running {next(said)}\n")
    assert __main__.others_running() == 0
    assert __main__.others_running() == 2
    monkeypatch.setattr(Path, "read_text", lambda path: "cpu 7 0\n")
    assert __main__.others_running() == 2.5

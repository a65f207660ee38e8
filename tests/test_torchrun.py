"""``torchrun ... -m longnn train``: one run, whoever dies, and one voice."""

import json
import os
import shutil
import signal

import numpy as np
import pyarrow.parquet
import pytest
import safetensors.torch
import torch

from lab.generator import generate
from longnn._base.files import write_text
from longnn.runs import load_run, train
from longnn.store._ranks import RankLostError
from tests.ranks import forked, torchrun

CONFIG = {"preset": "fast", "epochs": 6, "batch_rows": 100, "baselines": False}
CONFIG |= {"precision": "float64", "device": "cpu", "degree": 4}
SET = [f"--set={key}={json.dumps(value).strip(chr(34))}" for key, value in CONFIG.items()]

#: The command, in which one rank is killed at an epoch, if it was not started again.
PROGRAM = """
import os, signal
from longnn import cli
from longnn.training import Population

step = Population.step

def fatal(self):
    first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    if first and os.environ["RANK"] == "{dies}" and self.epoch == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    step(self)

Population.step = fatal
cli.main()
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Files of a graph, and a run of one process on them."""
    home = tmp_path_factory.mktemp("torchrun")
    options = {"nodes": 700, "edges": 2500, "features": 5, "classes": 3}
    generate(home / "web", **options)
    for part in (home / "web" / "nodes").iterdir():
        table = pyarrow.parquet.read_table(part)
        sets = [("train", "train", "train", "val", "test")[i % 5] for i in range(len(table))]
        pyarrow.parquet.write_table(table.append_column("split", [sets]), part)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONGNN_CACHE", str(home / "cache"))
        with pytest.MonkeyPatch.context() as quick:
            quick.setattr("longnn.report.write_report", lambda record: None)
            run = train(home / "web", CONFIG, home / "alone", memory=1)
        assert len([*(home / "cache" / "graphs").glob("web-*/manifest.json")]) == 1
        yield home, run


def same_run(folder, alone):
    """Whether weights, epochs and predictions are those of one process."""
    run = load_run(folder)
    assert run.record.repeats[0].epochs == alone.record.repeats[0].epochs
    one, other = (
        safetensors.torch.load_file(r.folder / "weights.safetensors") for r in (run, alone)
    )
    assert one.keys() == other.keys()
    assert all(torch.allclose(one[k], other[k], rtol=0, atol=1e-5) for k in one)
    tables = [pyarrow.parquet.read_table(r.folder / "predictions.parquet") for r in (run, alone)]
    assert tables[0].column_names == tables[1].column_names
    names = [name for name in tables[0].column_names if name.startswith("p_")]
    assert len(names) == 3
    assert all(np.allclose(*(t[name] for t in tables), rtol=0, atol=1e-5) for name in names)
    files = (
        {p.name for p in r.folder.iterdir()} - {"report.html", "figures"} for r in (run, alone)
    )
    assert next(files) == next(files)
    return True


def test_ranks_write_one_run(world, tmp_path, monkeypatch):
    """The first writes, all have it; what stands in the folder goes on, or is in the way."""
    home, alone = world
    monkeypatch.setattr("longnn.report.write_report", lambda record: None)

    def stop(population):  # a signal to one of them; Ctrl-C is ignored in background jobs
        if population.epoch == 3 and os.environ["RANK"] == "1":
            os.kill(os.getpid(), signal.SIGTERM)

    def work():
        given = (home / "web", CONFIG, tmp_path / "run")
        with pytest.raises(KeyboardInterrupt):
            train(*given, checkpoint_every=1000, on_epoch=stop)
        run = train(*given)
        taken = ""
        try:
            train(*given)
        except (ValueError, RankLostError) as error:
            taken = str(error)
        return run.record.repeats[0].epochs, taken

    found = forked(2, work, tmp_path)
    assert [epochs for epochs, _ in found] == [alone.record.repeats[0].epochs] * 2
    assert "already holds a run" in found[0][1]
    assert same_run(tmp_path / "run", alone)


@pytest.mark.slow
@pytest.mark.parametrize("dies", [0, 1])
def test_a_rank_that_dies_is_started_again(world, tmp_path, dies):
    """From nothing: terms are made together; no folder is named, and none is left over."""
    home, alone = world
    shutil.copytree(home / "web", tmp_path / "web")
    write_text(tmp_path / "program.py", PROGRAM.format(dies=dies))
    given = [tmp_path / "program.py", "train", "web", *SET, "--checkpoint-every", "0"]
    done = torchrun(2, *given, restarts=1, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Signal 9 (SIGKILL)" in done.stderr or "exitcode: -9" in done.stderr
    assert [p.name for p in (tmp_path / "runs").iterdir()] == ["web-lon"]
    assert same_run(tmp_path / "runs" / "web-lon", alone)
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_mistakes_are_lines(world, tmp_path):
    home, alone = world
    done = torchrun(2, "-m", "longnn", "train", "csbm", "--output", tmp_path / "r")
    assert done.returncode != 0
    assert "Expected a prepared folder, or files to prepare, under torchrun" in done.stderr
    done = torchrun(2, "-m", "longnn", "train", home / "web", *SET, "--output", alone.folder)
    assert done.returncode != 0
    assert done.stderr.count("which already holds a run") == 1

"""What may go wrong around a run: disks, folders, interrupts, threads, clocks, wild settings."""

import gc
import re
import shutil
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest
import torch

from longnn import LONGNNClassifier
from longnn.config import Config
from longnn.data import Source
from longnn.runs import load_run, resume, train
from longnn.runs._predictions import write_predictions

from .commands import FAST, TINY, fail, succeed

SOURCE = Source.resolve("csbm", options={"num_nodes": 60, "num_features": 8})


@pytest.fixture(scope="module")
def dataset():
    return SOURCE.load()


def config(**keys):
    quick = {"epochs": 6, "degree": 3, "device": "cpu", "baselines": False}
    return Config.from_dict({**quick, **keys})


def same_weights(left, right):
    a, b = (load_run(folder).trained.states[0] for folder in (left, right))
    return all(torch.equal(a[name], b[name]) for name in b)


# --- disks and folders


class Disk:
    """A small file system in memory, whose size and permission can change."""

    def __init__(self, place):
        self.place = place

    def mount(self, options):
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.place)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture
def disk(tmp_path):
    made = Disk(tmp_path / "disk")
    made.place.mkdir()
    if not shutil.which("mount") or not made.mount("size=16k"):
        pytest.skip("this user may not mount a file system")
    yield made
    subprocess.run(["umount", "-l", str(made.place)], check=True)


def test_a_disk_that_is_full(disk, no_report, tmp_path):
    """At every size one line; with room, the run goes on, or begins, to the same bits."""
    succeed("train", *TINY, *FAST, "--output", tmp_path / "whole")
    for size in ("4k", "8k", "12k", "16k", "24k", "40k"):
        disk.mount(f"remount,size={size}")
        folder = disk.place / size
        line = fail("train", *TINY, *FAST, "--checkpoint-every", 0, "--output", folder)
        assert "No space left on device" in line, size
        disk.mount("remount,size=16m")
        if (folder / "run.json").exists():
            assert line.endswith(f"continue with: longnn train --resume {folder}")
            succeed("train", "--resume", folder)
        else:
            assert "--resume" not in line
            succeed("train", *TINY, *FAST, "--output", folder)
        assert same_weights(folder, tmp_path / "whole")
        assert not list(folder.rglob(".*"))
        shutil.rmtree(folder)


def test_a_disk_that_becomes_read_only(disk, no_report, dataset, tmp_path):
    disk.mount("remount,size=16m")
    folder = disk.place / "run"
    lock = lambda population: disk.mount("remount,ro")  # noqa: E731
    with pytest.raises(OSError, match=r"Expected to write .*run.* \(Read-only file system\)"):
        train(dataset, config(), folder, on_epoch=lock)
    disk.mount("remount,rw")
    resume(folder)
    train(dataset, config(), tmp_path / "whole")
    assert same_weights(folder, tmp_path / "whole")


def test_a_folder_that_is_deleted_meanwhile(no_report, dataset, tmp_path):
    folder = tmp_path / "run"
    remove = lambda population: shutil.rmtree(folder, ignore_errors=True)  # noqa: E731
    with pytest.raises(OSError, match=r"Expected to write .*run.* \(No such file or directory\)"):
        train(dataset, config(), folder, on_epoch=remove)
    assert not folder.exists()
    train(dataset, config(), folder)


# --- interrupts


def test_interrupted_predictions(no_report, dataset, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    train(dataset, config(), folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}

    def half(table, path):
        Path(path).write_text("id,predi")
        raise KeyboardInterrupt

    monkeypatch.setattr(pyarrow.csv, "write_csv", half)
    for target in (folder / "predictions.csv", folder / "new.csv"):
        with pytest.raises(KeyboardInterrupt):
            write_predictions(load_run(folder).predictions(), target)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_an_interrupted_report(dataset, tmp_path, monkeypatch):
    folder, drawn = tmp_path / "run", []

    def interrupt(figure):
        drawn.append(figure)
        if len(drawn) == 2:
            raise KeyboardInterrupt
        return b"<svg/>"

    with monkeypatch.context() as patch:
        patch.setattr("longnn.report._html.to_svg", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(dataset, config(), folder)
    assert not (folder / "report.html").exists()
    assert not list(folder.rglob(".*"))
    resume(folder)  # the checkpoint is still there
    assert (folder / "report.html").read_text().rstrip().endswith("</html>")
    assert not (folder / "checkpoint.safetensors").exists()


# --- threads, memory, clocks


def test_threads_that_predict_agree_with_one(dataset):
    run = train(dataset, config(repeat=2))
    fitted = LONGNNClassifier(epochs=5, device="cpu", repeat=2).fit(dataset)
    calls = (
        lambda: run.predict(dataset).to_pydict(),
        lambda: fitted.predict_proba(dataset).tolist(),
    )
    expected = [call() for call in calls]
    begin = threading.Barrier(4)

    def many(k):
        begin.wait()
        return all(calls[i % 2]() == expected[i % 2] for i in range(k, k + 6))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(many, range(4))) == [True] * 4


def test_a_clock_that_is_set_back(no_report, dataset, tmp_path, monkeypatch):
    """Nothing is measured by the time of day."""
    now = iter(range(10**9, 0, -3600))
    monkeypatch.setattr(time, "time", lambda: float(next(now)))
    run = train(dataset, config(), tmp_path / "run", checkpoint_every=0)
    assert all(seconds >= 0 for seconds in run.seconds.values())
    assert load_run(tmp_path / "run").record.seconds["training"] >= 0


def resident():
    gc.collect()
    text = Path("/proc/self/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_many_fits_take_no_more_memory_than_a_few(dataset):
    make = lambda: LONGNNClassifier(epochs=5, device="cpu").fit(dataset)  # noqa: E731
    for _ in range(50):
        make()
    before = resident()
    for _ in range(150):
        make()
    assert resident() - before < 10  # MB


# --- wild settings


WILD = {
    "rates of 10": {"lr_basis": 10.0, "lr_coefficients": 10.0, "lr_factors": 10.0},
    "a bound of a and b": {"a": -0.99, "b": -0.99, "lr_basis": 10.0},
    "degree 100": {"degree": 100, "epochs": 3},
    "dropout 0.99": {"dropout": 0.99, "input_dropout": 0.99, "filter_dropout": 0.99},
}


@pytest.mark.parametrize("keys", WILD.values(), ids=list(WILD))
@pytest.mark.parametrize("model", ["lon", "favard"])
def test_wild_settings_stay_finite(model, keys, dataset):
    """And silent: warnings are errors here."""
    known = Config(model=model).to_dict()
    used = {key: value for key, value in keys.items() if key in known}
    run = train(dataset, config(**{"model": model, "epochs": 40, **used}))
    assert all(np.isfinite(p.numpy()).all() for p in run.predicted)
    assert all(np.isfinite(f.response).all() for f in run.record.filters)

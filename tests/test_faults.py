"""What may go wrong around a run: folders, disks, interrupts, threads, clocks, wild settings.

A run folder belongs to one run: begun at once, held while it is trained, never half begun.
"""

import errno
import gc
import json
import os
import re
import shutil
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from longnn import LONGNNClassifier
from longnn.config import Config
from longnn.data import DataError, Source
from longnn.runs import load_run, resume, train
from longnn.runs._predictions import write_predictions
from tests.helpers import changing

SOURCE = Source.resolve("csbm", options={"num_nodes": 60, "num_features": 8})


@pytest.fixture(scope="module")
def dataset():
    return SOURCE.load()


def config(**keys):
    quick = {"epochs": 6, "degree": 3, "device": "cpu", "baselines": False}
    return Config.from_dict({**quick, **keys})


# --- folders and disks


def together(*calls):
    """What each call gave or raised, all begun at the same moment."""
    begin = threading.Barrier(len(calls))

    def run(call):
        begin.wait()
        try:
            return call()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def states_equal(left, right):
    return all(torch.equal(left[name], right[name]) for name in right)


def test_of_two_that_begin_together_one_gets_the_folder(tmp_path, dataset, no_report):
    expected = {seed: train(dataset, config(seed=seed)).trained.states[0] for seed in (0, 1)}
    for pair in range(4):
        folder = tmp_path / str(pair)
        results = together(
            *(lambda s=s, f=folder: train(dataset, config(seed=s), f) for s in (0, 1))
        )
        failed = [r for r in results if isinstance(r, Exception)]
        assert len(failed) == 1, results
        assert type(failed[0]) is ValueError
        assert "already holds a run" in str(failed[0])
        assert "delete" not in str(failed[0])
        seed = json.loads((folder / "run.json").read_text())["config"]["seed"]
        assert Config.from_toml(folder / "config.toml").seed == seed
        assert results[seed].config.seed == seed
        assert states_equal(load_run(folder).trained.states[0], expected[seed])
        assert not list(folder.glob(".*"))


def test_a_run_that_is_trained_is_left_alone(tmp_path, dataset, no_report):
    """Whoever resumes it meanwhile would remove its checkpoint."""
    folder, refused = tmp_path / "run", []

    def intrude(population):
        with pytest.raises(DataError, match="where a training is under way"):
            resume(folder)
        refused.append(population.epoch)

    train(dataset, config(epochs=2), folder, on_epoch=intrude)
    assert refused == [1, 2]


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP])
def test_a_file_system_without_links(code, tmp_path, dataset, no_report, monkeypatch):
    def refuse(*arguments, **options):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", refuse)
    train(dataset, config(), tmp_path / "run")
    with pytest.raises(ValueError, match="already holds a run"):
        train(dataset, config(), tmp_path / "run")
    assert load_run(tmp_path / "run").config == config()


def test_leftovers_of_a_kill_are_removed_everywhere(tmp_path, dataset, no_report):
    folder = tmp_path / "run"

    def leave(population):
        (folder / "figures").mkdir(exist_ok=True)
        (folder / "figures" / ".filter.svg.1234abcd.tmp").write_text("half")

    train(dataset, config(), folder, on_epoch=leave)
    assert not list((folder / "figures").iterdir())


def test_files_have_the_permissions_of_the_umask(tmp_path, dataset, no_report):
    previous = os.umask(0o027)
    try:
        together(*(lambda f=tmp_path / str(k): train(dataset, config(), f) for k in range(2)))
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(previous)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 8
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o640}


def test_a_damaged_configuration_is_named(tmp_path, dataset, no_report, monkeypatch):
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train(dataset, config(), folder, on_epoch=interrupt)
    (folder / "config.toml").write_text("degree = []\n")
    with pytest.raises(DataError, match=r"flat table in .*config\.toml \(got a .* at 'degree'"):
        resume(folder)
    (folder / "config.toml").write_text("dropout = 5\n")
    with pytest.raises(DataError, match=r"config\.toml: Expected 0 <= dropout < 1 \(got 5\)"):
        resume(folder)
    (folder / "config.toml").unlink()
    asked = json.loads((folder / "run.json").read_text())
    asked["config"]["degree"] = "x"
    (folder / "run.json").write_text(json.dumps(asked))
    with pytest.raises(DataError, match=r"run\.json: Expected `degree` to be an integer"):
        resume(folder)


def interrupt(population):
    raise KeyboardInterrupt


def test_weights_that_predict_no_numbers_are_named(tmp_path, no_report):
    train(SOURCE, config(), tmp_path / "run")
    file = tmp_path / "run" / "weights.safetensors"
    with changing(file) as (tensors, _):
        for weight in tensors.values():
            if weight.is_floating_point():
                weight *= 1e30
    with pytest.raises(DataError, match=r"weights\.safetensors: Expected finite predictions"):
        load_run(tmp_path / "run").evaluate()


def test_a_graph_that_cannot_be_made_again_names_the_file(tmp_path, no_report):
    train(SOURCE, config(), tmp_path / "run")
    record = tmp_path / "run" / "record.json"
    text = json.loads(record.read_text())
    text["data"]["source"]["options"]["degree"] = 0.5
    record.write_text(json.dumps(text))
    with pytest.raises(DataError, match=r"record\.json: Expected edge probabilities"):
        _ = load_run(tmp_path / "run").dataset


def test_a_folder_that_is_deleted_meanwhile(no_report, dataset, tmp_path):
    folder = tmp_path / "run"
    remove = lambda population: shutil.rmtree(folder, ignore_errors=True)  # noqa: E731
    with pytest.raises(OSError, match=r"Expected to write .*run.* \(No such file or directory\)"):
        train(dataset, config(), folder, on_epoch=remove)
    assert not folder.exists()
    train(dataset, config(), folder)


# --- interrupts


def test_interrupted_predictions(no_report, dataset, tmp_path):
    folder = tmp_path / "run"
    train(dataset, config(), folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}

    def half():
        yield load_run(folder).predictions()
        raise KeyboardInterrupt

    for target in (folder / "predictions.csv", folder / "new.csv"):
        with pytest.raises(KeyboardInterrupt):
            write_predictions(half(), target)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_an_interrupted_report(dataset, tmp_path, monkeypatch):
    folder, drawn = tmp_path / "run", []

    def interrupt(figure):
        drawn.append(figure)
        if len(drawn) == 2:
            raise KeyboardInterrupt
        return b"<svg/>", b""

    with monkeypatch.context() as patch:
        patch.setattr("longnn.report._html.to_svg_and_png", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(dataset, config(), folder)
        assert not (folder / "report.html").exists()
        assert not list(folder.rglob(".*"))
        patch.setattr("longnn.report._html.to_svg_and_png", lambda figure: (b"<svg/>", b""))
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
    many = lambda: [calls[i % 2]() == expected[i % 2] for i in range(6)]  # noqa: E731
    assert together(*[many] * 4) == [[True] * 6] * 4


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

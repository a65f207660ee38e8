"""Each thing a user can get wrong: one clear line and exit code 1, a precise exception in Python.

The loader's own tests (``tests/data/test_bad_files.py``) go through the formats one by one; here
each kind of flaw is followed to the terminal.
"""

import contextlib
import json
import os
import pickle
import resource
import shutil

import numpy as np
import pytest
import safetensors.torch
import torch

from longnn import LONGNNClassifier
from longnn.data import DataError, load
from longnn.data._errors import MissingFileError
from longnn.data._synthetic import csbm
from longnn.runs import load_run, resume, train
from longnn.training import Readout, Trained
from tests.commands import CLUB, FAST, NEWCOMERS, TINY, fail, longnn, succeed
from tests.data.examples import Trap

EDGES = (CLUB / "edges.csv").read_text()
NODES = (CLUB / "nodes.csv").read_text()
pytestmark = pytest.mark.usefixtures("no_report")


@pytest.fixture
def graph(tmp_path):
    """The example as a folder of one's own, to damage."""
    folder = tmp_path / "graph"
    shutil.copytree(CLUB, folder)
    return folder


@pytest.fixture
def run(club, tmp_path):
    """A finished run, to damage."""
    return shutil.copytree(club[0], tmp_path / "run")


# Files


def edit(folder, name, old, new):
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1))


def directory_instead(folder):
    (folder / "nodes.csv").unlink()
    (folder / "nodes.csv").mkdir()


def csv_cut(folder):
    text = NODES.rstrip("\n")
    (folder / "nodes.csv").write_text(text[: text.rindex(",") - 3])


FLAWS = {
    "edge file missing": (lambda f: (f / "edges.csv").unlink(), r"a file edges\.\* .*found none"),
    "folder in place of a file": (directory_instead, r"nodes\.csv: .*parts of a table.*found none"),
    "binary junk": (lambda f: (f / "nodes.csv").write_bytes(os.urandom(999)), r"nodes\.csv.*: Exp"),
    "truncated csv": (csv_cut, r"nodes\.csv, line 301: Expected 5 columns .*truncated"),
    "unknown node": (
        lambda f: edit(f, "edges.csv", "Ada Adler,Anders Baker", "Ada Adler,Zeus"),
        r"edges\.csv, line 2, column 'target': .*id of a node in nodes\.csv \(got 'Zeus'\)",
    ),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_flaws_of_files(flaw, graph, tmp_path):
    spoil, message = FLAWS[flaw]
    spoil(graph)
    with pytest.raises(DataError, match=message):
        load(graph)
    for command in (("info", graph), ("train", graph, *FAST, "--output", tmp_path / "r")):
        line = fail(*command)
        with pytest.raises(DataError, match=message):
            raise DataError(line)
    assert not (tmp_path / "r").exists()


def test_unreadable_file(graph):
    (graph / "nodes.csv").chmod(0)
    if os.access(graph / "nodes.csv", os.R_OK):
        pytest.skip("this user may read everything")
    assert "Permission denied" in fail("info", graph)


def test_unknown_names_name_the_nearest():
    """One of each kind; see also ``test_config.py`` and ``tests/data/test_source.py``."""
    assert "Did you mean cora" in fail("train", "coraa")
    assert "did you mean `lon`?" in fail("train", *TINY, "--model", "lonn")
    assert "did you mean `degree`?" in fail("train", *TINY, "--set", "degre=3")
    assert "did you mean `num_nodes`?" in fail("train", "csbm", "--data", "nodes=3")
    assert "Expected a graph" in fail("train")


def test_a_malicious_pickle_is_never_executed(run, tmp_path):
    """In a graph or in a run; of other files see ``tests/data/test_bad_files.py``."""
    target, path = tmp_path / "pwned", tmp_path / "g.pt"
    torch.save({"edge_index": Trap(target)}, path)
    assert "without running code" in fail("predict", run, path)
    for name in ("weights.safetensors", "checkpoint.safetensors"):
        (run / name).write_bytes(pickle.dumps(Trap(target)))
    assert "it is damaged" in fail("predict", run)
    assert "to be a checkpoint" in fail("train", "--resume", run)
    assert not target.exists()


# Labels and splits


def give_split(folder, choose):
    """Add a split column: choose(label, how many of it before) -> train, val, test or nothing."""
    head, *lines = NODES.splitlines()
    seen, out = {}, [f"{head},split"]
    for line in lines:
        label = line.rpartition(",")[2]
        seen[label] = seen.get(label, -1) + 1
        out.append(f"{line},{choose(label, seen[label]) if label else ''}")
    (folder / "nodes.csv").write_text("\n".join(out) + "\n")


def test_splits_that_cannot_be_trained_on(graph, tmp_path):
    """One of them; the others are named by ``tests/data/test_splits.py``."""
    give_split(graph, lambda label, k: "test" if label == "chess" or k > 9 else "train")
    message = "Expected a training node of each class (got none of 'chess')"
    assert message in fail("train", graph, *FAST, "--output", tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_no_labels_at_all(tmp_path):
    assert "Expected labelled nodes" in fail("train", NEWCOMERS, "--output", tmp_path / "r")


def test_training_nodes_serve_where_no_validation_nodes_were_given(graph, tmp_path):
    give_split(graph, lambda label, k: "train" if k < 10 else "test")
    said = succeed("train", graph, *FAST, "--output", tmp_path / "carved")
    assert "No validation nodes were given: 6 of the training nodes" in said


# Settings


@pytest.mark.parametrize("degree", [-1, 10**6])
def test_impossible_degrees(degree, tmp_path):
    line = fail("train", *TINY, "--set", f"degree={degree}", "--output", tmp_path / "r")
    assert line == f"Expected 0 <= `degree` <= 4096 (got {degree})"
    assert not (tmp_path / "r").exists()  # a request that cannot be met leaves nothing behind
    data = csbm(num_nodes=40, num_features=4).data
    with pytest.raises(ValueError, match=rf"0 <= `degree` <= 4096 \(got {degree}\)"):
        LONGNNClassifier(degree=degree).fit(data)


def test_degree_zero_is_a_filter_that_ignores_the_graph(tmp_path):
    printed = succeed("train", *TINY, *FAST, "--set", "degree=0", "--output", tmp_path / "r")
    assert "The model takes a node's own columns as they are" in printed


@pytest.mark.parametrize("name", ["meta", "mps", "gpu0", "cpu:x", "cuda:99"])
def test_devices_that_nobody_trains_on(name, tmp_path):
    if name.startswith("cuda") and torch.cuda.is_available():
        pytest.skip("there may be so many")
    line = fail("train", *TINY, "--device", name, "--output", tmp_path / "r")
    assert ("CUDA device" if name == "cuda:99" else f"auto, cpu or cuda (got '{name}')") in line
    assert not (tmp_path / "r").exists()


def test_training_that_diverges(tmp_path):
    line = fail("train", *TINY, *FAST, "--set", "lr_transform=1e30", "--output", tmp_path / "r")
    assert "Expected training to stay finite (with seed 0 it diverged in epoch" in line
    assert "lower the learning rates" in line


# Prediction


def test_other_features_than_trained_with(run, tmp_path):
    """Nameless ones; of columns with names see ``test_columns.py``."""
    file, pairs = tmp_path / "g.npz", np.array([[0, 1], [1, 2]])
    np.savez(file, x=np.ones((3, 5)), edge_index=pairs)
    message = "Expected 3 features as the run was trained with (got 5)"
    assert message in fail("predict", run, file)


def test_output_of_predictions(run, tmp_path):
    assert "to end in .csv or .parquet" in fail("predict", run, "--output", tmp_path / "p.txt")
    assert "in an existing folder" in fail("predict", run, "--output", tmp_path / "no" / "p.csv")


# Damaged runs


@pytest.mark.parametrize("name", ["record.json", "run.json"])
def test_damaged_json(name, run):
    whole = (run / name).read_text()
    (run / name).write_text(whole[: len(whole) // 2])
    for command in (("predict", run), ("evaluate", run), ("compare", run)):
        line = fail(*command)
        assert f"{name}: Expected a JSON record (got text that breaks off or is damaged" in line
    for content in ("{}", "[]"):
        (run / name).write_text(content)
        assert name in fail("predict", run)
    (run / name).unlink()
    assert fail("evaluate", run)


def test_half_a_character_in_json(run, tmp_path):
    """JSON may hold it, no terminal and no page can be given it."""
    record = json.loads((run / "record.json").read_text())
    record["data"]["name"] = "half \ud800"
    (run / "record.json").write_text(json.dumps(record))
    page = tmp_path / "c.html"
    assert "half \ufffd" in succeed("compare", run, "--output", page)
    assert "half \ufffd" in page.read_text(encoding="utf-8")


READOUT = Readout("classification").to_dict()
#: A member of a file of weights, a wrong value, and what is said of it.
WRONG = (
    ("task", 5, "'about.task' to be one of classification, regression, multilabel (got 5)"),
    ("config", [], "'about.config' to be an object (got [])"),
    ("config", {"device": []}, "`device` to be a word (got [])"),
    ("classes", [], "'about.classes' to be names of classes (got [])"),
    ("features", 10**12, "to be the number of features"),
    ("features", "9", "'about.features' to be a whole number (got '9')"),
    ("feature_names", {"a": 1}, "'about.feature_names' to be a list (got {'a': 1})"),
    ("open_features", -1, "'about.open_features' to be a number of features (got -1)"),
    ("scaling", "log", "'about.scaling' to be one of none"),
    ("scaling", "none", "'about.scaling' to be a scaling with its numbers"),
    ("readouts", [], "'about.readouts' to be a list of at least one repeat (got [])"),
    ("readouts", [{}], "'about.readouts[0].temperature' to be a number (got nothing)"),
    ("readouts", [{**READOUT, "shift": [0.5]}], "'about.readouts' to be shifts of 3 classes"),
    ("readouts", [{**READOUT, "shift": 5}], "'about.readouts[0].shift' to be"),
    ("encoding", {"columns": 5}, "Expected an encoding of columns"),
    ("extra", 5, "'about.extra' to be an object (got 5)"),
    ("extra", [[[[[]]]]] * 2, "'about.extra' to be an object"),
)


def test_damaged_weights(run):
    path = run / "weights.safetensors"
    whole = path.read_bytes()
    for content in (b"", whole[: len(whole) // 2], b"junk" * 100):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"weights\.safetensors to hold weights of a run \("):
            Trained.load(path)
        assert "it is damaged" in fail("predict", run)
        assert "it is damaged" in fail("evaluate", run)
    tensors = safetensors.torch.load(whole)
    safetensors.torch.save_file(tensors, path)
    assert "got another file" in fail("predict", run)
    with safetensors.safe_open(str(run / "weights.safetensors"), "pt") as file:
        assert file.metadata() is None
    with safetensors.safe_open(str(write(path, whole)), "pt") as file:
        metadata = file.metadata()
    safetensors.torch.save_file(tensors, path, metadata={**metadata, "about": "{}"})
    assert "Expected 'about.task' to be one of" in fail("predict", run)
    about = json.loads(metadata["about"])
    for key, value, reason in WRONG:
        changed = json.dumps({**about, key: value})
        safetensors.torch.save_file(tensors, path, metadata={**metadata, "about": changed})
        line = fail("predict", run)
        assert "weights.safetensors" in line
        assert reason in line
    tensors.pop(next(name for name in tensors if name.startswith("0/")))
    safetensors.torch.save_file(tensors, path, metadata=metadata)
    assert "to fit the run's model" in fail("predict", run)
    path.unlink()
    assert "Expected weights.safetensors in" in fail("evaluate", run)


@pytest.fixture
def interrupted(tmp_path):
    """A run with a checkpoint."""
    folder = tmp_path / "stopped"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("longnn.runs._train.describe_run", stop)
        longnn("train", *TINY, *FAST, "--output", folder)
    assert (folder / "checkpoint.safetensors").exists()
    return folder


def stop(*arguments):
    raise KeyboardInterrupt


def test_damaged_checkpoint(interrupted, tmp_path):
    path = interrupted / "checkpoint.safetensors"
    whole = path.read_bytes()
    for content in (b"", whole[: len(whole) // 2], b"\x00junk" * 100):
        path.write_bytes(content)
        line = fail("train", "--resume", interrupted)
        assert "checkpoint.safetensors to be a checkpoint" in line
        assert line.endswith("move it elsewhere to begin the run again")
    # One that is whole, but of another run.
    with safetensors.safe_open(str(write(path, whole)), "pt") as file:
        metadata = file.metadata()
    tensors = safetensors.torch.load(whole)
    for key, value in (("count", "0"), ("count", "x"), ("epoch", "-1"), ("finished", "[]")):
        safetensors.torch.save_file(tensors, path, metadata={**metadata, key: value})
        assert "checkpoint.safetensors" in fail("train", "--resume", interrupted)
    for name in ("index", "stream", "table", "alive", "path"):
        for changed in (tensors[name][None], tensors[name].double()):
            safetensors.torch.save_file({**tensors, name: changed}, path, metadata=metadata)
            assert "(it does not fit)" in fail("train", "--resume", interrupted)
    for name in (n for n in tensors if n.startswith("result/0/")):
        wrong = [tensors[name].bfloat16()]
        if "/state/" in name:  # elsewhere NaN means that there is no such number
            wrong.append(tensors[name] * np.nan)
        for changed in wrong:
            safetensors.torch.save_file({**tensors, name: changed}, path, metadata=metadata)
            assert "(it does not fit)" in fail("train", "--resume", interrupted)
    tensors.pop("table")
    safetensors.torch.save_file(tensors, path, metadata=metadata)
    with pytest.raises(DataError, match="a checkpoint of this run"):
        resume(interrupted)
    assert "a checkpoint of this run" in fail("train", "--resume", interrupted)
    path.unlink()
    succeed("train", "--resume", interrupted)


def write(path, content):
    path.write_bytes(content)
    return path


def test_data_that_changed_since(graph, tmp_path):
    folder = tmp_path / "r"
    succeed("train", graph, *FAST, "--output", folder)
    edit(graph, "nodes.csv", "Ada Adler,36", "Ada Adler,37")
    assert "the files have changed since" in fail("evaluate", folder)
    (folder / "record.json").unlink()
    with pytest.raises(DataError, match="the files have changed since"):
        resume(folder)
    assert "the files have changed since" in fail("train", "--resume", folder)


def test_folders_that_are_no_runs(tmp_path, run):
    for command in (["predict"], ["evaluate"], ["compare"], ["train", "--resume"]):
        assert "which does not exist" in fail(*command, tmp_path / "nowhere")
        assert "run.json" in fail(*command, tmp_path)
    (tmp_path / "file").touch()
    assert "which is a file" in fail("evaluate", tmp_path / "file")
    assert "which is complete" in fail("train", "--resume", run)
    line = fail("train", CLUB, "--resume", run)
    assert "--resume RUN alone" in line
    assert "got --seed too" in fail("train", "--resume", run, "--seed", 0)


# Output


def test_a_folder_that_holds_a_run(run, tmp_path):
    before = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    line = fail("train", CLUB, *FAST, "--output", run)
    assert "which already holds a run" in line
    assert "--resume" in line
    with pytest.raises(ValueError, match="already holds a run"):
        train(CLUB, folder=run)
    assert before == {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    assert "a new or empty folder" in fail("train", CLUB, "--output", tmp_path / "full")
    (tmp_path / "empty").mkdir()
    succeed("train", CLUB, *FAST, "--output", tmp_path / "empty")


def test_a_place_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").touch()
    line = fail("train", *TINY, *FAST, "--output", tmp_path / "file" / "run")
    assert line == f"Expected to write {tmp_path / 'file' / 'run'} (Not a directory)"
    assert "a new or empty folder" in fail("train", *TINY, "--output", tmp_path / "file")
    with pytest.raises(OSError, match="Expected to write"):
        train("csbm", folder=tmp_path / "file" / "r")


@contextlib.contextmanager
def disk_of(size):
    """No file may grow beyond ``size`` bytes: writing more fails, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [100, 3_000, 9_000])
def test_full_disk_while_training(size, tmp_path):
    """One line, whatever does not fit; with room the run goes on, or begins, to the same bits."""
    folder, words = tmp_path / "run", ("train", *TINY, *FAST, "--checkpoint-every", 0, "--output")
    with disk_of(size):
        line = fail(*words, folder)
    assert line.startswith(f"Expected to write {folder}")
    assert {path.name for path in folder.iterdir()} <= {"run.json", "config.toml"}
    if (folder / "run.json").exists():
        assert line.endswith(f"when this is solved, continue with: longnn train --resume {folder}")
        succeed("train", "--resume", folder)
    else:
        assert size == 100
        assert "--resume" not in line
        succeed(*words, folder)
    succeed(*words, tmp_path / "whole")
    left, right = (f / "predictions.csv" for f in (folder, tmp_path / "whole"))
    assert left.read_bytes() == right.read_bytes()


def test_full_disk_keeps_the_old_file(run, tmp_path):
    output = tmp_path / "p.csv"
    succeed("predict", run, "--output", output)
    before = output.read_bytes()
    with disk_of(1_000):
        line = fail("predict", run, NEWCOMERS, "--output", output)
    assert line.startswith(f"Expected to write {output} (")
    assert output.read_bytes() == before
    assert not list(tmp_path.glob(".*.tmp"))
    with disk_of(1_000), pytest.raises(OSError, match="Expected to write"):
        load_run(run).trained.save(run / "weights.safetensors", extra={"long": "x" * 9_999})


def test_debugging_shows_the_traceback(monkeypatch, tmp_path):
    monkeypatch.setenv("LONGNN_DEBUG", "1")
    with pytest.raises(MissingFileError):
        longnn("info", tmp_path / "none.csv")

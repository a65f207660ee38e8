"""The command line: what each command prints and leaves behind, and that nothing is lost."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
import safetensors.torch

import longnn as longnn_package
from longnn.config import Config
from tests.commands import (
    CLUB,
    FAST,
    TINY,
    fail,
    longnn,
    succeed,
    succeed_json,
    without_report,
)

FILES = {
    "config.toml",
    "run.json",
    "record.json",
    "history.csv",
    "filter_path.npz",
    "weights.safetensors",
    "predictions.csv",
    "predictions.parquet",
    "report.html",
}
FIGURES = ("filter_response", "training_curves", "basis_path", "amplitude_waveform", "confusion")


@pytest.fixture(scope="module")
def bundled(tmp_path_factory):
    """A run of two repeats on a bundled graph: its folder and what --json printed."""
    folder = tmp_path_factory.mktemp("bundled") / "run"
    with without_report():
        return folder, succeed_json("train", *TINY, *FAST, "--repeat", 2, "--output", folder)


def rows(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def weights(folder):
    return safetensors.torch.load_file(folder / "weights.safetensors")


def same_outcome(left, right):
    one, other = weights(left), weights(right)
    return (
        one.keys() == other.keys()
        and all(one[k].numpy().tobytes() == other[k].numpy().tobytes() for k in one)
        and (left / "predictions.csv").read_bytes() == (right / "predictions.csv").read_bytes()
        and (left / "history.csv").read_bytes() == (right / "history.csv").read_bytes()
    )


# What a run leaves behind


def test_every_promised_file(club):
    folder, _ = club
    assert {path.name for path in folder.iterdir()} == FILES | {"figures"}
    for name in FIGURES:
        for suffix in ("png", "svg"):
            assert (folder / "figures" / f"{name}.{suffix}").stat().st_size > 1000
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<html" in page
    assert 'src="http' not in page
    assert not list(folder.rglob("*.tmp"))


def test_json_is_the_record(bundled):
    folder, printed = bundled
    record = json.loads((folder / "record.json").read_text())
    assert printed == {"run": str(folder), **record}
    assert [repeat["seed"] for repeat in record["repeats"]] == [0, 1]
    assert record["summary"]["test"]["accuracy"]["count"] == 2
    mean = np.mean([repeat["scores"]["test"]["accuracy"] for repeat in record["repeats"]])
    assert record["summary"]["test"]["accuracy"]["mean"] == pytest.approx(mean)
    assert record["environment"]["torch"]
    assert record["data"]["fingerprint"]
    assert record["data"]["source"]["options"]["phi"] == -0.6
    history = rows(folder / "history.csv")
    epochs = record["repeats"][0]["epochs"]
    assert [row["repeat"] for row in history].count("0") == epochs
    assert {"train_loss", "val_loss", "val_score", "amplitude", "a", "b"} <= history[0].keys()
    with np.load(folder / "filter_path.npz") as path:
        assert path["beta"].shape[:2] == (epochs, 4)


def test_every_node_is_predicted_the_unlabelled_too(club):
    folder, _ = club
    given = {row["id"]: row["label"] for row in rows(CLUB / "nodes.csv")}
    found = rows(folder / "predictions.csv")
    assert [row["id"] for row in found] == list(given)
    hidden = [row for row in found if row["label"] == ""]
    assert len(hidden) == 60
    for row in found:
        chances = {k.removeprefix("p_"): float(v) for k, v in row.items() if k.startswith("p_")}
        assert chances.keys() == {"chess", "rowing", "tennis"}
        assert sum(chances.values()) == pytest.approx(1, abs=1e-5)
        assert row["predicted"] == max(chances, key=chances.get)
        assert row["label"] == given[row["id"]]
        assert (row["set"] == "none") == (row["label"] == "")
    record = json.loads((folder / "record.json").read_text())
    tested = [row for row in found if row["set"] == "test"]
    right = np.mean([row["predicted"] == row["label"] for row in tested])
    assert record["repeats"][0]["scores"]["test"]["accuracy"] == pytest.approx(right)
    text = pyarrow.csv.read_csv(folder / "predictions.csv")
    binary = pyarrow.parquet.read_table(folder / "predictions.parquet")
    assert text.column_names == binary.column_names
    for name in binary.column_names:
        values = ["" if v is None else v for v in binary[name].to_pylist()]
        assert text[name].to_pylist() == values


def test_summary_says_question_answer_split_seed_and_report(club):
    folder, result = club
    question, _, answer, columns, next_steps, *_ = result.stdout.splitlines()
    assert question == "Is each node of club chess, rowing or tennis?"
    assert answer.startswith("  Accuracy ")
    assert columns.startswith("  What counts most: ")
    assert f"`longnn explain {folder} NODE`" in next_steps
    assert "split stratified, seed 0" in result.stdout
    page = (folder / "report.html").read_text(encoding="utf-8")
    (learned,) = json.loads((folder / "record.json").read_text())["repeats"][0]["filters"]
    start, end = ("{a:.2f}, {b:.2f}".format(**learned[key]) for key in ("start", "learned"))
    assert f"<td>{start}</td><td>{end}</td><td>{learned['words']}</td>" in page  # further down
    assert result.stdout.endswith(f"\nreport: {folder / 'report.html'}\n")
    assert result.stderr == (
        "note: All 900 edges were listed one way; each was made two-way.\n"
        "note: 2 nodes have no edge: they are predicted from their own columns.\n"
    )
    assert "nan" not in result.stdout.split()


# Ways to say what to train


def test_config_file_and_set(tmp_path, no_report):
    (tmp_path / "c.toml").write_text('model = "gpr"\ndegree = 2\nepochs = 5\nlr_basis = 0.5\n')
    folder = tmp_path / "run"
    arguments = ("--config", tmp_path / "c.toml", "--set", "degree=4", "--device", "cpu")
    record = succeed_json("train", *TINY, *arguments, "--seed", 3, "--output", folder)
    config = record["config"]
    assert (config["model"], config["degree"], config["epochs"]) == ("gpr", 4, 5)
    assert (config["lr_basis"], config["seed"]) == (0.5, 3)
    assert Config.from_toml(folder / "config.toml").to_dict() == config
    # The run's own file says it all: it gives the same run again.
    again = tmp_path / "again"
    succeed("train", *TINY, "--config", folder / "config.toml", "--output", again)
    assert same_outcome(folder, again)


def test_quiet_is_silent(tmp_path, no_report):
    result = longnn("train", CLUB, *FAST, "--quiet", "--output", tmp_path / "r")
    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / "r" / "record.json").exists()
    assert fail("train", CLUB, *FAST, "--quiet", "--output", tmp_path / "r")


def test_default_folders_do_not_collide(tmp_path, monkeypatch, no_report):
    monkeypatch.chdir(tmp_path)
    for name in ("csbm-lon", "csbm-lon-2"):
        assert f"report: runs/{name}/report.html" in succeed("train", *TINY, *FAST)
        assert Path("runs", name, "record.json").exists()
    message = fail("info", "missing.csv")
    assert message == "missing.csv: Expected a file here (found none)."


def test_two_files_with_named_columns(tmp_path, no_report):
    edges, nodes = tmp_path / "friends.csv", tmp_path / "people.tsv"
    edges.write_text((CLUB / "edges.csv").read_text().replace("source,target", "who,whom"))
    text = (CLUB / "nodes.csv").read_text().replace("label", "team").replace(",", "\t")
    nodes.write_text(text)
    options = ["--nodes", nodes]
    for pair in ("label_column=team", "source_column=who", "feature_columns=hours,years"):
        options += ["--data", pair]
    folder = tmp_path / "run"
    record = succeed_json("train", edges, *options, *FAST, "--output", folder)
    assert record["data"]["name"] == "friends"
    assert record["data"]["scaling"] == "columns"
    assert longnn_package.load_run(folder).trained.feature_names == ("hours", "years")
    # A new graph is read the same way, though it has no column of labels.
    lines = [line.split("\t") for line in nodes.read_text().splitlines()]
    other = tmp_path / "others.tsv"
    other.write_text("".join("\t".join(line[:-1]) + "\n" for line in lines))
    output = tmp_path / "p.csv"
    succeed("predict", folder, edges, "--nodes", other, "--output", output)
    known = rows(folder / "predictions.csv")
    assert [row["p_chess"] for row in rows(output)] == [row["p_chess"] for row in known]
    assert "label" not in rows(output)[0]


# After training


def test_predict_and_evaluate_its_own_graph(bundled):
    """What is printed; that the numbers are those of the run, tests/test_doors.py says."""
    folder, _ = bundled
    output = folder / "predictions-csbm.csv"
    files = f"{output} and predictions-csbm.parquet"
    printed = succeed("predict", folder)
    assert printed == f"60 predictions, each the mean of 2 repeats: {files}\n"
    said = [row["predicted"] for row in rows(output)]
    assert said == [row["predicted"] for row in rows(folder / "predictions.csv")]
    output.unlink()
    output.with_suffix(".parquet").unlink()
    printed = succeed("evaluate", folder)
    assert printed.split()[:3] == ["training", "validation", "test"]
    assert max(map(len, printed.splitlines())) <= 80


def test_compare_prints_a_table_and_writes_a_page(bundled, tmp_path, no_report):
    folder, _ = bundled
    other = tmp_path / "gpr"
    succeed("train", *TINY, *FAST, "--model", "gpr", "--repeat", 2, "--output", other)
    page = tmp_path / "both.html"
    printed = succeed("compare", folder, other, "--output", page)
    assert "data: csbm\n" in printed
    assert "GPRGNN" in printed
    assert re.search(r"[+-]\d+\.\d points,", printed)
    assert "\nlearned filters\n  run: " in printed
    assert printed.endswith(f"page: {page}\n")
    assert "LON-GNN" in page.read_text(encoding="utf-8")


# Commands that only print


def test_info(tmp_path):
    printed = succeed("info", CLUB)
    for line in ("nodes       300", "edges       900", "classes     chess: 84"):
        assert line in printed
    assert "0 |" in printed
    card = succeed_json("info", CLUB)
    assert (card["nodes"], card["edges"]) == (300, 900)
    assert len(card["density"]["density"]) == len(card["density"]["eigenvalues"])
    notes = longnn("info", "csbm").stderr.splitlines()
    assert notes == ["note: 5 nodes have no edge: they are predicted from their own columns."]

"""A run on rows of a stored graph is a run: folder, predictions, evaluation, resume, report."""

import dataclasses
import shutil

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
import torch

from longnn.data import DataError
from longnn.runs import load_run, train
from longnn.store._disk import load_stored
from longnn.training._fit import raw_scores
from longnn.training._presets import portfolio
from tests.commands import fail, succeed
from tests.shifted import shifted_graph
from tests.store.graphs import small, write_graph

FAST = {"preset": "fast", "epochs": 12, "batch_rows": 64, "baselines": False}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored") / "graph"
    ids = [f"user {i}" for i in range(300)]
    write_graph(folder, dataclasses.replace(small(300, unlabelled=40), ids=ids))
    return folder


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    return train(folder, FAST, tmp_path_factory.mktemp("runs") / "run", memory=1)


def test_the_run_folder_is_an_ordinary_one(run, folder):
    names = {path.name for path in run.folder.iterdir()}
    expected = {"run.json", "record.json", "config.toml", "weights.safetensors", "report.html"}
    assert expected | {"predictions.parquet", "predictions.csv", "history.csv"} <= names
    again = load_run(run.folder)
    assert again.dataset.backing.by_rows
    assert again.config.options["placement"] == "features"
    found = again.evaluate()[0][0]["test"]
    assert found == pytest.approx(run.record.repeats[0].scores["test"])
    assert run.record.data.card["nodes"] == 300
    assert run.record.data.density is not None
    assert run.record.data.card["components"] >= 1
    assert "read from disk" in (run.folder / "report.html").read_text()


def test_predictions_are_of_all_nodes_with_their_ids(run, folder):
    table = pyarrow.parquet.read_table(run.folder / "predictions.parquet")
    assert table.num_rows == 300
    columns = ["id", "predicted", "plausible", "p_minus", "p_plus", "label", "set"]
    assert table.column_names == columns
    assert table["id"].to_pylist()[:2] == ["user 0", "user 1"]
    assert table["label"].to_pylist()[-40:] == [None] * 40
    assert set(table["set"].to_pylist()[-40:]) == {"none"}
    assert run.predictions().equals(table)


def test_rows_follow_the_validation_nodes(tmp_path, no_report):
    """Training, the folder, evaluation and other graphs: all with the shift of the readout."""
    graph = shifted_graph()
    write_graph(tmp_path / "graph", graph)
    run = train(tmp_path / "graph", FAST, tmp_path / "run", memory=1)
    readout = run.trained.readouts[0]
    assert readout.shift[0] > 0 > readout.shift[1]
    assert run.record.repeats[0].shift.val.sum() == graph.data.val_mask.sum()
    again = load_run(run.folder)
    assert again.trained.readouts == run.trained.readouts
    table = pyarrow.parquet.read_table(run.folder / "predictions.parquet")
    whole = load_stored(tmp_path / "graph", rows=False)
    scores = raw_scores(again.trained.models[0], again.trained.problem(whole))
    expected = (scores / readout.temperature + torch.tensor(readout.shift)).softmax(1)
    there = np.stack([table["p_minus"], table["p_plus"]], 1)
    np.testing.assert_allclose(there, expected.numpy(), atol=1e-5)
    np.testing.assert_allclose(run.predict(whole)["p_plus"], there[:, 1], atol=1e-5)
    found = again.evaluate()[0][0]["test"]
    assert found == pytest.approx(run.record.repeats[0].scores["test"])


def test_another_prepared_graph_is_predicted(run, tmp_path):
    stored = write_graph(tmp_path / "new", small(60, seed=1))
    by_rows, whole = (
        run.predict(load_stored(stored.folder, rows=rows))["p_plus"] for rows in (True, False)
    )
    np.testing.assert_allclose(by_rows, whole, atol=1e-5)


def test_another_number_of_features_is_an_error(run, tmp_path):
    stored = write_graph(tmp_path / "new", small(60, 4))
    with pytest.raises(DataError, match="Expected 6 features"):
        run.predict(load_stored(stored.folder, rows=True))
    with pytest.raises(DataError, match="repeat below 1"):
        run.tables(3)


def test_data_that_changed_is_noticed(run, folder, tmp_path, no_report):
    moved = tmp_path / "graph"
    shutil.copytree(folder, moved)
    made = train(moved, FAST, tmp_path / "r", memory=1)
    write_graph(moved, small(300, seed=9))
    with pytest.raises(DataError, match="changed since"):
        _ = load_run(made.folder).dataset


def test_presets_baselines_and_a_time_limit(folder):
    seen = []
    config = {"epochs": 3, "batch_rows": 128, "time_limit": 60.0}
    made = train(folder, config, memory=1, on_start=seen.append)
    everyone = set(portfolio("default", words=False, by_rows=True))
    members = {member.name for member in made.record.repeats[0].members}
    (note,) = (note for note in seen[0].notes if "models of preset" in note)
    assert f"{len(members)} of the {len(everyone)} models" in note
    assert all(name in note for name in everyone - members)
    assert 2 <= len(members) < len(everyone)
    assert "table, features" in members  # the others were chosen for words
    rivals = {baseline.name for baseline in made.record.baselines}
    assert rivals == {"constant", "mlp", "trees", "neighbours", "joined", "plain"}


def test_predictions_of_a_graph_on_disk_are_csv_and_parquet(run, tmp_path):
    said = succeed("predict", run.folder, "--output", tmp_path / "p.csv")
    assert said.startswith("300 predictions")
    tables = (
        pyarrow.csv.read_csv(tmp_path / "p.csv"),
        pyarrow.parquet.read_table(tmp_path / "p.parquet"),
    )
    assert tables[0].column_names == tables[1].column_names
    np.testing.assert_allclose(tables[0]["p_plus"], tables[1]["p_plus"])
    succeed("predict", run.folder, "--output", tmp_path / "alone.parquet")
    assert not (tmp_path / "alone.csv").exists()
    assert "end in .csv or .parquet" in fail("predict", run.folder, "--output", tmp_path / "p.txt")

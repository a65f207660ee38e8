"""The record of a search: one class writes and reads it, and it names the graph to train on."""

import dataclasses
import json
import shlex
from types import SimpleNamespace

import pytest

from longnn.data._synthetic import csbm
from longnn.tuning import read_record
from longnn.tuning._record import DatasetRecord
from tests.tuning.examples import search


def test_the_graph_is_named_on_the_command_line():
    named = DatasetRecord("texas", "abc", "texas", data_dir="/my data")
    assert shlex.join(named.arguments()) == "texas --data-dir '/my data'"


def test_the_record_is_read_back_as_it_was(dataset, tmp_path):
    record = search(dataset, tmp_path, finalists=2).record
    assert read_record(tmp_path) == record
    assert json.loads(json.dumps(record.to_dict())) == record.to_dict(), "plain data"


def test_a_damaged_record_is_one_sentence_that_names_the_file(dataset, tmp_path):
    search(dataset, tmp_path, trials=1, repeats=1)
    path = tmp_path / "tuning.json"
    whole = json.loads(path.read_text())
    for text in ("{", "[" * 100_000, '{"seed": ' + "7" * 5000 + "}"):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"Expected .*tuning\.json to be JSON \(it is damaged"):
            read_record(tmp_path)
    trial = {**whole["best"], "intermediate": 5}
    other = [{**whole, "best": trial}, {**whole, "trials": 5}, {**whole, "dataset": None}, [], 5]
    for table in (*other, {**whole, "space": "x"}):
        path.write_text(json.dumps(table))
        with pytest.raises(ValueError, match=r"tuning\.json: Expected 'record"):
            read_record(tmp_path)
    del whole["seeds"]
    path.write_text(json.dumps(whole))
    with pytest.raises(ValueError, match=r"tuning\.json: Expected 'record.seeds' .*\(got nothing"):
        read_record(tmp_path)


def test_the_command_finds_the_files_of_a_named_dataset(dataset, tmp_path):
    keys = {"trials": 1, "repeats": 1, "finalists": 0, "data_dir": tmp_path / "my data"}
    record = search(dataset, tmp_path / "a", **keys).record
    assert f"--data-dir '{tmp_path / 'my data'}'" in record.train_command(tmp_path)
    own = dataclasses.replace(dataset, name="mine")
    record = search(own, tmp_path / "b", **keys).record
    assert "--data-dir" not in record.train_command(tmp_path), "only named datasets have one"


def test_a_dataset_is_named_by_its_source(tmp_path):
    graph = csbm(num_nodes=40, num_features=4)
    assert DatasetRecord.describe(graph).arguments() == ["csbm"]
    own = dataclasses.replace(graph, name="mine")
    assert DatasetRecord.describe(own).arguments() == ["GRAPH"]
    options = {"label_column": "my topic", "directed": True, "feature_columns": ["age", "height"]}
    source = SimpleNamespace(graph="/data/my edges.csv", nodes="/data/nodes.csv", options=options)
    loaded = SimpleNamespace(name="mine", fingerprint=lambda: "abc", source=source)
    arguments = DatasetRecord.describe(loaded).arguments()
    assert shlex.join(arguments) == (
        "'/data/my edges.csv' --nodes /data/nodes.csv --data 'label_column=my topic' "
        "--data directed=true --data feature_columns=age,height"
    )


@pytest.fixture(scope="module")
def written(dataset, tmp_path_factory):
    """The text of a record."""
    folder = tmp_path_factory.mktemp("search")
    search(dataset, folder, trials=1, repeats=1)
    return (folder / "tuning.json").read_text()


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (["model"], [], r"Expected 'record.model' to be text \(got \[\]\)"),
        (["model"], "lonn", "did you mean `lon`"),
        (["repeats"], None, r"Expected 'record.repeats' to be a whole number \(got None\)"),
        (["created"], 3, "Expected 'record.created' to be text"),
        (["environment"], {}, "Expected the version of longnn in `record.environment`"),
        (["seeds"], [], "to have seeds and a best trial with a value"),
        (["best", "value"], None, "to have seeds and a best trial with a value"),
        (["trials", 0, "state"], "done", "Expected trials with a state and a number"),
        (["trials", 0, "number"], 10**40, r"'record.trials\[0\].number' to be a whole number"),
        (["trials", 0, "epochs"], [], "Expected trial 0 to have epochs"),
        (
            ["trials", 0, "intermediate"],
            [],
            "intermediate' to be an object",
        ),
        (["trials", 0, "params"], {"a": []}, r"Expected 'record.trials\[0\].params.a' to be"),
    ],
)
def test_damage_is_named_with_its_file(written, tmp_path, place, value, message):
    table = json.loads(written)
    *way, last = place
    node = table
    for key in way:
        node = node[key]
    node[last] = value
    (tmp_path / "tuning.json").write_text(json.dumps(table))
    with pytest.raises(ValueError, match=rf"tuning\.json: .*{message}"):
        read_record(tmp_path)


def test_json_without_end_is_damage(tmp_path):
    (tmp_path / "tuning.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match=r"tuning\.json to be JSON"):
        read_record(tmp_path)

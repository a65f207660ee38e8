"""What a search leaves behind: record, recipe, figures and page; and a record that is damaged."""

import dataclasses
import json
import shlex
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest

from longnn.config import Config
from longnn.data import csbm
from longnn.tuning import read_record
from longnn.tuning._page import write_page
from longnn.tuning._record import DatasetRecord
from longnn.tuning._training import Halving
from tests.commands import succeed
from tests.tuning.examples import SPACE, search

VOID = {"meta", "img", "br", "link", "input", "hr"}
NAME = "<b>&\"gra\nph'</b>"


class Balanced(HTMLParser):
    """Fails on a tag that is closed and was not open; collects text and attributes."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.tags = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("search")
    plain = csbm(num_nodes=120, num_features=30, seed=3)
    dataset = dataclasses.replace(plain, name=NAME)
    options = {"trials": 24, "batch": 12, "repeats": 2, "halving": Halving((3,)), "scale": "none"}
    result = search(dataset, folder, SPACE, storage=None, **options)
    return folder, result


def test_record(found):
    folder, result = found
    record = json.loads((folder / "tuning.json").read_text())
    assert record == result.record.to_dict()
    assert read_record(folder) == result.record
    assert record["seeds"] == [1000, 1001]
    assert record["finished"] == len(record["trials"]) == 24
    assert record["search"] == f"{NAME}-lon"
    assert record["storage"].endswith("search.db")
    assert record["halving"] == {"rungs": [3], "keep": 2}
    for trial in record["trials"]:
        assert set(trial["params"]) == set(SPACE)
        assert len(trial["epochs"]) == len(trial["scores"]) == 2
        assert trial["seconds"] >= 0
    assert {"longnn", "torch", "optuna", "device"} <= set(record["environment"])
    assert not list(folder.glob(".*")), "no half-written file is left"


def test_recipe_is_a_configuration(found):
    folder, result = found
    text = (folder / "recipe.toml").read_text()
    config = Config.from_toml(folder / "recipe.toml")
    assert config == result.config
    best = result.record.best
    flat = config.to_dict()
    assert {key: flat[key] for key in SPACE} == best.params
    header = [line for line in text.splitlines() if line.startswith("#")]
    assert "lon on <b>&\"gra ph'</b>" in header[0]
    assert f"{100 * best.value:.2f} %" in text
    assert "longnn" in header[-1]
    assert "optuna" in header[-1]
    copy = result.write_recipe(folder / "copy.toml")
    assert copy.read_text() == text


def test_importance_finds_the_learning_rate(found):
    _, result = found
    shares = result.record.importance
    assert next(iter(shares)) == "lr_transform"
    assert sum(shares.values()) == pytest.approx(1)
    assert set(shares) == {"lr_transform", "dropout", "a"}
    assert list(shares.values()) == sorted(shares.values(), reverse=True)


def test_page_stands_alone_and_is_well_formed(found):
    folder, result = found
    page = (folder / "tuning.html").read_text()
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert not {tag for tag, _ in parser.tags} & {"script", "b iframe", "object"}
    assert not [t for t in parser.tags if t[0] == "b" and t[1]]
    assert "<b>&" not in page
    sources = [a["src"] for tag, a in parser.tags if tag == "img"]
    assert len(sources) == 2
    assert all(source.startswith("data:image/") for source in sources)
    assert "http" not in page.replace("http://www.w3.org", "")
    text = " ".join(parser.text)
    assert f"{100 * result.value:.2f} %" in text
    assert "No test node was used" in text
    for name in ("tuning_history", "tuning_importance"):
        assert (folder / "figures" / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
        assert b"<svg" in (folder / "figures" / f"{name}.svg").read_bytes()


def test_page_is_made_of_the_record_alone(found, tmp_path):
    folder, _ = found
    (tmp_path / "tuning.json").write_bytes((folder / "tuning.json").read_bytes())
    page = (folder / "tuning.html").read_text()
    assert str(folder / "recipe.toml") in page
    assert write_page(tmp_path).read_text() == page.replace(str(folder), str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"Expected tuning.json in"):
        write_page(tmp_path / "none")


def printed_command(page):
    """The command that a page prints, as a shell reads it."""
    parser = Balanced()
    parser.feed(page.read_text())
    (command,) = [text for text in parser.text if text.startswith("longnn train")]
    return shlex.split(command)


def test_the_printed_command_trains_the_winner(tmp_path, monkeypatch, no_report):
    """As printed, and in any folder."""
    folder = tmp_path / "my search"
    search(csbm(), folder, SPACE | {"epochs": 2}, trials=1, batch=1, repeats=1)
    program, *arguments = printed_command(folder / "tuning.html")
    assert program == "longnn"
    assert arguments[:2] == ["train", "csbm"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    succeed(*arguments)
    (record,) = elsewhere.glob("runs/*/record.json")
    assert len(json.loads(record.read_text())["repeats"]) == 10


def test_the_command_for_a_graph_made_in_python_names_what_is_missing(found):
    folder, _ = found
    assert printed_command(folder / "tuning.html") == [
        *("longnn", "train", "GRAPH", "--config", str(folder / "recipe.toml"), "--repeat", "10")
    ]
    assert "with the files of the graph for GRAPH" in (folder / "tuning.html").read_text()


def test_one_of_a_thing_is_not_several(tmp_path):
    graph = csbm(num_nodes=60, num_features=8)
    result = search(graph, tmp_path, SPACE, trials=1, repeats=1, finalists=0)
    page = (tmp_path / "tuning.html").read_text()
    assert "1 trial with 1 repeat each" in page
    assert "the mean over 1 tuning split." in page
    assert result.record.importance == {}
    assert "too few trials" in page
    assert not (tmp_path / "figures" / "tuning_importance.png").exists()


def test_the_graph_is_named_on_the_command_line():
    named = DatasetRecord("texas", "abc", "texas", data_dir="/my data")
    assert shlex.join(named.arguments()) == "texas --data-dir '/my data'"


def test_a_damaged_record_is_one_sentence_that_names_the_file(found, tmp_path):
    path = tmp_path / "tuning.json"
    whole = json.loads((found[0] / "tuning.json").read_text())
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
    record = search(dataset, None, **keys).record
    assert f"--data-dir '{tmp_path / 'my data'}'" in record.train_command(tmp_path)
    own = dataclasses.replace(dataset, name="mine")
    record = search(own, None, **keys).record
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
def test_damage_is_named_with_its_file(found, tmp_path, place, value, message):
    table = json.loads((found[0] / "tuning.json").read_text())
    *way, last = place
    node = table
    for key in way:
        node = node[key]
    node[last] = value
    (tmp_path / "tuning.json").write_text(json.dumps(table))
    with pytest.raises(ValueError, match=rf"tuning\.json: .*{message}"):
        read_record(tmp_path)

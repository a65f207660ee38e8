"""What a search leaves behind: record, recipe, figures and page; and a record that is damaged."""

import dataclasses
import io
import json
import shlex
from types import SimpleNamespace

import pytest
from rich.console import Console

from longnn.cli._display import tuning_progress
from longnn.config import Config
from longnn.data import csbm, from_data
from longnn.tuning import read_record
from longnn.tuning._record import DatasetRecord, TuningProgress, draw_history, write_page
from longnn.tuning._training import Halving
from tests.commands import succeed
from tests.report.pagecheck import Page, check_page
from tests.tuning.examples import SPACE, search

NAME = "<b>&\"gra\nph'</b>"


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
    assert "LON-GNN on <b>&\"gra ph'</b>" in header[0]
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
    html = (folder / "tuning.html").read_text()
    page = check_page(html)
    assert not page.all("b iframe")
    assert not [attributes for attributes in page.all("b") if attributes]
    assert "<b>&" not in html
    assert len(page.all("img")) == 2
    assert f"{100 * result.value:.2f} %" in page.text
    assert "No test node was used" in page.text
    for name in ("tuning_history", "tuning_importance"):
        assert (folder / "figures" / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
        assert b"<svg" in (folder / "figures" / f"{name}.svg").read_bytes()


def test_page_is_made_of_the_record_alone(found, tmp_path):
    folder, _ = found
    (tmp_path / "tuning.json").write_bytes((folder / "tuning.json").read_bytes())
    page = (folder / "tuning.html").read_text()
    assert str(folder / "recipe.toml") in page
    written = write_page(tmp_path, read_record(tmp_path)).read_text()
    assert written == page.replace(str(folder), str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"Expected tuning.json in"):
        read_record(tmp_path / "none")


def printed_command(page):
    """The command that a page prints, as a shell reads it."""
    (command,) = [
        line for line in Page(page.read_text()).text.splitlines() if "longnn train" in line
    ]
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


def test_a_file_that_is_no_record_is_named(found, tmp_path):
    path = tmp_path / "tuning.json"
    for text in ("{", "[" * 100_000, '{"seed": ' + "7" * 5000 + "}", "[]", "5"):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"tuning\.json: Expected a JSON"):
            read_record(tmp_path)


def test_a_dataset_is_named_by_its_source(tmp_path):
    graph = csbm(num_nodes=40, num_features=4)
    named = DatasetRecord.describe(graph, tmp_path / "my data").arguments()
    assert shlex.join(named) == f"csbm --data-dir '{tmp_path / 'my data'}'"
    mine = dataclasses.replace(graph, name="mine")
    assert DatasetRecord.describe(mine, tmp_path).arguments() == ["GRAPH"]
    options = {"label_column": "my topic", "directed": True, "feature_columns": ["age", "height"]}
    source = SimpleNamespace(graph="/data/my edges.csv", nodes="/data/nodes.csv", options=options)
    loaded = SimpleNamespace(name="mine", fingerprint=lambda: "abc", source=source)
    assert shlex.join(DatasetRecord.describe(loaded, tmp_path).arguments()) == (
        "'/data/my edges.csv' --nodes /data/nodes.csv --data 'label_column=my topic' "
        "--data directed=true --data feature_columns=age,height"
    )


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (["model"], [], r"'model' to be text \(got \[\]\)"),
        (["model"], "lonn", "'model' to be the name of a model"),
        (["repeats"], None, r"'repeats' to be a whole number \(got None\)"),
        (["dataset"], None, "'dataset' to be an object"),
        (["environment"], {}, "'environment' to be an object with the version of longnn"),
        (["seeds"], [], "'seeds' to be a list of at least one seed"),
        (["start", "name"], "best", "'start.name' to be one of default, given"),
        (["best", "value"], None, "'best.value' to be a number"),
        (["trials", 0, "state"], "done", r"'trials\[0\].state' to be one of complete, pruned"),
        (["trials", 0, "number"], 10**40, r"'trials\[0\].number' to be a whole number"),
        (["trials", 0, "epochs"], [], r"'trials\[0\].epochs' to be a list of at least one"),
        (["trials", 0, "params"], {"a": []}, r"'trials\[0\].params.a' to be"),
    ],
)
def test_damage_is_named_with_its_file(found, tmp_path, place, value, message):
    table = json.loads((found[0] / "tuning.json").read_text())
    table["trials"].sort(key=lambda trial: trial["state"])  # a complete one first
    *way, last = place
    node = table
    for key in way:
        node = node[key]
    node[last] = value
    (tmp_path / "tuning.json").write_text(json.dumps(table))
    with pytest.raises(ValueError, match=rf"tuning\.json: Expected {message}"):
        read_record(tmp_path)


def test_errors_are_shown_as_positive_numbers(tmp_path):
    """The search counts the negative of an error; the page, its figure and the terminal do not."""
    graph = csbm(num_nodes=60, num_features=8)
    data = graph.data.clone()
    data.y = data.x.sum(1) * 100
    space = SPACE | {"monitor": "mae"}
    record = search(from_data(data), tmp_path, space, trials=6, batch=6, repeats=1).record
    scores = [-trial.value for trial in record.trials]
    assert record.metric == "mae"
    assert -record.value == min(scores) > 0, "of errors the smaller is better"
    axes = draw_history(record).axes[0]
    (line,) = axes.lines
    assert line.get_ydata() == pytest.approx([min(scores[: k + 1]) for k in range(6)])
    assert axes.get_ylim()[0] < min(scores)
    assert axes.get_ylim()[0] < axes.get_ylim()[1]
    assert "&#x27;-" not in (tmp_path / "tuning.html").read_text()
    shown = f"{min(scores):.4f}"
    assert f"is trial {record.best.number} with {shown}" in (tmp_path / "tuning.html").read_text()
    console = Console(file=io.StringIO(), force_terminal=True, width=200)
    state = TuningProgress("mae", 3, 6, record.value, {}, 1.0, None, 0, 0)
    with tuning_progress(console, quiet=False) as on_progress:
        on_progress(state)
    assert f"best validation {shown}" in console.file.getvalue()

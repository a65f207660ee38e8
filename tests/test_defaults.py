"""One source of defaults: command, estimator, search and model agree, key by key and bit by bit."""

import csv

import numpy as np
import pytest

from longnn import LONGNN, LONGNNClassifier, LONGNNRegressor, get_model, tuning
from longnn.config import Config
from longnn.data import load
from longnn.registry import MODELS
from tests.commands import CLUB, TINY, succeed, succeed_json

pytestmark = pytest.mark.usefixtures("no_report")


@pytest.mark.parametrize("model", MODELS)
def test_an_estimator_without_parameters_is_the_default_configuration(model):
    for estimator in (LONGNNClassifier, LONGNNRegressor):
        assert estimator(model=model).config() == Config(model=model)
    assert LONGNNClassifier().config() == Config()


def test_the_command_trains_with_what_the_estimator_trains_with(tmp_path):
    record = succeed_json("train", *TINY, "--set", "epochs=2", "--output", tmp_path / "run")
    graph = load("csbm", num_nodes=60, num_features=8, phi=-0.6)
    fitted = LONGNNClassifier(epochs=2).fit(graph)
    assert record["config"] == fitted.trained_.config.to_dict()
    assert Config.from_toml(tmp_path / "run" / "config.toml") == fitted.trained_.config
    voting = {m["name"] for m in record["repeats"][0]["members"]}
    assert set(fitted.trained_.members) <= voting


@pytest.mark.parametrize("model", MODELS)
def test_a_model_alone_has_the_options_of_a_configuration(model):
    """``LONGNN(16, 64, 2)`` is what ``longnn train`` would build."""
    built = get_model(model, 5, 8, 3)
    options = Config(model=model).options
    assert repr(built) == repr(get_model(model, 5, 8, 3, **options))
    assert options == MODELS[model].options


def test_the_model_of_the_paper_is_a_form_and_not_the_default():
    (ours,) = LONGNN(5, 8, 3).filters()
    assert (ours.kind, ours.channels, ours.basis.weight) == ("free", 1, "probability")


def test_a_search_fills_in_from_the_same_source():
    space = tuning.load_space({"dropout": {"choices": [0.1, 0.2, 0.3]}}, "lon")
    assert space.config({"dropout": 0.1}) == Config(options={"dropout": 0.1})


def write_club(folder, label):
    """The example with a column that says which node serves for what, and a label to learn."""
    folder.mkdir()
    (folder / "edges.csv").write_text((CLUB / "edges.csv").read_text())
    with (CLUB / "nodes.csv").open() as file:
        rows = list(csv.DictReader(file))
    with (folder / "nodes.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0], "split"])
        writer.writeheader()
        for i, row in enumerate(rows):
            known = bool(row["label"])
            split = ("train", "train", "val", "train", "test")[i % 5] if known else ""
            writer.writerow({**row, "label": label(row) if known else "", "split": split})
    return folder


def column(folder, name):
    with (folder / "predictions.csv").open() as file:
        return np.array([float(row[name]) for row in csv.DictReader(file)])


def test_command_and_estimator_predict_the_same_classes(tmp_path):
    """Same data, same split, nothing set but the epochs: the same bits of probability."""
    graph = write_club(tmp_path / "club", lambda row: row["label"])
    succeed("train", graph, "--set", "epochs=6", "--output", tmp_path / "run")
    classifier = LONGNNClassifier(epochs=6).fit(load(graph))
    assert classifier.classes_.tolist() == ["chess", "rowing", "tennis"]
    for k, name in enumerate(classifier.classes_):
        expected = column(tmp_path / "run", f"p_{name}")
        np.testing.assert_array_equal(classifier.predict_proba()[:, k].astype(float), expected)
    # A bare PyG Data is scaled as the files are: by column.
    bare = LONGNNClassifier(epochs=6).fit(load(graph).data)
    np.testing.assert_array_equal(bare.predict_proba(), classifier.predict_proba())


def test_command_and_estimator_predict_the_same_numbers(tmp_path):
    def dues(row):
        return 3.5 * float(row["years"]) + float(row["age"]) / 7

    graph = write_club(tmp_path / "club", dues)
    succeed("train", graph, "--set", "epochs=6", "--output", tmp_path / "run")
    regressor = LONGNNRegressor(epochs=6).fit(load(graph))
    expected = column(tmp_path / "run", "predicted")
    np.testing.assert_array_equal(regressor.predict().astype(float), expected)


def test_features_that_are_ready_are_left_alone_by_both(tmp_path):
    brief = {"epochs": 2, "preset": "fast"}
    words = [word for key, value in brief.items() for word in ("--set", f"{key}={value}")]
    record = succeed_json("train", *TINY, *words, "--output", tmp_path / "run")
    assert record["data"]["scaling"] == "none"
    data = load("csbm", num_nodes=60, num_features=8, phi=-0.6)
    assert LONGNNClassifier(**brief).fit(data).trained_.scaling.kind == "none"
    assert LONGNNClassifier(**brief).fit(data.data).trained_.scaling.kind == "columns"
    assert LONGNNClassifier(**brief, scale="row").fit(data).trained_.scaling.kind == "row"

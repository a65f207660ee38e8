"""Explanations as users meet them: the command, the estimator, tables, pages, files."""

import json

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from longnn import LONGNNClassifier, load_run
from longnn.data import csbm
from longnn.explain import Explanation, explain_nodes
from tests.commands import NEWCOMERS, fail, longnn, succeed, succeed_json
from tests.explain.cases import HERE, make_trained
from tests.report.pagecheck import check_page


@pytest.fixture
def run(club):
    return club[0]


def test_what_the_command_prints_adds_up(run):
    result = longnn("explain", run, "Ada Adler", "--top", 3)
    assert result.exit_code == 0, result.output
    text = result.stdout
    assert text.startswith("lon: exact\n")
    for piece in (
        "Node Ada Adler is predicted ",
        "the node itself",
        "by feature",
        "hours",
        " others",
    ):
        assert piece in text
    line = next(line for line in text.splitlines() if line.startswith("sum: "))
    words = line.replace(",", "").replace(":", "").split()
    constant, given, score = (
        float(words[words.index(w) + 1]) for w in ("constant", "contributions", "score")
    )
    assert constant + given == pytest.approx(score, abs=2e-3)


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_files(run, tmp_path, ending):
    path = tmp_path / f"why.{ending}"
    text = succeed("explain", run, "Ada Adler", "--output", path)
    assert f"tables: {path}" in text
    wanted = load_run(run).explain(["Ada Adler"])
    if ending == "json":
        rows = json.loads(path.read_text())["contributions"]
        assert {p.name for p in tmp_path.iterdir()} == {"why.json"}
    else:
        read = pyarrow.csv.read_csv if ending == "csv" else pyarrow.parquet.read_table
        rows = read(path).to_pylist()
        names = {"", "-rings", "-features", "-degrees", "-summary"}
        assert {p.name for p in tmp_path.iterdir()} == {f"why{n}.{ending}" for n in names}
        rings = read(tmp_path / f"why-rings.{ending}").to_pylist()
        total = sum(r["contribution"] for r in rings)
        assert total == pytest.approx(sum(r["contribution"] for r in rows))
    assert [r["source"] for r in rows] == list(wanted.contributions["source"])


def test_the_page_stands_alone_and_has_the_words(run, tmp_path):
    path = tmp_path / "why.html"
    text = succeed("explain", run, "Ada Adler", "Mei Costa", "--html", path)
    assert f"page: {path}" in text
    page = check_page(path.read_text(encoding="utf-8"))
    assert "Why Ada Adler?" in page.text
    assert len(page.all("img")) == 2
    assert all(image["alt"] for image in page.all("img"))
    explained = load_run(run).explain(["Ada Adler", "Mei Costa"])
    assert explained.why(0) in page.text
    assert f"{explained[0].score:.4f}" in page.text


def test_hostile_names_are_text(tmp_path):
    """Names from users reach pages, figures and spreadsheets as they are."""
    trained = make_trained("lon", repeats=1)
    evil = ["<script>alert(1)</script>$x^", "=1+1", *(f"n{k}" for k in range(21))]
    dataset = type(HERE)("evil", HERE.data, classes=HERE.classes, ids=evil)
    page = explain_nodes(trained, dataset, [0]).write_page(tmp_path / "page.html")
    assert evil[0] in check_page(page.read_text(encoding="utf-8")).text
    explain_nodes(trained, dataset, [1]).save(tmp_path / "x.csv")
    assert "'=1+1" in (tmp_path / "x.csv").read_text()


def test_all_predictions_at_once(run):
    text = succeed("explain", run)
    starts = (
        "lon: ",
        "explained: ",
        "columns that count, by what the test score loses",
        "by distance: the node itself",
        "largest features",
        "most inf",
    )
    for line, start in zip(text.splitlines(), starts, strict=True):
        assert line.startswith(start)
    found = succeed_json("explain", run, "--no-features")
    assert found["features"] == []
    assert sum(r["share"] for r in found["distances"] if r["output"] == "all") == pytest.approx(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["ada adler"],
            "Expected ids of nodes of the graph (got 'ada adler'); did you mean `Ada Adler`?",
        ),
        (["7"], "Expected ids of nodes of the graph (got '7'); the first is 'Ada Adler'"),
        (["Ada Adler", "--class", "rowin"], "(got 'rowin'); did you mean `rowing`?"),
        (["Ada Adler", "--output", "x.txt"], "ends in .csv, .parquet, .json (got x.txt)"),
        (["Ada Adler", "--output", "nowhere/x.csv"], "in an existing folder (got nowhere)"),
        (["Ada Adler", "--html", "x.txt"], "Expected --html to end in .html"),
        (["Ada Adler", "--html", "nowhere/x.html"], "Expected --html in an existing folder"),
        (["--html", "x.html"], "Expected nodes for --html"),
        (["--class", "rowing"], "Expected nodes where --class or --against is given"),
        (["Ada Adler", "--sample", "3"], "Expected --sample without nodes"),
        (["Ada Adler", "--repeat-index", "4"], "Expected a repeat below 1 (got 4)"),
    ],
)
def test_mistakes_are_one_line(run, arguments, message):
    assert message in fail("explain", run, *arguments)


def test_many_nodes_of_a_new_graph_are_printed_in_part(run):
    lines = (NEWCOMERS / "nodes.csv").read_text().splitlines()[1:13]
    ids = [line.partition(",")[0] for line in lines]
    printed = succeed("explain", run, "--graph", NEWCOMERS, *ids)
    assert ids[0] in printed
    assert "2 more explained" in printed


@pytest.fixture(scope="module")
def fitted():
    graph = csbm(num_nodes=60, num_features=8)
    return graph, LONGNNClassifier(preset="fast", epochs=8).fit(graph)


def test_the_estimator_explains_nodes(fitted):
    _, classifier = fitted
    found = classifier.explain([3, 5])
    assert isinstance(found, Explanation)
    assert len(found) == 2
    assert list(found.summary["node"]) == [3, 5]
    predicted = classifier.predict([3, 5])
    assert [e.predicted for e in found.nodes] == [str(p) for p in predicted]
    total = found.contributions.groupby("node")["contribution"].sum()
    np.testing.assert_allclose(
        total.loc[[3, 5]] + list(found.summary["constant"]), list(found.summary["score"])
    )
    assert repr(found) == "Explanation(2 nodes, model='lon', method='exact')"
    assert len(found.plot().axes) == 2
    assert found.why().startswith("Node 3 is predicted ")
    assert set(found.degrees["basis"]) == {"chebyshev", "jacobi"}
    assert len(found.rings)
    assert len(found.features)


def test_a_loaded_estimator_needs_the_graph(fitted, tmp_path):
    graph, classifier = fitted
    classifier.save(tmp_path / "model.safetensors")
    loaded = LONGNNClassifier.load(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="Expected the graph to explain on"):
        loaded.explain([3])
    wanted = classifier.explain([3])[0]
    assert loaded.explain([3], graph)[0].score == pytest.approx(wanted.score)
    loaded.set_params(graph=graph)
    assert loaded.explain([3])[0].score == pytest.approx(wanted.score)


def test_without_pandas_tables_are_those_of_arrow(fitted, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert isinstance(fitted[1].explain([3]).rings, pyarrow.Table)

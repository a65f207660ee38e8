"""Pages stand alone, say everything, and let nobody's text become markup."""

import dataclasses
import re
import shutil

import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support

from longnn.records import BaselineRecord, ErrorRecord, MemberRecord, RunRecord, Summary
from longnn.report import (
    Figures,
    cautions,
    name_apart,
    text_summary,
    write_comparison,
    write_report,
)
from longnn.report import _html as html
from longnn.report._answer import answer_text, graph_text, known_text, question_text
from longnn.report._checks import checks
from longnn.report._comparison import paired_text
from longnn.report._page import class_rows, plates
from longnn.report._words import filter_rows, filter_words, plain_text
from tests.report.examples import edit_record, write_run
from tests.report.pagecheck import check_page

HOSTILE = "<script>alert(1)</script>\"' & <b>"


@pytest.fixture
def copy(folders, tmp_path):
    """Copies of run folders that a test may change."""
    return lambda name, at="run": shutil.copytree(folders[name], tmp_path / at)


def page_of(run, *, drawn=False):
    with pytest.MonkeyPatch.context() as patch:
        if not drawn:  # which takes most of the time
            patch.setattr("longnn.report._page.plates", lambda run: [])
        return check_page(write_report(run).read_text(encoding="utf-8"))


def changed(run, which=None, **values):
    """The run with values of one repeat, or of all, replaced."""
    repeats = tuple(
        dataclasses.replace(repeat, **values) if which in (None, i) else repeat
        for i, repeat in enumerate(run.repeats)
    )
    return dataclasses.replace(run, repeats=repeats)


# The page of one run


@pytest.mark.parametrize("name", ["single", "gcn", "bern", "deep"])
def test_page_is_whole(pages, runs, name):
    page, run = check_page(pages[name]), runs[name]
    assert question_text(run) in page.text
    assert answer_text(run) in page.text
    drawn = [attrs["id"] for attrs in page.all("figure")]
    assert sorted(drawn) == sorted(plate.name for plate in plates(run))
    for plate in plates(run):
        assert plate.caption in page.text
        assert plate.alt in [image["alt"] for image in page.all("img")]
    for key in (*run.config, *run.environment):
        assert any(row[0] == key for table in page.tables for row in table)
    for text in (run.command, run.data.fingerprint, "no test label was used in training",
                 *run.data.notes, *run.data.card["warnings"]):  # fmt: skip
        assert text in page.text


def test_page_says_first_what_everybody_asks(pages):
    text = pages["single"]
    first, _, rest = text.partition("<details>")
    titles = re.findall(r"<h2>(.*?)</h2>", first)
    assert titles == ["How well it works", "Where it errs", "What was learned"]
    folds = re.findall(r"<summary><h2>(.*?)</h2></summary>", text)
    assert folds[-3:] == ["How the numbers were obtained", "The data", "Reproduce the run"]
    assert "<details open" not in rest
    page = check_page(text)
    rows = {row[0]: row[1] for table in page.tables for row in table if len(row) == 2}
    assert rows["nodes"] == "2,708"
    assert rows["neighbours per node"] == "1 to 168, median 3, mean 3.9"
    assert rows["edges within a class (edge homophily)"] == "0.810"
    (classes,) = [t for t in page.tables if t[0][:2] == ["class", "nodes"]]
    assert classes[4] == ["3", "818", "30.2 %"]
    for rule in ("prefers-color-scheme: dark", "@media print", "@media (max-width", "viewport"):
        assert rule in text  # for light, dark, paper and phone
    style = text.partition("</style>")[0]
    assert ".picture img { display: block; width: 100%; max-width" in style
    assert "min-width" not in style


def test_the_first_screen_answers(run, tmp_path):
    """Question, answer with its interval, what known answers add, what to do; the filter second."""
    half = {run.metric: Summary(0.5, 0.4, 0.6, 0.1, 3)}
    gain = {run.metric: Summary(0.1, 0.05, 0.15, 0.1, 3)}
    plain = BaselineRecord("plain", "the same without known answers", (), half, gain, True)
    run = beside(run, 0.1, 0.05, 0.15)
    run = dataclasses.replace(run, baselines=(*run.baselines, plain), folder=tmp_path / "made")
    run.folder.mkdir()
    run.write(run.folder)
    answer, known = answer_text(run), known_text(run)
    assert answer.endswith(
        "; an MLP without the graph 50.0 %; the graph adds 10.0 points [5.0, 15.0]."
    )
    assert known == (
        "Using the known answers of other nodes adds 10.0 points [5.0, 15.0]; without them: 50.0 %."
    )
    page = page_of(run).text
    first = page[: page.index("How well it works")]
    order = [question_text(run), answer, known, plain_text(run), "longnn explain made NODE"]
    places = [first.rindex(text) for text in order]  # the title of the window is first
    assert places == sorted(places)
    lines = "\n".join(text_summary(run))
    assert all(text in lines for text in order[:3])
    for text in (first, lines):
        assert not re.search(r"recipe|basis|a = |peak|pass", text.replace("--repeat", ""))


def test_the_worst_errors_have_ids(run, tmp_path):
    worst = (ErrorRecord("<b>", "", "3", "5", 0.987), ErrorRecord("ann", "", "1", "2", 0.9))
    page = page_of(dataclasses.replace(changed(run, 0, worst=worst), folder=tmp_path))
    (table,) = [t for t in page.tables if t[0][0] == "node"]
    assert table == [
        ["node", "true", "predicted", "improbable"],
        ["<b>", "3", "5", "0.987"],
        ["ann", "1", "2", "0.9"],
    ]


def test_regression_has_no_classes_and_no_percent(runs):
    page = page_of(runs["regression"])
    assert not [t for t in page.tables if t[0][0] == "class"]
    (scores,) = [t for t in page.tables if t[0][0] == "score"]
    assert [row[0] for row in scores[1:]] == ["R²", "mean absolute error"]
    assert "%" not in scores[1][1]


def test_a_stack_is_described_as_a_whole(pages, runs):
    low = ["low-pass, peak at 0, height 1"] * 2
    # The fourth has no words of its own: they are made from its response, low-pass as well.
    kinds = ["mixed (16 channels: 9 comb)", *low, "", "high-pass (9 of 16 channels)"]
    deep = changed(
        runs["deep"],
        filters=tuple(
            dataclasses.replace(f, words=kinds[i], degree=i, learned={"a": 0.1 * i, "b": 0.5})
            for i, f in enumerate(runs["deep"].filters)
        ),
    )
    _, rows = filter_rows(deep)
    assert [row[0] for row in rows] == [f"block {k}" for k in range(1, 6)]
    assert rows[4][4:] == ["0.40, 0.50", "high-pass (9 of 16 channels)"]
    assert filter_words(deep) == "blocks: 1 mixed; 2 to 4 low-pass; 5 high-pass"
    assert "layer 1" not in pages["deep"]


def test_an_ensemble_says_what_joining_gained(runs, tmp_path):
    """The best member by validation, in each repeat; mean weights over the repeats."""
    weights, vals, tests = (0.25, 0.75, 0.0), (0.8, 0.9, 0.7), (0.95, 0.6, 0.8)
    members = tuple(
        MemberRecord(f"m{k}", "gpr", weights[k], 10, 5 + k, "patience", vals[k], tests[k], f"w{k}")
        for k in range(3)
    )
    both = changed(runs["ten"], members=members, scores={"test": {"accuracy": 0.7}})
    both = dataclasses.replace(both, folder=tmp_path, portfolio={f"m{k}": {} for k in range(3)})
    page = page_of(both)
    sentence = (
        "3 models were trained, and 2 of them vote. The best one by validation has a test accuracy "
        "of 60.0 % alone; together they have 70.0 % (+10.0 points), on average over 10 repeats."
    )
    assert sentence in page.text
    assert f"  {sentence}" in text_summary(both)
    (table,) = [t for t in page.tables if t[0][:2] == ["model", "kind"]]
    assert table[1] == ["m1", "GPRGNN", "0.75", "90.0 %", "60.0 %", "6", "w1"]
    assert [row[0] for row in table[1:]] == ["m1", "m0", "m2"]
    errors = dataclasses.replace(both, metric="mae")
    errors = changed(errors, scores={"test": {"mae": 0.7}})
    assert "of 0.800 alone; together they have 0.700 (+0.100), on" in " ".join(text_summary(errors))


def test_what_is_absent_is_said(pages, runs, copy):
    assert "has no polynomial filter" in check_page(pages["gcn"]).text
    assert "There is only one repeat" in check_page(pages["single"]).text
    assert "BernNet has a fixed basis" in check_page(pages["bern"]).text
    assert "no confusion matrix" in page_of(runs["wide"]).text
    run = edit_record(copy("single"), lambda record: empty_rows(record, {0: list(range(7))}))
    assert "confusion" not in [plate.name for plate in plates(run)]
    assert (
        "The first repeat has no test nodes, so there is no confusion matrix." in page_of(run).text
    )


def empty_rows(record, classes):
    """Take the test nodes of classes away, by repeat."""
    for repeat, rows in classes.items():
        for row in rows:
            counts = record["repeats"][repeat]["confusion"]
            counts[row] = [0] * len(counts)


@pytest.mark.parametrize(
    ("classes", "sentence"),
    [
        (
            {k: [1, 4] for k in range(10)},
            "2 of 7 classes have no test node: 1, 4; the scores say nothing about them.",
        ),
        (
            {0: [1, 2], **{k: [2] for k in range(1, 10)}},
            "1 of 7 classes has no test node: 2; the scores say nothing about it.",
        ),
        ({0: [5], 3: [1]}, "In 2 of 10 repeats, some classes have no test node: 1, 5."),
        ({}, ""),
    ],
)
def test_classes_without_test_nodes_are_said(copy, classes, sentence):
    run = edit_record(copy("ten"), lambda record: empty_rows(record, classes))
    text = page_of(run).text
    assert sentence in text
    assert ("no test node" in text) == bool(classes)
    assert (f"  note: {sentence}" in text_summary(run)) == bool(classes)


def test_many_classes_without_test_nodes_are_counted(run):
    names = tuple(f"class {k}" for k in range(30))
    counts = np.diag([0.0] * 12 + [5.0] * 18)
    data = dataclasses.replace(run.data, classes=names)
    text = " ".join(text_summary(dataclasses.replace(changed(run, confusion=counts), data=data)))
    assert "12 of 30 classes have no test node: class 0, class 1," in text
    assert "class 9 and 2 more; the scores say nothing about them." in text


def test_optional_pieces_may_be_missing(copy):
    folder = copy("single")
    (folder / "history.csv").unlink()
    (folder / "filter_path.npz").write_bytes(b"PK damaged")

    def strip(record):
        for key in ("longnn", "created", "command", "environment"):
            del record[key]
        for key in ("card", "density", "notes", "classes", "fingerprint"):
            del record["data"][key]
        del record["repeats"][0]["confusion"]
        record["repeats"][0]["stopped"] = None

    page = page_of(edit_record(folder, strip), drawn=True)
    assert [attrs["id"] for attrs in page.all("figure")] == ["filter_response"]
    for said in (
        "There is no history.csv",
        "filter_path.npz is damaged",
        "no card of the graph",
        "no spectral density",
        "no confusion matrix",
    ):
        assert said in page.text


def test_hostile_text_stays_text(tmp_path):
    """On the page of a run and of a comparison; of folders, classes, columns, and all else."""
    name = 'x"><img src=x onerror=alert(1)>'
    folder = write_run(
        tmp_path / name,
        dataset=HOSTILE,
        classes=(HOSTILE, "a --> b", "$x"),
        notes=(HOSTILE + "note", "half a pair: \ud800"),
        confusion=True,
        repeats=2,
        epochs=12,
    )

    def poison(record):
        record["command"] = record["longnn"] = record["created"] = HOSTILE
        record["config"] = {"model": HOSTILE, HOSTILE: HOSTILE}
        record["environment"] = {HOSTILE: [HOSTILE]}
        record["data"]["columns"] = [[HOSTILE, "$\\frac{x$ {0} %s", HOSTILE]]
        record["data"]["card"] |= {"warnings": [HOSTILE], "nodes": HOSTILE}
        record["data"]["fingerprint"] = HOSTILE
        first = record["repeats"][0]
        first["stopped"] = first["split"]["protocol"] = HOSTILE
        first["split"]["notes"] = [HOSTILE]
        first["filters"][0]["basis"] = first["filters"][0]["words"] = HOSTILE
        for repeat in record["repeats"]:
            repeat["scores"]["test"][HOSTILE] = 0.5

    run = edit_record(folder, poison)
    for file, least in ((write_report(run), 17), (write_comparison([run, run], tmp_path / "c"), 5)):
        text = file.read_text(encoding="utf-8")
        assert "<script" not in text
        assert "<b>&" not in text
        page = check_page(text)
        assert page.text.count("<script>alert(1)</script>") > least  # as text, all of it
        assert name in page.text
    assert len(check_page((folder / "report.html").read_text()).all("img")) == len(plates(run))


def test_large_drawings_become_pixels(copy, monkeypatch):
    run = RunRecord.read(copy("gcn"))
    sizes = [file.stat().st_size for file in Figures(run).save(run.folder)[::2]]
    monkeypatch.setattr(html, "LARGEST_SVG", sum(sizes) // 2)
    images = [image["src"][11:14] for image in page_of(run, drawn=True).all("img")]
    assert images == ["svg" if size < max(sizes) else "png" for size in sizes]


def test_summary_for_the_terminal(runs):
    lines = text_summary(runs["ten"])
    text = "\n".join(lines)
    assert lines[:3] == [question_text(runs["ten"]), "", f"  {answer_text(runs['ten'])}"]
    assert re.search(r"accuracy +\S+ % \[\S+, \S+\] +88\.\d % \[8", text)
    assert "The model mostly averages over neighbours." in text
    assert "split published, seeds 0 to 9. Brackets hold 95 % intervals over 10 repeats." in text
    assert "basis" not in text
    assert "\x1b" not in text


# What went wrong: each sentence is there when it should be, and only then


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Three repeats on seven classes, with nothing wrong."""
    folder = write_run(tmp_path_factory.mktemp("checks") / "run", repeats=3, confusion=True)
    return changed(RunRecord.read(folder), best_epoch=120, stopped="patience")


def beside(run, mean, low, high, count=3):
    """The run with two baselines, the better one this far behind."""
    far = {run.metric: Summary(0.4, 0.3, 0.5, 0.1, count)}
    near = {run.metric: Summary(mean, low, high, 0.1, count)}
    half = {run.metric: Summary(0.5, 0.4, 0.6, 0.1, count)}
    baselines = (
        BaselineRecord("constant", "the largest class", (), half, far),
        BaselineRecord("mlp", "an MLP without the graph", (), half, near),
    )
    return dataclasses.replace(run, baselines=baselines)


def with_test(run, nodes, **values):
    """All repeats with so many test nodes."""
    return changed(run, split=dataclasses.replace(run.repeats[0].split, test=nodes), **values)


def with_classes(run, *counts):
    card = {**run.data.card, "class_counts": dict(zip(["ok", "spam"], counts, strict=True))}
    data = dataclasses.replace(run.data, classes=("ok", "spam"), card=card)
    return dataclasses.replace(run, data=data, metric="average_precision")


def with_words(run, words):
    return changed(run, filters=(dataclasses.replace(run.filters[0], words=words),))


def with_votes(run, alone):
    """A portfolio in which trees that see a node's own columns have so many of the votes."""
    names = {"own": alone, "both": 1 - alone}
    members = tuple(
        MemberRecord(n, "trees", w, 9, 9, "patience", 0.5, 0.5) for n, w in names.items()
    )
    portfolio = {"own": {"columns": "alone"}, "both": {"columns": "neighbours"}}
    return dataclasses.replace(changed(run, members=members), portfolio=portfolio)


ALONE = np.zeros((7, 7))
ALONE[:, 3] = 20
FEW = np.diag([2.0, 2, 2, 2, 1, 0, 0])
FEW[5, 0] = 1
VAL = {"accuracy": Summary(0.6, 0.6, 0.6, 0, 3)}
#: A change of the run, and the start of what is then said, or nothing.
CHECKS = {
    "nothing": (lambda r: beside(r, 0.1, 0.05, 0.15), ""),
    "start": (lambda r: changed(r, best_epoch=2), "The epoch that was kept is at the very start"),
    "start of most": (
        lambda r: changed(changed(r, 0, best_epoch=1), 1, best_epoch=3),
        "In 2 of 3 repeats, the epoch that was kept",
    ),
    "start of one": (lambda r: changed(r, 0, best_epoch=1), ""),
    "limit": (
        lambda r: changed(r, stopped="epochs", best_epoch=999, epochs=1000),
        "Training was still improving when its 1000 epochs were over. Allow more: --set epochs=30",
    ),
    "best long before": (lambda r: changed(r, stopped="epochs", best_epoch=500, epochs=1000), ""),
    "diverged": (lambda r: changed(r, 1, stopped="diverged"), "In 1 of 3 repeats, training diverg"),
    "time": (
        lambda r: changed(r, stopped="time"),
        "Training was stopped by its time limit, and this is the best so far.",
    ),
    "interrupted": (
        lambda r: changed(r, 2, stopped="interrupted"),
        "Training was interrupted, and",
    ),
    "behind": (lambda r: beside(r, -0.1, -0.2, -0.05), "An MLP without the graph is better: test"),
    "may be": (lambda r: beside(r, -0.1, -0.2, 0.05), "An MLP without the graph may be better"),
    "once": (
        lambda r: beside(r, -0.1, -0.1, -0.1, 1),
        "An MLP without the graph is better on this",
    ),
    "even as printed": (lambda r: beside(r, -0.0004, -0.0004, -0.0004, 1), ""),
    "one class": (lambda r: changed(r, confusion=ALONE), "Every test node was predicted to be '3'"),
    "apart": (
        lambda r: dataclasses.replace(r, summary={**r.summary, "val": VAL}),
        "Validation and test are far apart (60.0 % and",
    ),
    "apart by chance": (
        lambda r: changed(
            dataclasses.replace(r, summary={**r.summary, "val": VAL}),
            split=dataclasses.replace(r.repeats[0].split, val=6, test=40),
        ),
        "",
    ),
    "few": (
        lambda r: with_test(
            dataclasses.replace(r, repeats=r.repeats[:1]),
            10,
            confusion=FEW,
            scores={"test": {"accuracy": 0.9}},
        ),
        "There are only 10 test nodes: one more or less that is right changes the accuracy by 10",
    ),
    "unequal": (
        lambda r: changed(with_classes(r, 95, 5), confusion=np.array([[90.0, 1], [2, 30]])),
        "95 % of the labelled nodes are 'ok'.",
    ),
    "rare": (
        lambda r: changed(with_classes(r, 5, 5), confusion=np.array([[90.0, 1], [2, 3]])),
        "Only 5 test nodes are 'spam': the average precision is rough.",
    ),
    "rare of three": (
        lambda r: changed(
            dataclasses.replace(r, metric="balanced_accuracy"),
            confusion=np.diag([40.0, 30, 30, 30, 30, 30, 4]),
        ),
        "Only 4 test nodes are '6': the balanced accuracy is rough.",
    ),
    "factors": (
        lambda r: changed(
            dataclasses.replace(r, metric="balanced_accuracy"), factors=np.arange(1.0, 8)
        ),
        "Probabilities are divided by the classes' frequencies before one is chosen",
    ),
    "all-pass": (lambda r: with_words(r, "all-pass"), "The graph is hardly used: it takes a node"),
    "low-pass": (lambda r: with_words(r, "low-pass, peak at 0"), ""),
    "votes": (
        lambda r: with_votes(r, 0.95),
        "The graph is hardly used: 95 % of the votes are of models that take a node's own",
    ),
    "few votes": (lambda r: with_votes(r, 0.8), ""),
    "not so rare": (
        lambda r: changed(with_classes(r, 5, 5), confusion=np.array([[90.0, 1], [2, 8]])),
        "",
    ),
}


@pytest.mark.parametrize("name", CHECKS)
def test_what_went_wrong_is_said(run, name):
    change, start = CHECKS[name]
    sentences = checks(change(run))
    assert len(sentences) == bool(start)
    assert not start or sentences[0].startswith(start)
    if name == "few":
        assert answer_text(change(run)).startswith("9 of 10 right on the test nodes")


@pytest.mark.parametrize(
    ("ahead", "said"),
    [
        (
            (0.1, 0.05, 0.15),
            "The graph adds 10.0 points [5.0, 15.0] of accuracy. Without it, an MLP, the best "
            "model without it, has 50.0 %.",
        ),
        ((0.1, -0.05, 0.15), "The graph may add nothing (10.0 points [-5.0, 15.0]) of accuracy."),
        ((-0.1, -0.15, -0.05), "The graph costs 10.0 points [5.0, 15.0] of accuracy."),
        ((0.1, 0.1, 0.1, 1), "The graph adds 10.0 points of accuracy."),
        ((0.0003, -0.02, 0.03), "The graph adds nothing of accuracy. Without it, an MLP,"),
    ],
)
def test_what_the_graph_adds(run, ahead, said):
    assert graph_text(beside(run, *ahead)).startswith(said)
    assert graph_text(run) == ""
    if ahead[0] == 0.1 and ahead[1] > 0:  # of an error, less is better: signs turn
        error = beside(dataclasses.replace(run, metric="mae"), *(-value for value in ahead[:3]))
        assert "adds 0.100" in graph_text(dataclasses.replace(error, baselines=error.baselines[1:]))


def test_rows_of_classes_are_those_of_scikit_learn(run):
    counts = np.random.default_rng(0).integers(0, 9, (4, 4))
    counts[3] = 0  # no test node
    true = np.repeat(np.repeat(np.arange(4), 4), counts.reshape(-1))
    chosen = np.repeat(np.tile(np.arange(4), 4), counts.reshape(-1))
    one = changed(dataclasses.replace(run, repeats=run.repeats[:1]), confusion=counts.astype(float))
    rows = class_rows(one)
    precision, recall, f1, nodes = precision_recall_fscore_support(
        true, chosen, labels=range(4), zero_division=0
    )
    for k, (_, there, *scores) in enumerate(rows[:3]):
        assert there == nodes[k]
        np.testing.assert_allclose(scores, [recall[k], precision[k], f1[k]])
    assert np.isnan(rows[3][2])


def test_terminal_and_page_say_the_same(run, tmp_path):
    bad = changed(beside(run, -0.1, -0.2, -0.05), best_epoch=1)
    lines, page = text_summary(bad), page_of(dataclasses.replace(bad, folder=tmp_path))
    assert len(checks(bad)) == 2
    for sentence in checks(bad):
        assert f"  check: {sentence}" in lines
        assert sentence in page.text
    (table,) = [t for t in page.tables if t[0][-1] == "ahead of it by"]
    assert table[2] == ["the largest class", "50.0 %", "40.0 points [30.0, 50.0]"]
    assert f"  {'  an MLP without the graph':<28}50.0 %" in lines
    assert f"  {answer_text(bad)}" in lines
    assert answer_text(bad) in page.text
    assert graph_text(bad) in page.text


# Several runs


def test_the_page_of_a_comparison(runs, tmp_path):
    chosen = [runs[name] for name in ("ten", "gcn", "bern", "single")]
    out = write_comparison(chosen, tmp_path / "new" / "page.html")
    assert out == tmp_path / "new" / "page.html"
    page = check_page(out.read_text(encoding="utf-8"))
    assert [attrs["id"] for attrs in page.all("figure")] == ["compare_scores", "compare_filters"]
    shared, table, words = page.tables[:3]
    assert shared == [["data", "cora"]]
    assert [row[0] for row in table[1:]] == ["ten", "gcn", "bern", "single"]
    assert [row[1] for row in table[1:]] == ["LON-GNN", "GCN", "BernNet", "LON-GNN"]
    assert "layer 2" in words[2][1]
    assert table[1][-1] == "the first"
    assert table[4][-1].endswith("of 1 common split")
    for said in (
        "4 runs on cora. The best score is that of ten: test accuracy 88.",
        "Without a filter: gcn.",
        "Of models with several layers, the first layer is shown.",
        "The grey area shows where the eigenvalues of the graph are.",
        "The orange bar below them is their mean with its 95 % interval. A run with one repeat may "
        "have no interval.",
        "not all tested on the same splits",
        "Only one repeat, so no interval: single.",
    ):
        assert said in page.text


def test_the_page_of_one_run(runs, tmp_path):
    page = check_page(write_comparison([runs["gcn"]], tmp_path / "c.html").read_text())
    assert [attrs["id"] for attrs in page.all("figure")] == ["compare_scores"]
    page = check_page(write_comparison([runs["single"]], tmp_path / "c.html").read_text())
    assert "One run." in page.text
    assert "A run with one repeat may have no interval." in page.text
    assert "orange" not in page.text
    assert "confidence interval" not in page.text
    with pytest.raises(ValueError, match="Expected at least one run to compare"):
        write_comparison([], tmp_path / "c.html")


def test_differences_are_taken_split_by_split(runs, copy):
    """The same scores plus one point, in another order, are one point better on each split."""

    def improve(record):
        record["repeats"].reverse()
        for repeat in record["repeats"]:
            repeat["scores"]["test"]["accuracy"] += 0.01

    def level(record):
        for repeat in record["repeats"][:4]:
            repeat["scores"]["test"]["accuracy"] -= 0.01

    folder, first = copy("ten"), runs["ten"]
    better = edit_record(folder, improve)
    assert paired_text(first, better) == "+1.0 points, better on 10 of 10 common splits"
    assert paired_text(better, first) == "-1.0 points, better on 0 of 10 common splits"
    assert cautions([first, better]) == []
    assert paired_text(first, first) == "no difference on 10 common splits"
    text = paired_text(first, edit_record(folder, level))
    assert text.endswith("points, better on 6 of 10 common splits, equal on 4")


def test_runs_that_cannot_be_compared(runs):
    ten, numbers = runs["ten"], runs["regression"]
    other = dataclasses.replace(ten, data=dataclasses.replace(ten.data, fingerprint="0" * 64))
    assert paired_text(ten, other) == "not comparable: other data"
    assert "not all on the same data" in cautions([ten, other])[0]
    assert paired_text(ten, numbers) == "not comparable: another score"
    assert "not all scored by the same number: accuracy, R²" in " ".join(cautions([ten, numbers]))


def test_an_error_is_better_when_smaller(copy, tmp_path):
    def larger(record):
        record["metric"] = "mae"
        for repeat in record["repeats"]:
            repeat["scores"]["test"]["mae"] += 0.1
        record["summary"]["test"]["mae"]["mean"] += 0.1

    first = edit_record(copy("regression", "a"), lambda record: record.update(metric="mae"))
    other = edit_record(copy("regression", "b"), larger)
    assert paired_text(first, other) == "+0.100, better on 0 of 2 common splits"
    page = check_page(write_comparison([first, other], tmp_path / "c.html").read_text())
    assert "The best score is that of a: test mean absolute error" in page.text


def test_equal_names_are_told_apart(copy, runs):
    copies = [RunRecord.read(copy("gcn", f"{at}/gcn")) for at in "ab"]
    names = [run.name for run in name_apart([*copies, runs["ten"]])]
    assert names == ["a/gcn", "b/gcn", "ten"]

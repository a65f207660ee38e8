"""The page stands alone, says everything, and lets nobody's text become markup."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from longnn.records import RunRecord
from longnn.report import _markup as markup
from longnn.report import text_summary, write_report
from longnn.report._figures import plates
from longnn.report._words import headline
from tests.report.examples import edit_record, write_run
from tests.report.pagecheck import check_page

HOSTILE = "<script>alert(1)</script>\"' & <b>"


@pytest.mark.parametrize("name", ["single", "ten", "wide", "gcn", "regression", "bern"])
def test_page_is_whole(pages: dict[str, str], runs: dict[str, RunRecord], name: str) -> None:
    page, run = check_page(pages[name]), runs[name]
    assert headline(run) in page.text
    drawn = [attrs["id"] for attrs in page.all("figure")]
    assert sorted(drawn) == sorted(plate.name for plate in plates(run))
    for plate in plates(run):
        assert plate.caption in page.text
        assert plate.alt in [image["alt"] for image in page.all("img")]
    assert run.command in page.text
    assert run.data.fingerprint in page.text
    for settings in (run.config, run.environment):
        for key in settings:
            assert any(row[0] == key for table in page.tables for row in table)
    assert "no test label was used in training" in page.text
    for text in [*run.data.notes, *run.data.card["warnings"]]:
        assert text in page.text


def test_page_holds_every_repeat(pages: dict[str, str], runs: dict[str, RunRecord]) -> None:
    page = check_page(pages["ten"])
    (table,) = [t for t in page.tables if t[0][0] == "seed"]
    assert len(table) == 11
    column = table[0].index("test accuracy")
    for row, repeat in zip(table[1:], runs["ten"].repeats, strict=True):
        assert row[column] == f"{100 * repeat.scores['test']['accuracy']:.1f} %"
        assert row[1] == str(repeat.split.seed)
    assert "(published splits), train / val / test nodes: 1624 / 542 / 542" in page.text


@pytest.mark.parametrize("name", ["single", "ten"])
def test_what_everybody_asks_comes_first_and_the_rest_is_folded(
    pages: dict[str, str], name: str
) -> None:
    first, _, rest = pages[name].partition("<details>")
    titles = re.findall(r"<h2>(.*?)</h2>", first)
    asked = ["How well it works", "What was learned", "What the graph adds", "Where it errs"]
    assert titles == [title for title in asked if title in titles]
    assert {"How well it works", "What was learned", "Where it errs"} <= {*titles}
    folds = re.findall(r"<summary><h2>(.*?)</h2></summary>", pages[name])
    assert folds[-3:] == ["How the numbers were obtained", "The data", "Reproduce the run"]
    assert "<details open" not in rest


def test_page_describes_the_data(pages: dict[str, str]) -> None:
    page = check_page(pages["single"])
    rows = {row[0]: row[1] for table in page.tables for row in table if len(row) == 2}
    assert rows["nodes"] == "2,708"
    assert rows["neighbours per node"] == "1 to 168, median 3, mean 3.9"
    assert rows["edges within a class (edge homophily)"] == "0.810"
    (classes,) = [t for t in page.tables if t[0][:2] == ["class", "nodes"]]
    assert classes[4] == ["3", "818", "30.2 %"]


def test_regression_has_no_classes_and_no_percent(pages: dict[str, str]) -> None:
    page = check_page(pages["regression"])
    assert not [t for t in page.tables if t[0][0] == "class"]
    (scores,) = [t for t in page.tables if t[0][0] == "score"]
    assert [row[0] for row in scores[1:]] == ["R²", "mean absolute error"]
    assert "%" not in scores[1][1]


def test_what_is_absent_is_said(pages: dict[str, str]) -> None:
    assert "has no polynomial filter" in check_page(pages["gcn"]).text
    assert "There is only one repeat" in check_page(pages["single"]).text
    assert "BernNet has a fixed basis" in check_page(pages["bern"]).text
    assert "no confusion matrix" in check_page(pages["wide"]).text


def test_without_test_nodes_there_is_no_confusion(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders["single"], tmp_path / "run"))
    edit_record(folder, lambda record: empty_rows(record, {0: list(range(7))}))
    page = check_page(write_report(RunRecord.read(folder)).read_text(encoding="utf-8"))
    assert "confusion" not in [attrs["id"] for attrs in page.all("figure")]
    assert "The first repeat has no test nodes, so there is no confusion matrix." in page.text


def test_pictures_shrink_with_the_screen(pages: dict[str, str]) -> None:
    style = pages["wide"].partition("</style>")[0]
    assert ".picture img { display: block; width: 100%; max-width" in style
    assert "min-width" not in style


def empty_rows(record: Any, classes: dict[int, list[int]]) -> None:
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
    ],
)
def test_classes_without_test_nodes_are_said(
    folders: dict[str, Path], tmp_path: Path, classes: dict[int, list[int]], sentence: str
) -> None:
    folder = Path(shutil.copytree(folders["ten"], tmp_path / "run"))
    edit_record(folder, lambda record: empty_rows(record, classes))
    page = check_page(write_report(RunRecord.read(folder)).read_text(encoding="utf-8"))
    assert sentence in page.text
    assert "Grey rows are classes without test nodes." in page.text
    assert f"  note: {sentence}" in text_summary(RunRecord.read(folder))


def test_nothing_is_said_where_every_class_is_tested(
    pages: dict[str, str], runs: dict[str, RunRecord]
) -> None:
    assert "no test node" not in check_page(pages["ten"]).text
    assert "no test node" not in "".join(text_summary(runs["ten"]))


def test_many_classes_without_test_nodes_are_counted(tmp_path: Path) -> None:
    names = tuple(f"class {k}" for k in range(30))
    folder = write_run(tmp_path / "run", classes=names, confusion=True, epochs=10)
    edit_record(folder, lambda record: empty_rows(record, {0: list(range(12))}))
    text = check_page(write_report(RunRecord.read(folder)).read_text(encoding="utf-8")).text
    assert "12 of 30 classes have no test node: class 0, class 1," in text
    assert "class 9 and 2 more; the scores say nothing about them." in text


def test_optional_pieces_may_be_missing(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders["single"], tmp_path / "run"))
    (folder / "history.csv").unlink()
    (folder / "filter_path.npz").write_bytes(b"PK damaged")

    def strip(record: Any) -> None:
        for key in ("longnn", "created", "command", "environment"):
            del record[key]
        for key in ("card", "density", "notes", "classes", "fingerprint"):
            del record["data"][key]
        del record["repeats"][0]["confusion"]
        record["repeats"][0]["stopped"] = record["repeats"][0]["seconds"] = None

    edit_record(folder, strip)
    page = check_page(write_report(RunRecord.read(folder)).read_text(encoding="utf-8"))
    assert [attrs["id"] for attrs in page.all("figure")] == ["filter_response"]
    for said in (
        "There is no history.csv",
        "filter_path.npz is damaged",
        "no card of the graph",
        "no spectral density",
        "no confusion matrix",
    ):
        assert said in page.text


def test_a_damaged_record_writes_no_page(tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text('{"repeats": ')
    with pytest.raises(ValueError, match=r"record\.json: Expected a JSON record"):
        write_report(RunRecord.read(tmp_path))
    assert [file.name for file in tmp_path.iterdir()] == ["record.json"]


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    folder = write_run(
        tmp_path / 'x"><img src=x onerror=alert(1)>',
        dataset=HOSTILE,
        classes=(HOSTILE, "a --> b", "$x"),
        notes=(HOSTILE + "note", "half a pair: \ud800"),
        confusion=True,
        repeats=2,
        epochs=12,
    )

    def poison(record: Any) -> None:
        record["command"] = record["longnn"] = record["created"] = HOSTILE
        record["config"] = {"model": HOSTILE, HOSTILE: HOSTILE}
        record["environment"] = {HOSTILE: [HOSTILE]}
        record["data"]["card"]["warnings"] = [HOSTILE]
        record["data"]["card"]["nodes"] = HOSTILE
        record["data"]["fingerprint"] = HOSTILE
        first = record["repeats"][0]
        first["stopped"] = first["split"]["protocol"] = HOSTILE
        first["split"]["notes"] = [HOSTILE]
        first["filters"][0]["basis"] = first["filters"][0]["words"] = HOSTILE
        for repeat in record["repeats"]:
            repeat["scores"]["test"][HOSTILE] = 0.5

    edit_record(folder, poison)
    html = write_report(RunRecord.read(folder)).read_text(encoding="utf-8")
    assert "<script" not in html
    assert "<b>&" not in html
    page = check_page(html)
    assert page.text.count("<script>alert(1)</script>") > 15  # as text, all of it
    assert 'x"><img src=x onerror=alert(1)>' in page.text
    assert len(page.all("img")) == len(plates(RunRecord.read(folder)))


def test_large_drawings_become_pixels(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(markup, "LARGEST_SVG", 100_000)
    folder = Path(shutil.copytree(folders["gcn"], tmp_path / "run"))
    sources = [
        image["src"] or ""
        for image in check_page(write_report(RunRecord.read(folder)).read_text()).all("img")
    ]
    assert [source[:14] for source in sources] == ["data:image/svg", "data:image/png"]


def test_page_is_for_light_dark_print_and_phone(pages: dict[str, str]) -> None:
    for rule in ("prefers-color-scheme: dark", "@media print", "@media (max-width", "viewport"):
        assert rule in pages["single"]


def test_same_run_same_page(folders: dict[str, Path], pages: dict[str, str]) -> None:
    assert write_report(RunRecord.read(folders["gcn"])).read_text(encoding="utf-8") == pages["gcn"]


def test_summary_for_the_terminal(runs: dict[str, RunRecord]) -> None:
    lines = text_summary(runs["ten"])
    text = "\n".join(lines)
    assert lines[0] == headline(runs["ten"])
    assert re.search(r"accuracy +\S+ % ± \S+ +88\.4 % ± 0\.", text)
    assert f"The filter is {runs['ten'].filters[0].words}." in text
    assert "split published, seeds 0 to 9; mean and 95 % interval" in text
    assert "±" not in "".join(text_summary(runs["single"]))
    assert "\x1b" not in text

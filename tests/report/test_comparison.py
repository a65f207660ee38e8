"""Runs are compared split by split where that is possible, with cautions where it is not."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest

from longnn.records import RunRecord
from longnn.report import name_apart, text_comparison, write_comparison
from longnn.report._comparison import cautions, differences, paired_text
from tests.report.examples import edit_record, read_all
from tests.report.pagecheck import check_page


def test_page_compares_all_runs(folders: dict[str, Path], tmp_path: Path) -> None:
    chosen = [folders[name] for name in ("ten", "gcn", "bern", "single")]
    out = write_comparison(read_all(chosen), tmp_path / "new" / "page.html")
    assert out == tmp_path / "new" / "page.html"
    page = check_page(out.read_text(encoding="utf-8"))
    assert [attrs["id"] for attrs in page.all("figure")] == ["compare_scores", "compare_filters"]
    table = page.tables[0]
    assert [row[0] for row in table[1:]] == ["ten", "gcn", "bern", "single"]
    assert [row[1] for row in table[1:]] == ["LON-GNN", "GCN", "BernNet", "LON-GNN"]
    assert "layer 2" in table[3][-1]
    assert table[1][-2] == "the first run"
    assert "better on" in table[4][-2]
    assert table[4][-2].endswith("of 1 common split")
    for said in (
        "4 runs on cora. The best score is that of ten: test accuracy 88.4 %",
        "Without a filter: gcn.",
        "Of models with several layers, the first layer is shown.",
        "The grey area shows where the eigenvalues of the graph are.",
        "The orange bar below them is their mean with its 95 % confidence interval. A run with one "
        "repeat has none.",
    ):
        assert said in page.text
    assert "not all tested on the same splits" in page.text
    assert "Only one repeat, so no interval: single." in page.text


def test_runs_without_filters_have_no_filter_figure(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    page = check_page(write_comparison(read_all([folders["gcn"]]), tmp_path / "c.html").read_text())
    assert [attrs["id"] for attrs in page.all("figure")] == ["compare_scores"]


def test_differences_are_taken_split_by_split(folders: dict[str, Path], tmp_path: Path) -> None:
    """The same scores plus one point, in another order, are one point better on each split."""
    folder = Path(shutil.copytree(folders["ten"], tmp_path / "better"))

    def improve(record: Any) -> None:
        record["repeats"].reverse()
        for repeat in record["repeats"]:
            repeat["scores"]["test"]["accuracy"] += 0.01

    edit_record(folder, improve)
    first, better = RunRecord.read(folders["ten"]), RunRecord.read(folder)
    assert paired_text(first, better) == "+1.0 percentage points, better on 10 of 10 common splits"
    assert paired_text(better, first) == "-1.0 percentage points, better on 0 of 10 common splits"
    assert cautions([first, better]) == []
    assert paired_text(first, first) == "no difference on 10 common splits"

    def level(record: Any) -> None:
        for repeat in record["repeats"][:4]:
            repeat["scores"]["test"]["accuracy"] -= 0.01

    edit_record(folder, level)
    text = paired_text(first, RunRecord.read(folder))
    assert text.endswith("points, better on 6 of 10 common splits, equal on 4")


def test_runs_on_other_data_are_not_comparable(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders["ten"], tmp_path / "other"))
    edit_record(folder, lambda record: record["data"].update(fingerprint="0" * 64))
    first, other = RunRecord.read(folders["ten"]), RunRecord.read(folder)
    assert paired_text(first, other) == "not comparable: other data"
    assert "not all on the same data" in cautions([first, other])[0]


def test_metrics_that_differ(runs: dict[str, RunRecord]) -> None:
    found = " ".join(cautions([runs["ten"], runs["regression"]]))
    assert "not all scored by the same number: accuracy, R²" in found
    assert paired_text(runs["ten"], runs["regression"]) == "not comparable: another score"


def test_an_error_is_better_when_smaller(folders: dict[str, Path], tmp_path: Path) -> None:
    copies = [Path(shutil.copytree(folders["regression"], tmp_path / name)) for name in "ab"]

    def larger(record: Any) -> None:
        for repeat in record["repeats"]:
            repeat["scores"]["test"]["mae"] += 0.1
        record["summary"]["test"]["mae"]["mean"] += 0.1

    edit_record(copies[1], larger)
    for folder in copies:
        edit_record(folder, lambda record: record.update(metric="mae"))
    first, other = name_apart(read_all(copies))
    assert paired_text(first, other) == "+0.100, better on 0 of 2 common splits"
    page = check_page(
        write_comparison(read_all(copies), tmp_path / "c.html").read_text(encoding="utf-8")
    )
    assert "The best score is that of a: test mean absolute error" in page.text


def test_runs_of_one_repeat_have_no_interval(folders: dict[str, Path], tmp_path: Path) -> None:
    out = write_comparison(read_all([folders["single"]]), tmp_path / "c.html")
    page = check_page(out.read_text(encoding="utf-8"))
    assert "One run." in page.text
    assert "No run has more than one repeat, so there is no interval." in page.text
    assert "orange" not in page.text
    assert "confidence interval" not in page.text


def test_settings_that_differ(runs: dict[str, RunRecord]) -> None:
    assert differences([runs["ten"], runs["gcn"]]) == {"model": "ten: lon; gcn: gcn"}
    assert differences([runs["ten"], runs["single"]]) == {}
    other = dataclasses.replace(
        runs["ten"], label="b", config={**runs["ten"].config, "split": True}
    )
    assert differences([runs["ten"], other]) == {"split": "ten: none; b: yes"}


def test_equal_names_are_told_apart(folders: dict[str, Path], tmp_path: Path) -> None:
    copies = [Path(shutil.copytree(folders["gcn"], tmp_path / name / "gcn")) for name in "ab"]
    assert [run.name for run in name_apart(read_all([*copies, folders["ten"]]))] == [
        "a/gcn",
        "b/gcn",
        "ten",
    ]


def test_nothing_to_compare(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Expected at least one run to compare"):
        write_comparison([], tmp_path / "c.html")


def test_table_for_the_terminal(runs: dict[str, RunRecord]) -> None:
    lines = text_comparison([runs["ten"], runs["gcn"]])
    assert lines[0].startswith("run  model")
    assert lines[2].startswith("ten  LON-GNN  cora  10 published splits  test accuracy 88.4 %")
    assert "better on" in lines[3]
    assert len({line.index("cora") for line in lines[2:4]}) == 1  # columns line up

"""Names from a stranger's files are text on every page: no markup, no formula, no request."""

import csv

import pytest

from longnn.runs import load_run

from ..commands import FAST, succeed
from .pagecheck import check_page

MARKUP = "<script>alert(1)</script>"
IMAGE = "<img src='http://example.org/x.png'>"
FORMULA = "$\\frac{x$ {0} %s &lt; \"'"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run on files whose ids, classes, columns and folder hold markup and formulas."""
    root = tmp_path_factory.mktemp("hostile")
    folder = root / "<b>graph<b> $x"
    folder.mkdir()
    names = [f"{IMAGE}{k}" if k % 2 else f"{MARKUP}{k}" for k in range(24)]
    with (folder / "nodes.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", MARKUP, FORMULA, IMAGE, "label"])
        for k, name in enumerate(names):
            label = (MARKUP, FORMULA)[k % 2]
            writer.writerow([name, k % 2, (k * 7) % 5, f"{MARKUP}{k % 3}", label])
    with (folder / "edges.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target"])
        for k in range(24):
            writer.writerow([names[k], names[(k + 2) % 24]])
            writer.writerow([names[k], names[(k + 5) % 24]])
    succeed("train", folder, *FAST, "--output", root / "<i>run</i>")
    return root / "<i>run</i>"


def check(html):
    page = check_page(html)  # no script, no handler, nothing from elsewhere
    assert "<script" not in html
    assert "example.org/x.png'>" not in html
    assert {image["src"][:11] for image in page.all("img")} <= {"data:image/"}
    return page


def test_the_report(run):
    page = check((run / "report.html").read_text(encoding="utf-8"))
    for name in (MARKUP, FORMULA, IMAGE, "<b>graph<b> $x"):
        assert name in page.text, name


def test_the_comparison(run, tmp_path):
    succeed("compare", run, run, "--output", tmp_path / "c.html")
    page = check((tmp_path / "c.html").read_text(encoding="utf-8"))
    assert "<i>run</i>" in page.text


def test_predictions_keep_the_names(run):
    table = load_run(run).predictions()
    assert table["id"][0].as_py() == f"{MARKUP}0"
    assert {f"p_{MARKUP}", f"p_{FORMULA}"} <= set(table.column_names)

"""Committed tables are what their committed records say: nothing was pasted by hand."""

import pytest

from longnn.studies._paper import EXPERIMENTS, fill_page, get_experiment
from tests.commands import ROOT

RESULTS = ROOT / "results" / "paper"
PAGE = ROOT / "docs" / "results.md"


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if (RESULTS / name).is_dir()])
def test_tables_are_those_of_the_record(name):
    folder = RESULTS / name
    made = {}
    for table in get_experiment(name).tables(folder):
        made.update(table.files())
    for file, text in made.items():
        assert (folder / file).read_text(encoding="utf-8") == text, f"{file}: run `make results`"
    others = {path.name for path in folder.glob("*.md")} | {p.name for p in folder.glob("*.tex")}
    assert others <= set(made)


def test_every_folder_of_results_has_an_experiment():
    found = {path.name for path in RESULTS.iterdir() if path.is_dir()} if RESULTS.exists() else ()
    assert set(found) <= set(EXPERIMENTS)


@pytest.mark.skipif(not PAGE.exists(), reason="there is no page of results yet")
def test_the_page_shows_the_tables_of_the_records():
    text = PAGE.read_text(encoding="utf-8")
    assert fill_page(text, RESULTS) == text, "run `make results`"

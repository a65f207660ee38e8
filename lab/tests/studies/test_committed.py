"""Committed tables and pages are what the committed records say: nothing was pasted by hand."""

import re

import pytest

from lab.studies import get_study, study_names
from lab.studies._core._pages import fill_page
from tests.commands import ROOT

RESULTS = ROOT / "results"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "results").glob("*.md"))]


@pytest.mark.parametrize("name", [n for n in study_names() if (RESULTS / n).is_dir()])
def test_tables_are_those_of_the_record(name):
    made = {}
    for table in get_study(name).tables(RESULTS / name):
        made.update(table.files())
    folder = RESULTS / name / "tables"
    for file, text in made.items():
        assert (folder / file).read_text(encoding="utf-8") == text, f"{file}: run `make results`"
    assert {path.name for path in folder.iterdir()} == set(made)


def test_every_folder_of_results_has_a_study():
    found = {path.name for path in RESULTS.iterdir() if path.is_dir()}
    assert found - {"bench"} <= set(study_names())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_show_the_tables_of_the_records(page):
    text = page.read_text(encoding="utf-8")
    assert fill_page(text, RESULTS) == text, "run `make results`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_of_pages_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert link.startswith("http") or (page.parent / link).exists(), link


def test_there_is_a_page_for_each_question():
    assert {"index", "accuracy", "recipes"} <= {page.stem for page in PAGES}

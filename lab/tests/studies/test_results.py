"""What is committed is what the committed records say: nothing was pasted by hand."""

import json
import re

import pytest

from lab.records import RETIRED, without_retired
from lab.studies import build, study_names
from longnn.config import Config
from tests.commands import ROOT

RESULTS = ROOT / "results"


@pytest.fixture(scope="module")
def built():
    return build(ROOT)


def test_every_file_is_that_of_the_records(built):
    """Tables, figures, pages, recipes and portfolios, to the byte."""
    changed = [
        str(path.relative_to(ROOT))
        for path, content in built.items()
        if not path.is_file() or path.read_bytes() != content
    ]
    assert not changed, "run `make results`"


def test_every_result_has_a_study_and_every_file_is_made(built):
    folders = {path.name for path in RESULTS.iterdir() if path.is_dir()} - {"bench", "large"}
    assert folders <= set(study_names())
    made = {*built}
    for folder in folders:
        for kind in ("tables", "figures"):
            assert {*(RESULTS / folder / kind).glob("*")} <= made
    assert {*(ROOT / "longnn" / "recipes").glob("*.toml")} <= made
    assert ROOT / "longnn" / "training" / "portfolio.toml" in made


#: What may have numbers on a page of results: what is generated or marked, tables, headings, links,
#: code, formulas, and the names of tables of the paper.
FREE = re.compile(
    r"<!-- (?:table|text) .*?<!-- end -->|<!-- no record: [^-\s].*?(?:\n\n|\Z)"
    r"|^```.*?^```|^[|#].*?$|\]\([^)]*\)|`[^`]*`|\$[^$]*\$"
    r"|(?:Tables?|Figure|Proposition)\s\d(?:\sand\s\d)?|et\sal\.,\s\d{4}",
    re.DOTALL | re.MULTILINE,
)


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs" / "results").glob("*.md")), ids=lambda page: page.stem
)
def test_numbers_of_sentences_follow_from_records(page):
    """Write the sentence in a block ``<!-- text STUDY``, or say why no record has it."""
    for paragraph in FREE.sub(" ", page.read_text(encoding="utf-8")).split("\n\n"):
        numbers = re.findall(r"(?<!\w)\d[\d.,/]*", paragraph)
        assert not numbers, f"{page.name}: {' '.join(paragraph.split())}"


def test_a_number_that_was_typed_is_seen():
    typed = "It is 2.0 points better."
    generated = f"<!-- text toy\nIt.\n-->\n\n{typed}\n\n<!-- end -->"
    for free in (generated, f"<!-- no record: history -->\n{typed}\n\nNext"):
        assert "2.0" not in FREE.sub(" ", free)
        assert "2.0" in FREE.sub(" ", f"{free}\n\n{typed}")


def test_every_recorded_configuration_is_still_one():
    """Names that went with the one value that did nothing; one operator of arcs went, too."""
    read, gone = 0, set()
    for path in sorted(RESULTS.glob("*/records/*.json")):
        for table in _configurations(json.loads(path.read_text(encoding="utf-8"))):
            if table.get("direction") == "magnetic":
                gone.add(path.name)
                continue
            config = Config.from_dict(without_retired(table))
            left_out = {k: v for k, v in table.items() if k not in config.to_dict()}
            assert left_out.items() <= RETIRED.items(), (path, left_out)
            read += 1
    assert read > 2500
    assert gone == {"wisconsin-arcs.json", "chameleon-arcs.json"}


def _configurations(value):
    """The complete tables of configurations in a record, at any depth."""
    if isinstance(value, dict) and {"model", "lr_transform", "epochs", "seed"} <= value.keys():
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _configurations(item)

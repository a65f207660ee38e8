"""The committed records of large graphs, and the pages that tell of them."""

import dataclasses
import json

import pytest

from lab.bench import ScaleRecord, scale_words, write_paper
from lab.bench._record import Spread, Sweep
from lab.bench._scalerecord import Contest, Order, RanksResult
from lab.bench._scaletables import page_of, words_of
from lab.bench._scalewords import MODELS
from lab.tests.bench.test_scale_parts import made_up
from tests.commands import ROOT

RESULTS, DOCS = ROOT / "results" / "bench", ROOT / "docs"
NAMES = sorted(path.stem for path in (RESULTS / "scale").glob("*.json"))


def record_of(name):
    return ScaleRecord.read(RESULTS / "scale" / f"{name}.json")


def spread(value):
    return Spread(median=value, low=value, high=value)


@pytest.mark.parametrize("name", NAMES)
def test_a_committed_table_is_that_of_its_record(name):
    assert (RESULTS / "tables" / f"{name}.md").read_text() == page_of(record_of(name), name)


@pytest.mark.parametrize("name", NAMES)
def test_a_committed_record_is_written_as_it_is_read(name):
    text = (RESULTS / "scale" / f"{name}.json").read_text()
    assert json.loads(text) == record_of(name).to_dict()


def test_the_sentences_are_those_of_the_record():
    words = (RESULTS / "tables" / "scale-cpu-words.md").read_text()
    assert words == words_of(record_of("scale-cpu"))


def test_the_table_on_paper_is_computed_from_the_records(tmp_path):
    for kind in ("scale", "tables"):
        (tmp_path / kind).mkdir()
    for name in NAMES:
        text = (RESULTS / "scale" / f"{name}.json").read_text()
        (tmp_path / "scale" / f"{name}.json").write_text(text)
    committed = (RESULTS / "tables" / "papers100m.md").read_text()
    assert write_paper(tmp_path).read_text() == committed


def test_pages_show_them():
    large, speed = ((DOCS / f"{name}.md").read_text() for name in ("large", "speed"))
    for name in ("scale-cpu-words", "papers100m"):
        assert f"{{include}} ../results/bench/tables/{name}.md" in large
    for name in ("scale-cpu", "scale-h200"):
        assert f"{{include}} ../results/bench/tables/{name}.md" in speed


def test_the_page_of_benchmarks_tells_what_the_record_has():
    seconds = record_of("scale-h200").seconds["propagate"].median
    page = " ".join((DOCS / "benchmarks.md").read_text().split())
    assert f"64 columns take {seconds:.3g} s" in page


def test_sentences_have_the_numbers():
    sweep = Sweep(
        what="train", axis="nodes", fixed="", x=[1], ms=[1], exponent=1.234, factor=1, from_=1
    )
    lower = dataclasses.replace(sweep, what="predict", exponent=0.9)
    orders = {
        "as it is": Order(find_s=0, product_s=0.4),
        "by degree": Order(find_s=3, product_s=0.2),
    }
    contests = [
        Contest(graph="labels", model=model, scores=[score, score], seconds=[1, 3], weights=1)
        for model, score in zip(MODELS, (0.9, 0.95, 0.5, 0.8), strict=True)
    ]
    record = made_up(
        ratios={"sign": spread(1.5), "sgc": spread(1.25)},
        memory_mib={"propagate": 100.0, "sign": 350.0, "sgc": None},
        sweeps=[lower, sweep],
        ranks=RanksResult(one=spread(3), two=spread(2), ratio=spread(1.5)),
        orders={"hubs": orders},
        contests=contests,
    )
    where, rate, rivals, growth, ranks, order, models = scale_words(record)
    assert where.startswith("Measured on a CPU, 2 thread(s). ")
    assert "125% of the rate of a plain gather" in rate
    assert "written to disk, 83%" in rate
    assert rivals.startswith(
        "PyG's SIGN transform takes 1.50 times as long and 3.5 times the memory"
    )
    assert "SGConv takes 1.25 times as long;" in rivals
    assert "is 1.23 (train with nodes)" in growth
    assert "1.50 times as fast" in ranks
    assert "(by degree) makes a product 2.00 times as fast and pays after 15 products" in order
    assert models == (
        "On labels one learned filter has 90.0 % in 2.0 s, one per hidden unit 95.0 % in 2.0 s, "
        "SGC 50.0 % in 2.0 s and SIGN 80.0 % in 2.0 s."
    )


def test_parts_that_were_not_measured_have_no_sentence():
    assert len(scale_words(made_up())) == 2

"""What a notebook shows of a run, an explanation and a filter; and tables as data frames."""

import dataclasses
from html.parser import HTMLParser

import pytest

import longnn
from longnn import PolynomialFilter
from tests.test_known import answers, write


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Models joined by votes: no filter alone decides."""
    folder = write(tmp_path_factory.mktemp("street") / "a <b> & c", answers())
    return longnn.train(folder, {"preset": "default", "epochs": 2, "baselines": False})


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.opened = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.opened.append(tag)


def test_they_are_short_and_escaped(run):
    explained = run.explain(["house 0", "house 1"])
    for shown in (run, explained, PolynomialFilter("jacobi", degree=3, channels=2)):
        page = shown._repr_html_()
        assert len(page) < 8000
        assert "b" not in Tags(page).opened  # of the name of the data
    assert longnn.report.answer_text(run.record) in run._repr_html_().replace("&#x27;", "'")
    assert explained._repr_html_().count("<table") == 2
    many = dataclasses.replace(explained, nodes=[*explained.nodes] * 3)
    assert "3 more" in many._repr_html_()


def test_the_curve_of_a_filter_is_its_response():
    page = PolynomialFilter("jacobi", degree=3)._repr_html_()  # the identity: a flat line on top
    points = page.partition('points="')[2].partition('"')[0].split()
    assert {point.partition(",")[2] for point in points} == {"0.0"}
    assert "PolynomialFilter(jacobi, degree=3" in page


def test_predictions_are_a_data_frame(run):
    frame = run.to_pandas(coverage=0.8)
    assert frame.equals(run.predictions(coverage=0.8).to_pandas())
    assert {"id", "predicted", "low", "high"} <= set(frame.columns)


def test_explanations_of_an_ensemble_have_no_empty_column(run):
    explained = run.explain(["house 0"])
    assert len(run.record.members) > 1
    for name in ("contributions", "summary", "known"):
        frame = getattr(explained, name)
        assert not frame.isna().all().any()
    assert "weight" not in explained.contributions.columns
    assert "weight" in explained.arrow()["contributions"].column_names  # files have one form

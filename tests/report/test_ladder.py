"""The filters of a deep model as a ladder of panels, and in words that hold for all of them."""

import dataclasses

import numpy as np
import pytest

from longnn import report
from longnn.records import RunRecord
from longnn.report._comparison import filter_words
from longnn.report._figures import plates
from longnn.report._words import learned_text
from tests.report.examples import write_run

BLOCKS = 5


@pytest.fixture(scope="module")
def deep(tmp_path_factory) -> RunRecord:
    folder = write_run(tmp_path_factory.mktemp("deep") / "run", layers=BLOCKS, channels=16)
    run = RunRecord.read(folder)
    # The fourth has no words of its own: they are made from its response, low-pass as well.
    low = ["low-pass, peak at 0, height 1"] * 2
    kinds = ["mixed (16 channels: 9 comb)", *low, "", "high-pass (9 of 16 channels)"]
    filters = [
        dataclasses.replace(f, words=kinds[i], degree=i, learned={"a": 0.1 * i, "b": 0.5})
        for i, f in enumerate(run.filters)
    ]
    return dataclasses.replace(
        run, repeats=(dataclasses.replace(run.repeats[0], filters=tuple(filters)),)
    )


def test_each_block_has_a_panel_with_its_mean_on_one_scale(deep):
    figure = report.figures_of(deep).filter()
    panels = [axes for axes in figure.axes if axes.axison]
    assert len(panels) == BLOCKS
    assert len({axes.get_ylim() for axes in panels}) == 1
    for index, (axes, found) in enumerate(zip(panels, deep.filters, strict=True)):
        assert axes.get_title(loc="left").startswith(f"block {index + 1}, degree {index}: ")
        mean = report._responses.align_signs(found.response)[0].mean(axis=0)
        assert any(
            len(line.get_ydata()) == 101 and np.allclose(line.get_ydata(), mean)
            for line in axes.lines
        )
    assert panels[1].get_title(loc="left") == "block 2, degree 1: low-pass"
    low, high = panels[0].get_ylim()
    assert low < min(line.get_ydata().min() for a in panels for line in a.lines[:1])
    assert high > max(line.get_ydata().max() for a in panels for line in a.lines[:1])


def test_words_hold_for_all_blocks(deep):
    learned = learned_text(deep)
    assert learned[0] == (
        "The 5 filters, from the first block to the last, are: "
        "1 mixed; 2 to 4 low-pass; 5 high-pass."
    )
    assert learned[1] == "One pass takes 10 products with the graph."
    assert learned[2] == (
        "Their bases are at a = 0.00 to 0.40, b = 0.50; they started at a = 0.00, b = 0.00."
    )
    assert filter_words(deep) == "blocks: 1 mixed; 2 to 4 low-pass; 5 high-pass"


def test_captions_say_which_filter_they_show(deep):
    texts = {plate.name: plate.title + plate.caption for plate in plates(deep)}
    assert "block by block" in texts["filter_response"]
    for name in ("basis_path", "amplitude_waveform"):
        assert "This is the first of 5 blocks." in texts[name]
    assert report.figures_of(deep).basis().get_suptitle().endswith(", block 1")


def test_a_long_ladder_is_cut(deep):
    first = dataclasses.replace(deep.repeats[0], filters=deep.filters * 6)
    figure = report.filter_ladder(dataclasses.replace(deep, repeats=(first,)))
    assert "(first 24 of 30)" in figure.get_suptitle()
    assert sum(axes.axison for axes in figure.axes) == 24


def test_the_page_of_a_stack_has_no_basis_of_one_filter(deep, tmp_path):
    page = report.write_report(dataclasses.replace(deep, folder=tmp_path)).read_text()
    assert "1 mixed; 2 to 4 low-pass" in page
    assert "layer 1" not in page


def test_a_model_without_filters_has_no_ladder(runs):
    with pytest.raises(ValueError, match=r"Expected a model with filters \(got 'gcn'\)"):
        report.filter_ladder(runs["gcn"])

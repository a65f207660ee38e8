"""What docs/results/index.md says about the published split is so in the data."""

import re

import pytest

from longnn import data
from tests.commands import ROOT

PAGE = (ROOT / "docs" / "results" / "index.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\S+) \| (\d+) \| (\d+) \| ([\d.]+) / ([\d.]+) / ([\d.]+) \|$", re.MULTILINE)
ROWS = {name: numbers for name, *numbers in ROW.findall(PAGE)}


def test_the_page_has_every_graph_of_the_tables():
    assert len(ROWS) == 11


#: Loading the others takes seconds.
SMALL = ("cora", "texas")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in SMALL else pytest.mark.slow) for n in ROWS]
)
def test_classes_without_test_nodes(name, data_dir):
    dataset = data.load(name, data_dir=str(data_dir))
    y, labelled = dataset.data.y, int(dataset.labelled.sum())
    classes, untested, *shares = ROWS[name]
    assert dataset.num_classes == int(classes)
    for seed in range(10):
        split = data.make_split(dataset, "published", seed)
        absent = [c for c in range(dataset.num_classes) if not bool((split.test & (y == c)).any())]
        assert len(absent) == int(untested)
        for c in absent:
            assert bool((split.train == (y == c))[y == c].all()), "the whole class is trained on"
        sizes = (int(mask.sum()) for mask in (split.train, split.val, split.test))
        assert [f"{100 * size / labelled:.1f}" for size in sizes] == shares

"""The named datasets, as loaded, have the statistics printed in the literature."""

import pytest

from longnn.data import describe
from longnn.data._catalog import find_named
from longnn.data._named import load_named

ROWS = [
    *("cora", "citeseer", "pubmed", "computers", "photo", "chameleon", "squirrel", "actor"),
    *("texas", "cornell", "cornell-legacy", "wisconsin", "minesweeper", "tolokers"),
]


def published_statistics(readme):
    rows = {}
    for line in readme.split("## Statistics")[1].split("##")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 9 and cells[1].isdigit():
            rows[cells[0].lower().replace(", ", "-")] = cells[1:]
    return rows


@pytest.mark.parametrize("name", ROWS)
def test_statistics_are_the_printed_ones(name, shared_data):
    before = sorted(p.name for p in shared_data.iterdir())
    rows = published_statistics((shared_data / "README.md").read_text())
    assert sorted(rows) == sorted(ROWS)
    card = describe(load_named(name, shared_data))
    counts = [card.nodes, card.edges, card.features, len(card.class_counts)]
    assert counts == [int(cell) for cell in rows[name][:4]]
    assert [f"{card.edge_homophily:.4f}", f"{card.node_homophily:.4f}"] == rows[name][4:6]
    entry = find_named(name)
    assert counts == [entry.nodes, entry.edges, entry.features, entry.classes]
    assert sorted(p.name for p in shared_data.iterdir()) == before
    assert not list(shared_data.rglob("processed"))


def test_what_the_readme_says_of_isolated_and_empty_nodes(shared_data):
    isolated = {"citeseer": 48, "computers": 281, "photo": 115, "cora": 0}
    empty = {"citeseer": 15, "chameleon": 233, "squirrel": 165, "cora": 0}
    for name in {*isolated, *empty}:
        card = describe(load_named(name, shared_data))
        assert card.isolated_nodes == isolated.get(name, card.isolated_nodes)
        assert card.zero_rows == empty.get(name, card.zero_rows)

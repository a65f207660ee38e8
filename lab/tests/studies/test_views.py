"""Laws of the shared verbs: ranks, pairs, what is bold. What studies make of them is committed."""

import pytest

from lab.records import Record
from lab.studies._views import (
    average_ranks,
    difference_table,
    interval,
    minus_base,
    models_table,
    pairs_table,
    pivot,
)

GRID = {
    "cora": {"x": [0.5, 0.7], "y": [0.6, 0.8], "z": [0.5, 0.7]},
    "texas": {"x": [0.9, 0.9], "y": [0.8, 0.8], "z": [0.9, 0.9]},
}


def test_ranks_are_shared_between_equals():
    assert average_ranks(GRID, {k: k for k in "xyz"}) == {"x": 2.0, "y": 2.0, "z": 2.0}
    partial = {"cora": GRID["cora"], "texas": {"x": GRID["texas"]["x"]}}
    assert average_ranks(partial, {"x": "x", "y": "y"}) == {"x": 1.5, "y": 1.0}


def test_variants_of_a_model_neither_rank_against_each_other_nor_push_others_down():
    ranks = average_ranks(GRID, {"x": "one", "z": "one", "y": "other"})
    assert ranks == {"x": 1.5, "y": 2.0, "z": 1.5}
    with_variant = average_ranks(GRID, {"x": "x", "z": "x", "y": "y"})
    alone = average_ranks(GRID, {"x": "x", "y": "y"})
    assert with_variant == {**alone, "z": alone["x"]}


def test_differences_are_paired():
    """Splits differ by 20 points, the models by 10 on each: the interval has no width."""
    table = minus_base("d", "", GRID, {"x": "X", "y": "Y"}, "x")
    assert table.rows == [["Y", "**+10.00 [+10.00, +10.00]**", "**-10.00 [-10.00, -10.00]**"]]
    assert interval([0.5, 0.7]).startswith("60.00 ± ")
    pairs = difference_table("d", "", GRID, {"one": ("y", "x"), "two": ("z", "lost")})
    assert [row[0] for row in pairs.rows] == ["one"]
    across = pairs_table("d", "", GRID, [("y", "x"), ("z", "x"), ("x", "lost")])
    shown = ["cora", "**+10.0 [+10.0, +10.0]**", "+0.0 [+0.0, +0.0]", ""]
    assert across.rows[0] == shown


def test_the_best_of_a_column_is_bold_and_equals_share_it():
    rows = {row[0]: row for row in models_table("t", "", GRID, {k: k.upper() for k in "xyz"}).rows}
    assert rows["X"][2] == rows["Z"][2] == "**90.00 ± 0.00**"
    assert rows["Y"][1].startswith("**70.00")
    assert not rows["Y"][2].startswith("**")


def test_a_pivot_takes_the_cells_that_are_there(tmp_path):
    record = Record(tmp_path / "record.json", {})
    for key, values in {"a": {"test": [0.5]}, "b": {"x": 1}, "c": {"test": [0.7]}}.items():
        record.add(key, lambda v=values: v, machine={"cpu": "EPYC"})
    records = {"cora": record}
    assert pivot(records) == {"cora": {"a": [0.5], "c": [0.7]}}
    assert pivot(records, ["c", "a", "lost"]) == {"cora": {"c": [0.7], "a": [0.5]}}
    with pytest.raises(ValueError, match="b: Expected 'test'"):
        pivot(records, ["b"])

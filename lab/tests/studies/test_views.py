"""Laws of the shared verbs: ranks, pairs, what is bold; and the views of single studies."""

import csv
import io

import pytest

from lab.records import Record
from lab.studies import ResultTable, ablation, accuracy, depth, ensembles, portfolio, protocols
from lab.studies import time as timing
from lab.studies._engine import record_path
from lab.studies._printed import UNIFORM_SPLIT
from lab.studies._views import (
    average_ranks,
    difference_table,
    dot_plot,
    interval,
    listed,
    minus_base,
    models_table,
    pairs_table,
    pivot,
)
from lab.studies.portfolio import _tables
from lab.studies.portfolio._candidates import candidates
from lab.studies.portfolio._members import IN_USE, JOINED, SHIFTED, STRATEGIES
from lab.studies.tables import best_of

GRID = {
    "cora": {"x": [0.5, 0.7], "y": [0.6, 0.8], "z": [0.5, 0.7]},
    "texas": {"x": [0.9, 0.9], "y": [0.8, 0.8], "z": [0.9, 0.9]},
}


def write(folder, name, cells, plan=None):
    """A record of plain cells."""
    machine = {"gpu": None, "cpu": "EPYC"}
    record = Record(record_path(folder, name), plan or {})
    for key, values in cells.items():
        record.add(key, lambda v=values: v, machine=machine)


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
    write(tmp_path, "cora", {"a": {"test": [0.5]}, "b": {"x": 1}, "c": {"test": [0.7]}})
    records = {"cora": Record(record_path(tmp_path, "cora"))}
    assert pivot(records) == {"cora": {"a": [0.5], "c": [0.7]}}
    assert pivot(records, ["c", "a", "lost"]) == {"cora": {"c": [0.7], "a": [0.5]}}
    with pytest.raises(ValueError, match="b: Expected 'test'"):
        pivot(records, ["b"])


def test_figures_name_the_score_of_each_graph():
    grid = {"minesweeper": {"lon": [0.9, 0.8]}, "photo": {"lon": [0.9, 0.8]}}
    figure = dot_plot(grid, {"lon": "LON-GNN"}, [], {"minesweeper": "ROC AUC"})
    assert [axes.get_xlabel() for axes in figure.axes] == ["ROC AUC, %", "accuracy, %"]
    assert figure.get_suptitle().startswith("Test score:")
    assert dot_plot(grid, {"lon": "LON-GNN"}, []).get_suptitle().startswith("Test accuracy:")


def test_a_table_in_three_forms():
    rows = [["|sin|", "**1 ± 2**"], ["x", "3"]]
    table = ResultTable("losses", "Loss in % of 1.", ["filter", "a_b"], rows)
    assert table.to_markdown().splitlines()[2] == "| \\|sin\\| | **1 ± 2** |"
    assert r"\textbf{1 $\pm$ 2}" in table.to_latex()
    assert r"Loss in \% of 1." in table.to_latex()
    assert list(csv.reader(io.StringIO(table.to_csv())))[1] == ["|sin|", "1 ± 2"]
    with pytest.raises(ValueError, match="2 items"):
        ResultTable("t", "", ["x", "y"], [["1"]])
    assert listed(["cora"]) == "Cora"


def test_steps_of_the_ablation_are_paired(tmp_path):
    tests = {"jacobi": [0.5, 0.6], "jacobi-mlp": [0.6, 0.7], "jacobi-orthnorm": [0.6, 0.7]}
    write(tmp_path, "cora", {key: {"test": test} for key, test in tests.items()})
    steps = next(t for t in ablation.tables(tmp_path) if t.name == "steps")
    assert [row[1] for row in steps.rows] == ["**+10.00 [+10.00, +10.00]**", "+0.00 [+0.00, +0.00]"]


def test_a_choice_is_shown_beside_what_it_was_made_by(tmp_path):
    search = {"finalists": [{"search": 0.9, "confirmed": [0.7]}], "chosen": 0}
    search["finalists"].insert(0, {"search": 0.95, "confirmed": [0.6]})
    cell = {"val": [0.8], "test": [0.75], "config": {"placement": "output", "shared": True}}
    write(tmp_path, "cora", {"lon": {**cell, "search": {**search, "chosen": 1}}})
    selection = next(t for t in accuracy.tables(tmp_path) if t.name == "selection")
    assert selection.rows[0][1:6] == ["90.00", "70.00", "80.00", "75.00", "output, one filter"]


def test_direction_is_the_difference_of_one_model(tmp_path):
    tests = {"lon": [0.5, 0.6], "lon-arcs": [0.6, 0.7], "lon-deep": [0.6, 0.6]}
    write(tmp_path, "chameleon-arcs", {key: {"test": test} for key, test in tests.items()})
    table = next(t for t in depth.tables(tmp_path) if t.name == "direction")
    (row,) = table.rows
    assert row[0] == "LON-GNN, one filter, arcs"
    assert row[1].startswith("**+10.00")


def test_bold_is_for_single_models_and_printed_marks_have_their_distance():
    grid = {
        "computers": {"lon": [0.9], "gcn": [0.92], "lon-recipe-seeds": [0.99]},
        "cora": {"lon": [0.88]},
    }
    table = protocols.scores_table("t", "", grid, UNIFORM_SPLIT)
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["GCN"][0] == "**92.00 ± 0.00**"
    assert rows[protocols.LABELS["lon-recipe-seeds"]] == ["99.00 ± 0.00", "", ""]
    assert rows["printed by others"] == ["94.1", "", ""]
    assert rows["best single model minus printed"] == ["-2.1", "", ""]


def test_the_order_of_models_is_compared_between_protocols():
    a = {"cora": {"lon": [0.9], "lon-full": [0.99], "gcn": [0.8], "mlp": [0.7]}}
    b = {"cora": {"lon": [0.5], "lon-full": [0.99], "gcn": [0.6], "mlp": [0.4]}}
    classes = {"cora": [{"classes": 7, "untested": [0, 0], "published": [2, 2]}]}
    (row,) = protocols.order_table(a, b, {}, classes).rows
    assert row == ["cora", "2 / 0 / - of 7", "LON-GNN", "GCN", "", "0.50", "", "", "1 / 2 / -"]
    assert protocols.winner(b["cora"]) == "gcn", "a row of a larger budget takes no part"
    ranks = {row[0]: row[1:] for row in protocols.ranks_table(a, b, {}).rows}
    assert ranks["LON-GNN"] == ["1.0", "2.0", "", "", ""]


def test_a_graph_that_was_only_begun_is_not_shown(tmp_path):
    assert all(table.rows == [] for table in protocols.tables(tmp_path / "protocols"))
    counts = {"classes": 7, "untested": [0], "published": [2]}
    write(tmp_path / "protocols", "cora-stratified", {"classes": counts})
    assert all(table.rows == [] for table in protocols.tables(tmp_path / "protocols"))


def test_a_gpu_has_records_and_a_table_of_its_own(tmp_path):
    cells = {
        "lon": {"epoch_ms": 1.25, "total_s": 0.5, "epochs": 400},
        "textbook": {"epoch_ms": 10.0},
    }
    for name, gpu in (("cora", None), ("cora-cuda", "H200")):
        record = Record(record_path(tmp_path, name), {"epochs": 1000, "threads": 2})
        for key, values in cells.items():
            record.add(key, lambda v=values: v, machine={"gpu": gpu, "cpu": "EPYC"})
    cpu, gpu, printed = timing.tables(tmp_path)
    assert [t.name for t in (cpu, gpu, printed)] == ["time", "time-gpu", "time-paper"]
    assert "on EPYC, 2 threads." in cpu.caption
    assert "on H200." in gpu.caption
    assert gpu.rows == [["LON-GNN", "1.25 / 0.5"], ["LON-GNN, textbook", "10.00 / 4.0"]]
    assert printed.columns == ["model", "cora"]


def test_a_graph_without_blocks_has_empty_cells(tmp_path):
    def ways(test):
        return {
            IN_USE: {"test": [test]},
            SHIFTED: {"test": [test + 0.1]},
            "average": {"test": [test + 0.02]},
        }

    every = {row: ways(0.5 + i / 100) for i, row in enumerate(ensembles.NAMED)}
    some = {row: every[row] for row in ("one", "seeds")}
    for name, rows in (("cora", every), ("cornell-legacy", some)):
        write(tmp_path, name, {"ensembles": {"rows": rows}})
    scores, moved, differences, averages = ensembles.tables(tmp_path)
    first, second = scores.rows
    place = scores.columns.index("all seeds")
    assert first[place] == "**54.00**"
    assert moved.rows[0][place] == "**64.00**"
    assert second[place] == ""
    assert first[-2:] == ["89.44", "90.82"]
    assert differences.rows[1][2:] == ["", ""]
    assert [row[-1] for row in averages.rows] == ["**+2.0 [+2.0, +2.0]**"] * 2
    assert averages.rows[1][3:5] == ["", ""]


def scored(*test):
    return {"val": [0.5] * len(test), "test": list(test)}


def portfolio_cell(votes, *keys, default):
    joined = {**dict.fromkeys(STRATEGIES, scored(0.8, 0.8)), JOINED: votes}
    family = {"members": 3, "whole": scored(0.85, 0.85), "equal": scored(0.84, 0.84)}
    made = {"members": ["mlp 0"], "alone": {}, "joined": joined, "families": {"mlp": family}}
    return {"metric": "accuracy", "default": default, "portfolios": dict.fromkeys(keys, made)}


def test_tables_of_the_portfolio_come_from_records(tmp_path):
    """Numbers of a graph of the paper, of both portfolios, families and recipe, where they go."""
    folder = tmp_path / "portfolio"
    test = portfolio_cell(scored(0.92, 0.94), "default", "best", default=scored(0.88, 0.88))
    small = portfolio_cell(scored(0.9, 0.9), "default", default=scored(0.88, 0.88))
    test["portfolios"]["default"] = small["portfolios"]["default"]
    where = {key: [0.5, 0.5] for key in STRATEGIES}
    chosen = {"members": ["mlp 0"], "without_kind": {"x": ["mlp 0"]}, "without_graph": {}}
    chosen |= {"inside": {}, "outside_kind": {"x": where}, "outside_graph": {}}
    configs = {"mlp 0": candidates({})["mlp 0"].to_dict()}
    both = {"default": chosen, "best": chosen}
    selection = {"portfolios": both, "oracle": {}, "configs": configs}
    assert portfolio.tables(folder) == []
    write(folder, "selection", {"selection": selection})
    seeds = dict.fromkeys(STRATEGIES, scored(0.89, 0.89))
    rows = {"one": {"average": scored(0.87, 0.89)}, "seeds": seeds}
    write(tmp_path / "ensembles", "cora", {"ensembles": {"rows": rows}})
    for name in ("cora", "cornell"):
        write(folder, f"test-{name}", {"test": test})
    made = {table.name: table for table in portfolio.tables(folder)}
    assert list(made) == ["members", "scores", "strategies", "test", "differences", "families"]
    cora, cornell = made["test"].rows
    ours = ["88.00", "80.00", "90.00", "80.00", "**93.00**", "88.00", "89.00", "89.00"]
    assert cora == ["cora", *ours, "89.44", "90.82"]
    assert cornell[-2:] == ["", ""], "printed numbers are those of the defective one"
    assert cornell[-5:-2] == ["", "", ""], "no record of its recipe"
    shown = dict(zip(made["differences"].columns, made["differences"].rows[0], strict=True))
    assert shown["portfolio minus default"] == "**+2.0 [+2.0, +2.0]**"
    assert shown["large portfolio minus recipe"] == "**+5.0 [+5.0, +5.0]**"
    assert made["families"].rows[0] == ["cora", "84.00 / 85.00 (3)", "93.00"]


def test_unseen_graphs_compare_with_rivals_and_with_two_way_edges(tmp_path):
    default = scored(0.7, 0.7)
    cells = {
        "test": portfolio_cell(scored(0.9, 0.9), "default", "best", default=default),
        "boosting": {"test": [0.6, 0.6]},
        "gcn": {"test": [0.85, 0.75]},
    }
    two_way = {"two-way": portfolio_cell(scored(0.65, 0.65), "default", default=default)}
    write(tmp_path, "test-unseen-levels", {**cells, **two_way})
    write(tmp_path, "test-unseen-trust", cells)
    grid = _tables.read_unseen(tmp_path)
    scores = _tables._unseen(grid, dict.fromkeys(grid, "accuracy"))
    assert scores.columns[3:6] == ["boosting", "GCN", "default"]
    shown = ["60.0", "80.0", "70.0", "**90.0**", "**90.0**"]
    assert scores.rows[0] == ["levels", "arcs", "accuracy", *shown]
    gain = "**+20.0 [+20.0, +20.0]**"
    levels_row, trust_row = _tables._unseen_differences(grid).rows
    assert levels_row[:4] == ["levels", gain, gain, "**+30.0 [+30.0, +30.0]**"]
    assert levels_row[5] == "**+25.0 [+25.0, +25.0]**"
    assert trust_row[5] == ""


def test_the_best_of_some_models_is_by_their_mean_test_score():
    models = {"constant": 0.0, "linear": 0.4, "mlp": 0.3, "boosting": 0.9}
    cells = {name: {"test": [score]} for name, score in models.items()}
    assert best_of(cells, ("constant", "linear", "mlp")) == "linear"

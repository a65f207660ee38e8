"""Ensembles of recipes: who is joined with whom, and what is shown of it."""

from pathlib import Path

import pytest

from lab.records import StudyRecord
from lab.studies import Context
from lab.studies._core._context import record_path
from lab.studies._core._joined import (
    BLOCK,
    BLOCKS,
    ENSEMBLES,
    ONE,
    SEEDS,
    TOGETHER,
    EnsemblesCell,
    Scored,
)
from lab.studies.depth._plan import PUBLISHED
from lab.studies.ensembles import _run, _show
from lab.studies.portfolio._join import IN_USE, SHIFTED
from lab.studies.protocols._train import RowCell
from tests.commands import ROOT


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study") / "ensembles"
    _run.run(Context(folder, device="cpu", quick=True, datasets=["csbm"], tell=lambda _: None))
    return folder


def test_without_a_recipe_with_blocks_seeds_are_joined(quick: Path) -> None:
    cell = StudyRecord.load(record_path(quick, "csbm")).get(ENSEMBLES, EnsemblesCell)
    assert set(cell.rows) == {ONE, SEEDS}
    assert len(cell.rows[SEEDS][SHIFTED].test) == _run.QUICK.splits
    # Stratified splits have nothing to shift.
    assert cell.rows[SEEDS][SHIFTED] == cell.rows[SEEDS][IN_USE]


def test_the_model_with_blocks_is_that_of_the_study_of_depth() -> None:
    """The winner of its search on the published split, with the features that it saw."""
    context = Context(ROOT / "results" / "ensembles")
    asked: list[str] = []

    def load(name: str, row: object, _: Context) -> str:
        asked.append(name)
        return "as it sees it"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_run, "load", load)
        found = _run.blocks_recipe(context, "squirrel")
    assert found is not None
    config, seen = found
    path = record_path(ROOT / "results" / "depth", f"squirrel-{PUBLISHED}")
    cell = StudyRecord.load(path).get("linked", RowCell)
    assert config.to_dict() == {**config.to_dict(), **cell.configs[0]}
    assert (asked, seen) == (["squirrel"], "as it sees it")
    assert _run.blocks_recipe(context, "cornell-legacy") is None


def test_a_graph_without_blocks_has_empty_cells(tmp_path: Path) -> None:
    def ways(test: float) -> dict[str, Scored]:
        found = {IN_USE: test, SHIFTED: test + 0.1, _show.AVERAGE: test + 0.02}
        return {way: Scored([0.5], [reached]) for way, reached in found.items()}

    every = {row: ways(0.5 + i / 100) for i, row in enumerate(_show.NAMED)}
    some = {row: every[row] for row in (ONE, SEEDS)}
    for name, rows in (("cora", every), ("cornell-legacy", some)):
        record = StudyRecord(record_path(tmp_path, name), _run.FULL)
        record.cell(ENSEMBLES, EnsemblesCell, lambda own=rows: EnsemblesCell("", own), machine={})
    scores, moved, differences, averages = _show.tables(tmp_path)
    assert [len(row) for row in scores.rows] == [len(scores.columns)] * 2
    first, second = scores.rows
    place = scores.columns.index(_show.NAMED[TOGETHER])
    assert first[place] == "**54.00**"
    assert moved.rows[0][place] == "**64.00**"
    assert second[place] == ""
    assert first[-2:] == ["89.44", "90.82"]
    assert differences.rows[1][2:] == ["", ""]
    assert [row[-1] for row in averages.rows] == ["**+2.0 [+2.0, +2.0]**"] * 2
    assert averages.rows[1][3:5] == ["", ""]
    assert {BLOCK, BLOCKS} <= set(every)

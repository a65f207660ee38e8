"""Graphs at the edge of what is legal, and terminals that show little: finite, or one line."""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from longnn.cli import app
from longnn.data import DataError, from_pandas
from longnn.runs._predictions import write_predictions

QUICK = [*("--set", "epochs=2"), *("--set", "baselines=false"), *("--set", "degree=3")]
Edges = np.ndarray  # (2, edges)


def star(leaves: int) -> Edges:
    return np.stack([np.zeros(leaves, dtype=np.int64), np.arange(1, leaves + 1)])


def path(nodes: int) -> Edges:
    return np.stack([np.arange(nodes - 1), np.arange(1, nodes)])


def complete(nodes: int) -> Edges:
    return np.stack(np.triu_indices(nodes, 1))


NONE = np.zeros((2, 0), dtype=np.int64)


def write(file: Path, nodes: int, edges: Edges, **arrays: Any) -> Path:
    x = arrays.pop("x", np.random.default_rng(0).normal(size=(nodes, 3)))
    np.savez(file, edge_index=edges, x=x, y=np.arange(nodes) % 2, **arrays)
    return file


def clear_or_finite(arguments: list[str]) -> str:
    """Run a command: its output, all numbers of which are finite, or its one line of error."""
    done = CliRunner().invoke(app, arguments)
    if done.exit_code == 0:
        return done.stdout
    assert isinstance(done.exception, SystemExit), done.exception
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: Expected")]
    assert len(errors) == 1, done.output
    return errors[0]


def finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, list):
        return all(map(finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def check(file: Path) -> list[str]:
    """``info`` and a short training of a graph; returns what they printed."""
    card = clear_or_finite(["info", str(file), "--json"])
    assert card.startswith("error: ") or finite(json.loads(card))
    run = file.parent / "run"
    said = clear_or_finite(["train", str(file), *QUICK, "--output", str(run)])
    if not said.startswith("error: "):
        table = pq.read_table(run / "predictions.parquet")
        assert all(finite(table[name].to_pylist()) for name in table.column_names)
    return [card, said]


SMALL: dict[str, tuple[int, Edges, dict[str, Any]]] = {
    "isolated nodes": (40, NONE, {}),
    "one node": (1, NONE, {}),
    "weights from 1e-30 to 1e30": (100, path(100), {"edge_weight": np.logspace(-30, 30, 99)}),
    "features at 1e30": (60, path(60), {"x": np.random.default_rng(0).normal(size=(60, 3)) * 1e30}),
}


@pytest.mark.parametrize("case", SMALL)
def test_small_ones(case: str, tmp_path: Path) -> None:
    nodes, edges, arrays = SMALL[case]
    check(write(tmp_path / "g.npz", nodes, edges, **arrays))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nodes", "edges"),
    [(100_001, star(100_000)), (100_000, path(100_000)), (2000, complete(2000))],
    ids=["star", "path", "complete"],
)
def test_large_ones(nodes: int, edges: Edges, tmp_path: Path) -> None:
    for said in check(write(tmp_path / "g.npz", nodes, edges)):
        assert not said.startswith("error")


@pytest.mark.parametrize(
    "command",
    [["info", "."], pytest.param(["train", ".", *QUICK, "--output", "r"], marks=pytest.mark.slow)],
    ids=["info", "train"],
)
def test_a_terminal_that_knows_ascii_alone(command: list[str], tmp_path: Path) -> None:
    """Ids and classes with other letters, and a drawing of the spectrum."""
    ring = "".join(f"n{i},n{(i + 1) % 12}\n" for i in range(12))
    (tmp_path / "edges.csv").write_text("source,target\n" + ring, encoding="utf-8")
    nodes = "".join(f"n{i},{i},{'für' if i % 2 else 'gegen ↯'}\n" for i in range(12))
    (tmp_path / "nodes.csv").write_text("id,größe,label\n" + nodes, encoding="utf-8")
    root = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "longnn", *command],
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": root},
        cwd=tmp_path,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.decode("ascii") + done.stderr.decode("ascii")
    assert "\\xfcr" in said


def test_ids_that_look_like_formulas(tmp_path: Path) -> None:
    """A spreadsheet would run them: CSV marks them as text, Parquet has them as they are."""
    ids = ["=1+1", "-x", "@sum", "+a", "\tb", "\rc", "-5", "+1e3", "-.5", "ann", "b=c", "-"]
    table = pa.table({"id": ids, "p": np.linspace(-1, 1, len(ids)), "label": ["=x", None] * 6})
    write_predictions(table, tmp_path / "predictions.csv")
    with (tmp_path / "predictions.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    marked = ["'=1+1", "'-x", "'@sum", "'+a", "'\tb", "'\rc"]
    assert [row["id"] for row in found] == [*marked, *ids[6:11], "'-"]
    assert {row["label"] for row in found} == {"'=x", ""}
    assert float(found[0]["p"]) == -1
    assert pq.read_table(tmp_path / "predictions.parquet").equals(table)


def test_a_name_is_text() -> None:
    edges = pa.table({"source": ["a"], "target": ["b"]})
    with pytest.raises(DataError, match=r"Expected `name` to be text \(got 5\)"):
        from_pandas(edges, name=5)

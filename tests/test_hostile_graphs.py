"""Graphs that are not what they say, or at the edge of what is legal: finite, or one clear line.

Several of them ended the process once, inside compiled code: then no test after them would run.
"""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data
from typer.testing import CliRunner

from longnn import LONGNN, GraphOperator
from longnn.cli import app
from longnn.data import from_data, from_networkx, from_pandas, from_scipy
from longnn.report._filters import density_top
from longnn.runs._predictions import write_predictions
from tests.helpers import changing

EDGES = torch.tensor([[0, 1], [1, 0]])
RING = torch.tensor([[0, 1, 2], [1, 2, 0]])
ONES = torch.ones(2)
I = torch.tensor  # noqa: E741
BIG, FAR = 10**12, 9**9
of_edges, of_scipy = GraphOperator.from_edge_index, GraphOperator.from_scipy
of_torch, of_data = GraphOperator.from_torch_sparse, GraphOperator.from_data


def unchecked(kind: str, *indices: Any) -> GraphOperator:
    """A tensor of torch whose indices nobody checked."""
    make = getattr(torch, f"sparse_{kind}_tensor")
    return of_torch(make(*map(I, indices), ONES, (2, 2), check_invariants=False))


def lying(kind: Any, **fields: Any) -> Any:
    """A matrix of SciPy that was changed."""
    matrix = kind(np.array([[0.0, 1.0], [1.0, 0.0]]))
    for name, values in fields.items():
        if isinstance(values, np.ndarray | tuple):
            setattr(matrix, name, values)
        else:
            getattr(matrix, name)[:] = values
    return matrix


def quantised(*shape: int) -> torch.Tensor:
    return torch.quantize_per_tensor(torch.ones(shape), 0.1, 0, torch.qint8)


def endless_weights() -> Any:
    graph = networkx.cycle_graph(4)
    networkx.set_edge_attributes(graph, 10**400, "weight")
    return from_networkx(graph)


def twice_with(weight: float) -> GraphOperator:
    return of_edges(EDGES.repeat(1, 2), torch.full((4,), weight, dtype=torch.float64))


def frame(**columns: list[Any]) -> Any:
    return polars.DataFrame({"source": ["a"], "target": ["b"], **columns})


CSR, COO = sp.csr_array, sp.coo_array
OUTSIDE = lying(COO, coords=(np.array([0, 8]), np.array([8, 0])))
TEXT = np.array(["a", "b"])
AGAIN = "Expected pointers that rise from 0 to 2"
of: Any = Data
#: What is made, and what is said of it.
BAD: dict[str, tuple[Callable[[], object], str]] = {
    "coo": (lambda: unchecked("coo", [[0, FAR], [-5, 0]]), r"Expected indices .*\(got "),
    "csr index": (lambda: unchecked("csr", [0, 1, 2], [FAR, -5]), r"Expected indices .*\(got "),
    "csr": (lambda: unchecked("csr", [0, FAR, 2], [1, 0]), r"Expected pointers .*\(got "),
    "csc": (lambda: unchecked("csc", [0, FAR, 2], [1, 0]), r"Expected pointers .*\(got "),
    "blocks": (lambda: of_torch(torch.eye(4).to_sparse_bsr((2, 2))), "layout sparse_coo, .*_bsr"),
    # Matrices of SciPy.
    "CSR i": (lambda: of_scipy(lying(CSR, indices=[FAR, -5])), r"Expected indices in 0\.\.1"),
    "CSR p": (lambda: of_scipy(lying(CSR, indptr=[0, FAR, 2])), rf"valid sparse matrix \({AGAIN}"),
    "text": (lambda: of_scipy(lying(CSR, indices=TEXT)), r"matrix \(Expected indices as"),
    "complex": (lambda: of_scipy(sp.eye_array(2) * 1j), "real weights"),
    "rows": (lambda: from_scipy(lying(CSR, indptr=[0, BIG // 10**6, 2])), "matrix .got Expected p"),
    "outside": (lambda: from_scipy(OUTSIDE), r"Expected a sparse matrix \(got .*8"),
    "a cube": (lambda: from_scipy(np.ones((2, 2, 2))), r"Expected a matrix \(got shape"),
    # Lists of edges.
    "far": (
        lambda: of_edges(I([[0, BIG], [BIG, 0]])),
        r"fits into memory \(got 1000000000001 nodes and 2 edges, which need 64 TB; .* are free",
    ),
    "endless": (lambda: of_edges(RING, num_nodes=10**400), "over a million EB"),
    "half": (lambda: of_edges(EDGES, num_nodes=2.5), r"a whole number \(got 2.5\)"),
    "qint weights": (lambda: of_edges(EDGES, quantised(2)), "real `edge_weight` .got torch.qint8"),
    "sparse edges": (lambda: of_edges(EDGES.to_sparse()), "a dense `edge_index` .*sparse_coo"),
    "meta": (lambda: of_edges(EDGES.to("meta")), "the device meta"),
    "endless degree": (lambda: twice_with(1e308), "Expected weights whose sum is finite"),
    "int": (lambda: of_edges(EDGES, dtype=torch.int32), r"a floating-point type .*torch.int32\)"),
    # PyG, data frames, NetworkX, models.
    "Data": (lambda: of_data(of(edge_index=I(3), edge_attr=ONES)), r"\(2, edges\) \(got \(\)\)"),
    "list": (
        lambda: of_data(of(edge_index=[[0], [1]], edge_attr=ONES, num_nodes=2)),
        r"shape \(2, edges\) \(got list\)",
    ),
    "uncounted": (lambda: of_data(of(edge_index=RING, x=I(1.0))), "Data object that counts its"),
    "endless weights": (endless_weights, "Expected a finite number"),
    # Polars ends the process on it.
    "zero byte": (lambda: from_pandas(frame(**{"\0": [1]})), "without zero bytes in `edges`"),
    "no text": (lambda: from_pandas(frame(), name=5), r"Expected `name` to be text \(got 5\)"),
    "basis": (lambda: LONGNN(4, 8, 2, degree=2, b=1e308), r"finite coefficients .*'b': inf"),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch: quantised tensors go away
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("case", BAD)
def test_one_clear_line(case: str) -> None:
    make, message = BAD[case]
    with pytest.raises((ValueError, TypeError), match=message) as error:
        make()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("weight", [1e-30, 1e30])
def test_the_scale_of_weights_does_not_matter(weight: float) -> None:
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    weights = torch.tensor([1.0, 1.0, 3.0, 3.0])
    plain = of_edges(path, weights).matrix.values
    scaled = of_edges(path, weights.double() * weight).matrix.values
    torch.testing.assert_close(scaled, plain)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("col", I([9**9, 0], dtype=torch.int32), r"indices in 0\.\.1 \(got 387420489"),
        ("crow", I([0, 9**9, 2], dtype=torch.int32), "pointers that rise from 0 to 2"),
        ("crow", torch.zeros(2, 2), "arrays of other shapes"),
        ("values", torch.zeros(5), "3 pointers and 5 indices"),
        ("values", None, "got another file"),
    ],
)
def test_a_saved_operator_that_was_changed(
    key: str, value: Any, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "operator.safetensors"
    of_edges(EDGES).save(path)
    with changing(path) as (tensors, _):
        tensors[key] = value
        if value is None:
            del tensors[key]
    with pytest.raises(ValueError, match=rf"operator\.safetensors to be a saved .*{reason}"):
        GraphOperator.load(path)


@pytest.mark.parametrize("kind", [pa.time32("s"), pa.time32("ms"), pa.time64("us")])
def test_times_of_the_day_are_numbers(kind: pa.DataType) -> None:
    edges = pa.table({"source": list("abc"), "target": list("bca")})
    times = pa.array([5, 6, 7], pa.int32() if pa.types.is_time32(kind) else pa.int64()).cast(kind)
    nodes = pa.table({"id": list("abc"), "when": times, "label": list("xyx")})
    assert from_pandas(edges, nodes).data.x.flatten().tolist() == [5, 6, 7]


def test_numbers_of_eight_bits() -> None:
    x = torch.tensor([[1.0], [2.0], [0.5]]).to(torch.float8_e4m3fn)
    dataset = from_data(Data(x=x, edge_index=RING.to(torch.float8_e4m3fn), y=torch.arange(3)))
    assert dataset.data.x.tolist() == [[1.0], [2.0], [0.5]]


def test_a_density_at_the_end_of_numbers() -> None:
    assert np.isfinite(1.35 * density_top(np.linspace(0, 2, 5), np.full(5, 1e308)))


# At the edge of what is legal

QUICK = [*("--set", "epochs=2"), *("--set", "baselines=false"), *("--set", "degree=3")]


def path(nodes: int) -> np.ndarray:
    return np.stack([np.arange(nodes - 1), np.arange(1, nodes)])


NONE = np.zeros((2, 0), dtype=np.int64)


def write(file: Path, nodes: int, edges: np.ndarray, **arrays: Any) -> Path:
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


SMALL: dict[str, tuple[int, np.ndarray, dict[str, Any]]] = {
    "isolated nodes": (40, NONE, {}),
    "one node": (1, NONE, {}),
    "weights from 1e-30 to 1e30": (100, path(100), {"edge_weight": np.logspace(-30, 30, 99)}),
    "features at 1e30": (60, path(60), {"x": np.random.default_rng(0).normal(size=(60, 3)) * 1e30}),
}


@pytest.mark.parametrize("case", SMALL)
def test_small_ones(case: str, tmp_path: Path, no_report: None) -> None:
    """``info`` and a short training."""
    nodes, edges, arrays = SMALL[case]
    file = write(tmp_path / "g.npz", nodes, edges, **arrays)
    card = clear_or_finite(["info", str(file), "--json"])
    assert card.startswith("error: ") or finite(json.loads(card))
    said = clear_or_finite(["train", str(file), *QUICK, "--output", str(tmp_path / "run")])
    if not said.startswith("error: "):
        table = pq.read_table(tmp_path / "run" / "predictions.parquet")
        assert all(finite(table[name].to_pylist()) for name in table.column_names)


def test_a_terminal_that_knows_ascii_alone(tmp_path: Path) -> None:
    """Ids and classes with other letters, and a drawing of the spectrum."""
    ring = "".join(f"n{i},n{(i + 1) % 12}\n" for i in range(12))
    (tmp_path / "edges.csv").write_text("source,target\n" + ring, encoding="utf-8")
    nodes = "".join(f"n{i},{i},{'für' if i % 2 else 'gegen ↯'}\n" for i in range(12))
    (tmp_path / "nodes.csv").write_text("id,größe,label\n" + nodes, encoding="utf-8")
    root = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "longnn", "info", "."],
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
    write_predictions([table], tmp_path / "predictions.csv")
    with (tmp_path / "predictions.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    marked = ["'=1+1", "'-x", "'@sum", "'+a", "'\tb", "'\rc"]
    assert [row["id"] for row in found] == [*marked, *ids[6:11], "'-"]
    assert {row["label"] for row in found} == {"'=x", ""}
    assert float(found[0]["p"]) == -1
    assert pq.read_table(tmp_path / "predictions.parquet").equals(table)

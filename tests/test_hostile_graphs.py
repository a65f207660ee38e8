"""Graphs that are not what they say: one clear line, and the process lives."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from longnn import GraphOperator

EDGES = torch.tensor([[0, 1], [1, 0]])
ONES = torch.ones(2)
I = torch.tensor  # noqa: E741
BIG = 10**12

#: As Python text, since they run in a process of their own: each crashed it once.
CRASHES = {
    "coo": "torch.sparse_coo_tensor(I([[0, 9**9], [9**9, 0]]), ONES, (2, 2), {})",
    "negative coo": "torch.sparse_coo_tensor(I([[0, -9**9], [-9**9, 0]]), ONES, (2, 2), {})",
    "csr index": "torch.sparse_csr_tensor(I([0, 1, 2]), I([9**9, -9**9]), ONES, (2, 2), {})",
    "csr pointer": "torch.sparse_csr_tensor(I([0, 9**9, 2]), I([1, 0]), ONES, (2, 2), {})",
    "csc pointer": "torch.sparse_csc_tensor(I([0, 9**9, 2]), I([1, 0]), ONES, (2, 2), {})",
}


@pytest.mark.parametrize("case", CRASHES)
def test_a_sparse_tensor_with_wrong_indices(case: str) -> None:
    made = CRASHES[case].format("check_invariants=False")
    with pytest.raises(ValueError, match=r"Expected (indices|pointers) .*\(got "):
        GraphOperator.from_torch_sparse(eval(made))


def test_no_such_graph_ends_the_process() -> None:
    """All of them in one process: it must live to the end."""
    code = "import torch\nfrom longnn import GraphOperator\nI, ONES = torch.tensor, torch.ones(2)\n"
    for text in CRASHES.values():
        made = text.format("check_invariants=False")
        code += f"try: GraphOperator.from_torch_sparse({made})\nexcept ValueError: print('clean')\n"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["clean"] * len(CRASHES)


def lying(kind: Any, **fields: Any) -> Any:
    matrix = kind(np.array([[0.0, 1.0], [1.0, 0.0]]))
    for name, values in fields.items():
        getattr(matrix, name)[:] = values
    return matrix


def quantised(shape: int | tuple[int, int]) -> torch.Tensor:
    return torch.quantize_per_tensor(torch.ones(shape), 0.1, 0, torch.qint8)


BAD: dict[str, tuple[Callable[[], object], str]] = {
    "CSR indices": (
        lambda: GraphOperator.from_scipy(lying(sp.csr_array, indices=[9**9, -5])),
        r"Expected indices in 0\.\.1",
    ),
    "CSR pointers": (
        lambda: GraphOperator.from_scipy(lying(sp.csr_array, indptr=[0, 9**9, 2])),
        "Expected pointers that rise from 0 to 2",
    ),
    "CSC pointers": (
        lambda: GraphOperator.from_scipy(lying(sp.csc_array, indptr=[0, 9**9, 2])),
        "Expected pointers that rise from 0 to 2",
    ),
    "COO rows": (
        lambda: GraphOperator.from_scipy(lying(sp.coo_array, row=9**9)),
        r"node indices in 0\.\.1 \(got 387420489",
    ),
    "one dimension": (lambda: GraphOperator.from_scipy(sp.coo_array(np.ones(3))), "square matrix"),
    "complex": (lambda: GraphOperator.from_scipy(sp.eye_array(2) * 1j), "real weights"),
    "a far node": (
        lambda: GraphOperator.from_edge_index(I([[0, BIG], [BIG, 0]])),
        r"fits into memory \(got 1000000000001 nodes and 2 edges, which need 64 TB; .* are free",
    ),
    "many nodes": (
        lambda: GraphOperator.from_edge_index(EDGES, num_nodes=BIG),
        "fits into memory .got 1000000000000 nodes",
    ),
    "half a node": (
        lambda: GraphOperator.from_edge_index(EDGES, num_nodes=2.5),  # type: ignore[arg-type]
        r"`num_nodes` to be a whole number \(got 2.5\)",
    ),
    "no list": (lambda: GraphOperator.from_edge_index(I(1)), r"shape \(2, edges\) \(got \(\)\)"),
    "one weight": (lambda: GraphOperator.from_edge_index(EDGES, I(1.0)), r"`edge_weight` of shape"),
    "quantised weights": (
        lambda: GraphOperator.from_edge_index(EDGES, quantised(2)),
        "real `edge_weight` .got torch.qint8",
    ),
    "quantised edges": (
        lambda: GraphOperator.from_edge_index(quantised((2, 2))),
        "of an integer type .got torch.qint8",
    ),
    "sparse edges": (
        lambda: GraphOperator.from_edge_index(EDGES.to_sparse()),
        "a dense `edge_index` .*sparse_coo",
    ),
    "sparse weights": (
        lambda: GraphOperator.from_edge_index(EDGES, ONES.to_sparse()),
        "a dense `edge_weight` .got torch.sparse_coo",
    ),
    "no numbers": (lambda: GraphOperator.from_edge_index(EDGES.to("meta")), "the device meta"),
    "no numbers in weights": (
        lambda: GraphOperator.from_edge_index(EDGES, ONES.to("meta")),
        "the device meta",
    ),
    "endless degree": (
        lambda: GraphOperator.from_edge_index(
            EDGES[:, [0, 0, 1, 1]], torch.full((4,), 1e308, dtype=torch.float64)
        ),
        "Expected weights whose sum is finite",
    ),
    "whole numbers": (
        lambda: GraphOperator.from_edge_index(EDGES, dtype=torch.int32),
        r"a floating-point type of torch \(got torch.int32\)",
    ),
    "nothing": (lambda: GraphOperator.from_torch_sparse(None), "sparse tensor .got NoneType"),  # type: ignore[arg-type]
    "blocks": (
        lambda: GraphOperator.from_torch_sparse(torch.eye(4).to_sparse_bsr((2, 2))),
        "layout sparse_coo, sparse_csr or sparse_csc .got torch.sparse_bsr",
    ),
    "edges of Data": (
        lambda: GraphOperator.from_data(Data(edge_index=I(3), edge_attr=ONES)),
        r"shape \(2, edges\) \(got \(\)\)",
    ),
    "a list in Data": (
        lambda: GraphOperator.from_data(Data(edge_index=[[0], [1]], edge_attr=ONES, num_nodes=2)),
        r"shape \(2, edges\) \(got list\)",
    ),
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
    plain = GraphOperator.from_edge_index(path, weights).matrix.values
    scaled = GraphOperator.from_edge_index(path, weights.double() * weight).matrix.values
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
    GraphOperator.from_edge_index(EDGES).save(path)
    with safetensors.safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = file.metadata()
    tensors[key] = value
    kept = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    safetensors.torch.save_file(kept, path, metadata)
    with pytest.raises(ValueError, match=rf"operator\.safetensors to be a saved .*{reason}"):
        GraphOperator.load(path)

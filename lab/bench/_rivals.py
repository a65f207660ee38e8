r"""What propagation is timed against: PyG's precomputation, and a gather of the same rows.

The whole of :func:`longnn.store.propagate` is timed, files written and synced, and its products
alone. Rivals keep their terms in memory: PyG's SIGN transform (all powers) and the loop of its
SGConv (the last alone). A gather reads the same rows that a step sums, and writes them out.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import SGConv
from torch_geometric.transforms import SIGN

from lab.bench._scalegraph import Size
from lab.bench._timing import Call
from longnn.store import GraphStore, each_term, propagate

#: Rows that a gather copies at once.
ROWS = 1 << 13
#: Columns of a block, as propagation cuts them on a CPU.
BLOCK = 16


def propagation(graph: GraphStore, size: Size, device: torch.device, threads: int) -> Call:
    """A call of ``propagate`` that finds nothing computed before."""

    def call() -> None:
        with tempfile.TemporaryDirectory(dir=graph.folder) as folder:
            propagate(
                graph,
                degree=size.degree,
                dtype="float16",
                threads=threads,
                device=str(device),
                output=Path(folder) / "basis",
            )

    return call


def products(graph: GraphStore, size: Size, threads: int) -> Call:
    """The same terms on the CPU from features in memory; nothing is kept."""
    x = torch.from_numpy(np.array(graph.features, order="C"))

    def call() -> None:
        for start in range(0, size.columns, BLOCK):
            block = x[:, start : start + BLOCK]
            each_term(
                graph,
                lambda first, last, block=block: block[first:last],  # type: ignore[misc]
                lambda degree, first, term: None,
                columns=block.shape[1],
                degree=size.degree,
                threads=threads,
            )

    return call


def pyg_data(graph: GraphStore, device: torch.device) -> Data:
    """The graph as PyG has it, in memory."""
    lengths = torch.from_numpy(np.diff(graph.offsets))
    row = torch.repeat_interleave(torch.arange(graph.num_nodes), lengths)
    col = torch.from_numpy(np.array(graph.neighbours)).long()
    x = torch.from_numpy(np.array(graph.features, order="C"))
    return Data(x=x, edge_index=torch.stack([row, col])).to(device)


def rival(key: str, graph: GraphStore, size: Size, device: torch.device) -> Call:
    """PyG's precomputation, of a graph that is in memory."""
    data = pyg_data(graph, device)
    if key == "sign":
        return lambda: _quiet_sign(size.degree, data)
    assert key == "sgc"
    layer = SGConv(size.columns, 1, K=size.degree, add_self_loops=False).to(device)

    def call() -> None:
        with torch.no_grad():
            layer(data.x, data.edge_index)

    return call


def _quiet_sign(degree: int, data: Data) -> Data:
    """PyG's transform; torch warns of PyG's sparse tensors, which is not for users of this."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SIGN(degree)(data.clone())


def gather(graph: GraphStore, size: Size, device: torch.device, threads: int) -> Call:
    """Copy the row of every stored entry, once per degree; threads share the entries."""
    index = torch.from_numpy(np.array(graph.neighbours)).to(device)
    x = torch.randn(size.nodes, size.columns, device=device)
    if device.type == "cpu":
        parts, rows = index.tensor_split(threads), ROWS
    else:
        parts, rows = (index,), len(index)

    def copy(part: Tensor) -> None:
        torch.set_num_threads(1)
        out = torch.empty(min(rows, len(part)), size.columns, device=device)
        for _ in range(size.degree):
            for some in part.split(rows):
                torch.index_select(x, 0, some, out=out[: len(some)])

    def call() -> None:
        before = torch.get_num_threads()
        with ThreadPoolExecutor(len(parts)) as pool:
            list(pool.map(copy, parts))
        torch.set_num_threads(before)

    return call


def child_environment() -> dict[str, str]:
    """Variables with which a process finds this package."""
    root = str(Path(__file__).resolve().parents[2])
    search = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": search}


def peak(key: str, folder: Path, size: Size, threads: int) -> float | None:
    """Peak growth of resident memory in MiB, in a process of its own; data in files before."""
    order = json.dumps([key, str(folder), *astuple(size)])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "lab.bench._rivals", order, str(threads)],
        env=child_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    return float(done.stdout) if done.returncode == 0 else None


def resident(field: str) -> float:
    """MiB of this program now (``VmRSS``) or at most (``VmHWM``), as Linux counts them.

    Not ``getrusage``: its maximum is also that of the program which started this one.
    """
    (line,) = [x for x in Path("/proc/self/status").read_text().splitlines() if field in x]
    return int(line.split()[1]) / 2**10


def _child(order: str, threads: str) -> None:
    key, folder, *numbers = json.loads(order)
    graph, size, cpu = GraphStore.open(folder), Size(*numbers), torch.device("cpu")
    torch.set_num_threads(int(threads))
    before = resident("VmRSS")
    if key == "propagate":
        propagation(graph, size, cpu, int(threads))()
    else:
        rival(key, graph, size, cpu)()
    print(max(resident("VmHWM") - before, 0.0))


if __name__ == "__main__":
    _child(sys.argv[1], sys.argv[2])

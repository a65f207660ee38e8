"""Peak memory while a contender is built and trained.

On a GPU torch counts what it allocates. On a CPU only the operating system sees all memory (NumPy,
MKL and the allocator have their own). A child process therefore forks once per contender; each copy
loads the data, trains, and reports how much its resident memory grew. The child process is this
module, run as a program.
"""

import contextlib
import ctypes
import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from lab.bench._contenders import Workload, make_contender
from longnn.data import NodeDataset, csbm

#: Epochs to the peak: the second has the state of Adam, the third is a CUDA graph on a GPU.
_EPOCHS = {"cpu": 2, "cuda": 5}
_ROOT = Path(__file__).resolve().parents[2]


def peak_memory(
    dataset: NodeDataset,
    keys: Sequence[str],
    workload: Workload,
    device: torch.device,
    *,
    population: int,
) -> dict[str, float | None]:
    r"""Peak memory of each contender in MiB, above what was in use before.

    Args:
        dataset: what they train on.
        keys: the contenders.
        workload: the work of one epoch.
        device: where they train.
        population: members of the contender ``"population"``.

    Returns:
        MiB by contender; None where the peak is not known.
    """
    if device.type == "cuda":
        return {key: _peak_cuda(key, dataset, workload, device, population) for key in keys}
    if not hasattr(os, "fork"):
        return dict.fromkeys(keys)
    return _peak_cpu(dataset, keys, workload, population)


def _peak_cuda(
    key: str, dataset: NodeDataset, workload: Workload, device: torch.device, population: int
) -> float:
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    _train(key, dataset, workload, device, population)
    torch.cuda.synchronize(device)
    return (torch.cuda.max_memory_allocated(device) - before) / 2**20


def _train(
    key: str, dataset: NodeDataset, workload: Workload, device: torch.device, population: int
) -> None:
    epochs = _EPOCHS[device.type]
    contender = make_contender(
        key, dataset, workload, device, population=population, epochs=2 * epochs
    )
    for _ in range(epochs):
        contender.epoch()


def _peak_cpu(
    dataset: NodeDataset, keys: Sequence[str], workload: Workload, population: int
) -> dict[str, float | None]:
    """Start the child process, pass it the data as a file of plain tensors, read its output."""
    threads = torch.get_num_threads()
    order = {"keys": list(keys), "population": population, "workload": asdict(workload)}
    order.update(threads=threads, classes=list(dataset.classes))
    data = dataset.data
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dataset.pt"
        torch.save({"x": data.x, "edge_index": data.edge_index, "y": data.y}, path)
        search = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "lab.bench._memory", str(path)],
            input=json.dumps(order),
            env={**os.environ, "PYTHONPATH": search, "OMP_NUM_THREADS": str(threads)},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"Expected the process that measures memory to succeed (got {reason})")
    found: dict[str, float | None] = json.loads(done.stdout.splitlines()[-1])
    return found


def _child(path: str) -> None:
    order = json.load(sys.stdin)
    print(json.dumps({key: _in_copy(key, path, order) for key in order["keys"]}))


def _in_copy(key: str, path: str, order: dict[str, Any]) -> float | None:
    """Train in a copy of this process.

    The parent only imports. If it had started a pool of threads, the copy would wait forever for
    threads that it does not have.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            torch.set_num_threads(order["threads"])
            dataset = NodeDataset(
                "it",
                Data(**torch.load(path, weights_only=True)),
                classes=tuple(order["classes"]),
                default_split="published",
            )
            growth = _growth(key, dataset, Workload(**order["workload"]), order["population"])
            os.write(writer, str(growth).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return float(text) if text else None


def _growth(key: str, dataset: NodeDataset, workload: Workload, population: int) -> float:
    """The largest growth of resident memory in MiB; libraries are loaded before."""
    cpu = torch.device("cpu")
    _train(key, csbm(num_nodes=60, num_features=4), workload, cpu, 2)
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # free memory that was not returned would hide growth
    before = _resident()
    _train(key, dataset, workload, cpu, population)
    return max(_most_resident() - before, 0.0)


def _resident() -> float:
    with contextlib.suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return _most_resident()


def _most_resident() -> float:
    import resource  # not on Windows, which does not have fork either

    unit: Any = 1 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


if __name__ == "__main__":
    _child(sys.argv[1])

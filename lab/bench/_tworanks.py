"""Two ranks on two cores against one rank on one core.

Each rank is a process that ``torchrun`` starts, held to one core. The clock runs from when all are
there until all blocks are written; loading Python and torch does not count. This module is also
the program of a rank.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist

from lab.bench._rivals import child_environment
from lab.bench._scalerecord import RanksResult
from lab.bench._timing import compare, summarize
from longnn.store import propagate


def measure_ranks(folder: Path, degree: int, rounds: int) -> RanksResult:
    """Seconds of one rank and of two, in turn.

    Args:
        folder: a prepared graph.
        degree: K.
        rounds: turns of each.
    """
    times: dict[int, list[float]] = {1: [], 2: []}
    for i in range(rounds):
        for ranks in (1, 2) if i % 2 == 0 else (2, 1):
            times[ranks].append(seconds_of(ranks, folder, degree))
    return RanksResult(
        one=summarize(times[1]), two=summarize(times[2]), ratio=compare(times[1], times[2])
    )


def seconds_of(ranks: int, folder: Path, degree: int) -> float:
    """Seconds that so many ranks take for all terms of a graph."""
    with tempfile.TemporaryDirectory(dir=folder) as room:
        order = json.dumps([str(folder), degree, room])
        command = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone"]
        command += [f"--nproc-per-node={ranks}", "-m", "lab.bench._tworanks", order]
        environment = {**child_environment(), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise RuntimeError(f"Expected {ranks} rank(s) to succeed (got {reason})")
        return float((Path(room) / "seconds").read_text())


def _rank(order: str) -> None:
    folder, degree, room = json.loads(order)
    rank = int(os.environ["RANK"])
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    dist.barrier()
    started = time.perf_counter()
    propagate(folder, degree=degree, dtype="float16", threads=1, output=Path(room) / "basis")
    dist.barrier()
    if rank == 0:
        (Path(room) / "seconds").write_text(str(time.perf_counter() - started))
    dist.destroy_process_group()


if __name__ == "__main__":
    _rank(sys.argv[1])

"""Ranks on this machine: forked ones, which start at once, and those that torchrun starts."""

import os
import signal
import socket
import subprocess
import sys

import torch

from tests import kills
from tests.commands import ROOT

#: Seconds after which ranks that wait for each other are given up.
LIMIT = 240


def forked(count, work, folder):
    """What ``work()`` gives in each of so many forked ranks, plain data or tensors."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def ranked(rank):
        signal.alarm(LIMIT)
        own = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
        own |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        os.environ.update({name: str(value) for name, value in own.items()})
        torch.save(work(), folder / f"rank-{rank}")

    numbers = [kills.forked(lambda r=r: ranked(r)) for r in range(count)]
    assert [kills.finish(number) for number in numbers] == [0] * count
    return [torch.load(folder / f"rank-{rank}", weights_only=False) for rank in range(count)]


def torchrun(count, *arguments, restarts=0, folder=None):
    """The finished process of so many ranks of ``longnn`` (or of a program) on this machine."""
    command = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={count}", f"--max-restarts={restarts}", *map(str, arguments)]
    # Else ranks that are started again read addresses of those before them from the store.
    environment = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "OMP_NUM_THREADS": "1"}
    environment |= {"PYTHONPATH": str(ROOT), "PATH": "", "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
        cwd=folder,
    )

"""Ranks on this machine: forked ones, which start at once, and those that torchrun starts."""

import os
import signal
import socket
import subprocess
import sys
import traceback
import warnings

import torch

from tests.commands import ROOT

#: Seconds after which ranks that wait for each other are given up.
LIMIT = 240


def forked(count, work, folder):
    """What ``work()`` gives in each of so many forked ranks, plain data or tensors."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    numbers = [_fork(rank, count, port, work, folder) for rank in range(count)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) for number in numbers]
    assert codes == [0] * count
    return [torch.load(folder / f"rank-{rank}", weights_only=False) for rank in range(count)]


def _fork(rank, count, port, work, folder):
    number = os.fork()
    if number:
        return number
    code = 1
    try:
        signal.alarm(LIMIT)
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        own = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
        own |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        os.environ.update({name: str(value) for name, value in own.items()})
        torch.save(work(), folder / f"rank-{rank}")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


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

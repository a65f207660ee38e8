"""What holds for a while: signals that wait, products that are rounded, one thread."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

import torch


@contextlib.contextmanager
def held_signals() -> Iterator[list[int]]:
    """Ctrl-C and SIGTERM are noted, not acted on: a checkpoint in mid-epoch would be torn."""
    caught: list[int] = []

    def note(number: int, frame: Any) -> None:
        if caught:
            raise KeyboardInterrupt
        caught.append(number)

    ours = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    previous = {}
    if threading.current_thread() is threading.main_thread():
        # Whoever ignores or handles a signal already (nohup, a host program) keeps it.
        previous = {
            number: signal.signal(number, note)
            for number, usual in ours.items()
            if signal.getsignal(number) is usual
        }
    try:
        yield caught
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def dense_products(*, rounded: bool) -> Iterator[None]:
    """Products of dense matrices on a GPU, their factors rounded to TF32 or as they are.

    >>> with dense_products(rounded=True):
    ...     torch.get_float32_matmul_precision()
    'high'
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if rounded else before)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread; afterwards on as many as before.

    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)

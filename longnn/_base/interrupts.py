"""Ctrl-C and SIGTERM held back until it is safe to stop."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


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

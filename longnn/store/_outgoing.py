"""Blocks on their way to the disk: one is written, and one synced, while the next is computed."""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from longnn._base.files import writing

#: Writes a block and returns its file.
Write = Callable[[], Path]


class Outgoing:
    """At most one block is being written; :meth:`put` waits for the one before.

    Args:
        on_done: called in the caller's thread for each block that is written.
        ahead: write in a thread; else :meth:`put` returns when the block is written.

    >>> done = []
    >>> with Outgoing(lambda: done.append("written"), ahead=False) as outgoing:
    ...     outgoing.put(lambda: Path(__file__))
    ...     done
    ['written']
    """

    def __init__(self, on_done: Callable[[], None], *, ahead: bool) -> None:
        self._on_done, self._ahead = on_done, ahead
        self._writer, self._syncer = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self._writing: Future[Path] | None = None
        self._syncing: list[Future[None]] = []

    def put(self, write: Write) -> None:
        """Write one more block."""
        self.wait()
        if self._ahead:
            self._writing = self._writer.submit(write)
        else:
            self._sync(write())

    def wait(self) -> None:
        """Until what was put is written; an error of the disk is raised here."""
        if self._writing is not None:
            written, self._writing = self._writing, None
            self._sync(written.result())

    def _sync(self, path: Path) -> None:
        # The disk works on while the next block is computed.
        self._syncing.append(self._syncer.submit(_sync, path))
        self._on_done()

    def __enter__(self) -> "Outgoing":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self.wait()
                for future in self._syncing:
                    future.result()
        finally:
            self._writer.shutdown()
            self._syncer.shutdown()


def _sync(path: Path) -> None:
    """Wait until a file is on the disk."""
    with writing(path), path.open("rb") as file:
        os.fsync(file.fileno())

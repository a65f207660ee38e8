"""A journal file that survives a torn write: a killed process, a full disk.

Every record is one line of JSON. A line without its end was torn; what it said is lost, all before
it stands. It is cut off before anything is appended, so that no two records run together.
"""

import json
import os
from pathlib import Path
from typing import Any, BinaryIO

from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

from longnn._base.files import writing


class Journal(JournalFileBackend):
    """The lines of one journal file, shared by all workers.

    Args:
        path: of the file, which is created if it does not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = JournalFileSymlinkLock(str(path))
        with writing(path):
            super().__init__(str(path), self.lock)

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Append records: all of them, or none where the disk is full."""
        lines = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs)
        with writing(self.path):
            self.lock.acquire()
            try:
                with self.path.open("r+b", buffering=0) as file:
                    _append(file, lines.encode())
            finally:
                self.lock.release()


def _append(file: BinaryIO, data: bytes) -> None:
    end = _whole_lines(file)
    file.truncate(end)
    file.seek(end)
    try:
        while data:
            data = data[file.write(data) :]
        os.fsync(file.fileno())
    except OSError:
        file.truncate(end)
        raise


def _whole_lines(file: BinaryIO, block: int = 4096) -> int:
    """The length of a file without a torn last line."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - block)
        file.seek(start)
        newline = file.read(end - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def find_damage(path: Path) -> str | None:
    """Where a journal is damaged in a way that cannot be mended; None if it is whole.

    A torn last line is no such damage.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.endswith(b"\n") and not _is_record(line):
                return f"line {number} is no record of a journal"
    return None


def _is_record(line: bytes) -> bool:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and "op_code" in record

"""Writing files so that a reader never sees half of one."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary file beside ``path`` to write to; it replaces ``path`` if no error occurs.

    On any failure (a full disk, an interrupt) the old file, if there was one, is untouched.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)  # mkstemp makes files private; these are to be shared
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically; NaN is not JSON and raises."""
    write_text(path, json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False) + "\n")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what a library says about a failed write into an OSError that names the file."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(error.errno, f"Expected to write {path} ({reason})") from error
    except Exception as error:
        if type(error).__name__ != "SafetensorError":  # this file does not load safetensors
            raise
        reason = str(error).rpartition("I/O error: ")[2]
        raise OSError(f"Expected to write {path} ({reason})") from error

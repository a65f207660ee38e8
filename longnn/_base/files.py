"""Writing files so that a reader never sees half of one."""

import contextlib
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]


#: How the temporary files of :func:`atomic_path` are called, those that a kill left behind too.
TEMPORARY = ".*.tmp"


@contextlib.contextmanager
def atomic_path(path: Path, *, new: bool = False) -> Iterator[Path]:
    """A temporary file beside ``path`` to write to; it becomes ``path`` if no error occurs.

    On any failure (a full disk, an interrupt) the old file, if there was one, is untouched.

    Args:
        path: the file to make. It has the permissions that the user's umask gives.
        new: raise FileExistsError where there is such a file: of several that write at once, one
            succeeds.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        if new:
            _claim(temporary, path)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _claim(temporary: Path, path: Path) -> None:
    """Create ``path``, or raise FileExistsError; with its content at once, where links are known.

    Replacing a file by another link to it, as the caller does next, changes nothing.
    """
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any, *, new: bool = False) -> None:
    """Write JSON atomically; NaN is not JSON and raises. ``new`` as in :func:`atomic_path`."""
    text = json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    with atomic_path(path, new=new) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what a library says about a failed write into an OSError that names the file."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(error.errno, f"Expected to write {path} ({reason})") from error


def try_lock(file: IO[bytes]) -> bool:
    """Hold an open file until it is closed, or its process ends; False if another holds it.

    Where the system or the file system has no locks, everybody may have it.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True

"""DuckDB, which joins and sorts tables that outgrow memory: it spills to disk.

One connection per piece of work, in a folder of its own, which is deleted afterwards. What DuckDB
raises becomes one line. Knows nothing of graphs.
"""

import errno
import importlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from longnn._base.memory import in_words
from longnn.store._arrays import StoreError

#: Share of the memory given that DuckDB may take; the rest is for the arrays in Python.
SHARE = 0.5
#: Bytes that the program takes before any work: Python, torch, Arrow.
OWN = 500 * 10**6
#: Seconds between two looks at how far a query is.
LOOK = 0.2
#: Bytes that DuckDB needs to work at all.
LEAST = 128 * 2**20


class Engine:
    """A database in a folder.

    Args:
        room: the folder, for tables and for what does not fit into memory.
        memory: bytes that the whole program may take; :attr:`memory` is what is left for the work.
        threads: by default as many as there are cores.
    """

    def __init__(self, room: Path, memory: float, threads: int | None = None) -> None:
        self.given_memory = memory
        self.memory = max(memory - OWN, memory / 4)  # for the work
        duckdb = _duckdb()
        self._error = duckdb.Error
        limit = int(max(LEAST, SHARE * self.memory))
        with self._explained():
            self._connection = duckdb.connect(str(room / "tables.duckdb"))
            self.run(f"SET memory_limit = '{limit // 2**20}MiB'")
            self.run(f"SET temp_directory = {quoted(room / 'spilled')}")
            if threads is not None:
                self.run(f"SET threads = {threads}")

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def run(self, query: str, on_share: Callable[[float], None] | None = None) -> None:
        """Run a statement; ``on_share`` is called with the share that is done, now and then."""
        with self._explained(), self._watched(on_share):
            self._connection.execute(query).fetchall()  # to the end: then it is done

    def table(self, query: str) -> pa.Table:
        """The result of a query, in memory."""
        with self._explained():
            return self._connection.sql(query).to_arrow_table()

    def value(self, query: str) -> Any:
        """The one value that a query results in."""
        with self._explained():
            rows = self._connection.execute(query).fetchall()
        return rows[0][0] if rows else None

    def types(self, relation: str) -> dict[str, str]:
        """The types of the columns of a table, as DuckDB calls them."""
        with self._explained():
            rows = self._connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        return {row[0]: str(row[1]) for row in rows}

    @contextmanager
    def given(self, name: str, data: Any) -> Iterator[str]:
        """Arrow data as a table of that name."""
        self._connection.register(name, data)
        try:
            yield name
        finally:
            self._connection.unregister(name)

    @contextmanager
    def _watched(self, on_share: Callable[[float], None] | None) -> Iterator[None]:
        if on_share is None:
            yield
            return
        done = threading.Event()

        def look() -> None:
            while not done.wait(LOOK):
                percent = self._connection.query_progress()
                if percent > 0:
                    on_share(percent / 100)

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """What DuckDB raises, as an error of ours in one line."""
        try:
            yield
        except RuntimeError as error:
            if "interrupted" not in str(error):
                raise
            raise KeyboardInterrupt from error  # what it was before DuckDB caught it
        except self._error as error:
            text = str(error).strip().split("\n")[0]
            kind = type(error).__name__
            if "No space left" in text:
                raise OSError(errno.ENOSPC, f"No space left on the disk ({text})") from error
            if kind == "OutOfMemoryException":
                raise MemoryError(
                    f"Expected the work to fit into {in_words(self.given_memory)} of memory "
                    f"(DuckDB: {text}); give more with --memory"
                ) from error
            raise StoreError(f"Expected tables that DuckDB can read ({kind}: {text})") from error


def _duckdb() -> Any:
    try:
        return importlib.import_module("duckdb")
    except ImportError:
        raise StoreError(
            "Expected DuckDB, which large graphs need (it is not installed); install it with "
            'pip install "longnn[large]"'
        ) from None


def quoted(value: object) -> str:
    """A text in a query.

    >>> quoted("it's")
    "'it''s'"
    """
    return "'" + str(value).replace("'", "''") + "'"


def named(column: str) -> str:
    """The name of a column in a query.

    >>> named('a "b"')
    '"a ""b\"""'
    """
    return '"' + column.replace('"', '""') + '"'

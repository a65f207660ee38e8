"""Where a search is stored: a SQLite file, a journal file or a database server, by its URL.

Knows connections only. What is stored is up to the ledger.
"""

import contextlib
import random
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy
from optuna.exceptions import ExperimentalWarning
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from sqlalchemy import event, exc

JOURNAL = "journal://"
#: Seconds a worker waits for another that writes to the same SQLite file.
BUSY = 60.0
#: Attempts to connect: two workers that create the tables at the same time disturb each other.
ATTEMPTS = 6


@contextlib.contextmanager
def quiet_optuna() -> Iterator[None]:
    """Optuna logs warnings only, and none about experimental features."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


def default_url(folder: Path) -> str:
    """The SQLite file of a search, in its folder."""
    return f"sqlite:///{(folder / 'search.db').resolve()}"


def open_storage(url: str) -> BaseStorage:
    """Connect to the storage of a search.

    Args:
        url: ``sqlite:///FILE``, ``journal:///FILE`` (an append-only file, safe on network file
            systems), ``postgresql://USER@HOST/DATABASE`` (``pip install "longnn[postgres]"``),
            or any other URL that Optuna accepts.

    Raises:
        ValueError: for an invalid URL, or one without an installed driver.
        ConnectionError: if the server does not answer.
    """
    if url.startswith(JOURNAL):
        return _open_journal(url)
    try:
        parsed = sqlalchemy.make_url(url)
    except exc.ArgumentError as error:
        raise ValueError(
            "Expected a storage URL like sqlite:///search.db, journal:///search.log or "
            f"postgresql://user@host/database (got {url!r})"
        ) from error
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    for attempt in range(ATTEMPTS):
        try:
            return _open_database(parsed)
        except ImportError as error:
            extra = '; pip install "longnn[postgres]"' if "postgresql" in url else ""
            raise ValueError(f"Expected a driver for {shown_url(url)} (got none{extra})") from error
        except exc.NoSuchModuleError as error:
            raise ValueError(
                f"Expected a database that SQLAlchemy knows (got {shown_url(url)})"
            ) from error
        except (exc.OperationalError, exc.ProgrammingError, exc.IntegrityError) as error:
            if attempt == ATTEMPTS - 1:
                reason = str(error.orig).strip().split("\n")[0]
                raise ConnectionError(
                    f"Expected to reach the storage {shown_url(url)} ({reason})"
                ) from error
            time.sleep(0.1 + 0.4 * random.random())
    raise AssertionError("unreachable")


def shown_url(url: str) -> str:
    """The URL without its password, for records and errors.

    >>> shown_url("postgresql://me:secret@host/longnn")
    'postgresql://me:***@host/longnn'
    """
    try:
        return sqlalchemy.make_url(url).render_as_string(hide_password=True)
    except exc.ArgumentError:
        return url


def close_storage(storage: BaseStorage) -> None:
    """Close all connections."""
    if isinstance(storage, RDBStorage):
        storage.remove_session()
        storage.engine.dispose()


def _open_journal(url: str) -> BaseStorage:
    path = Path(url.removeprefix(JOURNAL))
    if not path.name:
        raise ValueError(f"Expected journal:///FILE (got {url!r})")
    path.parent.mkdir(parents=True, exist_ok=True)
    return JournalStorage(JournalFileBackend(str(path)))


def _open_database(url: sqlalchemy.URL) -> RDBStorage:
    options: dict[str, object] = {}
    if url.get_backend_name() == "sqlite":
        options["connect_args"] = {"timeout": BUSY}
    storage = RDBStorage(url.render_as_string(hide_password=False), engine_kwargs=options)
    if url.get_backend_name() == "sqlite":
        _serialize(storage)
    return storage


def _serialize(storage: RDBStorage) -> None:
    """Make SQLite safe and fast for several workers.

    SQLite ignores the row locks that Optuna asks for, so each transaction takes the write lock
    when it begins. With a write-ahead log a commit needs no disk flush: a killed process loses
    nothing, a power failure may lose the last trials.
    """

    def connect(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # the driver begins no transactions
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")

    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    event.listen(storage.engine, "connect", connect)
    event.listen(storage.engine, "begin", begin)
    storage.engine.dispose()

"""Where a search is stored: a SQLite file, a journal file or a database server, by its URL.

Knows connections only. What is stored is up to the ledger.
"""

import contextlib
import random
import time
import warnings
from collections.abc import Iterator
from typing import Any

import optuna
import sqlalchemy
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from sqlalchemy import event, exc

from longnn.tuning._guard import RAISED, GuardedStorage, damaged, explain, guard
from longnn.tuning._journal import Journal, find_damage
from longnn.tuning._urls import JOURNAL, file_of, reason, shown_url

#: Seconds a worker waits for another that writes to the same SQLite file.
BUSY = 60.0
#: Attempts to connect: two workers that create the tables at the same time disturb each other.
ATTEMPTS = 6
#: How libpq notices that a server is gone: seconds, and milliseconds for unanswered data.
NOTICE = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


@contextlib.contextmanager
def quiet_optuna() -> Iterator[None]:
    """Optuna logs errors only: its warnings repeat what a driver says, which may hold a URL."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


def open_storage(url: str) -> BaseStorage:
    """Connect to the storage of a search.

    While a search runs, a server that does not answer is waited for
    (:data:`~longnn.tuning._guard.PATIENCE` seconds).

    Args:
        url: ``sqlite:///FILE``, ``journal:///FILE`` (an append-only file, safe on network file
            systems), ``postgresql://USER@HOST/DATABASE`` (``pip install "longnn[postgres]"``),
            or any other URL that Optuna accepts.

    Raises:
        ValueError: for an invalid URL, one without an installed driver, or a damaged file.
        ConnectionError: if the server does not answer.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     open_storage(f"journal://{folder}/search.log").get_all_studies()
    []
    """
    if url.startswith(f"{JOURNAL}://"):
        return _open_journal(url)
    parsed = _parse(url)
    for attempt in range(ATTEMPTS):
        try:
            return guard(_open_database(parsed), url)
        except ImportError:
            extra = '; pip install "longnn[postgres]"' if "postgresql" in parsed.drivername else ""
            raise ValueError(f"Expected a driver for {shown_url(url)} (got none{extra})") from None
        except exc.NoSuchModuleError:
            raise ValueError(
                f"Expected a database that SQLAlchemy knows (got {shown_url(url)})"
            ) from None
        except (exc.OperationalError, exc.ProgrammingError, exc.IntegrityError) as error:
            failure: Exception = ConnectionError(
                f"Expected to reach the storage {shown_url(url)} ({reason(error)})"
            )
        except StorageInternalError as error:
            failure = explain(error, url)
        except (*RAISED, RuntimeError, OSError) as error:
            failure = damaged(url, reason(error))
        if attempt == ATTEMPTS - 1 or isinstance(failure, ValueError):
            raise failure  # outside of `except`: the driver's own error may hold the URL
        time.sleep(0.1 + 0.4 * random.random())
    raise AssertionError("unreachable")


def _parse(url: str) -> sqlalchemy.URL:
    try:
        parsed = sqlalchemy.make_url(url)
    except (exc.ArgumentError, ValueError):
        raise ValueError(
            "Expected a storage URL like sqlite:///search.db, journal:///search.log or "
            f"postgresql://user@host/database (got {shown_url(url)}); write special characters of "
            "a password as %40 and so on"
        ) from None
    if parsed.drivername == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    return parsed


def close_storage(storage: BaseStorage) -> None:
    """Close all connections."""
    if isinstance(storage, GuardedStorage):
        storage.close()


def _open_journal(url: str) -> BaseStorage:
    path = file_of(url)
    if path is None or not path.name:
        raise ValueError(f"Expected journal:///FILE (got {shown_url(url)})")
    path.parent.mkdir(parents=True, exist_ok=True)
    journal = Journal(path)
    why = find_damage(path)
    if why is not None:
        raise damaged(url, why)
    try:
        return guard(JournalStorage(journal), url)
    except RAISED as error:
        raise damaged(url, reason(error)) from error


def _open_database(url: sqlalchemy.URL) -> RDBStorage:
    options: dict[str, Any] = {}
    if url.get_backend_name() == "sqlite":
        options["connect_args"] = {"timeout": BUSY}
    else:
        options["pool_pre_ping"] = True  # a restarted server has closed the old connections
    if url.drivername == "postgresql+psycopg":
        options["connect_args"] = {k: v for k, v in NOTICE.items() if k not in url.query}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=exc.SAWarning)  # it repeats the query
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

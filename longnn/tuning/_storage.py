"""Where a search is stored: a SQLite file, a journal file or a database server, by its URL.

A URL can hold secrets in its user part, its query and its fragment, and drivers repeat them in
their messages. So nothing of a URL is written, printed or raised but what :func:`shown_url` gives,
and nothing of a driver's message but the phrases that :func:`reason` knows. What is stored is up to
the ledger.
"""

import contextlib
import os
import random
import re
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import optuna
import sqlalchemy
from optuna.exceptions import ExperimentalWarning, StorageInternalError, UpdateFinishedTrialError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from sqlalchemy import event, exc

from longnn._base.files import writing

T = TypeVar("T")

#: The scheme of a journal file; all others are SQLAlchemy's.
JOURNAL = "journal"
#: Shown in place of what cannot be told from a secret.
HIDDEN = "***"
#: Seconds that a storage which does not answer is waited for: when it is opened, where workers that
#: create the tables at once disturb each other, and in the middle of a search.
OPENING, PATIENCE = 2.0, 300.0
#: Seconds before the second attempt, and at most between two.
FIRST, LONGEST = 0.1, 5.0
#: Seconds a worker waits for another that writes to the same SQLite file.
BUSY = 60.0
#: How libpq notices that a server is gone: seconds, and milliseconds for unanswered data.
NOTICE = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}

#: What is raised when a server is away, and by what follows in the same session.
UNREACHABLE = (
    exc.OperationalError,
    exc.InterfaceError,
    exc.TimeoutError,
    exc.DisconnectionError,
    exc.PendingRollbackError,
    exc.ResourceClosedError,
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9_+.-]*")
_HOST = r"(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?"
_HOSTS = re.compile(rf"(?:{_HOST}(?:,{_HOST})*)?")
_DATABASE = re.compile(r"[\w.%~+ -]*")
#: Phrases of drivers that help a reader and hold nothing of a URL.
_PHRASES = re.compile(
    "connection refused|password authentication failed|no password supplied|no pg_hba.conf entry"
    "|timeout expired|connection timed out|timed out|no such file or directory"
    "|name or service not known|failed to resolve host|could not translate host name"
    "|is starting up|is shutting down|terminating connection"
    "|closed the connection unexpectedly|connection is closed|connection is lost"
    "|too many clients|too many connections|permission denied|does not exist|certificate|ssl"
    "|unable to open database file|database is locked|database or disk is full|disk i/o error"
    "|readonly database|not a database|disk image is malformed|could not decode to utf-8"
    "|no such table|no such column|invalid connection option|invalid dsn"
    "|no longer compatible with the table schema"
)


def shown_url(url: str) -> str:
    """A storage URL without user, password, query and fragment.

    Where a part could be a piece of one of these, it is hidden too.

    >>> shown_url("postgresql://me:secret@host:5432/longnn?password=secret")
    'postgresql://host:5432/longnn'
    """
    scheme, separator, rest = url.partition("://")
    if not separator or not _SCHEME.fullmatch(scheme):
        return HIDDEN
    is_file = scheme.partition("+")[0] in ("sqlite", JOURNAL)
    if is_file and (rest.startswith("/") or "@" not in rest):
        return f"{scheme}://{re.split('[?#]', rest)[0]}"
    user, _, address = rest.rpartition("@")
    hosts, slash, database = re.split("[?#]", address)[0].partition("/")
    if re.search("[?#]", user) or not _HOSTS.fullmatch(hosts):
        return f"{scheme}://{HIDDEN}"
    return f"{scheme}://{hosts}{slash}{database if _DATABASE.fullmatch(database) else HIDDEN}"


def file_of(url: str) -> Path | None:
    """The file of a storage that is a file; None for a server and for memory."""
    if url.startswith(f"{JOURNAL}://"):
        return Path(url.removeprefix(f"{JOURNAL}://"))
    parsed = sqlalchemy.make_url(url)
    if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
        return None
    return Path(parsed.database)


def default_url(folder: Path) -> str:
    """The SQLite file of a search, in its folder."""
    file = str((folder / "search.db").resolve())
    return sqlalchemy.URL.create("sqlite", database=file).render_as_string(hide_password=False)


def reason(error: BaseException) -> str:
    """What a driver complains about, in words that hold nothing of a URL."""
    origin = getattr(error, "orig", None) or error
    phrase = _PHRASES.search(str(origin).lower())
    return phrase[0] if phrase else type(origin).__name__


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

    Args:
        url: ``sqlite:///FILE``, ``journal:///FILE`` (an append-only file, safe on network file
            systems), ``postgresql://USER@HOST/DATABASE`` (``pip install "longnn[postgres]"``),
            or any other URL that Optuna accepts.

    Raises:
        ValueError: for an invalid URL, one without an installed driver, or a damaged file.
        ConnectionError: if the server does not answer.
    """
    attempt = Attempt(url, patience=OPENING)
    if url.startswith(f"{JOURNAL}://"):
        path = file_of(url)
        if path is None or not path.name:
            raise ValueError(f"Expected journal:///FILE (got {shown_url(url)})")
        path.parent.mkdir(parents=True, exist_ok=True)
        return attempt(lambda: JournalStorage(Journal(path)))
    return attempt(_open_database, _parse(url))


def close_storage(storage: BaseStorage) -> None:
    """Close all connections."""
    if isinstance(storage, RDBStorage):
        storage.remove_session()
        storage.engine.dispose()


class Attempt:
    """Calls a storage, again and again while its server does not answer.

    Args:
        url: of the storage, for errors; None if it was opened by the caller.
        patience: seconds to wait for it; None for :data:`PATIENCE`.

    Calling it raises:
        ConnectionError: if the server does not answer in time.
        ValueError: if the content of the storage is damaged.
    """

    def __init__(self, url: str | None, patience: float | None = None) -> None:
        self.url, self.opens = url, patience is not None
        self.patience = PATIENCE if patience is None else patience
        self.lost = False  # it was waited for in vain

    def __call__(self, call: Callable[..., T], *args: Any) -> T:
        delay, end = FIRST, time.monotonic() + self.patience
        while True:
            try:
                return call(*args)
            except (OSError, MemoryError, UpdateFinishedTrialError):
                raise
            except Exception as error:  # whatever damage makes Optuna raise
                cause: BaseException = error
                if isinstance(error, StorageInternalError) and error.__cause__ is not None:
                    cause = error.__cause__  # Optuna wraps errors of the database
                last = self.lost or time.monotonic() + delay > end
                failure = None if self._is_temporary(cause) and not last else self._explain(cause)
            if failure is not None:
                self.lost = True
                raise failure  # outside of `except`: the driver's own error may hold the URL
            try:
                time.sleep(delay * (0.75 + 0.5 * random.random()))
            except BaseException:  # interrupted: whoever cleans up now must not wait again
                self.lost = True
                raise
            delay = min(2 * delay, LONGEST)

    def _is_temporary(self, error: BaseException) -> bool:
        """Whether the next attempt may succeed: the server is away, busy, or hung up."""
        if not isinstance(error, exc.DBAPIError):
            return isinstance(error, UNREACHABLE)
        if self.opens:  # another worker creates the tables
            return isinstance(error, (*UNREACHABLE, exc.ProgrammingError, exc.IntegrityError))
        if type(error.orig).__module__.startswith("sqlite3"):
            return False  # the driver has waited already
        return isinstance(error, UNREACHABLE) or error.connection_invalidated

    def _explain(self, error: BaseException) -> Exception:
        why = reason(error)
        if isinstance(error, UNREACHABLE) and not why.startswith("no such "):  # table, column
            text = f"Expected to reach the storage {shown_url(self.url or '')}"
            if self.opens:
                return ConnectionError(f"{text} ({why})")
            waited = f" within {self.patience:g} s" if self._is_temporary(error) else ""
            return ConnectionError(
                f"{text}{waited} ({why}); finished trials are kept, run the same search again to "
                "continue"
            )
        return self.damaged(why)

    def damaged(self, why: str) -> ValueError:
        """The error for a storage that holds no search, with the remedy."""
        file = file_of(self.url) if self.url else None
        name = file or (shown_url(self.url) if self.url else "the storage")
        remedy = f"restore a copy of {file}, or move it away" if file else "use another database"
        return ValueError(
            f"Expected {name} to hold a search (it is damaged: {why}); {remedy} to start the "
            "search anew"
        )


class Journal(JournalFileBackend):
    """A journal file that survives a torn write: a killed process, a full disk.

    Every record is one line. A line without its end was torn: it is cut off before anything is
    appended, so that no two records run together.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with writing(path):
            super().__init__(str(path))

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Append records, after the last whole line."""
        with writing(self.path):
            self._lock.acquire()
            try:
                with self.path.open("r+b") as file:
                    size = file.seek(0, os.SEEK_END)
                    file.seek(max(size - 1, 0))
                    if file.read() not in (b"", b"\n"):
                        file.seek(0)
                        file.truncate(file.read().rfind(b"\n") + 1)
            finally:
                self._lock.release()
            super().append_logs(logs)


def _parse(url: str) -> sqlalchemy.URL:
    try:
        parsed = sqlalchemy.make_url(url)
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        parsed.get_dialect().import_dbapi()
    except exc.NoSuchModuleError:
        raise ValueError(
            f"Expected a database that SQLAlchemy knows (got {shown_url(url)})"
        ) from None
    except ImportError:
        extra = '; pip install "longnn[postgres]"' if url.startswith("postgresql") else ""
        raise ValueError(f"Expected a driver for {shown_url(url)} (got none{extra})") from None
    except (exc.ArgumentError, ValueError):
        raise ValueError(
            "Expected a storage URL like sqlite:///search.db, journal:///search.log or "
            f"postgresql://user@host/database (got {shown_url(url)}); write special characters of "
            "a password as %40 and so on"
        ) from None
    return parsed


def _open_database(url: sqlalchemy.URL) -> RDBStorage:
    options: dict[str, Any] = {}
    if url.get_backend_name() == "sqlite":
        options["connect_args"] = {"timeout": BUSY}
    else:
        options["pool_pre_ping"] = True  # a restarted server has closed the old connections
    if url.drivername == "postgresql+psycopg":
        options["connect_args"] = {k: v for k, v in NOTICE.items() if k not in url.query}
    text = url.render_as_string(hide_password=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=exc.SAWarning)  # it repeats the query
        # Optuna fills in what stands between braces.
        text = text.replace("{", "{{").replace("}", "}}")
        storage = RDBStorage(text, engine_kwargs=options)
    if url.get_backend_name() == "sqlite":
        # SQLite ignores the row locks that Optuna asks for, so each transaction takes the write
        # lock when it begins. With a write-ahead log a commit needs no disk flush: a killed process
        # loses nothing, a power failure may lose the last trials.
        def connect(connection: Any, _: Any) -> None:
            connection.isolation_level = None  # the driver begins no transactions
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")

        event.listen(storage.engine, "connect", connect)
        event.listen(storage.engine, "begin", lambda c: c.exec_driver_sql("BEGIN IMMEDIATE"))
        storage.engine.dispose()
    return storage

"""A storage that waits for its server, and whose errors say what to do.

Knows Optuna's storages by their public methods only, and nothing of trials.
"""

import abc
import random
import time
from collections.abc import Callable
from typing import Any

from optuna.exceptions import DuplicatedStudyError, StorageInternalError, UpdateFinishedTrialError
from optuna.storages import BaseStorage, RDBStorage, get_storage
from sqlalchemy import Engine, exc

from longnn.tuning._urls import file_of, reason, shown_url

#: Seconds that a search waits for a server that does not answer.
PATIENCE = 300.0
#: Seconds before the second attempt, and at most between two.
FIRST, LONGEST = 0.1, 5.0

#: What the ledger expects of a storage in its daily work.
PASSED = (DuplicatedStudyError, UpdateFinishedTrialError)
#: What else a storage raises: its server is gone, or its content is damaged.
RAISED = (
    StorageInternalError,
    exc.SQLAlchemyError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    RecursionError,
)
#: What is raised when a server is away, and by what follows in the same session.
UNREACHABLE = (
    exc.OperationalError,
    exc.InterfaceError,
    exc.TimeoutError,
    exc.DisconnectionError,
    exc.PendingRollbackError,
    exc.ResourceClosedError,
)


def _delegate(cls: type) -> type:
    """Implement every method that a storage must have by the guarded one of the inner storage."""

    def method(name: str) -> Callable[..., Any]:
        return lambda self, *args, **kwargs: self.attempt(name, *args, **kwargs)

    for name in BaseStorage.__abstractmethods__:
        setattr(cls, name, method(name))
    abc.update_abstractmethods(cls)
    return cls


@_delegate
class GuardedStorage(BaseStorage):
    """A storage that is tried again while its server does not answer.

    Args:
        storage: the storage itself.
        url: of the storage, for errors.
    """

    def __init__(self, storage: BaseStorage, url: str) -> None:
        self.storage, self.url = storage, url
        self.inner = get_storage(storage)  # with Optuna's cache of finished trials
        self.lost = False  # the server was waited for in vain

    @property
    def engine(self) -> Engine:
        """SQLAlchemy's engine; a journal has none."""
        assert isinstance(self.storage, RDBStorage)
        return self.storage.engine

    def close(self) -> None:
        """Close all connections."""
        if isinstance(self.storage, RDBStorage):
            self.storage.remove_session()
            self.storage.engine.dispose()

    def get_trial_id_from_study_id_trial_number(self, study_id: int, trial_number: int) -> int:
        """Optuna's id of a trial."""
        found: int = self.attempt("get_trial_id_from_study_id_trial_number", study_id, trial_number)
        return found

    def attempt(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the storage, again and again while its server does not answer.

        Raises:
            ConnectionError: if it does not answer for :data:`PATIENCE` seconds.
            ValueError: if the content of the storage is damaged.
        """
        delay, end = FIRST, time.monotonic() + PATIENCE
        while True:
            try:
                return getattr(self.inner, name)(*args, **kwargs)
            except PASSED:
                raise
            except RAISED as error:
                last = self.lost or time.monotonic() + delay > end
                failure = None if is_temporary(error) and not last else explain(error, self.url)
            if failure is not None:
                self.lost = True
                raise failure  # outside of `except`: the driver's own error may hold the URL
            self._wait(delay)
            delay = min(2 * delay, LONGEST)

    def _wait(self, delay: float) -> None:
        try:
            time.sleep(delay * (0.75 + 0.5 * random.random()))
        except BaseException:  # interrupted: whoever cleans up now must not wait again
            self.lost = True
            raise


def guard(storage: BaseStorage, url: str) -> GuardedStorage:
    """A storage that is tried again while its server does not answer."""
    return GuardedStorage(storage, url)  # type: ignore[abstract]  # see _delegate


def is_temporary(error: BaseException) -> bool:
    """Whether the next attempt may succeed: the server is away, busy, or closed the connection."""
    cause = _cause(error)
    if isinstance(cause, exc.DBAPIError) and _is_sqlite(cause):
        return False  # the driver has waited already
    return isinstance(cause, UNREACHABLE) or (
        isinstance(cause, exc.DBAPIError) and cause.connection_invalidated
    )


def explain(error: BaseException, url: str) -> Exception:
    """The error for the user, with nothing of the URL that is secret."""
    cause = _cause(error)
    if isinstance(cause, UNREACHABLE) and not reason(cause).startswith("no such "):  # table, column
        waited = f" within {PATIENCE:g} s" if is_temporary(error) else ""
        return ConnectionError(
            f"Expected to reach the storage {shown_url(url)}{waited} ({reason(cause)}); finished "
            "trials are kept, run the same search again to continue"
        )
    return damaged(url, reason(cause))


def damaged(url: str, why: str) -> ValueError:
    """The error for a storage that holds no search, with the remedy."""
    file = file_of(url)
    remedy = f"restore a copy of {file}, or move it away" if file else "use another database"
    return ValueError(
        f"Expected {file or shown_url(url)} to hold a search (it is damaged: {why}); {remedy} to "
        "start the search anew"
    )


def damage(storage: BaseStorage, why: str) -> ValueError:
    """The error for a storage with damaged content, which names it if it was opened by its URL."""
    if isinstance(storage, GuardedStorage):
        return damaged(storage.url, why)
    return ValueError(f"Expected the storage to hold a search (it is damaged: {why})")


def _cause(error: BaseException) -> BaseException:
    """Optuna wraps errors of the database."""
    wrapped = isinstance(error, StorageInternalError) and error.__cause__ is not None
    return error.__cause__ or error if wrapped else error


def _is_sqlite(error: exc.DBAPIError) -> bool:
    return type(error.orig).__module__.startswith("sqlite3")

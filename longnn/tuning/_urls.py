"""What may be said of a storage URL: its scheme, host, port and database, and nothing else.

A URL can hold secrets in its user part, its query and its fragment, and drivers repeat them in
their messages. So nothing of a URL is written, printed or raised but what :func:`shown_url` gives,
and nothing of a driver's message but the phrases that :func:`reason` knows.
"""

import re
from pathlib import Path

import sqlalchemy

#: The scheme of a journal file; all others are SQLAlchemy's.
JOURNAL = "journal"
#: Shown in place of what cannot be told from a secret.
HIDDEN = "***"

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9_+.-]*")
_HOST = r"(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?"
_HOSTS = re.compile(rf"(?:{_HOST}(?:,{_HOST})*)?")
_DATABASE = re.compile(r"[\w.%~+ -]*")

#: Phrases of drivers that help a reader and hold nothing of a URL.
_PHRASES = (
    "connection refused",
    "password authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "timeout expired",
    "connection timed out",
    "timed out",
    "no such file or directory",
    "name or service not known",
    "failed to resolve host",
    "could not translate host name",
    "is starting up",
    "is shutting down",
    "terminating connection",
    "closed the connection unexpectedly",
    "connection is closed",
    "connection is lost",
    "too many clients",
    "too many connections",
    "permission denied",
    "does not exist",
    "certificate",
    "ssl",
    "unable to open database file",
    "database is locked",
    "database or disk is full",
    "disk i/o error",
    "readonly database",
    "not a database",
    "disk image is malformed",
    "could not decode to utf-8",
    "no such table",
    "no such column",
    "invalid connection option",
    "invalid dsn",
    "no longer compatible with the table schema",
)


def shown_url(url: str) -> str:
    """A storage URL without user, password, query and fragment.

    Where a part could be a piece of one of these, it is hidden too.

    >>> shown_url("postgresql://me:secret@host:5432/longnn?password=secret")
    'postgresql://host:5432/longnn'
    >>> shown_url("sqlite:////data/search.db?key=secret"), shown_url("me:secret@host")
    ('sqlite:////data/search.db', '***')
    """
    scheme, found, rest = url.partition("://")
    if not found or not _SCHEME.fullmatch(scheme):
        return HIDDEN
    if scheme.partition("+")[0] in ("sqlite", JOURNAL) and (
        rest.startswith("/") or "@" not in rest
    ):
        return f"{scheme}://{_without_query(rest)}"
    user, _, place = rest.rpartition("@")
    hosts, slash, database = _without_query(place).partition("/")
    if re.search("[?#]", user) or not _HOSTS.fullmatch(hosts):
        return f"{scheme}://{HIDDEN}"
    return f"{scheme}://{hosts}{slash}{database if _DATABASE.fullmatch(database) else HIDDEN}"


def _without_query(text: str) -> str:
    return re.split("[?#]", text, maxsplit=1)[0]


def file_of(url: str) -> Path | None:
    """The file of a storage that is a file; None for a server and for memory.

    >>> file_of("journal:///data/s.log"), file_of("postgresql://host/x")
    (PosixPath('/data/s.log'), None)
    """
    if url.startswith(f"{JOURNAL}://"):
        return Path(url.removeprefix(f"{JOURNAL}://"))
    parsed = sqlalchemy.make_url(url)
    if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
        return None
    return Path(parsed.database)


def default_url(folder: Path) -> str:
    """The SQLite file of a search, in its folder."""
    place = str((folder / "search.db").resolve())
    return sqlalchemy.URL.create("sqlite", database=place).render_as_string(hide_password=False)


def reason(error: BaseException) -> str:
    """What a driver complains about, in words that hold nothing of a URL.

    >>> reason(ValueError("connection to me:secret@h failed: Connection refused"))
    'connection refused'
    >>> reason(ValueError("me:secret@h"))
    'ValueError'
    """
    origin = getattr(error, "orig", None) or error
    text = str(origin).lower()
    return next((phrase for phrase in _PHRASES if phrase in text), type(origin).__name__)

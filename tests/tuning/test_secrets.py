"""No user, password, query or fragment of a storage URL reaches a file, a message or a log."""

import logging
import traceback

import pytest

from longnn.tuning import _storage as storages
from longnn.tuning._storage import open_storage, reason, shown_url
from tests.commands import TINY, longnn
from tests.tuning.examples import SPACE, search

#: Every word of a URL that must not be seen begins so.
SECRET = "hush"
#: Nobody listens at these.
SERVERS = {
    "postgresql://hushme:hushpw@127.0.0.1:9/x": "postgresql://127.0.0.1:9/x",
    "postgresql://hushme@127.0.0.1:9/x": "postgresql://127.0.0.1:9/x",
    "postgresql://127.0.0.1:9/x?user=hushme&password=hushpw": "postgresql://127.0.0.1:9/x",
    "postgresql+psycopg://hushme:hush%40p%2Fw@127.0.0.1:9/x": "postgresql+psycopg://127.0.0.1:9/x",
    "postgresql://127.0.0.1:9/x?sslmode=disable&sslkey=/home/hushme/hush.pem": (
        "postgresql://127.0.0.1:9/x"
    ),
    "postgresql://hushme:hushpw@[::1]:9/x?passfile=/hush": "postgresql://[::1]:9/x",
    "postgresql://hushme:hushpw@/x?host=127.0.0.1:9&host=127.0.0.1:10": "postgresql:///x",
    "postgresql:///x?host=/nowhere/hush&user=hushme&password=hushpw": "postgresql:///x",
    "postgresql://127.0.0.1:9/x?options=-csearch_path%3Dhush": "postgresql://127.0.0.1:9/x",
    "postgresql://127.0.0.1:9/x?hushkey=hush": "postgresql://127.0.0.1:9/x",
    "postgresql://127.0.0.1:9/x#hush": "postgresql://127.0.0.1:9/x",
    "postgresql://hushme:hush@hush@127.0.0.1:9/x": "postgresql://127.0.0.1:9/x",
    "postgresql://hushme:hush/hush@127.0.0.1:9/x": "postgresql://127.0.0.1:9/x",
    "postgresql://hushme:p@hush/hush@127.0.0.1:9/x": "postgresql://127.0.0.1:9/x",
    "postgresql://hushme:hush?hush@127.0.0.1:9/x": "postgresql://***",
    "postgresql://127.0.0.1:9/x?user=hush@hush&password=hush": "postgresql://***",
    "postgresql://hushme:hush:hush@127.0.0.1:abc/x": "postgresql://***",
    "postgresql://hushme:hush": "postgresql://***",
    "postgresql://hushme:hush@127.0.0.1:9,127.0.0.1:10/x": "postgresql://127.0.0.1:9,127.0.0.1:10/x",
    "postgresql://127.0.0.1:9/x;password=hush": "postgresql://127.0.0.1:9/***",
    "mysql+nosuch://hushme:hush@h/d?ssl_key=hush": "mysql+nosuch://h/d",
    "nosuch://hushme:hush@h/d": "nosuch://h/d",
    "hushme:hush@h/d": "***",
    "hush": "***",
    "password=hush://x": "***",
    "postgresql:/hushme:hush@h/d": "***",
    "://hush": "***",
    "": "***",
}
FILES = {
    "sqlite:////no/such/s.db?key=hush": "sqlite:////no/such/s.db",
    "sqlite:////no/such/s.db?mode=ro&uri=true&hush=hush": "sqlite:////no/such/s.db",
    "sqlite:////no/s@ch/s.db#hush": "sqlite:////no/s@ch/s.db",
    "sqlite://hushme:hush@/s.db": "sqlite:///s.db",
    "journal:///no/such/s.log?key=hush": "journal:///no/such/s.log",
    "journal://s.log": "journal://s.log",
}


@pytest.mark.parametrize("url", [*SERVERS, *FILES])
def test_what_is_shown(url):
    assert shown_url(url) == {**SERVERS, **FILES}[url]


@pytest.mark.parametrize("url", [*SERVERS, *list(FILES)[:4]])
def test_what_is_raised(url, monkeypatch, caplog, capfd):
    """Message, causes and log: wherever it fails, and whatever the driver says."""
    pytest.importorskip("psycopg", reason='no PostgreSQL driver: pip install "longnn[postgres]"')
    monkeypatch.setattr(storages, "OPENING", 0)
    caplog.set_level(logging.DEBUG)
    with pytest.raises((ValueError, ConnectionError), match="Expected") as caught:
        open_storage(url)
    shown = "".join(traceback.format_exception(caught.value, chain=True))
    shown = "\n".join(line for line in shown.splitlines() if "Error" in line)
    assert SECRET not in shown + str(caught.value) + caplog.text + "".join(capfd.readouterr())


def test_words_of_a_driver_are_not_repeated():
    said = 'connection to "h" failed: FATAL: password authentication failed for user "hushme"'
    assert reason(RuntimeError(said)) == "password authentication failed"
    assert reason(RuntimeError('invalid port number: "hush"')) == "RuntimeError"


def test_the_folder_of_a_search_holds_no_secret(dataset, tmp_path):
    """A file whose URL has a query is searched; its folder names the file alone."""
    url = f"sqlite:///{tmp_path}/s.db?timeout=61&cached_statements=4242"
    result = search(dataset, tmp_path / "folder", SPACE, trials=1, batch=1, repeats=1, storage=url)
    assert result.record.storage == f"sqlite:///{tmp_path}/s.db"
    for path in (tmp_path / "folder").rglob("*"):
        assert path.is_dir() or b"cached_statements" not in path.read_bytes(), path


def test_the_command_line_shows_no_secret(tmp_path, monkeypatch):
    monkeypatch.setattr(storages, "OPENING", 0)
    for url in ("postgresql://127.0.0.1:9/x?password=hush", "postgresql://hush:hush", "hush"):
        result = longnn("tune", *TINY, "--storage", url, "--output", tmp_path / "t")
        assert result.exit_code == 1
        assert result.stderr.splitlines()[-1].startswith("error: Expected")
        assert SECRET not in result.output
    assert not [path for path in (tmp_path / "t").rglob("*") if path.is_file()]

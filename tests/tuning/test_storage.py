"""Where searches are stored: files and a real server, and several workers."""

import sqlite3
from collections import Counter

import pytest

from longnn.tuning import open_storage
from longnn.tuning._storage import close_storage
from tests.tuning.examples import FINE, KILLED, graph, search


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("search.db", ValueError, r"storage URL like sqlite:///search.db.*got \*\*\*"),
        ("nosuch://host/db", ValueError, "database that SQLAlchemy knows"),
        ("journal://", ValueError, "journal:///FILE"),
        ("sqlite:////no/such/folder/s.db", ConnectionError, "unable to open database file"),
        ("mysql+oursql9://me:secret@h/d", ValueError, r"got mysql\+oursql9://h/d"),
    ],
)
def test_errors(url, error, message, monkeypatch):
    monkeypatch.setattr("longnn.tuning._storage.ATTEMPTS", 1)
    with pytest.raises(error, match=message):
        open_storage(url)


def test_a_server_that_does_not_answer(monkeypatch):
    pytest.importorskip("psycopg", reason='no PostgreSQL driver: pip install "longnn[postgres]"')
    monkeypatch.setattr("longnn.tuning._storage.ATTEMPTS", 1)
    with pytest.raises(ConnectionError, match=r"storage postgresql://127.0.0.1:9/x \(conn"):
        open_storage("postgresql://me:secret@127.0.0.1:9/x")


def test_a_missing_driver_names_the_extra(monkeypatch):
    def missing(url):
        raise ImportError("no driver")

    monkeypatch.setattr("longnn.tuning._storage._open_database", missing)
    with pytest.raises(ValueError, match=r'pip install "longnn\[postgres\]"'):
        open_storage("postgresql://me:secret@h/x")


def test_sqlite_transactions_take_the_lock_when_they_begin(tmp_path):
    storage = open_storage(f"sqlite:///{tmp_path}/s.db")
    try:
        with storage.engine.connect() as connection:
            connection.exec_driver_sql("SELECT 1")
            other = sqlite3.connect(tmp_path / "s.db", timeout=0)
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")
            other.close()
    finally:
        close_storage(storage)


def check_two_workers(url, start_worker, folder):
    """Both work, and together they finish what was asked, no more."""
    processes = [start_worker(url, 10, pause=0.05) for _ in range(2)]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert errors == ""
    result = search(graph(), folder, FINE, **KILLED | {"trials": 10}, storage=url)
    states = Counter(t.state for t in result.trials)
    assert states["complete"] + states["pruned"] == 10
    workers = Counter(t.worker for t in result.trials if t.state != "fail")
    assert len(workers) == 2
    drawn = {str(t.params) for t in result.trials if t.state != "fail"}
    assert len(drawn) == 10
    numbers = [t.number for t in result.trials]
    assert numbers == list(range(len(numbers)))


def test_two_workers_on_sqlite(start_worker, tmp_path):
    check_two_workers(f"sqlite:///{tmp_path}/search.db", start_worker, tmp_path)


@pytest.mark.slow
def test_two_workers_on_a_journal(start_worker, tmp_path):
    check_two_workers(f"journal://{tmp_path}/search.log", start_worker, tmp_path)


@pytest.mark.slow
def test_two_workers_on_postgresql(postgresql, start_worker, tmp_path):
    check_two_workers(postgresql, start_worker, tmp_path)
    text = (tmp_path / "tuning.json").read_text()
    assert f'"{postgresql.replace("longnn@", "")}"' in text

"""Where searches are stored: files and a real server, several workers, and kill -9."""

import signal
import sqlite3
import time
from collections import Counter

import pytest

from longnn.tuning import open_storage
from longnn.tuning._ledger import FINISHED
from longnn.tuning._storage import close_storage, shown_url
from tests.tuning.examples import FINE, graph, search


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("search.db", ValueError, r"storage URL like sqlite:///search.db.*got 'search.db'"),
        ("nosuch://host/db", ValueError, "database that SQLAlchemy knows"),
        ("journal://", ValueError, "journal:///FILE"),
        ("sqlite:////no/such/folder/s.db", ConnectionError, "unable to open database file"),
        ("mysql+oursql9://me:secret@h/d", ValueError, r"me:\*\*\*@h"),
    ],
)
def test_errors(url, error, message, monkeypatch):
    monkeypatch.setattr("longnn.tuning._storage.ATTEMPTS", 1)
    with pytest.raises(error, match=message):
        open_storage(url)


def test_a_server_that_does_not_answer(monkeypatch):
    pytest.importorskip("psycopg", reason='no PostgreSQL driver: pip install "longnn[postgres]"')
    monkeypatch.setattr("longnn.tuning._storage.ATTEMPTS", 1)
    with pytest.raises(ConnectionError, match=r"me:\*\*\*@127.0.0.1:9/x") as caught:
        open_storage("postgresql://me:secret@127.0.0.1:9/x")
    assert "secret" not in str(caught.value)


def test_a_missing_driver_names_the_extra(monkeypatch):
    def missing(url):
        raise ImportError("no driver")

    monkeypatch.setattr("longnn.tuning._storage._open_database", missing)
    with pytest.raises(ValueError, match=r'pip install "longnn\[postgres\]"'):
        open_storage("postgresql://me:secret@h/x")


def test_no_password_is_shown():
    assert shown_url("postgresql://me:secret@host/x") == "postgresql://me:***@host/x"
    assert shown_url("sqlite:////tmp/s.db") == "sqlite:////tmp/s.db"


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


def count_finished(url):
    """How many trials of the search are finished now, read from outside."""
    storage = open_storage(url)
    try:
        (study,) = storage.get_all_studies()
        trials = storage.get_all_trials(study._study_id)
    except ValueError:
        return 0
    finally:
        close_storage(storage)
    return sum(trial.state in FINISHED for trial in trials)


def wait_for(condition, process, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end
        time.sleep(0.1)


def check_killed_and_resumed(url, start_worker, folder):
    """Killed in the middle of a batch; resumed here: an exact count, nothing lost or rerun."""
    process = start_worker(url, 8, pause=0.1)
    wait_for(lambda: count_finished(url) >= 4, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    finished = count_finished(url)
    assert 4 <= finished < 8
    ran = []
    result = search(graph(), folder, FINE, trials=8, batch=2, storage=url, on_progress=ran.append)
    assert ran[0].done == finished
    states = Counter(t.state for t in result.trials)
    assert states["complete"] + states["pruned"] == 8
    shares = Counter(t.worker for t in result.trials if t.state != "fail")
    assert sorted(shares.values()) == sorted([finished, 8 - finished])
    lost = [t for t in result.trials if t.state == "fail"]
    retried = {t.retry_of: t.params for t in result.trials if t.retry_of is not None}
    assert retried == {t.number: t.params for t in lost}


def check_two_workers(url, start_worker, folder):
    """Both work, and together they finish what was asked, no more."""
    processes = [start_worker(url, 10, pause=0.05) for _ in range(2)]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert errors == ""
    result = search(graph(), folder, FINE, trials=10, batch=2, storage=url)
    states = Counter(t.state for t in result.trials)
    assert states["complete"] + states["pruned"] == 10
    workers = Counter(t.worker for t in result.trials if t.state != "fail")
    assert len(workers) == 2
    drawn = {str(t.params) for t in result.trials if t.state != "fail"}
    assert len(drawn) == 10
    numbers = [t.number for t in result.trials]
    assert numbers == list(range(len(numbers)))


def test_killed_and_resumed_on_sqlite(start_worker, tmp_path):
    check_killed_and_resumed(f"sqlite:///{tmp_path}/search.db", start_worker, tmp_path)


def test_two_workers_on_sqlite(start_worker, tmp_path):
    check_two_workers(f"sqlite:///{tmp_path}/search.db", start_worker, tmp_path)


@pytest.mark.slow
def test_killed_again_and_again(start_worker, tmp_path):
    """At whatever moment it dies, the next one finishes the same search."""
    url = f"sqlite:///{tmp_path}/search.db"
    for delay in (0.0, 0.3, 0.7, 1.1):
        process = start_worker(url, 12, pause=0.02)
        wait_for((tmp_path / "search.db").exists, process)
        before = count_finished(url)
        wait_for(lambda before=before: count_finished(url) > before, process)
        time.sleep(delay)
        process.kill()
        process.communicate()
        assert count_finished(url) > before
        if count_finished(url) == 12:
            break
    result = search(graph(), tmp_path, FINE, trials=12, batch=2, storage=url)
    states = Counter(t.state for t in result.trials)
    assert states["complete"] + states["pruned"] == 12
    assert states["running"] == 0


@pytest.mark.slow
def test_two_workers_on_a_journal(start_worker, tmp_path):
    check_two_workers(f"journal://{tmp_path}/search.log", start_worker, tmp_path)


@pytest.mark.slow
def test_killed_and_resumed_on_a_journal(start_worker, tmp_path):
    check_killed_and_resumed(f"journal://{tmp_path}/search.log", start_worker, tmp_path)


def test_two_workers_on_postgresql(postgresql, start_worker, tmp_path):
    check_two_workers(postgresql, start_worker, tmp_path)
    text = (tmp_path / "tuning.json").read_text()
    assert "postgresql://longnn@127.0.0.1" in text

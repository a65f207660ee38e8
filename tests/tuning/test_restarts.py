"""A database server that is restarted, killed or away in the middle of a search."""

import shlex
import threading
import time

import pytest
from sqlalchemy import exc

from longnn.tuning import _guard as guards
from longnn.tuning import open_storage
from tests.commands import TINY, fail
from tests.tuning.examples import FINE, KILLED, drawn, search


def terminate(server):
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND datname LIKE 'test_%'"
    )


def restart(server, mode):
    server.stop(mode)
    server.start()


def leave_for_six_seconds(server):
    server.stop("fast")
    threading.Timer(6, server.start).start()


def kill(server):
    server.kill()
    server.start()


FAULTS = [
    pytest.param(terminate, id="connection closed"),
    pytest.param(lambda server: restart(server, "immediate"), id="immediate restart"),
    pytest.param(lambda server: restart(server, "fast"), id="fast", marks=pytest.mark.slow),
    pytest.param(leave_for_six_seconds, id="six seconds", marks=pytest.mark.slow),
    pytest.param(kill, id="killed", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_search_survives_its_server(fault, server, postgresql, dataset):
    """It goes on by itself, and finds what it would have found."""
    happened = []

    def harm(progress):
        if progress.done >= 4 and progress.epoch == 5 and not happened:
            happened.append(progress)
            fault(server)

    options = {**KILLED, "storage": postgresql, "on_progress": harm}
    result = search(dataset, None, FINE, **options)
    assert happened
    assert drawn(result) == drawn(search(dataset, None, FINE, **KILLED))


@pytest.mark.slow
def test_a_search_survives_at_any_moment(server, postgresql, dataset, capfd):
    """Connections are closed again and again, whatever the search is doing; it says nothing."""
    begun, stop, options = threading.Event(), threading.Event(), {**KILLED, "trials": 24}

    def harm():
        while not stop.wait(0.15):
            if begun.is_set():
                terminate(server)

    thread = threading.Thread(target=harm)
    thread.start()
    try:
        seen = {"storage": postgresql, "on_progress": lambda progress: begun.set()}
        result = search(dataset, None, FINE, **options, **seen)
    finally:
        stop.set()
        thread.join()
    finished = [t for t in result.trials if t.state in ("complete", "pruned")]
    assert len(finished) == 24
    assert capfd.readouterr().err == ""
    assert drawn(result) == drawn(search(dataset, None, FINE, **options))


def test_a_server_that_stays_away(server, postgresql, dataset, monkeypatch):
    """One line says what to do; then the search is continued to the same end."""
    monkeypatch.setattr(guards, "PATIENCE", 0.5)

    def leave(progress):
        if progress.done >= 4 and progress.epoch == 5:
            server.stop()

    message = (
        r"^Expected to reach the storage postgresql://127.0.0.1:\d+/\w+ within 0.5 s "
        r"\(connection refused\); finished trials are kept, run the same search again to continue$"
    )
    began = time.monotonic()
    try:
        with pytest.raises(ConnectionError, match=message) as caught:
            search(dataset, None, FINE, **KILLED, storage=postgresql, on_progress=leave)
    finally:
        server.start()
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert time.monotonic() - began < 60, "it does not wait again to say good-bye"
    result = search(dataset, None, FINE, **KILLED, storage=postgresql)
    assert drawn(result) == drawn(search(dataset, None, FINE, **KILLED))


@pytest.mark.parametrize(
    "error",
    [
        exc.OperationalError("SELECT", {}, Exception("server closed the connection")),
        exc.PendingRollbackError("Can't reconnect until invalid transaction is rolled back"),
    ],
)
def test_an_operation_is_tried_again(tmp_path, monkeypatch, error):
    storage = open_storage(f"journal://{tmp_path}/s.log")
    asked = []

    def flaky(name):
        asked.append(name)
        if len(asked) < 4:
            raise error
        return 7

    monkeypatch.setattr(storage.inner, "get_study_id_from_name", flaky)
    monkeypatch.setattr(guards, "FIRST", 0.001)
    assert storage.get_study_id_from_name("x") == 7
    assert asked == ["x"] * 4


def test_waiting_can_be_interrupted(tmp_path, monkeypatch):
    """After Ctrl-C nothing waits: what is left to write is tried once."""
    storage = open_storage(f"journal://{tmp_path}/s.log")
    asked = []

    def away(name):
        asked.append(name)
        raise exc.OperationalError("SELECT", {}, Exception("Connection refused"))

    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(storage.inner, "get_study_id_from_name", away)
    monkeypatch.setattr(guards.time, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        storage.get_study_id_from_name("x")
    with pytest.raises(ConnectionError, match="connection refused"):
        storage.get_study_id_from_name("x")
    assert len(asked) == 2


def test_the_command_that_goes_on_is_printed(tmp_path, monkeypatch):
    """With the storage by its place only: what is typed again is not shown."""

    def away(*arguments, **options):
        raise ConnectionError("Expected to reach the storage")

    url = "postgresql://me:hush@h/x"
    arguments = ["tune", *TINY, "--output", str(tmp_path / "my folder"), f"--storage={url}"]
    monkeypatch.setattr("sys.argv", ["longnn", *arguments])
    monkeypatch.setattr("longnn.tuning.tune", away)
    shown = [*arguments[:-1], "--storage=STORAGE"]
    assert fail(*arguments) == (
        f"Expected to reach the storage; continue with: longnn {shlex.join(shown)} "
        "(STORAGE is the URL of postgresql://h/x)"
    )

"""Workers that share a search, are killed, and lose their server: every trial is finished once."""

import dataclasses
import os
import random
import shlex
import threading
import time
from collections import Counter

import pytest
from optuna.trial import TrialState
from sqlalchemy import exc

from longnn.tuning import _ledger as ledgers
from longnn.tuning import _storage as storages
from longnn.tuning import load_space
from longnn.tuning._ledger import FINISHED, Ledger, Outcome, Worker
from longnn.tuning._storage import close_storage, open_storage, quiet_optuna
from tests.commands import TINY, fail
from tests.tuning.examples import FINE, KILLED, SPACE, finished, graph, search

KINDS = ("sqlite", "journal", "postgresql")
FILES = pytest.mark.parametrize("storage_url", KINDS[:2], indirect=True)


class InterruptError(Exception):
    pass


def test_an_interrupted_search_goes_on(dataset, tmp_path):
    """After halving has stopped some of the batch."""

    def stop(progress):
        if progress.done >= 4 and progress.epoch == 4:
            raise InterruptError

    options = {**KILLED, "storage": f"sqlite:///{tmp_path}/search.db"}
    with pytest.raises(InterruptError):
        search(dataset, None, FINE, **options, on_progress=stop)
    seen = []
    result = search(dataset, None, FINE, **options, on_progress=seen.append)
    assert 4 <= seen[0].done < 8
    lost = [t for t in result.record.trials if t.state == "fail"]
    assert len(lost) == 8 - seen[0].done
    assert len(finished(result)) == 12
    after, whole = finished(result), finished(search(dataset, None, FINE, **KILLED))
    assert [after[p].scores for p in range(4)] == [whole[p].scores for p in range(4)]
    assert [after[p].params for p in range(8)] == [whole[p].params for p in range(8)]


def read_from_outside(url):
    """The finished trials of a search as they are stored now, by their places."""
    storage = open_storage(url)
    try:
        (study,) = storage.get_all_studies()
        trials = storage.get_all_trials(study._study_id)
    finally:
        close_storage(storage)
    done = [trial for trial in trials if trial.state in FINISHED]
    return {t.user_attrs["place"]: (t.user_attrs["values"], t.values[0]) for t in done}


#: Trials and kills of a search on each kind of storage; a file once is quick.
KILLS = [
    ("sqlite", 12, 1),
    ("journal", 12, 1),
    *[pytest.param("postgresql", 12, 1, marks=pytest.mark.slow)],
    *[pytest.param(kind, 40, 8, marks=pytest.mark.slow) for kind in KINDS],
]


@pytest.mark.parametrize(("storage_url", "trials", "kills"), KILLS, indirect=["storage_url"])
def test_killed_and_resumed(storage_url, trials, kills, start_worker, dataset):
    """kill -9 at random moments: what was finished stays as it was, what was lost is trained with
    its values.
    """
    moments = random.Random(trials)
    for killed in range(kills):
        process = start_worker(storage_url, trials, pause=0.05)
        assert process.stdout.readline() == "at work\n", process.communicate()[1]
        time.sleep(moments.uniform(0.2, 1.8))
        if process.poll() is not None:
            assert killed >= 5
            break
        process.kill()
        process.communicate()
    before, ran = read_from_outside(storage_url), []
    options = {**KILLED, "trials": trials, "storage": storage_url, "on_progress": ran.append}
    result = search(dataset, None, FINE, **options)
    assert ran[0].done == len(before)
    assert len(finished(result)) == trials
    if kills == 1:
        assert len(before) < trials
        assert Counter(t.state for t in result.record.trials)["fail"] <= KILLED["batch"]
    assert not result.record.with_state("running")
    after = {place: (trial.params, trial.value) for place, trial in finished(result).items()}
    assert {place: after[place] for place in before} == before


@pytest.mark.slow
@pytest.mark.parametrize("storage_url", KINDS, indirect=True)
@pytest.mark.parametrize("killed", [False, True])
def test_two_workers_share_a_search(storage_url, killed, start_worker):
    """Together they finish what was asked, no more; if one is killed, the other trains its trials
    and ends without a word.
    """
    trials = 16 if killed else 10
    processes = [start_worker(storage_url, trials, pause=0.05) for _ in range(2)]
    for process in processes:
        assert process.stdout.readline() == "at work\n", process.communicate()[1]
    if killed:
        processes.pop(0).kill()
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, "")
    result = search(graph(), None, FINE, **KILLED | {"trials": trials}, storage=storage_url)
    assert len(finished(result)) == trials
    assert killed or len({trial.worker for trial in finished(result).values()}) == 2
    assert [t.number for t in result.record.trials] == list(range(len(result.record.trials)))


def terminate(server):
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND datname LIKE 'test_%'"
    )


def restart(server):
    server.stop("immediate")
    server.start()


def leave_for_six_seconds(server):
    server.stop("fast")
    threading.Timer(6, server.start).start()


def kill_server(server):
    server.kill()
    server.start()


@pytest.mark.slow
@pytest.mark.parametrize("fault", [terminate, restart, leave_for_six_seconds, kill_server])
def test_a_search_survives_its_server(fault, server, postgresql, dataset):
    """It goes on alone, and ends with what it would have without the fault."""
    happened = []

    def harm(progress):
        if progress.done >= 4 and progress.epoch == 5 and not happened:
            happened.append(progress)
            fault(server)

    result = search(dataset, None, FINE, **KILLED, storage=postgresql, on_progress=harm)
    assert happened
    whole = finished(search(dataset, None, FINE, **KILLED))
    scores = {place: trial.scores for place, trial in whole.items()}
    assert {place: trial.scores for place, trial in finished(result).items()} == scores


@pytest.mark.slow
def test_a_search_survives_at_any_moment(server, postgresql, dataset, capfd):
    """Connections are closed again and again, whatever the search is doing; it says nothing."""
    begun, stop = threading.Event(), threading.Event()

    def harm():
        while not stop.wait(0.15):
            if begun.is_set():
                terminate(server)

    thread = threading.Thread(target=harm)
    thread.start()
    try:
        options = {**KILLED, "trials": 24, "storage": postgresql}
        result = search(dataset, None, FINE, **options, on_progress=lambda _: begun.set())
    finally:
        stop.set()
        thread.join()
    assert len(finished(result)) == 24
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_a_server_that_stays_away(server, postgresql, dataset, monkeypatch):
    """One line says what to do; then the search is continued."""

    def leave(progress):
        if progress.done >= 4 and progress.epoch == 5:
            server.stop()

    message = (
        r"^Expected to reach the storage postgresql://127.0.0.1:\d+/\w+ within 0.5 s "
        r"\(connection refused\); finished trials are kept, run the same search again to continue$"
    )
    began = time.monotonic()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(storages, "PATIENCE", 0.5)
            with pytest.raises(ConnectionError, match=message) as caught:
                search(dataset, None, FINE, **KILLED, storage=postgresql, on_progress=leave)
    finally:
        server.start()
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert time.monotonic() - began < 60, "it does not wait again to say good-bye"
    assert len(finished(search(dataset, None, FINE, **KILLED, storage=postgresql))) == 12


def book(storage, trials=5, **options):
    """The ledger of a worker at work."""
    space = load_space(SPACE, "lon")
    ledger = Ledger(storage, "search", {"model": "lon"}, [space], trials=trials, **options)
    return ledger.__enter__()


def kill(ledger):
    """What others see of a worker whose process is gone."""
    ledgers.ACTIVE.discard(ledger.worker.id)


def finish(ledger, claims, value=0.5):
    for claim in claims:
        ledger.finish(claim, TrialState.COMPLETE, value, Outcome(losses=(1.0,)))


@pytest.fixture
def storage(storage_url):
    with quiet_optuna():
        opened = open_storage(storage_url)
        yield opened
        close_storage(opened)


@FILES
def test_workers_at_once_share_the_places(storage, monkeypatch):
    """Both look before either claims: of two trials for one place the first counts."""
    start = {**SPACE, "lr_transform": 1e-3, "dropout": 0.2, "a": 0.0}
    one, two = book(storage, 4, starts=[start]), book(storage, 4, starts=[start])
    claimed, fill = [], Ledger._fill

    def late(self, *arguments):
        filled = fill(self, *arguments)
        monkeypatch.setattr(Ledger, "_fill", fill)
        claimed.extend(two.claim(3))
        return filled

    monkeypatch.setattr(Ledger, "_fill", late)
    mine = one.claim(3)
    assert [c.place for c in claimed] == [0, 1, 2]
    assert [c.start for c in claimed] == [True, False, False]
    assert [c.place for c in mine] == [3]
    finish(one, mine)
    finish(two, claimed)
    assert len(one.get_trials(*FINISHED)) == 4
    assert one.claim(3) == two.claim(3) == []


@FILES
def test_a_trial_that_was_written_twice_is_given_up(storage, monkeypatch):
    """The connection broke after a trial was stored and before the answer came."""
    ledger, fill = book(storage, 3), Ledger._fill
    monkeypatch.setattr(Ledger, "_fill", lambda *given: [t for t in fill(*given) for _ in "ab"])
    finish(ledger, ledger.claim(3))
    states = Counter(trial.state.name for trial in ledger.get_trials())
    assert states == {"COMPLETE": 3, "FAIL": 3}


@FILES
def test_what_a_dead_worker_held_is_taken_up(storage):
    dead, alive = book(storage), book(storage)
    done, *lost = dead.claim(3)
    finish(dead, [done])
    assert [c.place for c in alive.claim(10)] == [3, 4], "a living worker keeps its trials"
    kill(dead)
    again = alive.claim(10)
    assert [(c.place, c.values) for c in again[:2]] == [(c.place, c.values) for c in lost]
    dead.report(lost[0], 40, 0.5)  # it was not dead after all: what it has now is dropped
    assert lost[0].done
    finish(dead, lost, 0.9)
    finish(alive, again)
    assert [t.values[0] for t in alive.get_trials(*FINISHED)] == [0.5] * 5


@FILES
def test_a_smaller_budget_counts_what_is_finished(storage):
    """Of places in any order; a larger one goes on."""
    ledger = book(storage, 6)
    finish(ledger, ledger.claim(6)[3:])
    ledger.__exit__()
    for trials, left in ((3, []), (4, [0]), (8, [0, 1, 2, 6, 7])):
        with book(storage, trials) as smaller:
            assert [claim.place for claim in smaller.claim(9)] == left


@FILES
def test_scores_that_are_no_numbers_are_not_stored(storage):
    ledger = book(storage)
    (claim,) = ledger.claim(1)
    ledger.report(claim, 40, 0.5)
    ledger.report(claim, 50, float("-inf"))
    ledger.finish(claim, TrialState.PRUNED, 0.5, Outcome())
    (trial,) = ledger.get_trials(TrialState.PRUNED)
    assert trial.intermediate_values == {40: 0.5}
    assert trial.values == [0.5]


def test_life_and_death():
    now, here = time.time(), Worker.here()
    assert not here.is_alive(now), "it has ended, or not begun"
    ledgers.ACTIVE.add(here.id)
    assert here.is_alive(0)
    parent = dataclasses.replace(here, pid=os.getppid())
    assert not dataclasses.replace(parent, started="0").is_alive(now), "another of that number"
    assert dataclasses.replace(parent, started=ledgers._start_time(parent.pid)).is_alive(0)
    assert not dataclasses.replace(here, pid=2**22 + 1).is_alive(now)
    elsewhere = dataclasses.replace(here, machine="elsewhere")
    assert elsewhere.is_alive(now)
    assert not elsewhere.is_alive(now - ledgers.GRACE - 1)


def test_an_operation_is_tried_again(monkeypatch):
    monkeypatch.setattr(storages, "FIRST", 0.001)
    errors = [
        exc.OperationalError("SELECT", {}, Exception("server closed the connection")),
        exc.PendingRollbackError("Can't reconnect until invalid transaction is rolled back"),
    ]
    asked = []

    def flaky(number):
        asked.append(number)
        if len(asked) < 5:
            raise errors[len(asked) % 2]
        return number

    assert storages.Attempt("postgresql://h/x")(flaky, 7) == 7
    assert asked == [7] * 5


def test_waiting_can_be_interrupted(monkeypatch):
    """After Ctrl-C nothing waits: what is left to write is tried once."""
    asked = []

    def away():
        asked.append(None)
        raise exc.OperationalError("SELECT", {}, Exception("Connection refused"))

    def interrupt(seconds):
        raise KeyboardInterrupt

    attempt = storages.Attempt("postgresql://h/x")
    monkeypatch.setattr(storages.time, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        attempt(away)
    with pytest.raises(ConnectionError, match="connection refused"):
        attempt(away)
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

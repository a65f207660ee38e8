"""The shared ledger of trials: an exact budget, and no trial lost with a dead worker."""

import dataclasses
import os
import time

import optuna
import pytest
from optuna.trial import TrialState

from longnn.tuning import Outcome, load_space, open_storage
from longnn.tuning import _ledger as ledgers
from longnn.tuning import _workers as workers
from longnn.tuning._ledger import Ledger
from longnn.tuning._storage import close_storage, quiet_optuna
from longnn.tuning._workers import Worker, is_alive
from tests.tuning.examples import SPACE

AGREEMENT = {"data": "abc", "model": "lon"}


@pytest.fixture(params=["memory", "sqlite", "journal"])
def storage(request, tmp_path):
    urls = {"sqlite": f"sqlite:///{tmp_path}/s.db", "journal": f"journal://{tmp_path}/s.log"}
    with quiet_optuna():
        if request.param == "memory":
            made = optuna.storages.InMemoryStorage()
        else:
            made = open_storage(urls[request.param])
        yield made
        close_storage(made)


def book(storage, trials=5, **options):
    return Ledger(storage, "search", AGREEMENT, load_space(SPACE, "lon"), trials=trials, **options)


def kill(storage, ledger):
    """Make a worker look like a process that is gone."""
    sign = {**ledger.worker.sign(), "started": "another"}
    storage.set_study_user_attr(ledger.search_id, f"worker:{ledger.worker.id}", sign)


def finish(ledger, claims, value=0.5):
    for claim in claims:
        ledger.finish(claim, TrialState.COMPLETE, value, Outcome(losses=(1.0,)))


def test_trials_are_claimed_up_to_the_budget(storage):
    ledger = book(storage)
    first = ledger.claim(3)
    assert [c.number for c in first] == [0, 1, 2]
    assert len(ledger.claim(3)) == 2
    assert ledger.claim(3) == []
    finish(ledger, first)
    assert ledger.claim(3) == []
    assert ledger.finished == 3
    assert all(set(c.values) == set(SPACE) for c in first)


def test_workers_at_once_do_not_exceed_the_budget(storage, monkeypatch):
    """Both look before either claims: the later claims beyond the budget are given back."""
    one, two = book(storage, 4), book(storage, 4)
    claimed = []
    sample = Ledger._sample

    def late(self, count):
        drawn = sample(self, count)
        if self is one:
            claimed.extend(two.claim(3))
        return drawn

    monkeypatch.setattr(Ledger, "_sample", late)
    mine = one.claim(3)
    assert len(claimed) == 3
    assert len(mine) == 1
    finish(one, mine)
    finish(two, claimed)
    assert one.finished == two.finished == 4
    reasons = [t.user_attrs["reason"] for t in one.get_trials(TrialState.FAIL)]
    assert reasons == ["beyond the budget"] * 2


def test_workers_on_one_search_draw_differently(storage):
    one, two = book(storage), book(storage)
    assert one.salt == 0
    assert two.salt != 0
    assert [v for *_, v in one._sample(4)] != [v for *_, v in two._sample(4)]
    one.beat(done=True)
    two.beat(done=True)
    assert book(storage).salt == 0


def test_what_a_dead_worker_held_is_taken_up(storage):
    dead = book(storage)
    finished, lost = dead.claim(1), dead.claim(2)
    finish(dead, finished)
    kill(storage, dead)
    alive = book(storage)
    assert alive.recover() == 2
    assert alive.recover() == 0
    again = alive.claim(10)
    assert len(again) == 4
    assert [c.values for c in again[:2]] == [c.values for c in lost]
    finish(alive, again)
    assert alive.finished == 5
    retried = [t.user_attrs.get("retry_of") for t in alive.get_trials(TrialState.COMPLETE)]
    assert retried[1:3] == [c.number for c in lost]


def test_a_worker_thought_dead_does_not_spoil_the_book(storage):
    """It comes back with results that another has taken over: they are dropped."""
    slow = book(storage)
    claims = slow.claim(2)
    kill(storage, slow)
    other = book(storage)
    other.recover()
    slow.report(claims[0], 40, 0.5)
    assert claims[0].done
    finish(slow, claims)
    assert other.finished == 0
    finish(other, other.claim(10))
    assert other.finished == 5


def test_a_living_worker_keeps_its_trials(storage):
    one, two = book(storage), book(storage)
    one.claim(2)
    assert two.recover() == 0
    assert len(two.claim(10)) == 3


def test_a_trial_without_a_worker_is_taken_up_after_a_while(storage, monkeypatch):
    ledger = book(storage)
    (claim,) = ledger.claim(1)
    storage.set_trial_user_attr(claim.id, "worker", None)
    assert ledger.recover() == 0
    monkeypatch.setattr(ledgers, "NAMELESS", -1.0)
    assert ledger.recover() == 1


def test_released_trials_are_taken_by_the_next(storage):
    one = book(storage)
    claims = one.claim(3)
    finish(one, claims[:1])
    one.release(claims)
    two = book(storage)
    assert [c.values for c in two.claim(2)] == [c.values for c in claims[1:]]


def test_reports_are_written_once(storage):
    ledger = book(storage)
    (claim,) = ledger.claim(1)
    ledger.report(claim, 40, 0.5)
    ledger.report(claim, 40, 0.6)
    ledger.report(claim, 50, float("-inf"))
    ledger.finish(claim, TrialState.PRUNED, 0.5, Outcome())
    (trial,) = ledger.get_trials(TrialState.PRUNED)
    assert trial.intermediate_values == {40: 0.5}
    assert trial.values == [0.5]


def test_all_workers_must_agree(storage):
    book(storage)
    other = {**AGREEMENT, "model": "x" * 99}
    with pytest.raises(ValueError, match="Expected the model that the search 'search' was started"):
        Ledger(storage, "search", other, load_space(SPACE, "lon"), trials=1)


def test_life_and_death(monkeypatch):
    here = Worker.here()
    assert is_alive(here.sign())
    assert not is_alive(here.sign(done=True))
    assert not is_alive(None)
    assert not is_alive({**here.sign(), "started": "0"}), "another process with that number"
    assert not is_alive({**here.sign(), "pid": 2**22 + 1})
    elsewhere = dataclasses.replace(here, machine="elsewhere", pid=os.getpid())
    assert is_alive(elsewhere.sign())
    assert not is_alive({**elsewhere.sign(), "beat": time.time() - workers.GRACE - 1})

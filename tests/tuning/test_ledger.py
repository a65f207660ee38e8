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
    sample = ledgers.sample

    def late(*arguments, **options):
        drawn = sample(*arguments, **options)
        monkeypatch.setattr(ledgers, "sample", sample)
        claimed.extend(two.claim(3))
        return drawn

    monkeypatch.setattr(ledgers, "sample", late)
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
    assert [c.values for c in one.claim(2)] != [c.values for c in two.claim(2)]
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
    assert [c.values for c in again] == [c.values for c in lost], "their batch, and nothing else"
    finish(alive, again)
    finish(alive, alive.claim(10))
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


def test_an_interrupted_batch_is_taken_up_as_a_whole(storage):
    """With its finished trials beside it, which are not written again."""
    one = book(storage)
    claims = one.claim(3)
    finish(one, claims[1:2])
    one.release(claims)
    two = book(storage)
    again = two.claim(3)
    assert [c.values for c in again] == [c.values for c in claims], "in their order"
    assert [c.repeated for c in again] == [False, True, False]
    two.report(again[1], 40, 0.9)
    finish(two, again, 0.7)
    assert [t.values[0] for t in two.get_trials(TrialState.COMPLETE)] == [0.5, 0.7, 0.7]


def killed_after(count, storage, monkeypatch):
    """A worker that dies after it has written so many trials of a batch."""
    dead, create, made = book(storage), Ledger._create, []

    def die(self, drawn):
        if len(made) == count:
            raise KeyboardInterrupt
        made.append(create(self, drawn))
        return made[-1]

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "_create", die)
        with pytest.raises(KeyboardInterrupt):
            dead.claim(4)
    kill(storage, dead)


@pytest.mark.parametrize("count", [1, 3])
def test_a_batch_that_was_half_drawn_is_filled_as_it_would_have_been(storage, monkeypatch, count):
    whole = book(optuna.storages.InMemoryStorage()).claim(4)
    killed_after(count, storage, monkeypatch)
    alive = book(storage)
    assert alive.recover() == count
    assert [c.values for c in alive.claim(4)] == [c.values for c in whole]


def test_a_trial_whose_queueing_was_cut_short_is_queued(storage, monkeypatch):
    """Killed after the lost trial was marked, before it was queued again."""
    dead = book(storage)
    claims = dead.claim(2)
    kill(storage, dead)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "_queue", lambda self, trial: None)
        second = book(storage)
        second.recover()
    kill(storage, second)
    third = book(storage)
    assert third.recover() == 2
    assert third.recover() == 0
    assert [c.values for c in third.claim(2)] == [c.values for c in claims]


def test_a_trial_that_was_queued_twice_is_trained_once(storage):
    one = book(storage)
    (claim,) = one.claim(1)
    trial = storage.get_trial(claim.id)
    one.release([claim])
    one._queue(trial)
    assert [c.values for c in one.claim(1)] == [claim.values]
    finish(one, one.claim(9))
    assert one.finished == 4
    (returned,) = [t for t in one.get_trials(TrialState.FAIL) if "reason" in t.user_attrs]
    assert returned.user_attrs["reason"] == "queued twice"


def test_a_trial_that_was_written_twice_is_returned(storage, monkeypatch):
    """The connection broke after a trial was stored and before the answer came."""
    ledger, create = book(storage, 3), Ledger._create
    monkeypatch.setattr(Ledger, "_create", lambda self, s: (create(self, s), create(self, s))[1])
    finish(ledger, ledger.claim(3))
    monkeypatch.undo()
    assert ledger.finished == 3
    assert ledger.get_trials(TrialState.RUNNING) == []
    assert len({str(t.params) for t in ledger.get_trials(*ledgers.FINISHED)}) == 3


def test_a_worker_that_dies_as_it_takes_a_trial_holds_up_nobody(storage, monkeypatch):
    one = book(storage)
    claims = one.claim(1)
    one.release(claims)
    dead = book(storage)
    name = type(storage).set_trial_user_attr

    def die(self, trial_id, key, value):
        if key == "worker":
            raise KeyboardInterrupt
        return name(self, trial_id, key, value)

    with monkeypatch.context() as patch:
        patch.setattr(type(storage), "set_trial_user_attr", die)
        with pytest.raises(KeyboardInterrupt):
            dead.claim(1)
    kill(storage, dead)
    assert book(storage).recover() == 1


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
    assert not is_alive(None)
    assert not is_alive({**here.sign(), "started": "0"}), "another process with that number"
    assert not is_alive({**here.sign(), "pid": 2**22 + 1})
    elsewhere = dataclasses.replace(here, machine="elsewhere", pid=os.getpid())
    assert is_alive(elsewhere.sign())
    assert not is_alive({**elsewhere.sign(), "beat": time.time() - workers.GRACE - 1})
    sign = here.sign()
    assert not is_alive(here.sign(done=True))
    assert not is_alive(sign), "it has ended, though the storage does not know"

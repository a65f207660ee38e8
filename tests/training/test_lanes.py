"""Groups that are trained side by side, each process the next one that nobody has begun."""

import os
import signal
import time

import pytest
import torch

from longnn.data import Source, csbm, make_split
from longnn.runs import load_run, resume, train
from longnn.training import Job, StopTraining, Watcher, complete
from longnn.training._lanes import can_fork, train_side_by_side

pytestmark = pytest.mark.skipif(not can_fork(), reason="processes are forked on Linux")

#: One each that has a filter, a stack of them, and none, and trees; a few epochs.
MEMBERS = {
    "filter": {"model": "lon", "degree": 3, "hidden_channels": 8},
    "deep": {"model": "lon-deep", "degree": 2, "blocks": 2, "hidden_channels": 8},
    "mlp": {"model": "mlp", "hidden_channels": 8},
    "trees": {"model": "trees", "columns": "alone"},
}
PORTFOLIO = {"members": MEMBERS, "epochs": 6, "device": "cpu", "baselines": False}


@pytest.fixture(autouse=True)
def threads():
    """Two, whatever the machine has."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


class Numbers:
    """A group whose results say which process trained it."""

    def __init__(self, place, work=lambda: None):
        self.places, self.results, self.work = [place], {}, work

    def train(self, until, watcher):
        self.work()
        watcher.check()
        self.results[self.places[0]] = (until, os.getpid())

    def stop(self, why):
        self.results[self.places[0]] = why


def trained(groups, watcher=None, here=()):
    train_side_by_side(here, groups, 7, watcher or Watcher(aside=True))
    return [group.results[group.places[0]] for group in (*here, *groups)]


def test_members_are_the_same_side_by_side(tmp_path, no_report):
    """On one thread or two: to the bit, in the file of weights and in that of predictions."""
    for name, count in (("alone", 1), ("aside", 2)):
        torch.set_num_threads(count)
        train(csbm(num_nodes=60, num_features=8), PORTFOLIO, tmp_path / name)
    left, right = (tmp_path / name for name in ("alone", "aside"))
    for name in ("weights.safetensors", "predictions.csv", "history.csv"):
        assert (left / name).read_bytes() == (right / name).read_bytes(), name


def test_every_group_is_trained_once_by_several_processes():
    groups = [Numbers(place, lambda: time.sleep(0.05)) for place in range(6)]
    told = trained(groups, here=[Numbers(6)])
    assert [until for until, _ in told] == [7] * 7
    assert len({process for _, process in told}) == 2
    assert told[0][1] == os.getpid(), "trees stay here"


def test_what_a_killed_process_leaves_undone_is_trained_here():
    parent = os.getpid()

    def die_elsewhere():
        time.sleep(0.05)
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    assert trained([Numbers(place, die_elsewhere) for place in range(4)]) == [(7, parent)] * 4


def test_an_error_elsewhere_is_raised_here():
    def fail():
        time.sleep(0.05)
        raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        trained([Numbers(place, fail) for place in range(2)])


def test_a_deadline_stops_all_of_them():
    groups = [Numbers(place, lambda: time.sleep(0.1)) for place in range(2)]
    with pytest.raises(StopTraining, match="time"):
        trained(groups, Watcher(deadline=time.perf_counter() + 0.05, aside=True))
    assert sum(group.results == {group.places[0]: "time"} for group in groups) == 1, "elsewhere"


def test_a_stopped_training_goes_on_to_the_same_end(tmp_path, no_report):
    """What each process has reached is in a checkpoint of its own."""
    data = Source.resolve("csbm", options={"num_nodes": 60, "num_features": 8}).load()

    def at_third(population):
        if population.epoch == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    longer = {**PORTFOLIO, "epochs": 300, "patience": 300}
    with pytest.raises(KeyboardInterrupt):
        train(data, longer, tmp_path / "a", on_epoch=at_third)
    assert list((tmp_path / "a").glob("checkpoint*"))
    resume(tmp_path / "a")
    train(data, longer, tmp_path / "b")
    left, right = (load_run(tmp_path / name).trained.states[0] for name in "ab")
    assert all(torch.equal(left[name], right[name]) for name in right)


@pytest.mark.parametrize("watcher", [Watcher(), Watcher(aside=True)])
def test_only_a_watcher_that_allows_it_has_others_train(watcher, monkeypatch):
    asked = []
    monkeypatch.setattr(os, "fork", lambda: asked.append("fork") or _refuse())
    data = csbm(num_nodes=40, num_features=8)
    job = Job(data, [complete(PORTFOLIO, data)], [make_split(data, None, 0)])
    if watcher.aside:
        with pytest.raises(BlockingIOError):
            job.run(watcher=watcher)
    else:
        job.run(watcher=watcher)
    assert bool(asked) == watcher.aside


def _refuse():
    raise BlockingIOError("no more processes")

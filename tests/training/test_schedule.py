"""Who is trained how long, by a clock of our own: no time is given back, none is overdrawn."""

import types

import pytest

from longnn.training import StopTraining, Watcher
from longnn.training import _group as schedule_module
from longnn.training._group import KEPT, Schedule

PATIENCE, EPOCHS = 100, 2000


class Clock:
    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(schedule_module.time, "perf_counter", lambda: self.now)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


class Members:
    """A group whose members improve up to an epoch of their own, and then are patient."""

    def __init__(self, clock, peaks, *, first=0, seconds=0.01, start=0.0, size=10):
        self.clock, self.seconds, self.start = clock, seconds, start
        self.places = list(range(first, first + len(peaks)))
        self.peaks = dict(zip(self.places, peaks, strict=True))
        self.problem = types.SimpleNamespace(size=size)
        self.done = dict.fromkeys(self.places, 0)
        self.halved = []

    def end(self, i):
        return min(self.peaks[i] + PATIENCE, EPOCHS)

    def running(self, i):
        return i not in self.halved and self.done[i] < self.end(i)

    def train(self, until, watcher):
        while any(self.running(i) and self.done[i] < until for i in self.places):
            for i in self.places:
                if self.running(i) and self.done[i] < until:
                    self.done[i] += 1
                    self.clock.now += self.seconds
            self.clock.now, self.start = self.clock.now + self.start, 0.0
            watcher.watch(types.SimpleNamespace(), 0)

    @property
    def epochs_done(self):
        return sum(self.done.values())

    def epochs_left(self, i):
        best = min(self.done[i], self.peaks[i])
        return max(min(best + PATIENCE, EPOCHS) - self.done[i], 1) if self.running(i) else 0

    def loss(self, i, until):
        return float(i)

    def was_running(self, i, until):
        return self.running(i)

    def halve(self, i):
        self.halved.append(i)


def train(groups, deadline, *, portfolios=None):
    every = [[i for group in groups for i in group.places]]
    watcher = Watcher(None, deadline)
    try:
        Schedule(groups, every if portfolios is None else portfolios, EPOCHS, watcher).run()
    except StopTraining:
        return "time"
    return "end"


def halved(groups):
    return sorted(i for group in groups for i in group.halved)


def test_with_time_for_all_nobody_stops_early(clock):
    groups = [Members(clock, [30, 80, 150]), Members(clock, [60], first=3)]
    assert train(groups, 8.0) == "end"  # 720 epochs of 0.01 s
    assert halved(groups) == []


@pytest.mark.parametrize("limit", [3.0, 4.0, 6.0, 8.0, 9.5, 11.0])
@pytest.mark.parametrize("peaks", [(60, 60, 60, 60, 60, 60, 60), (20, 250, 90, 40, 10, 130, 60)])
def test_a_time_limit_is_used(clock, limit, peaks):
    """All would take more; the better ones come to their end, or the limit is reached."""
    groups = [Members(clock, peaks[:3]), Members(clock, peaks[3:], first=3)]
    assert sum(peaks) + 7 * PATIENCE > 100 * limit
    how = train(groups, limit)
    assert clock.now <= limit + 0.05
    if how == "end":  # what is left is less than one more member would take
        assert limit - clock.now < 0.01 * (max(peaks) + PATIENCE)
    stopped = halved(groups)
    assert stopped == list(range(7 - len(stopped), 7)), "the worse ones stop"


@pytest.mark.parametrize("limit", [20.0, 30.0, 45.0, 60.0])
def test_nine_tenths_of_a_limit_are_used_where_members_are_many(clock, limit):
    """As the portfolio of eight does, with the times of five shapes on two cores."""
    peaks = (120, 180, 60, 240, 90, 30, 160, 100)
    costs = (0.02, 0.05, 0.06, 0.05, 0.03)
    sizes = (1, 3, 1, 1, 2)
    groups, first = [], 0
    for seconds, size in zip(costs, sizes, strict=True):
        own = peaks[first : first + size]
        groups.append(Members(clock, own, first=first, seconds=seconds))
        first += size
    train(groups, limit)
    assert 0.9 * limit <= clock.now <= 1.01 * limit


def test_a_slow_start_stops_nobody(clock):
    """Memory is probed and kernels are compiled in the first epoch; the others are quick."""
    groups = [Members(clock, [50] * 4, start=60.0), Members(clock, [50] * 4, first=4)]
    assert train(groups, 75.0) == "end"  # 60 s, and 1200 epochs of 0.01 s
    assert halved(groups) == []


def test_the_best_are_never_stopped(clock):
    groups = [Members(clock, [500] * 6)]
    assert train(groups, 2.0) == "time"
    assert halved(groups) == list(range(KEPT, 6))


def test_one_alone_is_never_stopped_early_and_counts(clock):
    alone = Members(clock, [400], first=4, seconds=0.05)
    portfolio = Members(clock, [50] * 4)
    train([portfolio, alone], 20.0, portfolios=[[0, 1, 2, 3], [4]])
    assert alone.halved == []
    assert portfolio.halved == []
    single = Members(clock, [400], seconds=0.05)
    assert train([single], clock.now + 1.0, portfolios=[[0]]) == "time"
    assert single.halved == []


def test_repeats_keep_as_many_each(clock):
    groups = [Members(clock, [60] * 4), Members(clock, [60] * 4, first=4)]
    train(groups, 8.0, portfolios=[[0, 1, 2, 3], [4, 5, 6, 7]])
    kept = [4 - len(group.halved) for group in groups]
    assert kept[0] == kept[1] < 4


def test_on_a_large_graph_the_worse_half_stops_at_fixed_epochs(clock, monkeypatch):
    monkeypatch.setattr(schedule_module, "TURNS", (2, 4))
    group = Members(clock, [60] * 8, size=schedule_module.LARGE + 1)
    assert train([group], None) == "end"
    assert [*group.done.values()] == [160] * 2 + [4] * 2 + [2] * 4  # the first are the best

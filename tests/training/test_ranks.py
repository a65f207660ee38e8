"""Ranks that share the rows of every batch come to what one process comes to."""

import time

import pytest
import torch

from longnn.config import Config
from longnn.data import make_split
from longnn.store._disk import load_stored
from longnn.store._ranks import RankLostError, join_ranks
from longnn.training import Job, Watcher
from tests.ranks import forked
from tests.store.graphs import small, write_graph
from tests.training.test_rows import FORM

#: Dropout at every place, so that each rank must have the numbers of its rows.
NOISY = {**FORM, "epochs": 12, "patience": 3, "batch_rows": 32, "precision": "float64"}
NOISY |= {"input_dropout": 0.2, "dropout": 0.3, "filter_dropout": 0.4, "lr_transform": 0.02}
#: Of one shape, with rates and a seed of their own; some stop early.
POPULATION = [{}, {"seed": 1, "penalty": 0.01}, {"lr_transform": 0.2, "dropout": 0.0}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks") / "graph"
    write_graph(folder, small(240, unlabelled=30))
    return folder


def train(folder, tables, watcher=None, **options):
    """What members come to: weights, predictions and history, as plain data."""
    rows = load_stored(folder, rows=True)
    configs = [Config.from_dict({**NOISY, **table}) for table in tables]
    job = Job(rows, configs, [make_split(rows, None, 0)] * len(configs), **options)
    found = job.run(watcher=watcher)
    return [
        {
            "state": one.result.state,
            "predicted": one.predicted,
            "losses": one.result.history["val_loss"],
            "train": one.result.history["train_loss"],
            "epochs": (one.result.epochs, one.result.best_epoch, one.result.stopped),
            "temperature": one.readout.temperature,
            "shift": one.readout.shift,
        }
        for one in found
    ]


def same(one, other, atol):
    """Whether members are the same, to rounding or with 0 to the bit."""
    assert [m["epochs"] for m in one] == [m["epochs"] for m in other]
    for a, b in zip(one, other, strict=True):
        assert a["temperature"] == pytest.approx(b["temperature"], abs=100 * atol)
        assert a["shift"] == pytest.approx(b["shift"], abs=100 * atol)
        pairs = [(a["state"][k], b["state"][k]) for k in a["state"]]
        for x, y in [*pairs, *((a[k], b[k]) for k in ("predicted", "losses", "train"))]:
            torch.testing.assert_close(x, y, rtol=0, atol=atol)


CASES = {
    "a population": (4, POPULATION),
    "one alone": (2, [{}]),
    # of 126 rows the last batch has one: three of the four ranks have none
    "a batch of one row": (4, [{"batch_rows": 25, "shared": False, "penalty": 0.1}]),
    "more ranks than rows of a batch": (3, [{"batch_rows": 2, "epochs": 2}]),
    "a portfolio": (2, [{"preset": "default", "epochs": 4}]),
}
SLOW = ("more ranks than rows of a batch", "a portfolio")


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=pytest.mark.slow if c in SLOW else ()) for c in CASES],
)
def test_ranks_come_to_what_one_comes_to(folder, tmp_path, case):
    count, tables = CASES[case]
    alone = train(folder, tables)
    ranks = forked(count, lambda: train(folder, tables, ranks=join_ranks()), tmp_path)
    same(alone, ranks[0], 1e-9)
    for other in ranks[1:]:
        same(ranks[0], other, 0)  # what one decides by, all must have


class Late(Watcher):
    """Stops by a clock that is wrong in all ranks but the first."""

    def watch(self, population, first):
        late = population.epoch >= (2 if self.ranks.first else 1)
        self.deadline = time.perf_counter() + (-1 if late else 1000)
        super().watch(population, first)


def test_the_clock_of_the_first_rank_counts(folder, tmp_path):
    def work():
        ranks = join_ranks()
        return train(folder, [{}], Late(None, 0.0, ranks), ranks=ranks)

    for members in forked(2, work, tmp_path):
        assert members[0]["epochs"][0] == 2
        assert members[0]["epochs"][2] == "time"


def test_ranks_agree_and_add(tmp_path):
    def work():
        ranks = join_ranks()
        mine = torch.arange(7.0)[ranks.share(7)]
        return {
            "any": (ranks.any(ranks.number == 2), ranks.any(False)),
            "least": ranks.least(10 - ranks.number),
            "agree": ranks.agree(ranks.number),
            "sum": [t.tolist() for t in ranks.add([torch.ones(2, 1), torch.tensor(ranks.number)])],
            "join": ranks.join(mine[None, :, None], 7, 1).flatten().tolist(),
        }

    for one in forked(3, work, tmp_path):
        assert one == {
            "any": (True, False),
            "least": 8,
            "agree": 0,
            "sum": [[[3.0], [3.0]], 3],
            "join": list(range(7)),
        }


def test_a_rank_that_is_gone_is_named(tmp_path):
    joined = tmp_path / "joined"

    def work():
        ranks = join_ranks()
        if ranks.first:  # not before the other has joined
            while not joined.exists():
                time.sleep(0.01)
            return ""
        joined.touch()
        try:
            ranks.agree(0)
            ranks.wait()
        except RankLostError as error:
            return str(error)
        return "nothing"

    assert "another one has ended" in forked(2, work, tmp_path)[1]


def test_out_of_memory_in_a_rank_is_an_error(folder, tmp_path, monkeypatch):
    """The others wait for a step of so many members: fewer cannot be tried."""

    def fail(self, on_epoch=None, *, until=None):
        raise MemoryError

    monkeypatch.setattr("longnn.training._population.Population.run", fail)
    monkeypatch.setattr("longnn.training._group.count_fitting", lambda *asked: 3)

    def work():
        try:
            train(folder, POPULATION, ranks=join_ranks())
        except MemoryError as error:
            return str(error)
        return ""

    for text in forked(2, work, tmp_path):
        assert "Expected room for 3 models" in text

"""Members are trained together as far as memory allows, and come to the same whatever it allows."""

import pytest
import torch

from longnn.config import Config
from longnn.data import make_split
from longnn.data._synthetic import csbm
from longnn.training import Population, Watcher
from longnn.training import _fit as workflow
from longnn.training import _group as groups
from longnn.training import _memory as memory
from longnn.training._history import History

CPU = torch.device("cpu")
CONFIG = Config.from_dict(
    {"epochs": 6, "degree": 3, "hidden_channels": 4, "precision": "float64", "device": "cpu"}
)
CONFIGS = [CONFIG.replace(seed=seed) for seed in range(7)]


@pytest.fixture(scope="module")
def dataset():
    return csbm(num_nodes=60, num_features=8)


@pytest.fixture(scope="module")
def asked(dataset):
    problem = workflow.make_problem(dataset, CONFIG, workflow.Scaling("none"))
    return CONFIGS, problem, [make_split(dataset, None, c.seed) for c in CONFIGS]


def chunked(asked, begun=None, watcher=None):
    """Train what is asked, as far as memory allows."""
    members = workflow.make_members(*asked)
    group = groups.Group(range(len(members)), members, asked[1])
    group.expect(begun or {})
    group.train(CONFIG.settings.epochs, watcher or Watcher())
    return [group.results[i] for i in range(len(members))]


def limit(monkeypatch, most):
    """Let memory run out, in the second epoch, above a number of members; returns what is tried."""
    tried, run = [], Population.run

    def limited(self, on_epoch=None, *, until=None):
        tried.append(self.count)

        def watch(population):
            if population.epoch == 2 and self.count > most:
                raise torch.OutOfMemoryError("fake")
            if on_epoch is not None:
                on_epoch(population)

        return run(self, watch, until=until)

    monkeypatch.setattr(Population, "run", limited)
    return tried


@pytest.mark.parametrize(
    ("most", "sizes"), [(9, [7]), (3, [7, 3, 3, 1]), (2, [7, 3, 1, 1, 1, 1, 1, 1, 1])]
)
def test_where_memory_runs_out_fewer_are_trained_together(asked, monkeypatch, most, sizes):
    together = workflow.make_population(*asked).run()
    tried = limit(monkeypatch, most)
    results = chunked(asked)
    assert tried == sizes
    for result, whole in zip(results, together, strict=True):
        assert result.best_epoch == whole.best_epoch
        for name, value in whole.state.items():
            torch.testing.assert_close(result.state[name], value, rtol=1e-11, atol=1e-13)


def test_what_is_measured_is_used(asked, monkeypatch):
    tried = limit(monkeypatch, 9)
    monkeypatch.setattr(groups, "count_fitting", lambda *asked: 3)
    chunked(asked)
    assert tried == [3, 3, 1]


def test_chunks_that_were_begun_are_kept(asked, monkeypatch):
    tried = limit(monkeypatch, 4)
    first = []

    class Begun(Watcher):
        def begin(self, population, number):
            first.append(number)

    chunked(asked, begun={0: 2, 2: 5}, watcher=Begun())
    assert tried == [2, 5, 2, 2, 1]
    assert first == [0, 2, 2, 4, 6]


def test_one_that_does_not_fit_is_an_error(asked, monkeypatch):
    limit(monkeypatch, 0)
    with pytest.raises(MemoryError, match="room for one model on cpu"):
        chunked(asked)


def test_other_errors_are_not_taken_for_a_lack_of_memory():
    def fail(error):
        raise error

    for error in (torch.OutOfMemoryError("x"), MemoryError(), RuntimeError("DefaultCPUAllocator")):
        assert not memory.fits(lambda error=error: fail(error), CPU)
    for error in (RuntimeError("shapes"), ValueError("x"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            memory.fits(lambda error=error: fail(error), CPU)
    assert memory.fits(lambda: None, CPU)


@pytest.mark.skipif(memory.available_memory() is None, reason="the system does not tell")
def test_the_cost_of_a_member_is_measured(monkeypatch):
    """With room for as much as k members hold, about k are trained together."""
    held = 48 * 2**20  # bytes a member: above 32 MiB malloc never takes room that others left

    class Fake:
        limits, history = CONFIG.settings, History(0, torch.zeros(0), None)

        def __init__(self, members):
            self.members = members

        def rehearse(self):
            self.block = None
            self.block = torch.ones(self.members * held // 4)

    monkeypatch.setattr(memory, "available_memory", lambda: int(10 * held / memory.SHARE))
    assert 7 <= memory.count_fitting(Fake, 100, CPU) <= 13
    assert memory.count_fitting(Fake, 4, CPU) == 4
    monkeypatch.setattr(memory, "available_memory", lambda: 0)
    assert memory.count_fitting(Fake, 100, CPU) == 1
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    assert memory.count_fitting(Fake, 100, CPU) == 100
    assert memory.count_fitting(None, 100, torch.device("cuda")) == 100


@pytest.mark.skipif(memory.available_memory() is None, reason="the system does not tell")
def test_what_is_given_is_a_limit(monkeypatch):
    """For the whole program: what it has already counts."""
    monkeypatch.setattr(memory, "available_memory", lambda: 10**15)
    monkeypatch.setattr(memory, "LEAST", 0)
    assert memory._room(None) == memory.SHARE * 10**15
    had = memory._status("VmRSS")
    assert memory._room(had + 10**9) == pytest.approx(10**9, rel=0.1)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert memory._room(None) == memory.SHARE * 10**15 / 4
    monkeypatch.setattr(memory, "LEAST", 10**12)
    assert memory._room(1) == pytest.approx(10**12, rel=0.01)


def test_a_container_has_less_than_its_machine(tmp_path, monkeypatch):
    free = memory.available_memory()
    monkeypatch.setattr("longnn._base.memory._CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert memory.available_memory() != 0
    (tmp_path / "memory.max").write_text("5000\n")
    assert memory.available_memory() == 4000
    assert free is None or free > 4000


def test_a_result_keeps_nothing_but_its_own(asked):
    """A view of the stack would keep all of it, for every member that stops."""
    population = workflow.make_population(*asked, record_filters=True)
    for result in population.run():
        for tensor in (result.filter_path, *result.state.values(), *result.history.values()):
            assert tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()


def test_a_model_that_cannot_fit_is_never_built(monkeypatch):
    """The error names what is asked for and what is free."""
    config = CONFIG.replace(hidden_channels=2**20)
    monkeypatch.setattr(memory, "available_memory", lambda: 10**9)
    with pytest.raises(
        ValueError, match=r"got hidden_channels=1048576 for 1000 features .* need 42.9 GB; 1 GB"
    ):
        memory.require_room(config, 100, 1000, 2)
    memory.require_room(CONFIG, 100, 1000, 2)
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    memory.require_room(config, 100, 1000, 2)

"""kill -9: a search that is killed and continued is the search that was not interrupted."""

import random
import time
from collections import Counter

import pytest

from longnn.tuning import open_storage
from longnn.tuning._ledger import FINISHED
from longnn.tuning._storage import close_storage
from tests.tuning.examples import FINE, KILLED, drawn, graph, search


class InterruptError(Exception):
    pass


@pytest.fixture(scope="module")
def whole(dataset):
    """The search without an interruption; here no search has a folder, figures take too long."""
    return search(dataset, None, FINE, **KILLED)


@pytest.mark.parametrize("epoch", [1, 3, 4, 7])
def test_an_interrupted_search_is_continued_exactly(dataset, tmp_path, whole, epoch):
    """Before halving, at it, and after it has stopped some of the batch."""

    def stop(progress):
        if progress.done >= 4 and progress.epoch == epoch:
            raise InterruptError

    url = f"sqlite:///{tmp_path}/search.db"
    assert {t.state for t in whole.trials} == {"complete", "pruned"}
    with pytest.raises(InterruptError):
        search(dataset, None, FINE, **KILLED, storage=url, on_progress=stop)
    result = search(dataset, None, FINE, **KILLED, storage=url)
    assert drawn(result) == drawn(whole)
    assert result.config == whole.config
    assert result.value == whole.value


def count_finished(url):
    """How many trials of the search are finished now, read from outside."""
    storage = open_storage(url)
    try:
        (study,) = storage.get_all_studies()
        trials = storage.get_all_trials(study._study_id)
    finally:
        close_storage(storage)
    return sum(trial.state in FINISHED for trial in trials)


def kill_again_and_again(url, start_worker, trials, kills, *, seed):
    """Kill workers of a search at random moments; returns how many were killed at work."""
    moments, killed = random.Random(seed), 0
    while killed < kills:
        process = start_worker(url, trials, pause=0.05)
        assert process.stdout.readline() == "at work\n", process.communicate()[1]
        time.sleep(moments.uniform(0.2, 1.8))
        if process.poll() is not None:
            break
        process.kill()
        process.communicate()
        killed += 1
    return killed


def test_killed_and_resumed(storage_url, start_worker, dataset, whole):
    """No finished trial is lost or counted twice, and all are those of the whole search."""
    assert kill_again_and_again(storage_url, start_worker, 12, 1, seed=1) == 1
    finished = count_finished(storage_url)
    ran, options = [], {**KILLED, "storage": storage_url, "on_progress": lambda p: ran.append(p)}
    result = search(dataset, None, FINE, **options)
    assert ran[0].done == finished < 12
    assert drawn(result) == drawn(whole)
    assert result.config == whole.config


@pytest.mark.slow
def test_killed_eight_times(storage_url, start_worker, dataset):
    """At whatever moment it dies, the next one finishes the same search."""
    options = {**KILLED, "trials": 40}
    killed = kill_again_and_again(storage_url, start_worker, 40, 8, seed=2)
    assert killed >= 5
    result = search(dataset, None, FINE, **options, storage=storage_url)
    states = Counter(t.state for t in result.trials)
    assert states["complete"] + states["pruned"] == 40
    assert states["running"] == 0
    whole = search(graph(), None, FINE, **options)
    assert drawn(result) == drawn(whole)
    assert result.config == whole.config


@pytest.mark.slow
def test_one_of_two_workers_is_killed(postgresql, start_worker, dataset):
    """The other one trains what it held, and ends without a word."""
    processes = [start_worker(postgresql, 16, pause=0.1) for _ in range(2)]
    for process in processes:
        assert process.stdout.readline() == "at work\n"
    processes[0].kill()
    _, errors = processes[1].communicate(timeout=120)
    assert (processes[1].returncode, errors) == (0, "")
    options = {**KILLED, "trials": 16}
    result = search(dataset, None, FINE, **options, storage=postgresql)
    states = Counter(t.state for t in result.trials)
    assert states["complete"] + states["pruned"] == 16
    assert states["running"] == 0

"""Training on rows of stored terms is training: same steps, same results, bounded reads."""

import numpy as np
import pytest
import torch

from longnn.config import Config
from longnn.data import DataError, make_split
from longnn.store._basis import BasisStore
from longnn.store._disk import load_stored
from longnn.store._rows import BLOCK, shuffled_windows
from longnn.training import Job, _trees, fit
from tests.store.graphs import small, write_graph

FORM = {"placement": "features", "epochs": 8, "degree": 4}
QUIET = {**FORM, "input_dropout": 0.0, "dropout": 0.0, "filter_dropout": 0.0}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows") / "graph"
    write_graph(folder, small(240, unlabelled=30))
    return load_stored(folder, rows=False), load_stored(folder, rows=True)


def config(**values):
    return Config.from_dict({**QUIET, **values})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shared": False},
        {"model": "gpr"},
        {"model": "bern"},
        {"model": "mlp"},
        {"model": "sgc", "placement": "output", "degree": 2},
        {"scale": "none", "self_loops": "add", "class_weight": "balanced"},
        {"penalty": 0.01, "degree_penalty": 0.01},
    ],
)
def test_one_batch_of_all_rows_is_the_full_batch(world, options):
    """Not a step, but a whole training, early stopping and calibration included."""
    whole, rows = world
    values = {
        k: v
        for k, v in QUIET.items()
        if options.get("model") != "mlp" or k not in ("placement", "degree", "filter_dropout")
    }
    made = Config.from_dict({**values, **options})
    (one,) = fit(whole, [made], [make_split(whole, None, 0)])
    (other,) = fit(rows, [made], [make_split(rows, None, 0)])
    assert torch.allclose(one.predicted[rows.asked.backing.places()], other.predicted, atol=1e-4)
    assert one.result.best_epoch == other.result.best_epoch
    assert one.readout.temperature == pytest.approx(other.readout.temperature, rel=1e-3)
    for field in ("train_loss", "val_loss", "val_score", "amplitude"):
        before, after = one.result.history[field], other.result.history[field]
        assert torch.allclose(before, after, atol=1e-4, equal_nan=True), field


def test_batches_learn_and_repeat_to_the_bit(world):
    _, rows = world
    split = make_split(rows, None, 0)
    made = Config.from_dict({**FORM, "epochs": 25, "batch_rows": 32, "lr_transform": 0.01})
    one, again = (fit(rows, [made], [split])[0] for _ in range(2))
    assert torch.equal(one.predicted, again.predicted)
    assert float(one.result.history["val_score"].max()) > 0.75
    (other,) = fit(rows, [made.replace(seed=1)], [split])
    assert not torch.equal(one.predicted, other.predicted)


def test_a_member_gets_what_it_gets_alone(world):
    """One read serves all: dropout, batches and steps of a member are its own."""
    _, rows = world
    split = make_split(rows, None, 0)
    made = Config.from_dict({**FORM, "batch_rows": 32})
    each = [made, made.replace(seed=1), made.replace(lr_transform=0.01)]
    together = fit(rows, each, [split] * 3)
    for one, alone in zip(together, each, strict=True):
        (single,) = fit(rows, [alone], [split])
        assert torch.allclose(one.predicted, single.predicted, atol=1e-4)


def test_batches_are_read_for_what_they_are_for(world, monkeypatch):
    """Training reads training rows, validation reads validation rows, each once an epoch."""
    _, rows = world
    split = make_split(rows, None, 0)
    job = Job(rows, [config(epochs=1, batch_rows=16)], [split])
    seen, largest = [], 0
    read = BasisStore.read

    def counted(self, which, degree):
        nonlocal largest
        seen.append(which)
        largest = max(largest, len(which))
        return read(self, which, degree)

    monkeypatch.setattr(BasisStore, "read", counted)
    population = job._groups[0]._make(0, 1)
    population.train_epoch()
    train = np.flatnonzero(split.train)
    assert sorted(np.concatenate(seen)) == sorted(train)
    seen.clear()
    population.validate()
    assert np.concatenate(seen).tolist() == np.flatnonzero(split.val).tolist()
    assert max(len(part) for part in seen) <= 16


def test_forms_without_rows_say_what_to_do(world):
    _, rows = world
    split = make_split(rows, None, 0)
    with pytest.raises(DataError, match="--set placement=features"):
        fit(rows, [Config()], [split])
    with pytest.raises(DataError, match=r"GCN.*--model lon"):
        fit(rows, [Config(model="gcn")], [split])


@pytest.mark.parametrize(("count", "size"), [(5000, 100), (1, 4), (4096, 4096), (1000, 999)])
def test_a_pass_sees_every_row_once_in_runs(count, size):
    windows = shuffled_windows(count, size, 3, room=400)
    assert sorted(np.concatenate(windows)) == list(range(count))
    assert all(len(w) % size == 0 for w in windows[:-1])
    again = shuffled_windows(count, size, 3, room=400)
    assert all(np.array_equal(a, b) for a, b in zip(windows, again, strict=True))
    runs = [int((np.diff(np.sort(w)) > 1).sum()) + 1 for w in windows]
    assert max(runs) <= max(len(w) for w in windows) // BLOCK + 2
    if count > 2:
        other = shuffled_windows(count, size, 4, room=400)
        assert not np.array_equal(np.concatenate(windows), np.concatenate(other))


def test_trees_read_as_many_rows_as_they_can_pass_over(world, monkeypatch):
    """Rows x columns x outputs are limited: 20 rows of six columns and two classes here."""
    read, begin = [], _trees.Boosting._begin

    def watched(self, labels, weight, *tables):
        read.append([len(table) for table in tables])
        return begin(self, labels, weight, *tables)

    monkeypatch.setattr(_trees.Boosting, "_begin", watched)
    _, rows = world
    trees = Config.from_dict({"model": "trees", "columns": "alone", "epochs": 2})
    for most, expected in ((20 * 6 * 2, [20, 20]), (10**9, [126, 42])):
        monkeypatch.setattr(_trees, "MOST_WORK", most)
        (one,) = fit(rows, [trees], [make_split(rows, None, 0)])
        assert read.pop() == expected
        assert len(one.predicted) == rows.asked.num_nodes

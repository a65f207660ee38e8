"""A run gives one answer, whatever it was trained on and whatever it predicts on."""

from types import SimpleNamespace

import numpy as np
import pytest

from longnn.data import DataError, describe, load
from longnn.data._scaling import Scaling
from longnn.runs import train
from longnn.store import prepare
from longnn.store._disk import load_stored
from longnn.training import complete

FAST = {"preset": "fast", "epochs": 20, "baselines": False, "device": "cpu"}


def write_houses(folder, *, seed=0, nodes=240):
    """Prices that follow size and district, with gaps, dates and categories; no split column."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    size, year = rng.normal(120, 30, nodes), rng.integers(1950, 2020, nodes)
    district = rng.integers(3, size=nodes)
    price = 2 * size + 50 * district + rng.normal(0, 5, nodes)
    rows = [
        f"h{i},{'' if i % 17 == 5 + seed else round(size[i], 1)},{year[i]},d{district[i]},"
        f"{'' if i % 6 == 0 else round(price[i], 1)}"
        for i in range(nodes)
    ]
    (folder / "nodes.csv").write_text("\n".join(["id,size,year,district,price", *rows]) + "\n")
    ends = rng.integers(nodes, size=(2, 4 * nodes))
    ends = ends[:, district[ends[0]] == district[ends[1]]]
    lines = [f"h{a},h{b}" for a, b in ends.T]
    (folder / "edges.csv").write_text("\n".join(["source,target", *lines]) + "\n")
    return folder


OPTIONS = {"label_column": ["price"]}


@pytest.fixture(scope="module")
def houses(tmp_path_factory):
    return write_houses(tmp_path_factory.mktemp("old") / "houses")


@pytest.fixture(scope="module")
def prepared(houses):
    return prepare(houses, output=houses.parent / "prepared", options=OPTIONS).folder


@pytest.fixture(scope="module", params=["memory", "disk"])
def run(request, houses, prepared, tmp_path_factory):
    """The same training in memory and on disk."""
    folder = tmp_path_factory.mktemp("runs") / request.param
    if request.param == "disk":
        return train(prepared, FAST, folder, memory=1)
    return train(load(houses, **OPTIONS), {**FAST, "placement": "features"}, folder)


def predicted(table):
    return np.asarray(table["predicted"], dtype=np.float64)


def test_files_and_folders_are_predicted_alike(run, houses, prepared, tmp_path):
    """The graph of training and another one, which has other gaps, in memory and on disk."""
    new = write_houses(tmp_path / "new", seed=1)
    again = prepare(new, output=tmp_path / "again", like=run.trained.encoding, options=OPTIONS)
    cases = ((houses, prepared), (new, again.folder))
    for files, folder in cases:
        expected = predicted(run.predict(load(files, **OPTIONS)))
        scale = expected.std()
        for rows in (False, True):
            stored = load_stored(folder, rows=rows)
            np.testing.assert_allclose(predicted(run.predict(stored)), expected, atol=1e-4 * scale)


def test_a_folder_encoded_in_another_way_is_refused(run, houses, tmp_path):
    """It has other medians in its gaps; prepared like the run, it has those of the run."""
    new = write_houses(tmp_path / "new", seed=1)
    other = prepare(new, output=tmp_path / "other", options=OPTIONS).folder
    for rows in (False, True):
        stored = load_stored(other, rows=rows)
        with pytest.raises(DataError, match=r"column 'size' was read in another way.*--like RUN"):
            run.predict(stored)


def test_the_default_settings_are_those_of_the_table(prepared, houses):
    """Features that look ready get the defaults for bags of words."""
    stored, plain = load_stored(prepared, rows=False), load(houses, **OPTIONS)
    assert complete({}, stored) == complete({}, plain)
    assert Scaling.fit("auto", stored).kind == Scaling.fit("auto", plain).kind == "columns"
    assert stored.source.options == plain.source.options == OPTIONS


def test_a_card_is_the_same_on_disk(prepared, monkeypatch):
    """Degree 0, and every node a component of its own, was the card of a graph on disk."""
    memory = describe(load_stored(prepared, rows=False)).to_dict()
    monkeypatch.setattr("longnn.store._disk.FEW", 10)
    large = describe(load_stored(prepared, rows=True))
    assert (large.degree_max, large.nodes) == (memory["degree_max"], memory["nodes"])
    assert "components" not in large.to_dict()
    assert "not counted" in "\n".join(large.lines())


def test_what_needs_the_whole_graph_says_so(prepared):
    rows = load_stored(prepared, rows=True)
    for read in (lambda: rows.data.x, lambda: rows.data.edge_index):
        with pytest.raises(DataError, match=r"in memory for its (features|edges).*--memory"):
            read()


def test_patience_on_disk_is_that_in_memory(prepared, houses, monkeypatch):
    """An epoch of one step is no reason to stop after ten, nor is a hundred epochs the end."""
    stored, plain = load_stored(prepared, rows=True), load(houses, **OPTIONS)
    for preset in ("default", "fast"):
        on_disk, in_memory = (complete({"preset": preset}, d) for d in (stored, plain))
        assert on_disk.settings.epochs == in_memory.settings.epochs
        assert on_disk.settings.patience == 100
    small_steps = lambda: SimpleNamespace(batch_rows=5)  # noqa: E731
    monkeypatch.setattr("longnn.training._presets.Settings", small_steps)
    assert complete({"preset": "fast"}, stored).settings.patience == 10  # epochs of 40 steps


def write_roads(folder, kinds, *, seed, nodes=60):
    """Weighted arcs of several types, loops and repeats among them."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    x = rng.normal(size=(nodes, 3))
    rows = [f"{i},{a:.3f},{b:.3f},{c:.3f},{a + b:.3f}" for i, (a, b, c) in enumerate(x)]
    (folder / "nodes.csv").write_text("\n".join(["id,f,g,h,flow", *rows]) + "\n")
    ends = rng.integers(nodes, size=(4 * nodes, 2)).tolist()
    lines = [
        f"{a},{b},{rng.integers(1, 9) / 4},{kinds[k % len(kinds)]}" for k, (a, b) in enumerate(ends)
    ]
    (folder / "edges.csv").write_text("\n".join(["source,target,weight,edge_type", *lines]) + "\n")
    return folder


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("model", ["lon", "sgc", "mlp"])
def test_weights_arcs_and_types_count_on_disk(tmp_path, directed, model, no_report):
    """Trained on either backing; asked of this graph, and of one that lacks a type."""
    options = {"label_column": ["flow"], "directed": directed, "self_loops": True}
    old = write_roads(tmp_path / "old", ["rail", "road", "ferry"], seed=0)
    new = write_roads(tmp_path / "new", ["road", "ferry"], seed=1)
    quick = {"model": model, "epochs": 4, "preset": "fast", "baselines": False, "scale": "none"}
    quick |= {"input_dropout": 0.0, "dropout": 0.0, "device": "cpu"}
    quick |= {"placement": "features", "filter_dropout": 0.0} if model == "lon" else {}
    quick |= {} if model != "sgc" else {"degree": 2}
    stores = [prepare(g, output=tmp_path / f"{g.name}-made", options=options) for g in (old, new)]
    memory, disk = (
        [load(g, **options) for g in (old, new)],
        [load_stored(g.folder, rows=True) for g in stores],
    )
    assert memory[0].degrees.tolist() == disk[0].degrees.tolist()
    assert describe(disk[0]).edge_types == describe(memory[0]).edge_types
    runs = [train(d, quick, tmp_path / f"run{k}") for k, d in enumerate((memory[0], disk[0]))]
    for run in runs:
        for in_memory, on_disk in zip(memory, disk, strict=True):
            expected = predicted(run.predict(in_memory))
            assert expected.std() > 1e-3
            np.testing.assert_allclose(predicted(run.predict(on_disk)), expected, atol=1e-4)

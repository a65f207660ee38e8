"""A prepared graph is the graph that the loader in memory reads, whatever it was read from."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse as sp
import torch

from longnn.data import DataError, Source, load
from longnn.data._dataset import MASKS
from longnn.data._scaling import Scaling
from longnn.store import prepare
from longnn.store._arrays import StoreError
from longnn.store._disk import load_stored
from longnn.store._graph import SHARED
from tests.commands import CLUB
from tests.store.graphs import verify


def same(graph, dataset):
    """All that training reads is equal: edges, features, labels, masks, classes, ids, notes."""
    verify(graph)
    assert graph.encoding == dataset.encoding
    assert graph.features.flags.f_contiguous
    for rows in (True, False):
        stored = load_stored(graph.folder, rows=rows)
        for name in (*SHARED[1:], "num_edges"):
            assert getattr(stored, name) == getattr(dataset, name)
        assert list(stored.ids) == list(dataset.ids)
        assert torch.equal(stored.degrees, dataset.degrees)
        assert set(dataset.notes) <= set(stored.notes)
        for name in ("y", *MASKS):
            one, other = (each.data.get(name, torch.ones(1)) for each in (stored, dataset))
            assert torch.equal(one.nan_to_num(), other.nan_to_num())
    np.testing.assert_array_equal(stored.data.edge_index, dataset.data.edge_index)
    np.testing.assert_array_equal(stored.data.x, dataset.data.x.to_dense())
    scaling = Scaling.fit("auto", dataset)
    assert graph.scaling.kind == scaling.kind
    if scaling.mean is not None:
        np.testing.assert_allclose(graph.scaling.mean, scaling.mean, rtol=1e-14)
        np.testing.assert_allclose(graph.scaling.deviation, scaling.deviation, rtol=1e-14)


def write_graph(folder, edges, nodes=None, name="csv"):
    """Tables in files of a kind; the paths of edges and nodes."""
    paths = []
    for stem, table in (("edges", edges), ("nodes", nodes)):
        if table is None:
            continue
        path, table = folder / f"{stem}.{name}", pa.table(table)
        if name.startswith("csv"):
            pyarrow.csv.write_csv(table, path)
        elif name == "parquet":
            pyarrow.parquet.write_table(table, path)
        else:
            pyarrow.feather.write_feather(table, path, compression="uncompressed")
        if name == "csv.gz":
            path.write_bytes(gzip.compress(path.read_bytes()))
        paths.append(path)
    return paths


def random_tables(seed=0, nodes=120, text=False):
    """A messy graph: repeats, loops, both directions, gaps, categories, unlabelled nodes."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(10**12 + rng.choice(10**6, nodes, replace=False) * 7)
    ids = [f"node {i}" for i in ids] if text else ids.tolist()
    ends = rng.integers(nodes - 3, size=(2, 400))  # the last three nodes have no edge
    ends = np.concatenate([ends, ends[:, :50], ends[::-1, 20:60]], axis=1)
    gap = rng.random(nodes) < 0.1
    return (
        {"source": [ids[i] for i in ends[0]], "target": [ids[i] for i in ends[1]]},
        {
            "id": ids,
            "age": pa.array(rng.normal(40, 9, nodes).round(2), mask=gap),
            "city": rng.choice(["Rome", "Oslo", "Lima"], nodes).tolist(),
            "same": ["x"] * nodes,
            "height": (rng.random(nodes) * 1e3).tolist(),
            "copy": [1, 0] * (nodes // 2),
            "flag": [1, 0] * (nodes // 2),
            "since": rng.choice(["2024-05-31", "2023-01-02"], nodes).tolist(),
            "label": [None if rng.random() < 0.3 else "abc"[i % 3] for i in range(nodes)],
        },
    )


@pytest.mark.parametrize(("name", "text"), [("csv.gz", True), ("parquet", False), ("arrow", True)])
def test_prepared_is_loaded(tmp_path, name, text):
    edges, nodes = write_graph(tmp_path, *random_tables(text=text), name)
    plain = write_graph(tmp_path, *random_tables(text=text), "parquet" if name == "arrow" else name)
    same(prepare(edges, nodes, output=tmp_path / "made"), load(*plain))


def test_a_partitioned_folder(tmp_path):
    """As Spark writes it: parts, some in folders of their own, and files that are no parts."""
    edges, nodes = random_tables(6)
    whole = write_graph(tmp_path, edges, nodes, "parquet")
    folder = tmp_path / "spark"
    for stem, table in (("edges", pa.table(edges)), ("nodes.parquet", pa.table(nodes))):
        for k, rows in enumerate((40, 0, 30, len(table) - 70)):
            part = folder / stem / ("" if k < 2 else f"year={k}") / f"part-{k}.snappy.parquet"
            part.parent.mkdir(parents=True, exist_ok=True)
            start = (0, 40, 40, 70)[k]
            pyarrow.parquet.write_table(table.slice(start, rows), part)
        (folder / stem / "_SUCCESS").write_text("")
        (folder / stem / ".part-0.snappy.parquet.crc").write_text("x")
    same(prepare(folder, output=tmp_path / "made", options={"name": "edges"}), load(*whole))
    paths = folder / "edges", folder / "nodes.parquet"
    same(prepare(*paths, output=tmp_path / "again"), load(*whole))


def test_matrices_and_names_are_read_in_memory(tmp_path):
    rng = np.random.default_rng(0)
    matrix = sp.random_array((30, 30), density=0.1, rng=rng) != 0
    sp.save_npz(tmp_path / "edges.npz", sp.csr_array((matrix + matrix.T).astype(np.int8)))
    np.savez(tmp_path / "nodes.npz", x=rng.normal(size=(30, 4)), y=rng.integers(3, size=30))
    paths = tmp_path / "edges.npz", tmp_path / "nodes.npz"
    same(prepare(*paths, output=tmp_path / "made"), load(*paths))
    plain = {"num_nodes": 60, "num_features": 5}
    same(prepare("csbm", output=tmp_path / "csbm", options=plain), load("csbm", **plain))


@pytest.mark.parametrize("directed", [False, True])
def test_weights_arcs_and_types_are_kept(tmp_path, directed):
    """A stored graph read whole is the graph; the arcs back are the transposed matrix."""
    rng = np.random.default_rng(3)
    index = rng.integers(40, size=(2, 300))
    arrays = {"edge_index": index, "edge_weight": rng.random(300), "x": rng.normal(size=(40, 3))}
    kind = rng.integers(3, size=300)
    np.savez(tmp_path / "g.npz", **arrays, edge_type=kind, y=np.arange(40) % 2)
    options = {"directed": directed}
    dataset = load(tmp_path / "g.npz", **options)
    graph = prepare(tmp_path / "g.npz", output=tmp_path / "made", options=options)
    verify(graph)
    again = load_stored(graph.folder, rows=False)
    assert again.fingerprint() == dataset.fingerprint()
    assert (again.directed, again.one_way) == (directed, dataset.one_way)
    assert [r.name for r in again.relations] == ["0", "1", "2"] == list(graph.about.types)
    for number in (None, 0, 2):
        there, back = (graph.arcs(number, back=back) for back in (False, True))
        there, back = (
            sp.csr_array((a.weights, a.indices, a.offsets), (40, 40)) for a in (there, back)
        )
        assert there.nnz > 30
        assert (back != there.T).nnz == 0
        assert ((there != there.T).nnz > 0) == directed


def test_ranges_of_nodes_make_no_difference(tmp_path, monkeypatch):
    paths = write_graph(tmp_path, *random_tables(7), "parquet")
    monkeypatch.setattr(
        "longnn.store._edges.PER_ARC", {False: 1e8}
    )  # so that few arcs are sorted at once
    monkeypatch.setattr("longnn.store._edges.RANGES", 50)
    same(prepare(*paths, output=tmp_path / "made"), load(*paths))


# A graph to predict on


def test_another_graph_needs_no_labels_and_no_columns_beyond_those(tmp_path):
    edges, nodes = random_tables(10)
    options = {"label_column": "city"}
    paths = write_graph(tmp_path, edges, nodes, "parquet")
    first = prepare(*paths, output=tmp_path / "first", options=options)
    (tmp_path / "b").mkdir()
    del nodes["city"], nodes["same"]
    paths = write_graph(tmp_path / "b", edges, nodes, "parquet")
    second = prepare(*paths, output=tmp_path / "second", like=first.folder)
    memory = Source.resolve(*paths).like(first.source).load()
    assert [*second.answers] == ["y"]
    assert torch.equal(second.answers["y"], memory.data.y)
    assert second.num_features == first.num_features
    del nodes["height"]
    paths = write_graph(tmp_path / "b", edges, nodes, "parquet")
    with pytest.raises(DataError, match="missing column 'height'"):
        prepare(*paths, output=tmp_path / "third", like=first.folder)


def test_a_finished_folder_is_used_as_it_is(tmp_path):
    """Until files or options change, or files of it are damaged; terms in it stay."""
    paths, made = write_graph(tmp_path, *random_tables(), "parquet"), tmp_path / "made"
    (made / "basis-1").mkdir(parents=True)
    stamp = lambda: (made / "offsets.npy").stat().st_mtime_ns  # noqa: E731
    prepare(*paths, output=made)
    before = stamp()
    prepare(*paths, output=made)
    assert stamp() == before
    prepare(*paths, output=made, options={"self_loops": True})
    assert stamp() > before
    (made / "y.npy").write_bytes(b"")
    same(prepare(*paths, output=made, options={"self_loops": True}), load(*paths, self_loops=True))
    write_graph(tmp_path, *random_tables(1), "parquet")
    same(prepare(*paths, output=made), load(*paths))
    assert (made / "basis-1").is_dir()


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "thesis.txt").write_text("dear")
    with pytest.raises(StoreError, match=r"an empty folder.*\(got 'thesis.txt'\).*--output"):
        prepare(CLUB, output=tmp_path / "made")
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["thesis.txt"]

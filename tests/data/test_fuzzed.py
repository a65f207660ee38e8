"""What the fuzzer found when the readers were thought to be done: each once, by hand."""

import io
import tracemalloc
import zipfile

import networkx
import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from longnn import LONGNN, GraphOperator
from longnn.data import DataError, from_data, from_networkx, from_pandas, from_scipy, load
from longnn.data._named import load_named
from longnn.data._pickles import read_pickle
from longnn.records import FilterPath
from longnn.report import density_top

RING = torch.tensor([[0, 1, 2], [1, 2, 0]])


def test_a_scipy_matrix_that_was_changed():
    matrix = sp.csr_array(np.eye(3)[[1, 0, 2]])
    matrix.indptr = np.array([0, 2, 1, 3], dtype=np.int32)
    with pytest.raises(
        ValueError, match=r"Expected a valid sparse matrix \(Expected pointers that rise"
    ):
        GraphOperator.from_scipy(matrix)


def test_a_matrix_whose_entries_are_outside():
    matrix = sp.coo_array((np.ones(2), ([0, 8], [8, 0])), shape=(9, 9))
    matrix._shape = (2, 2)
    with pytest.raises(DataError, match=r"Expected a sparse matrix \(got .*8"):
        from_scipy(matrix)


def test_more_nodes_than_a_number_can_hold():
    with pytest.raises(ValueError, match="over a million EB"):
        GraphOperator.from_edge_index(RING, num_nodes=10**400)


@pytest.mark.parametrize("given", [5, np.ones(3), np.ones((2, 2, 2))])
def test_no_matrix(given):
    with pytest.raises(DataError, match=r"Expected a matrix \(got shape"):
        from_scipy(given)


def test_whole_numbers_without_end_are_texts():
    graph = networkx.cycle_graph(4)
    networkx.set_edge_attributes(graph, 10**400, "weight")
    with pytest.raises(DataError, match="Expected a finite number"):
        from_networkx(graph)


def test_a_zero_byte_in_the_name_of_a_column():
    """Polars ends the process on it."""
    edges = polars.DataFrame({"source": ["a"], "target": ["b"], "\0": [1]})
    with pytest.raises(DataError, match="names of columns without zero bytes in `edges`"):
        from_pandas(edges)


@pytest.mark.parametrize("kind", [pa.time32("s"), pa.time32("ms"), pa.time64("us")])
def test_times_of_the_day_are_numbers(kind):
    edges = pa.table({"source": list("abc"), "target": list("bca")})
    times = pa.array([5, 6, 7], pa.int32() if pa.types.is_time32(kind) else pa.int64()).cast(kind)
    nodes = pa.table({"id": list("abc"), "when": times, "label": list("xyx")})
    assert from_pandas(edges, nodes).data.x.flatten().tolist() == [5, 6, 7]


def test_numbers_of_eight_bits():
    x = torch.tensor([[1.0], [2.0], [0.5]]).to(torch.float8_e4m3fn)
    dataset = from_data(Data(x=x, edge_index=RING.to(torch.float8_e4m3fn), y=torch.arange(3)))
    assert dataset.data.x.tolist() == [[1.0], [2.0], [0.5]]


def test_a_matrix_without_rows(tmp_path):
    """SciPy ends the process on it."""
    path = tmp_path / "graph.mtx"
    path.write_text("%%MatrixMarket matrix array real general\n0 1000\n1.5\n")
    with pytest.raises(DataError, match=r"graph\.mtx: Expected at least one row and one column"):
        load(path)


def test_features_without_end(tmp_path):
    edges, path = tmp_path / "edges.csv", tmp_path / "features.mtx"
    edges.write_text("source,target\n0,1\n")
    path.write_text("%%MatrixMarket matrix coordinate real general\n2 1000000000000 1\n1 1 1.5\n")
    with pytest.raises(DataError, match=r"features\.mtx: Expected .* \(2, 1000000000000\) to fit"):
        load(edges, feature_file=str(path))


def test_an_old_torch_file_that_claims_a_long_text(tmp_path):
    path = tmp_path / "graph.pt"
    stream = io.BytesIO()
    torch.save({"edge_index": RING}, stream, _use_new_zipfile_serialization=False)
    content = stream.getvalue()
    at = content.rindex(b"X\x0a\x00\x00\x00edge_index")
    path.write_bytes(content[: at + 1] + (2**32 - 1).to_bytes(4, "little") + content[at + 5 :])
    with pytest.raises(DataError, match=r"graph\.pt: Expected a complete PyG Data file"):
        load(path)


def test_flaws_of_a_named_dataset_name_its_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    raw = tmp_path / "minesweeper" / "raw"
    raw.mkdir(parents=True)
    masks = {f"{name}_masks": np.ones((10, 3), dtype=bool) for name in ("val", "test")}
    np.savez(
        raw / "minesweeper.npz",
        node_features=np.eye(3),
        node_labels=np.arange(3) % 2,
        edges=RING.numpy().T,
        train_masks=np.ones((3, 10), dtype=bool),
        **masks,
    )
    with pytest.raises(DataError, match=r"minesweeper/raw: Expected .*mask"):
        load_named("minesweeper", tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("out1_node_feature_label.txt", "head\n0\t1,0\n", "line 2: Expected 3 cells"),
        ("out1_node_feature_label.txt", "head\n\n0\t1\t0\n1\t1\tx\n", "line 4: Expected a whole"),
        ("out1_node_feature_label.txt", "head\n1\t1,x\t0\n0\t1,0\t1\n", "line 2: Expected numbers"),
        ("out1_graph_edges.txt", "head\n0\t1\n\n1\tb\n", "line 4: Expected a whole number"),
    ],
)
def test_lines_of_a_named_dataset_are_counted_from_its_top(
    name, content, place, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    raw = tmp_path / "texas" / "raw"
    raw.mkdir(parents=True)
    (raw / "out1_node_feature_label.txt").write_text("head\n1\t1,0\t0\n0\t0,1\t1\n")
    (raw / "out1_graph_edges.txt").write_text("head\n0\t1\n")
    (raw / name).write_text(content)
    for i in range(10):
        (raw / f"texas_split_0.6_0.2_{i}.npz").touch()
    with pytest.raises(DataError, match=rf"{name}, {place}"):
        load_named("texas", tmp_path)


def test_a_density_at_the_end_of_numbers():
    assert np.isfinite(1.35 * density_top(np.linspace(0, 2, 5), np.full(5, 1e308)))


def test_a_path_of_filters_that_claims_much(tmp_path):
    path = tmp_path / "filter_path.npz"
    np.savez(path, epochs=np.zeros(2), beta=np.zeros((2, 3, 1)))
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["beta.npy"] = members["beta.npy"].replace(b"(2, 3, 1), }    ", b"(9999, 9999, 9)}")
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match=r"filter_path\.npz.*beta"):
        FilterPath.read(path)


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02X\x00",  # a text whose length is cut
        b"\x80\x02X\xff\xff\xff\x7fabc.",  # a text of two gigabytes in ten bytes
    ],
)
def test_a_pickle_that_is_cut_or_lies(content, tmp_path):
    path = tmp_path / "ind.cora.tx"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"ind\.cora\.tx: Expected a complete pickle"):
            read_pickle(path)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_texts_of_parquet_are_utf_8(tmp_path):
    bad = pa.StringArray.from_buffers(
        2, pa.py_buffer(np.array([0, 1, 3], np.int32)), pa.py_buffer(b"a\xe1\x28")
    )
    edges = pa.table({"source": bad, "target": ["a", "a"]})
    pq.write_table(edges, tmp_path / "edges.parquet")
    with pytest.raises(DataError, match=r"edges\.parquet: .*UTF8"):
        load(tmp_path / "edges.parquet")


def test_a_matrix_whose_rows_lie():
    matrix = sp.csr_array(np.eye(3))
    matrix.indptr[1] = 10**6
    with pytest.raises(DataError, match=r"Expected a sparse matrix \(got Expected pointers"):
        from_scipy(matrix)


def test_a_matrix_whose_indices_are_text():
    matrix = sp.csr_array(np.eye(3))
    matrix.indices = np.array(["a", "b", "c"])
    with pytest.raises(ValueError, match=r"Expected a valid sparse matrix \(Expected indices as"):
        GraphOperator.from_scipy(matrix)


def test_a_graph_whose_nodes_cannot_be_counted():
    data = Data(edge_index=RING, x=torch.tensor(1.0))
    with pytest.raises(ValueError, match="Expected a PyG Data object that counts its nodes"):
        GraphOperator.from_data(data)


def test_a_basis_without_finite_coefficients():
    with pytest.raises(ValueError, match=r"a basis with finite coefficients .*'b': inf"):
        LONGNN(4, 8, 2, degree=2, b=1e308)

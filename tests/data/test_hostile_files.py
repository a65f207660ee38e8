"""Files made to crash, to fill memory or to confuse: one clear line that names the file.

Several of them ended the process once, inside compiled code: then no test after them would run.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import torch

from longnn.data import DataError, load
from longnn.data._files import load_files
from longnn.data._named import load_named
from longnn.data._pickles import read_pickle
from longnn.records import FilterPath
from longnn.store import prepare

E = np.array([[0, 1, 2], [1, 2, 0]])
EDGES = torch.from_numpy(E)
BANNER = "%%MatrixMarket matrix coordinate real general\n"
Make = Callable[[Path], object]


def npz(**arrays: Any) -> Make:
    return lambda path: np.savez(path, **arrays)


def saved(**tensors: Any) -> Make:
    return lambda path: torch.save({"edge_index": EDGES, **tensors}, path)


def text(content: str) -> Make:
    return lambda path: path.write_text(content, encoding="utf-8")


def table(**columns: Any) -> Make:
    return lambda path: pq.write_table(pa.table(columns), path)


def lying(kind: Any = sp.csr_array, **changed: Any) -> Make:
    """A matrix as SciPy saves it, with other arrays in it."""

    def write(path: Path) -> None:
        stream = io.BytesIO()
        sp.save_npz(stream, kind(np.eye(3)[[1, 0, 2]]))
        stream.seek(0)
        np.savez(path, **{**np.load(stream), **changed})

    return write


def patched(place: int, value: int) -> Make:
    """An archive with another byte in both headers of its first member."""

    def write(path: Path) -> None:
        stream = io.BytesIO()
        np.savez_compressed(stream, edge_index=np.tile(E, (1, 50)), x=np.eye(3))
        content = bytearray(stream.getvalue())
        content[place] = value
        if place < 30:  # one of the header, which the directory repeats
            content[content.find(b"PK\x01\x02") + place + 2] = value
        path.write_bytes(bytes(content))

    return write


def array_of(header: str, content: bytes = b"") -> Make:
    def write(path: Path) -> None:
        member = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + content
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("edge_index.npy", member)

    return write


def header(kind: str, shape: str) -> str:
    return f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}}}"


def quantised() -> torch.Tensor:
    return torch.quantize_per_tensor(torch.ones(3, 2), 0.1, 0, torch.qint8)


def sparse(index: Any, shape: tuple[int, int] = (3, 3)) -> torch.Tensor:
    return torch.sparse_coo_tensor(index, torch.ones(1), shape, check_invariants=False)


BAD: dict[str, tuple[str, Make, str]] = {
    # Index arrays that lie.
    "csr index": ("g.npz", lying(indices=[0, 9**9, 1]), r"indices in 0\.\.2 \(got 387420489"),
    "csc pointer": ("g.npz", lying(sp.csc_array, indptr=[0, 9**9, 1, 3]), "pointers that rise"),
    "csr shape": ("g.npz", lying(shape=[10**12, 10**12]), "1000000000001 pointers and 3 indices"),
    "coo shape": ("g.npz", lying(sp.coo_array, shape=[10**12] * 2), "fit into memory .got 64 TB"),
    "no shape": ("g.npz", lying(shape=[3]), r"a matrix of shape \[3\]"),
    "values of text": ("g.npz", lying(data=["a", "b", "c"]), "values of type <U1"),
    # Members of the archive.
    "compression": ("g.npz", patched(8, 99), "NotImplementedError: .* array 'edge_index'"),
    "deflate": ("g.npz", patched(70, 255), "array 'edge_index'"),
    "no array": ("g.npz", lambda p: zip_of(p, "edge_index.npy", b"hello world"), "magic string"),
    "header": (
        "g.npz",
        array_of("{'shape': (3,)}"),
        "ValueError: Header does not .* in its array 'edge_index'",
    ),
    "syntax": ("g.npz", array_of("{'shape': (3,"), "array .edge_index"),
    "long header": ("g.npz", array_of(" " * 20_000), "Header info length .20000. is large"),
    "promised": (
        "g.npz",
        array_of(header("<f8", "(1000000000,)")),
        "of 8000000000 bytes in a member that has 0",
    ),
    "objects": ("g.npz", array_of(header("|O", "(1,)")), "Object arrays cannot be loaded"),
    "dates": ("g.npz", npz(edge_index=E, x=np.zeros(3, dtype="M8[s]")), "neither numbers nor text"),
    # Arrays of another form.
    "fractional node": (
        "g.npz",
        npz(edge_index=E + 0.5),
        r"whole numbers in `edge_index` \(got 0.5",
    ),
    "negative node": ("g.npz", npz(edge_index=-E), r"nodes 0\.\.0 \(got \[0, -1\]"),
    "no edges": ("g.npz", npz(edge_index=np.zeros((2, 0))), "a graph without any node"),
    "one number": ("g.npz", npz(edge_index=np.array(3)), r"shape \(2, arcs\) \(got \(\)\)"),
    "one feature": (
        "g.npz",
        npz(edge_index=E, x=np.array(3.0)),
        "`x` of each node .got one number",
    ),
    "cube": ("g.npz", npz(edge_index=E, x=np.ones((3, 1, 1))), r"shape \(nodes, features\)"),
    "weights": ("g.npz", npz(edge_index=E, edge_weight=np.ones(7)), r"3 edge weights \(got 7\)"),
    "rounded label": ("g.npz", npz(edge_index=E, y=np.array([2.0**60, 0, 1])), "Expected"),
    "half a text": ("g.npz", npz(edge_index=E, y=np.array([b"a", b"\xff"])), "decode .*array 'y'"),
    "no character": (
        "g.npz",
        npz(edge_index=E, y=np.array([0x110000] * 3, np.uint32).view("<U1")),
        "a code point beyond 0x10FFFF in its array 'y'",
    ),
    "no labels": ("g.npz", npz(edge_index=E, y=np.array([], "<U1")), r"nodes 0\.\.-1"),
    # Tensors.
    "expanded": ("g.pt", saved(x=torch.ones(1).expand(10**6, 10**6)), "fit into memory .got 8 TB"),
    "sparse index": ("g.pt", saved(x=sparse([[9**9], [0]])), r"indices below \(3, 3\)"),
    "sparse size": ("g.pt", saved(x=sparse([[1], [0]], (10**12, 3))), "fit into memory .got 64 TB"),
    "quantised": ("g.pt", lambda p: saved(x=quantised())(p), "real numbers .got torch.qint8"),
    "no numbers": ("g.pt", saved(x=torch.ones(3, device="meta")), "real numbers .got no numbers"),
    "nodes": (
        "g.pt",
        saved(num_nodes=10**13),
        "10000000000000 nodes to fit into memory .got 640 TB",
    ),
    "a list": ("g.pt", lambda p: torch.save({"edge_index": [[0], [1]]}, p), "to hold numbers"),
    # Matrix Market.
    "1E": (
        "g.mtx",
        text(BANNER + "2 2 1\n1 2 1E\n"),
        r"g\.mtx, line 3: Expected a number .got '1E'",
    ),
    "Arabic": ("g.mtx", text(BANNER + "2 2 1\n١ 2 1\n"), "line 3: Expected a number"),
    "out of range": ("g.mtx", text(BANNER + "2 2 1\n1 99 1\n"), "readable, complete mtx file"),
    "entries": ("g.mtx", text(BANNER + "2 2 99999999999\n1 2 1\n"), "got 99999999999 in 7 bytes"),
    "dense": (
        "g.mtx",
        text(BANNER.replace("coordinate", "array") + "1000000 1000000\n1\n"),
        "got 1000000000000 in",
    ),
    "no rows": (  # SciPy ends the process on it
        "g.mtx",
        text(BANNER.replace("coordinate", "array") + "0 1000\n1.5\n"),
        r"g\.mtx: Expected at least one row and one column",
    ),
    "a vector": ("g.mtx", text("%%MatrixMarket vector array real general\n1\n"), "begins with"),
    # Tables.
    "no columns": ("g.parquet", table(), r"g\.parquet: Expected at least one row"),
    "a map": ("g.parquet", table(source=[{"a": 1}], target=["b"]), "one value per cell"),
    "Arabic digits": ("g.csv", text("source,target,weight\na,b,٣\n"), "column 'weight': .*got '٣'"),
    "long cell": ("g.csv", text(f"source,target\na,{'b' * 200_000}\nc\n"), "Expected 2 columns"),
}


def zip_of(path: Path, name: str, content: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, content)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of torch.save
@pytest.mark.parametrize("case", BAD)
def test_one_clear_line_that_names_the_file(case: str, tmp_path: Path) -> None:
    name, make, message = BAD[case]
    make(tmp_path / name)
    with pytest.raises(DataError, match=message) as error:
        load_files(tmp_path / name, task="classification" if case == "rounded label" else None)
    assert name in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 700
    assert error.value.path is not None


def big_archive(path: Path) -> None:
    np.savez_compressed(path, edge_index=E, x=np.zeros((3, 10**6)))


def big_texts(path: Path) -> None:
    texts = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(20_000, dtype=np.int32)), pa.array(["x" * 1000])
    )
    pq.write_table(pa.table({"source": texts, "target": texts}), path)


def big_lists(path: Path) -> None:
    lists = pa.array([[0.0] * 200] * 10_000)
    pq.write_table(pa.table({"source": ["a"] * 10_000, "target": lists}), path)


def packed(compress: Callable[[bytes], bytes]) -> Make:
    return lambda path: path.write_bytes(compress(b"a,b\n" * 1_000_000))


BOMBS: dict[str, tuple[str, Make, str]] = {
    "archive": ("g.npz", big_archive, "48 MB"),
    "texts": ("g.parquet", big_texts, "40 MB"),
    "lists": ("g.parquet", big_lists, "16.[0-9] MB"),
    "gz": ("g.csv.gz", packed(gzip.compress), "20 MB"),
    "xz": ("g.csv.xz", packed(lzma.compress), "20 MB"),
}


@pytest.mark.parametrize("case", BOMBS)
def test_a_small_file_that_becomes_a_large_one(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine with 10 MB: the error names what is asked for and what is there."""
    name, make, size = BOMBS[case]
    make(tmp_path / name)
    assert (tmp_path / name).stat().st_size < 200_000
    monkeypatch.setattr("longnn._base.memory.available_memory", lambda: 10_000_000)
    with pytest.raises(DataError, match=rf"{name}.* fit into memory \(got {size}, 10 MB are free"):
        load_files(tmp_path / name)


def test_an_archive_whose_directory_lies(tmp_path: Path) -> None:
    """Memory grows with what is there, not with what is promised."""
    path, size = tmp_path / "g.npz", 2**26
    array_of(header("|i1", f"({size},)"))(path)
    content = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = content.find(mark) + place
        content[at : at + 4] = struct.pack("<I", size + 10 + len(header("|i1", f"({size},)")))
    path.write_bytes(bytes(content))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="array 'edge_index'"):
            load_files(path)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("name", ["edges.csv", "nodes.csv.gz", "edges.npz", "features.parquet"])
def test_a_file_without_end(name: str, kind: str, tmp_path: Path) -> None:
    """Refused before it is opened: reading would wait, or fill the memory."""
    if not name.startswith("edges"):
        (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    if kind == "pipe":
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).symlink_to("/dev/zero")
    message = rf"{name}: Expected a regular file \(got a device or a pipe\)"
    with pytest.raises(DataError, match=message):
        load_files(tmp_path)
    with pytest.raises(DataError, match=message):
        prepare(tmp_path, output=tmp_path / "prepared")


@pytest.mark.parametrize(
    ("graph", "options"),
    [
        ("a\0b.csv", {}),
        ("edges.csv", {"feature_file": "a\0b"}),
        ("edges.csv", {"feature_columns": "a\0b"}),
        ("edges.csv", {"name": "a\0b"}),
        ("cora", {"data_dir": "a\0b"}),
    ],
)
def test_zero_bytes_in_options(graph: str, options: dict[str, str]) -> None:
    with pytest.raises(DataError, match="without null bytes"):
        load(graph, **options)


def test_a_feature_file_that_claims_much(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    sp.save_npz(tmp_path / "f.npz", sp.csr_array((2, 10**12)))
    for read in (load, lambda path, **o: prepare(path, output=tmp_path / "made", options=o)):
        with pytest.raises(DataError, match=r"f\.npz: .* to fit into memory \(got 64 TB"):
            read(tmp_path, feature_file=tmp_path / "f.npz")


def test_texts_beyond_what_a_column_can_hold(tmp_path: Path) -> None:
    texts = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(3000, dtype=np.int32)), pa.array(["x" * 1_000_000])
    )
    pq.write_table(pa.table({"source": texts, "target": texts}), tmp_path / "g.parquet")
    with pytest.raises(DataError, match=r"column 'source': .*at most 2 GB of text \(got 3 GB\)"):
        load_files(tmp_path / "g.parquet")


def test_far_node_numbers_are_ids(tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", edge_index=E * 10**12)
    found = load_files(tmp_path / "g.npz")
    assert list(found.ids) == [0, 10**12, 2 * 10**12]
    assert any("read as ids" in note for note in found.notes)
    np.savez(tmp_path / "h.npz", edge_index=E * 5)
    assert load_files(tmp_path / "h.npz").num_nodes == 11


def test_large_labels_stay_apart(tmp_path: Path) -> None:
    """As floats 2^53 and 2^53 + 1 are one number."""
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\n")
    labels = (2**53 + 1, 2**53, 5)
    rows = "".join(f"{i},{label}\n" for i, label in zip("abc", labels, strict=True))
    (tmp_path / "nodes.csv").write_text("id,label\n" + rows)
    found = load_files(tmp_path)
    assert found.classes == ("5", str(2**53), str(2**53 + 1))
    assert found.data.y.tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    "options", [{"source_column": "b"}, {"target_column": "a"}, {"weight_column": "a"}]
)
def test_one_column_is_not_two_things(options: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("source,a,b,target\n1,2,3,4\n")
    with pytest.raises(DataError, match=r"e\.csv, column '.': .*columns of their own"):
        load_files(tmp_path / "e.csv", **{"source_column": "a", "target_column": "b", **options})


def test_other_types_of_numbers(tmp_path: Path) -> None:
    plain = None
    for edges, x in (
        (E, np.eye(3)),
        (E.astype(">i4"), np.eye(3, dtype=">f8")),
        (E.astype(np.uint16), np.eye(3, dtype=np.longdouble)),
        (E * 1.0, np.asfortranarray(np.eye(3, dtype=np.uint64))),
    ):
        np.savez(tmp_path / "g.npz", edge_index=edges, x=x)
        found = load_files(tmp_path / "g.npz").fingerprint()
        plain = plain or found
        assert found == plain


def test_an_old_torch_file_that_claims_a_long_text(tmp_path: Path) -> None:
    path = tmp_path / "graph.pt"
    stream = io.BytesIO()
    torch.save({"edge_index": EDGES}, stream, _use_new_zipfile_serialization=False)
    content = stream.getvalue()
    at = content.rindex(b"X\x0a\x00\x00\x00edge_index")
    path.write_bytes(content[: at + 1] + (2**32 - 1).to_bytes(4, "little") + content[at + 5 :])
    with pytest.raises(DataError, match=r"graph\.pt: Expected a complete PyG Data file"):
        load(path)


def test_flaws_of_a_named_dataset_name_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    raw = tmp_path / "minesweeper" / "raw"
    raw.mkdir(parents=True)
    masks = {f"{name}_masks": np.ones((10, 3), dtype=bool) for name in ("val", "test")}
    np.savez(
        raw / "minesweeper.npz",
        node_features=np.eye(3),
        node_labels=np.arange(3) % 2,
        edges=E.T,
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
    name: str, content: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_path_of_filters_that_claims_much(tmp_path: Path) -> None:
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
        b"\x80\x05\x96\0\0\0\x40\0\0\0\0abc.",  # an array of one gigabyte
    ],
)
def test_a_pickle_that_is_cut_or_lies(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "ind.cora.tx"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"ind\.cora\.tx: Expected a readable, complete pickle"):
            read_pickle(path)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_texts_of_parquet_are_utf_8(tmp_path: Path) -> None:
    bad = pa.StringArray.from_buffers(
        2, pa.py_buffer(np.array([0, 1, 3], np.int32)), pa.py_buffer(b"a\xe1\x28")
    )
    edges = pa.table({"source": bad, "target": ["a", "a"]})
    pq.write_table(edges, tmp_path / "edges.parquet")
    with pytest.raises(DataError, match=r"edges\.parquet: .*UTF8"):
        load(tmp_path / "edges.parquet")

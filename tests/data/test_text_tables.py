"""Text tables as people have them: separators, decimal commas, encodings, compression."""

import bz2
import gzip
import lzma

import pyarrow as pa
import pytest

from longnn.data import DataError
from longnn.data._files import load_files
from tests.data.examples import EDGES, NODES, as_text, columns, reference


def load_nodes(folder, name, content):
    """A graph of the usual edges and a node file as given."""
    (folder / "e.csv").write_text(EDGES)
    raw = content if isinstance(content, bytes) else content.encode()
    (folder / name).write_bytes(raw)
    return load_files(folder / "e.csv", folder / name)


def same(d, e):
    return d.fingerprint() == e.fingerprint() and list(d.ids) == list(e.ids)


@pytest.mark.parametrize("name", ["n.csv", "n.tsv", "n.txt"])
@pytest.mark.parametrize(
    ("mark", "words"), [(",", "','"), (";", "';'"), ("\t", "a tab"), ("|", "'|'")]
)
def test_separators_are_recognised(name, mark, words, tmp_path):
    plain = load_nodes(tmp_path, "plain.csv", NODES)
    d = load_nodes(tmp_path, name, NODES.replace(",", mark))
    assert same(d, plain)
    usual = {"n.csv": ",", "n.tsv": "\t", "n.txt": "\t"}[name]
    note = f"{name}: recognised the separator {words}."
    assert (note in d.notes) == (mark != usual)


def test_spaces_separate_where_that_is_sure(write):
    spaced = "# a comment\n# u v\n  0   1  2.5\n1 2 0.5 \n\n2 0 1e0\n"
    plain = load_files(write("e.csv", "0,1\n1,2\n2,0\n"))
    for name in ("e.txt", "f.csv"):
        text = spaced if name == "e.txt" else spaced[spaced.index("  0") :]
        d = load_files(write(name, text), weight_column="column_3")
        assert d.data.edge_index.tolist() == plain.data.edge_index.tolist()
        assert f"{name}: recognised the separator a space." in d.notes
    with pytest.raises(DataError, match=r"g\.txt, line 3, column 'v': .*got 'x'"):
        load_files(write("g.txt", "# c\nu v\na x\n"), write("n.csv", "id,f\na,1\nb,2\n"))


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("utf-8-sig", None),
        ("utf-16", "UTF-16 text"),
        ("utf-32", "UTF-32 text"),
        ("latin-1", "Latin-1 (Windows) text, because it is not UTF-8"),
        ("cp1252", "Latin-1 (Windows) text, because it is not UTF-8"),
    ],
)
def test_encodings(encoding, said, tmp_path):
    city = "Zürich €" if encoding != "latin-1" else "Zürich"
    text = NODES.replace("cat", city)
    d = load_nodes(tmp_path, "n.csv", text.encode(encoding))
    assert d.classes == (city, "dog")
    assert [note for note in d.notes if "recognised" in note] == (
        [] if said is None else [f"n.csv: recognised {said}."]
    )


def test_bytes_that_windows_does_not_know(tmp_path):
    d = load_nodes(tmp_path, "n.csv", NODES.encode().replace(b"cat", b"c\x81\xe9"))
    assert "c\x81é" in d.classes


def zstd(raw):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(raw)
    return sink.getvalue().to_pybytes()


COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd}


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compressed(suffix, tmp_path):
    edges, nodes = columns()
    for stem, table in (("edges", edges), ("nodes", nodes)):
        text = as_text(table, ",").encode()
        (tmp_path / f"{stem}.csv{suffix}").write_bytes(COMPRESS[suffix](text))
    d = load_files(tmp_path)
    assert d.fingerprint() == reference().fingerprint()
    assert not any("recognised" in note for note in d.notes)
    assert load_files(tmp_path / f"edges.csv{suffix}", tmp_path / f"nodes.csv{suffix}").name == (
        tmp_path.name
    )
    path = tmp_path / f"nodes.csv{suffix}"
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(
        DataError, match=r"nodes\.csv\.\w+: Expected a readable, complete compressed file"
    ):
        load_files(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (NODES.encode("utf-16-le"), r"n\.csv: .*UTF-16 without a byte-order mark.*as UTF-8"),
        (NODES.encode("utf-16")[:-1], r"n\.csv: Expected complete UTF-16 text"),
        (NODES.replace(",", ";").replace("c;3;-1;;", "c;3").encode(),
         r"n\.csv, line 4: Expected 5 columns \(got 2: 'c;3'\).* or the separator is not ';'"),
    ],
)  # fmt: skip
def test_what_is_no_text_is_named(content, message, tmp_path):
    with pytest.raises(DataError, match=message) as caught:
        load_nodes(tmp_path, "n.csv", content)
    assert "\n" not in str(caught.value)

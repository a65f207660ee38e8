"""Named datasets: read without writing beside them, cached, and clear when missing."""

import gzip
import hashlib
import io
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import pytest
import torch

from longnn.data import DataError
from longnn.data._catalog import find_named, list_named
from longnn.data._errors import DatasetUnavailable
from longnn.data._features import row_normalize
from longnn.data._named import load_named
from longnn.data._rawfiles import _SecureRedirects, cache_root, data_root, fetch, known_sums
from longnn.data._rawreaders import READERS
from tests.data.examples import write_webkb

NAMES = [
    *("cora", "citeseer", "pubmed", "computers", "photo", "chameleon", "squirrel", "actor"),
    *("texas", "cornell", "cornell-legacy", "wisconsin", "minesweeper", "tolokers"),
    *("roman-empire", "amazon-ratings", "questions", "coauthor-cs", "coauthor-physics"),
    "ogbn-arxiv",
]


def snapshot(folder):
    return {
        str(p.relative_to(folder)): (p.lstat().st_size, p.lstat().st_mtime_ns)
        for p in [folder, *folder.rglob("*")]
    }


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A cache of this test alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def offline(monkeypatch):
    """No network: downloads fail as they do then; returns what was asked for."""
    tried = []

    def fail(self, url, **options):
        tried.append(url)
        raise urllib.error.URLError("Name or service not known")

    monkeypatch.setattr(urllib.request.OpenerDirector, "open", fail)
    return tried


def test_the_table_lists_what_was_promised():
    assert [entry.name for entry in list_named()] == NAMES
    for entry in list_named():
        assert entry.description
        assert entry.files
        assert entry.split in ("published", "fixed")


class TestWithoutNetwork:
    @pytest.mark.parametrize("name", NAMES)
    def test_one_line_says_which_files_where(self, name, home, offline):
        folder = home / "data"
        with pytest.raises(DatasetUnavailable) as caught:
            load_named(name, folder)
        text = str(caught.value)
        entry = find_named(name)
        assert "\n" not in text
        assert f"in {folder / entry.folder} " in text
        assert all(file in text for file in entry.files)
        assert offline == list(entry.urls[:1])
        assert all(url.startswith("https://") for url in entry.urls)
        assert list(folder.rglob("*")) == []  # nothing half done is left behind

    def test_legacy_cornell_is_never_downloaded(self, home, offline):
        with pytest.raises(DatasetUnavailable, match=r"'cornell-legacy' .* cannot be downloaded"):
            load_named("cornell-legacy", home / "data")
        assert offline == []

    def test_only_missing_files_are_named(self, home, offline):
        write_webkb(home / "texas/raw")
        (home / "texas/raw/out1_graph_edges.txt").unlink()
        with pytest.raises(DatasetUnavailable) as caught:
            load_named("texas", home)
        assert re.search(r"expected the files out1_graph_edges\.txt in ", str(caught.value))


class TestFromRawFiles:
    def test_graph_is_undirected_normalised_and_explained(self, home):
        write_webkb(home / "data/texas/raw")
        d = load_named("texas", home / "data")
        assert d.data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
        assert d.data.x[1].tolist() == [0, 0.75, 0.25]
        assert d.data.x[2].tolist() == [0, 0, 0]
        assert d.num_splits == 10
        assert d.default_split == "published"
        assert "The files hold 4 nodes and 3 features, but texas has 183 and 1703." in (d.notes)
        raw = load_named("texas", home / "data", row_normalize=False)
        assert raw.data.x[1].tolist() == [0, 3, 1]
        assert torch.equal(row_normalize(raw.data.x), d.data.x)

    def test_data_folder_is_never_written(self, home):
        write_webkb(home / "data/texas/raw")
        for place in [*(home / "data").rglob("*"), home / "data"]:
            place.chmod(0o555 if place.is_dir() else 0o444)
        before = snapshot(home / "data")
        first = load_named("texas", home / "data").fingerprint()
        assert load_named("texas", home / "data").fingerprint() == first
        assert snapshot(home / "data") == before
        for place in [home / "data", *(home / "data").rglob("*")]:
            place.chmod(0o755)

    def test_second_load_comes_from_the_cache_until_a_file_changes(self, home, monkeypatch):
        write_webkb(home / "data/texas/raw")
        runs = []

        def count(paths):
            runs.append(1)
            return read(paths)

        read = READERS["word-lists"]
        monkeypatch.setitem(READERS, "word-lists", count)
        for _ in range(2):
            load_named("texas", home / "data")
        assert len(runs) == 1
        edges = home / "data/texas/raw/out1_graph_edges.txt"
        edges.write_text(edges.read_text() + "0\t3\n")
        assert load_named("texas", home / "data").num_edges == 3
        assert len(runs) == 2

    def test_damaged_cache_is_rebuilt(self, home):
        write_webkb(home / "data/texas/raw")
        expected = load_named("texas", home / "data").fingerprint()
        (store,) = (cache_root() / "processed").glob("texas-*.pt")
        whole = store.read_bytes()
        for damage in (b"", whole[: len(whole) // 2], b"garbage" * 100):
            store.write_bytes(damage)
            assert load_named("texas", home / "data").fingerprint() == expected
        assert [p.name for p in store.parent.iterdir()] == [store.name]

    def test_works_without_a_writable_cache(self, home, monkeypatch):
        write_webkb(home / "data/texas/raw")
        (home / "file").write_text("not a folder")
        monkeypatch.setenv("XDG_CACHE_HOME", str(home / "file"))
        assert load_named("texas", home / "data").num_edges == 2

    def test_defective_cornell_is_recognised_in_either_place(self, home):
        write_webkb(home / "cornell/raw", "cornell")
        text = (home / "cornell/raw/out1_node_feature_label.txt").read_text()
        write_webkb(home / "legacy/cornell/raw", "cornell")
        assert not any("defective" in note for note in load_named("cornell", home).notes)
        single = text.replace("1\t0,3,1\t1", "1\t0,3,1\t0")  # a class of one node, as in Texas
        (home / "cornell/raw/out1_node_feature_label.txt").write_text(single)
        for name in ("cornell", "cornell-legacy"):
            assert any("defective" in note for note in load_named(name, home).notes)

    @pytest.mark.slow
    def test_two_processes_at_once(self, home):
        write_webkb(home / "data/texas/raw")
        code = (
            "import sys; from longnn.data._named import load_named\n"
            "print(load_named('texas', sys.argv[1]).fingerprint())"
        )
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        runs = [
            subprocess.Popen(
                [sys.executable, "-W", "ignore", "-c", code, str(home / "data")],
                env=env,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(2)
        ]
        found = {run.communicate(timeout=120)[0].strip() for run in runs}
        assert found == {load_named("texas", home / "data").fingerprint()}
        assert len(list((cache_root() / "processed").iterdir())) == 1


class TestDownload:
    @pytest.fixture
    def online(self, home, monkeypatch):
        write_webkb(home / "web")

        def open_url(self, url, timeout):
            assert url.startswith("https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/")
            return io.BytesIO((home / "web" / url.rpartition("/")[2]).read_bytes())

        monkeypatch.setattr(urllib.request.OpenerDirector, "open", open_url)
        monkeypatch.setattr("longnn.data._rawfiles.known_sums", dict)

    def test_puts_raw_files_and_nothing_else_into_the_data_folder(self, home, online):
        d = load_named("texas", home / "data")
        assert d.num_edges == 2
        files = sorted(p.name for p in (home / "data").rglob("*") if p.is_file())
        assert files == sorted(find_named("texas").files)

    def test_goes_to_the_cache_where_the_data_folder_is_read_only(self, home, online):
        (home / "data").mkdir()
        (home / "data").chmod(0o555)
        assert load_named("texas", home / "data").num_edges == 2
        assert list((home / "data").iterdir()) == []
        assert (cache_root() / "data/texas/raw/out1_graph_edges.txt").is_file()

    def test_a_file_that_is_not_the_published_one_is_refused(self, home, online, monkeypatch):
        """Also where the last of them differs: none is kept, and none is read."""
        place, web = "texas/raw/texas_split_0.6_0.2_9.npz", home / "web/texas_split_0.6_0.2_9.npz"
        good = hashlib.sha256(web.read_bytes()).hexdigest()
        monkeypatch.setattr("longnn.data._rawfiles.known_sums", lambda: {place: "0" * 64})
        with pytest.raises(DatasetUnavailable, match=rf"_9\.npz to have .* 0{{64}} \(got {good}"):
            load_named("texas", home / "data")
        assert list((home / "data").rglob("*")) == []
        monkeypatch.setattr("longnn.data._rawfiles.known_sums", lambda: {place: good})
        assert load_named("texas", home / "data").num_edges == 2

    def test_only_https(self, tmp_path):
        with pytest.raises(ValueError, match=r"address with https:// \(got http://example"):
            fetch("http://example.org/a", tmp_path / "a", None)
        redirect = _SecureRedirects().redirect_request
        request = urllib.request.Request("https://example.org/a")
        with pytest.raises(ValueError, match=r"address with https:// \(got http://example"):
            redirect(request, None, 302, "Found", {}, "http://example.org/a")
        assert redirect(request, None, 302, "Found", {}, "https://example.org/b") is not None

    def test_every_known_sum_is_that_of_a_file(self):
        files = {f"{e.folder}/{f}" for e in list_named() for f in (*e.files, "arxiv.zip")}
        assert set(known_sums()) <= files
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in known_sums().values())
        without = {e.name for e in list_named() if f"{e.folder}/{e.files[0]}" not in known_sums()}
        unknown = {"roman-empire", "amazon-ratings", "questions", "coauthor-cs", "coauthor-physics"}
        assert without == {*unknown, "cornell", "cornell-legacy", "ogbn-arxiv"}

    def test_interrupted_download_leaves_nothing(self, home, online, monkeypatch):
        opened = urllib.request.OpenerDirector.open

        def half(self, url, timeout):
            if url.endswith("_9.npz"):
                raise ConnectionResetError("gone")
            return opened(self, url, timeout=timeout)

        monkeypatch.setattr(urllib.request.OpenerDirector, "open", half)
        with pytest.raises(DatasetUnavailable, match="ConnectionResetError: gone"):
            load_named("texas", home / "data")
        assert list((home / "data").iterdir()) == []

    def test_arxiv_is_read_from_its_archive(self, home, monkeypatch):
        tables = ("0,1\n1,2\n", "-1,-1.0\n" * 3, "0\n1\n1\n", "0\n", "1\n", "2\n")
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for file, text in zip(find_named("ogbn-arxiv").files, tables, strict=True):
                archive.writestr(f"arxiv/{file}", gzip.compress(text.encode()))
            archive.writestr("arxiv/mapping/README.md", "")

        def open_url(self, url, timeout):
            assert url == "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
            return io.BytesIO(packed.getvalue())

        monkeypatch.setattr(urllib.request.OpenerDirector, "open", open_url)
        with pytest.raises(DatasetUnavailable, match=r"SHA-256 sum 49f85c80.* \(got "):
            load_named("ogbn-arxiv", home / "data")
        monkeypatch.setattr("longnn.data._rawfiles.known_sums", dict)
        d = load_named("ogbn-arxiv", home / "data")
        files = {str(p.relative_to(home / "data/ogbn_arxiv")) for p in home.rglob("data/**/*.*")}
        assert files == set(find_named("ogbn-arxiv").files)
        assert d.data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
        assert d.data.x.unique().tolist() == [-1]  # embeddings stay as they are
        assert d.data.y.tolist() == [0, 1, 1]
        assert d.data.val_mask.tolist() == [False, True, False]
        assert d.default_split == "fixed"

    @pytest.mark.parametrize(
        ("file", "text", "match"),
        [
            ("raw/edge", "0,9\n", r"edge\.csv\.gz: Expected edges between the nodes 0\.\.2"),
            ("raw/node-feat", "a,b\n", "readable, complete table of numbers"),
            ("raw/node-label", "0\n", "Expected 3 labels"),
            ("split/time/valid", "3\n", r"valid\.csv\.gz: Expected nodes 0\.\.2"),
        ],
    )
    def test_damaged_tables_of_arxiv(self, home, file, text, match):
        tables = ("0,1\n1,2\n", "-1,-1.0\n" * 3, "0\n1\n1\n", "0\n", "1\n", "2\n")
        for name, whole in zip(find_named("ogbn-arxiv").files, tables, strict=True):
            path = home / "ogbn_arxiv" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress((text if name.startswith(file) else whole).encode()))
        with pytest.raises(DataError, match=match):
            load_named("ogbn-arxiv", home)


def test_unknown_name_offers_the_nearest():
    with pytest.raises(DataError, match=r"got 'chamelon'.*Did you mean chameleon.*Choices: cora, "):
        load_named("chamelon")


def test_data_folder_argument_then_environment_then_cache(monkeypatch, tmp_path):
    assert data_root() == cache_root() / "data"
    monkeypatch.setenv("LONGNN_DATA", str(tmp_path / "env"))
    assert data_root() == tmp_path / "env"
    assert data_root(tmp_path / "arg") == tmp_path / "arg"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_root() == tmp_path / ".cache/longnn"

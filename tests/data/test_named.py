"""Named datasets: read without writing beside them, cached, and clear when missing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
import urllib.error
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.datasets import WebKB

from longnn.data import (
    DataError,
    DatasetUnavailable,
    find_named,
    list_named,
    load_named,
    row_normalize,
)
from longnn.data._rawfiles import cache_root, data_root
from tests.data.examples import write_webkb

NAMES = [
    *("cora", "citeseer", "pubmed", "computers", "photo", "chameleon", "squirrel", "actor"),
    *("texas", "cornell", "cornell-legacy", "wisconsin", "minesweeper", "tolokers"),
    *("roman-empire", "amazon-ratings", "questions", "coauthor-cs", "coauthor-physics"),
    "ogbn-arxiv",
]


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(p.relative_to(folder)): (p.lstat().st_size, p.lstat().st_mtime_ns)
        for p in [folder, *folder.rglob("*")]
    }


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No network: PyG's downloads fail as they do then; returns who tried."""
    tried: list[str] = []

    def fail(self: Any) -> None:
        tried.append(type(self).__name__)
        raise urllib.error.URLError("Name or service not known")

    from torch_geometric import datasets

    kinds = "Planetoid Amazon WikipediaNetwork Actor WebKB HeterophilousGraphDataset Coauthor"
    for kind in kinds.split():
        monkeypatch.setattr(getattr(datasets, kind), "download", fail)
    return tried


def test_the_table_lists_what_was_promised() -> None:
    assert [entry.name for entry in list_named()] == NAMES
    for entry in list_named():
        assert entry.description
        assert entry.files
        assert entry.split in ("published", "fixed")


def test_the_lists_do_not_wait_for_torch() -> None:
    code = (
        "import sys; from longnn import data\n"
        "names = [e.name for e in (*data.list_named(), *data.list_bundled())]\n"
        "assert set(names) == data.known_names() and data.find_named('Cora').nodes == 2708\n"
        "heavy = {'torch', 'numpy', 'torch_geometric', 'pyarrow', 'scipy', 'sklearn'}\n"
        "print(sorted(heavy & set(sys.modules)), len(names))"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"[] {len(NAMES) + 2}"


def test_every_public_name_has_one_home() -> None:
    from longnn import data

    homes = [name for names in data._HOMES.values() for name in names]
    assert sorted(homes) == sorted(data.__all__)
    assert set(data.__all__) <= set(dir(data))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = data.nothing


class TestWithoutNetwork:
    @pytest.mark.parametrize("name", [n for n in NAMES if n != "ogbn-arxiv"])
    def test_one_line_says_which_files_where(
        self, name: str, home: Path, offline: list[str]
    ) -> None:
        folder = home / "data"
        with pytest.raises(DatasetUnavailable) as caught:
            load_named(name, folder)
        text = str(caught.value)
        entry = find_named(name)
        assert "\n" not in text
        assert f"in {folder / entry.folder} " in text
        assert all(file in text for file in entry.files)
        assert len(offline) == int(entry.downloadable)
        assert list(folder.rglob("*")) == []  # nothing half done is left behind

    def test_legacy_cornell_is_never_downloaded(self, home: Path, offline: list[str]) -> None:
        with pytest.raises(DatasetUnavailable, match=r"'cornell-legacy' .* cannot be downloaded"):
            load_named("cornell-legacy", home / "data")
        assert offline == []

    def test_only_missing_files_are_named(self, home: Path, offline: list[str]) -> None:
        write_webkb(home / "texas/raw")
        (home / "texas/raw/out1_graph_edges.txt").unlink()
        with pytest.raises(DatasetUnavailable) as caught:
            load_named("texas", home)
        assert re.search(r"expected the files out1_graph_edges\.txt in ", str(caught.value))

    def test_arxiv_asks_for_ogb(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "ogb", None)
        with pytest.raises(DatasetUnavailable, match="needs the optional package ogb: pip install"):
            load_named("ogbn-arxiv", home)


class TestFromRawFiles:
    def test_graph_is_undirected_normalised_and_explained(self, home: Path) -> None:
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

    def test_data_folder_is_never_written(self, home: Path) -> None:
        write_webkb(home / "data/texas/raw")
        for place in [*(home / "data").rglob("*"), home / "data"]:
            place.chmod(0o555 if place.is_dir() else 0o444)
        before = snapshot(home / "data")
        first = load_named("texas", home / "data").fingerprint()
        assert load_named("texas", home / "data").fingerprint() == first
        assert snapshot(home / "data") == before
        for place in [home / "data", *(home / "data").rglob("*")]:
            place.chmod(0o755)

    def test_second_load_comes_from_the_cache_until_a_file_changes(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_webkb(home / "data/texas/raw")
        runs = []
        process = WebKB.process

        def count(self: WebKB) -> None:
            runs.append(1)
            process(self)

        monkeypatch.setattr(WebKB, "process", count)
        for _ in range(2):
            load_named("texas", home / "data")
        assert len(runs) == 1
        edges = home / "data/texas/raw/out1_graph_edges.txt"
        edges.write_text(edges.read_text() + "0\t3\n")
        assert load_named("texas", home / "data").num_edges == 3
        assert len(runs) == 2

    def test_damaged_cache_is_rebuilt(self, home: Path) -> None:
        write_webkb(home / "data/texas/raw")
        expected = load_named("texas", home / "data").fingerprint()
        (store,) = (cache_root() / "processed").glob("texas-*.pt")
        whole = store.read_bytes()
        for damage in (b"", whole[: len(whole) // 2], b"garbage" * 100):
            store.write_bytes(damage)
            assert load_named("texas", home / "data").fingerprint() == expected
        assert [p.name for p in store.parent.iterdir()] == [store.name]

    def test_works_without_a_writable_cache(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_webkb(home / "data/texas/raw")
        (home / "file").write_text("not a folder")
        monkeypatch.setenv("XDG_CACHE_HOME", str(home / "file"))
        assert load_named("texas", home / "data").num_edges == 2

    def test_works_without_symbolic_links(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*args: object, **kwargs: object) -> None:
            raise OSError("links are not supported")

        write_webkb(home / "data/texas/raw")
        monkeypatch.setattr(Path, "symlink_to", refuse)
        assert load_named("texas", home / "data").num_edges == 2

    def test_damaged_raw_file_is_named(self, home: Path) -> None:
        write_webkb(home / "data/texas/raw")
        (home / "data/texas/raw/out1_graph_edges.txt").write_text("a\tb\n0\tx\n")
        with pytest.raises(DataError, match=r"texas/raw: Expected the files of 'texas'"):
            load_named("texas", home / "data")

    def test_defective_cornell_is_recognised_in_either_place(self, home: Path) -> None:
        write_webkb(home / "cornell/raw", "cornell")
        text = (home / "cornell/raw/out1_node_feature_label.txt").read_text()
        write_webkb(home / "legacy/cornell/raw", "cornell")
        assert not any("defective" in note for note in load_named("cornell", home).notes)
        single = text.replace("1\t0,3,1\t1", "1\t0,3,1\t0")  # a class of one node, as in Texas
        (home / "cornell/raw/out1_node_feature_label.txt").write_text(single)
        for name in ("cornell", "cornell-legacy"):
            assert any("defective" in note for note in load_named(name, home).notes)

    def test_nothing_is_printed(
        self, home: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_webkb(home / "data/texas/raw")
        monkeypatch.delenv("PYTEST_CURRENT_TEST")  # PyG is silent where it sees this
        load_named("texas", home / "data")
        assert capfd.readouterr() == ("", "")

    def test_two_processes_at_once(self, home: Path) -> None:
        write_webkb(home / "data/texas/raw")
        code = (
            "import sys; from longnn.data import load_named\n"
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
    def online(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def download(self: WebKB) -> None:
            Path(self.raw_dir).rmdir()
            write_webkb(Path(self.raw_dir), self.name)

        monkeypatch.setattr(WebKB, "download", download)

    def test_puts_raw_files_and_nothing_else_into_the_data_folder(
        self, home: Path, online: None
    ) -> None:
        d = load_named("texas", home / "data")
        assert d.num_edges == 2
        files = sorted(p.name for p in (home / "data").rglob("*") if p.is_file())
        assert files == sorted(find_named("texas").files)

    def test_goes_to_the_cache_where_the_data_folder_is_read_only(
        self, home: Path, online: None
    ) -> None:
        (home / "data").mkdir()
        (home / "data").chmod(0o555)
        assert load_named("texas", home / "data").num_edges == 2
        assert list((home / "data").iterdir()) == []
        assert (cache_root() / "data/texas/raw/out1_graph_edges.txt").is_file()

    def test_interrupted_download_leaves_nothing(
        self, home: Path, online: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def half(self: WebKB) -> None:
            (Path(self.raw_dir) / "out1_graph_edges.txt").write_text("a\tb\n")
            raise ConnectionResetError("gone")

        monkeypatch.setattr(WebKB, "download", half)
        with pytest.raises(DatasetUnavailable, match="ConnectionResetError: gone"):
            load_named("texas", home / "data")
        assert list((home / "data").iterdir()) == []

    def test_arxiv_goes_through_ogb(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        class FakeOgb:
            def __init__(self, name: str, root: str) -> None:
                assert name == "ogbn-arxiv"
                for file in find_named("ogbn-arxiv").files:
                    path = Path(root) / "ogbn_arxiv" / file
                    path.parent.mkdir(parents=True, exist_ok=True)
                    if not path.exists():
                        path.write_text(file)

            def __getitem__(self, index: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
                edges = np.array([[0, 1], [1, 2]])
                x = -np.ones((3, 2), dtype=np.float32)
                return {"node_feat": x, "edge_index": edges}, np.array([[0], [1], [1]])

            def get_idx_split(self) -> dict[str, np.ndarray]:
                return {"train": np.array([0]), "valid": np.array([1]), "test": np.array([2])}

        module = types.ModuleType("ogb.nodeproppred")
        module.NodePropPredDataset = FakeOgb  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "ogb", types.ModuleType("ogb"))
        monkeypatch.setitem(sys.modules, "ogb.nodeproppred", module)
        d = load_named("ogbn-arxiv", home / "data")
        assert d.data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
        assert d.data.x.unique().tolist() == [-1]  # embeddings stay as they are
        assert d.data.val_mask.tolist() == [False, True, False]
        assert d.default_split == "fixed"


def test_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(DataError, match=r"got 'chamelon'.*Did you mean chameleon.*Choices: cora, "):
        load_named("chamelon")


def test_names_forgive_case_and_underscores() -> None:
    assert find_named(" Roman_Empire ").name == "roman-empire"


def test_data_folder_argument_then_environment_then_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert data_root() == cache_root() / "data"
    monkeypatch.setenv("LONGNN_DATA", str(tmp_path / "env"))
    assert data_root() == tmp_path / "env"
    assert data_root(tmp_path / "arg") == tmp_path / "arg"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_root() == tmp_path / ".cache/longnn"

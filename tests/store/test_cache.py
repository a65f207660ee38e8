"""Files that memory does not hold are prepared in a cache, once, and used again."""

import gzip
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from longnn.data import DataError, Source
from longnn.store import prepare
from longnn.store._arrays import StoreError
from longnn.store._disk import bytes_needed, load_source, size_of_files
from tests.commands import longnn, succeed

EDGES, NODES = 4000, 900


@pytest.fixture
def files(tmp_path):
    """A graph in CSV files, with three columns of features."""
    folder = tmp_path / "club"
    folder.mkdir()
    edges = [f"{(7 * i) % NODES},{(i * i + 1) % NODES}" for i in range(EDGES)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    rows = [f"{i},{'ab'[i % 2]},{i % 7},{i % 5},{i / NODES:.4f}" for i in range(NODES)]
    (folder / "nodes.csv").write_text("\n".join(["id,label,x,y,z", *rows]) + "\n")
    return folder


def only_folder(cache):
    (folder,) = (cache / "graphs").iterdir()
    return folder


def test_files_that_fit_are_left_alone(files, tmp_path):
    for source, memory in ((files, 10**9), (files, None), ("csbm", 1)):
        assert load_source(Source.resolve(source), memory=memory).disk is None
    assert [p.name for p in files.parent.iterdir()] == ["club"]


def test_others_are_prepared_once_in_the_cache(files, tmp_path):
    """Keyed by files, options and encoding; made again where files change or it was deleted."""
    notes, cache = [], tmp_path / "cache"
    source = Source.resolve(files)

    def stored(source, **options):
        given = {"memory": 1, "cache": cache, "on_note": notes.append, **options}
        return load_source(source, **given).disk.graph

    made = stored(source)
    assert made.folder == only_folder(cache)
    assert made.folder.name.startswith("club-")
    assert len(notes) == 1
    assert notes[0].endswith(f"are prepared once, in {made.folder}")
    assert {p.name for p in files.parent.iterdir()} == {"club", "cache"}
    stamp = (made.folder / "manifest.json").stat().st_mtime_ns
    again = stored(source)
    assert (again.folder / "manifest.json").stat().st_mtime_ns == stamp
    entries = made.num_entries
    dataset = load_source(source, memory=1, cache=cache)
    assert dataset.source == source
    shutil.rmtree(cache)
    assert load_source(source, memory=1, cache=cache).fingerprint() == dataset.fingerprint()
    with (files / "edges.csv").open("a") as file:
        file.write("1,2\n5,1\n")
    assert stored(source).num_entries == entries + 4
    other = stored(Source.resolve(files, options={"feature_columns": "x"}))
    like = stored(Source.resolve(files), like=other.encoding)
    assert len({made.folder, other.folder, like.folder}) == 3
    assert (other.num_features, like.num_features) == (1, 1)


def test_a_folder_of_another_version_is_left_alone(files, tmp_path, monkeypatch):
    """Its files may be others: a graph is prepared again, beside it."""
    cache = tmp_path / "cache"
    monkeypatch.setattr("longnn.store._disk.VERSION", 0)
    old = load_source(Source.resolve(files), memory=1, cache=cache).disk.graph.folder
    (old / "foreign.npy").touch()
    monkeypatch.undo()
    assert load_source(Source.resolve(files), memory=1, cache=cache).disk.graph.folder != old


def test_the_cache_is_the_folder_of_the_environment(files, tmp_path, monkeypatch):
    monkeypatch.setenv("LONGNN_CACHE", str(tmp_path / "here"))
    graph = load_source(Source.resolve(files), memory=1).disk.graph
    assert graph.folder == only_folder(tmp_path / "here")


def test_a_prepared_folder_is_used_as_it_is(files, tmp_path):
    made = prepare(files, output=tmp_path / "made")
    source = Source.resolve(made.folder)
    assert load_source(source, memory=1).disk.graph.folder == made.folder
    assert load_source(source, memory=10**9).disk is None
    asked = Source.resolve(made.folder, options={"label_column": "x"})
    with pytest.raises(DataError, match=r"as it was read \(got label_column=\['x'\]"):
        load_source(asked, memory=1)


def test_what_cannot_be_prepared(files, tmp_path, monkeypatch):
    asked = Source.resolve(files, options={"features": "identity"})
    assert load_source(asked, memory=1).disk is None
    given = {"memory": 1, "cache": tmp_path / "cache"}
    full = lambda folder: shutil._ntuple_diskusage(1, 1, 10)  # noqa: E731
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", full)
        with pytest.raises(StoreError, match=r"free for .*cache.* \(got 10 bytes\); .*--cache"):
            load_source(Source.resolve(files), **given)
    (files / "edges.csv").write_text("")
    with pytest.raises(DataError, match=r"edges.csv: Expected"):  # by whoever reads it
        load_source(Source.resolve(files), **given)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "arrow"])
def test_the_size_is_about_right_before_a_row_is_read(files, kind):
    for name in ("edges", "nodes"):
        old = files / f"{name}.csv"
        table = pyarrow.csv.read_csv(old)
        if kind == "csv.gz":
            with gzip.open(files / f"{name}.csv.gz", "wb") as file:
                file.write(old.read_bytes())
        elif kind == "parquet":
            pyarrow.parquet.write_table(table, files / f"{name}.parquet")
        elif kind == "arrow":
            place = str(files / f"{name}.arrow")
            with pa.OSFile(place, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
        if kind != "csv":
            old.unlink()
    exact = bytes_needed(nodes=NODES, features=4, entries=2 * EDGES)
    found = bytes_needed(**size_of_files(Source.resolve(files)))
    wide = {"csv.gz": 3, "csv": 1.3}.get(kind, 1.0001)
    assert exact / wide <= found <= exact * wide


def test_the_commands_use_the_cache(files, monkeypatch, no_report):
    """Nothing is written beside the files; a deleted cache is made again; predict prepares, too."""
    monkeypatch.chdir(files.parent)
    given = ("--memory", "1K", "--cache", "kept")
    settings = ("--preset", "fast", "--set", "epochs=2", "--set", "baselines=false")
    done = longnn("train", "club", *given, *settings, "--output", "run")
    assert done.exit_code == 0, done.output
    (line,) = [line for line in done.stderr.splitlines() if "prepared" in line and "once" in line]
    assert line.startswith("note: the files of club, which take about ")
    assert "of memory, are prepared once, in kept/graphs/club-" in line
    assert sorted(p.name for p in files.parent.iterdir()) == ["club", "kept", "run"]
    shutil.copytree("club", "new")
    succeed("predict", "run", "new", *given, "--output", "new.parquet")
    assert len([*Path("kept/graphs").iterdir()]) == 2
    shutil.rmtree("kept")
    monkeypatch.setenv("LONGNN_CACHE", "other")
    assert "test" in succeed("evaluate", "run")
    succeed("predict", "run", "--output", "again.parquet")
    tables = [pyarrow.parquet.read_table(p) for p in ("new.parquet", "again.parquet")]
    assert tables[0]["predicted"].equals(tables[1]["predicted"])


def test_prepare_fills_the_cache_ahead_of_time(files, monkeypatch):
    monkeypatch.chdir(files.parent)
    succeed("prepare", "club", "--cache", "kept", "--quiet")
    assert sorted(p.name for p in files.parent.iterdir()) == ["club", "kept"]
    made = only_folder(Path("kept").absolute())
    stamp = (made / "manifest.json").stat().st_mtime_ns
    used = load_source(Source.resolve("club"), memory=1, cache="kept").disk.graph.folder
    assert used == made
    assert (used / "manifest.json").stat().st_mtime_ns == stamp

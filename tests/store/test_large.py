"""Files that memory does not hold are prepared beside them, once, and used again."""

import gzip
import os

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from longnn.data import DataError, Source
from longnn.store import GraphStore, is_prepared, prepare, prepare_large
from longnn.store._large import memory_of_files
from longnn.store._rows import bytes_needed
from tests.commands import longnn

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


def test_files_that_fit_are_left_alone(files):
    source = Source.resolve(files)
    assert prepare_large(source, memory=10**9) is source
    assert prepare_large(source) is source
    named = Source.resolve("csbm")
    assert prepare_large(named, memory=1) is named
    assert [p.name for p in files.parent.iterdir()] == ["club"]


def test_others_are_prepared_once(files):
    notes = []
    given = {"memory": 1, "on_note": notes.append}
    made = prepare_large(Source.resolve(files), **given)
    place = files.parent / "club-prepared"
    assert made == Source.resolve(place)
    assert len(notes) == 1
    assert "are prepared once, in" in notes[0]
    before = (place / "manifest.json").stat().st_mtime_ns
    assert prepare_large(Source.resolve(files), **given) == made
    assert prepare_large(made, **given) is made
    assert (place / "manifest.json").stat().st_mtime_ns == before
    with (files / "edges.csv").open("a") as file:
        file.write("1,2\n5,1\n")
    edges = GraphStore.open(place).num_entries
    assert prepare_large(Source.resolve(files), **given) == made
    assert GraphStore.open(place).num_entries == edges + 4


def test_what_a_user_prepared_is_used_or_left(files):
    place = files.parent / "club-prepared"
    prepare(files, output=place)
    assert prepare_large(Source.resolve(files), memory=1).graph == str(place)
    prepare(files, output=place, ignore_weights=True)  # in another way
    made = prepare_large(Source.resolve(files), memory=1)
    assert made.graph == f"{place}-2"
    assert GraphStore.open(place).about["source"]["ignore_weights"]
    other = prepare_large(Source.resolve(files, options={"feature_columns": "x"}), memory=1)
    assert other.graph == f"{place}-3"


def test_foreign_folders_are_left_alone(files):
    (files.parent / "club-prepared").mkdir()
    (files.parent / "club-prepared" / "thesis.tex").write_text("x")
    made = prepare_large(Source.resolve(files / "edges.csv"), memory=1)
    assert made.graph == str(files.parent / "club-prepared-2")
    assert (files.parent / "club-prepared" / "thesis.tex").exists()


def test_beside_files_that_are_read_only_is_the_current_folder(files, tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    made = prepare_large(Source.resolve(files), memory=1)
    assert made.graph == str(here / "club-prepared")


def test_what_cannot_be_prepared(files):
    asked = Source.resolve(files, options={"text_columns": "label"})
    assert prepare_large(asked, memory=1) is asked
    text = (files / "edges.csv").read_text().replace("target\n", "target,weight\n")
    lines = [line if i == 0 else f"{line},2" for i, line in enumerate(text.splitlines())]
    (files / "edges.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"without weights.*give more with --memory"):
        prepare_large(Source.resolve(files), memory=1)
    (files / "edges.csv").write_text("")
    broken = Source.resolve(files)
    assert prepare_large(broken, memory=1) is broken  # whoever reads it says what is wrong


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
    found = memory_of_files(Source.resolve(files))
    wide = {"csv.gz": 3, "csv": 1.3}.get(kind, 1.0001)
    assert exact / wide <= found <= exact * wide


def test_the_command_says_so_in_a_line(files, monkeypatch):
    monkeypatch.chdir(files.parent)
    monkeypatch.setattr("longnn.report.write_report", lambda record: None)
    given = ["train", "club", "--memory", "1K", "--preset", "fast", "--set", "epochs=2"]
    done = longnn(*given, "--set", "baselines=false")
    assert done.exit_code == 0, done.output
    lines = [line for line in done.stderr.splitlines() if "prepared" in line]
    assert len(lines) == 1
    assert lines[0].startswith("note: the files of club, which take about ")
    assert lines[0].endswith("of memory, are prepared once, in club-prepared")
    assert is_prepared("club-prepared")
    assert (files.parent / "runs" / "club-lon" / "record.json").exists()

"""What is wrong with files, disk or memory is one clear line, and nothing looks finished."""

import errno
import signal
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from lab.generator import generate
from longnn.data import DataError
from longnn.store import prepare
from longnn.store._arrays import StoreError
from longnn.store._graph import GraphStore
from tests.commands import CLUB, fail, longnn, start, succeed, succeed_json
from tests.store.graphs import verify


@pytest.fixture
def files(tmp_path):
    """Edges and nodes in Parquet files of a folder."""
    folder = tmp_path / "graph"
    folder.mkdir()
    rng = np.random.default_rng(0)
    edges = rng.integers(50, size=(2, 200)) + 1000
    pyarrow.parquet.write_table(
        pa.table({"source": edges[0], "target": edges[1]}), folder / "edges.parquet"
    )
    write_nodes(folder, id=np.arange(1000, 1050))
    return folder


def write_nodes(folder, **columns):
    size = len(columns["id"])
    table = {"f": np.arange(size) * 0.5, "label": ["a", "b"] * (size // 2), **columns}
    pyarrow.parquet.write_table(pa.table(table), folder / "nodes.parquet")


def leftovers(folder):
    return [path.name for path in folder.iterdir()] if folder.exists() else []


def refuse(kind, message, *arguments, output, **options):
    """The error is raised, and nothing is left that looks finished."""
    with pytest.raises(kind, match=message):
        prepare(*arguments, output=output, **options)
    assert leftovers(output) == []
    with pytest.raises(StoreError):
        GraphStore.open(output)


@pytest.mark.parametrize("stem", ["edges", "nodes"])
@pytest.mark.parametrize("damage", ["cut off", "pages of zeros"])
def test_damaged_parquet(files, tmp_path, stem, damage):
    """Without its footer, or with a footer that is whole and content that is not."""
    path = files / f"{stem}.parquet"
    content = path.read_bytes()
    cut = damage == "cut off"
    path.write_bytes(content[:-20] if cut else content[:4] + bytes(196) + content[200:])
    message = f"{stem}.parquet: .*complete parquet file" if cut else "Expected"
    refuse(DataError if cut else ValueError, message, files, output=tmp_path / "made")


def test_folders_that_are_no_graph(files, tmp_path):
    (tmp_path / "empty").mkdir()
    refuse(
        DataError,
        r"or parts of a table, in the folder \(found none\)",
        tmp_path / "empty",
        output=tmp_path / "a",
    )
    wide = {"features": "identity"}
    refuse(DataError, "'identity', which is as wide", files, output=tmp_path / "b", options=wide)
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    (mixed / "a.csv").write_text("a,b\n1,2\n")
    (mixed / "b.parquet").write_bytes(b"PAR1")
    refuse(DataError, r"of one kind.*\(got \.csv, \.parquet;", mixed, output=tmp_path / "d")
    made = prepare(CLUB, output=tmp_path / "made")
    refuse(StoreError, "prepared already", made.folder, output=tmp_path / "e")


def test_parts_of_other_columns(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    pyarrow.parquet.write_table(pa.table({"a": [1], "b": [2]}), folder / "1.parquet")
    pyarrow.parquet.write_table(pa.table({"a": [1], "c": [2]}), folder / "2.parquet")
    refuse(DataError, r"2.parquet: .*\(got no 'b'\)", folder, output=tmp_path / "made")
    text = tmp_path / "text"
    text.mkdir()
    for name, columns in (("1.csv", "a,b"), ("2.csv", "a,c")):
        (text / name).write_text(f"{columns}\n1,2\n")
    refuse(DataError, r"2.csv: .*in every part \(got no 'b'\)", text, output=tmp_path / "made")


def test_a_full_disk(files, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("longnn.store._arrays.ArrayWriter.append", full)
        refuse(OSError, "No space left", files, output=tmp_path / "made")


def test_an_output_that_cannot_be_written(files, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Expected to write"):
        prepare(files, output=tmp_path / "file" / "made")


def test_two_at_once(files, tmp_path):
    import fcntl

    made = tmp_path / "made"
    made.mkdir()
    with (made / ".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StoreError, match="another process is at work"):
            prepare(files, output=made)
    prepare(files, output=made)


def test_what_an_interrupted_preparation_left_is_removed(files, tmp_path):
    made = tmp_path / "made"
    (made / ".preparing").mkdir(parents=True)
    (made / ".preparing" / "tables.duckdb").write_text("half of one")
    (made / "neighbours.npy").write_bytes(b"half of one")
    graph = prepare(files, output=made)
    verify(graph)
    assert sorted(leftovers(made)) == sorted([*graph.manifest.files, "manifest.json"])


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_preparation_starts_over(tmp_path, sign):
    generate(tmp_path / "files", nodes=200_000, edges=2_000_000, features=8)
    made = tmp_path / "made"
    process = start("prepare", tmp_path / "files", "--output", made)
    while not (made / "neighbours.npy").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(sign)
    _, error = process.communicate()
    assert not (made / "manifest.json").exists()
    if sign == signal.SIGINT:
        assert process.returncode == 130
        assert error.splitlines()[-1].startswith("interrupted; nothing was kept")
        assert leftovers(made) == []
    graph = prepare(tmp_path / "files", output=made)
    verify(graph)


# The commands


def test_the_commands_end_with_the_next_step(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = longnn("prepare", "graph", "--output", "made", "--memory", "500M")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    words = "graph nodes edges features degree components labelled classes homophily on"
    assert [line.split()[0] for line in lines] == words.split()
    assert lines[1].split() == ["nodes", "50"]
    assert result.stderr.splitlines()[-1] == "next: longnn train made"
    assert succeed("prepare", "graph", "--output", "made", "--quiet") == ""
    printed = succeed_json("prepare", "graph", "--output", "made")
    assert (printed["nodes"], printed["features"], printed["classes"]) == (50, 1, ["a", "b"])


def test_mistakes_are_one_line(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "such as 4G" in fail("prepare", "graph", "--memory", "lots")
    assert "a prepared folder" in fail("prepare", "graph", "--like", "nowhere")

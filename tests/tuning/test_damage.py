"""Storages that are files, torn or damaged: recovered, or named with the remedy."""

import errno
import json
import os
import sqlite3

import pytest

from longnn.tuning import _storage as storages
from longnn.tuning._storage import default_url
from tests.tuning.examples import SPACE, search, values

FEW = {"trials": 4, "batch": 2, "repeats": 1}


def run(dataset, storage, **options):
    """A search without a folder: figures take longer than these trials."""
    return search(dataset, None, SPACE, storage=storage, **{**FEW, **options})


@pytest.fixture(scope="module")
def stored(dataset, tmp_path_factory):
    """The bytes of a journal and of a database with a search of two trials."""
    folder = tmp_path_factory.mktemp("stored")
    run(dataset, f"journal://{folder}/s.log", trials=2)
    run(dataset, f"sqlite:///{folder}/s.db", trials=2)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("cut", [1, 20, 400])
def test_a_torn_journal_goes_on_from_its_last_whole_line(dataset, tmp_path, cut):
    path = tmp_path / "s.log"
    first = run(dataset, f"journal://{path}")
    path.write_bytes(path.read_bytes()[:-cut])
    again = run(dataset, f"journal://{path}")
    assert again.record.finished == 4
    if cut < 400:  # the last write of the last trial
        assert again.value == first.value
    for line in path.read_text().splitlines():
        assert "op_code" in json.loads(line)
    assert values(run(dataset, f"journal://{path}")) == values(again)


def test_a_full_disk_tears_no_journal(dataset, tmp_path, monkeypatch):
    """The disk is full in the middle of a line; then there is room again."""
    path = tmp_path / "s.log"
    run(dataset, f"journal://{path}", trials=2)

    def full(self, logs):
        with path.open("ab") as file:
            file.write(b'{"op_code":4,"worker')
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    message = r"Expected to write .*s\.log \(No space left on device\)"
    with monkeypatch.context() as patch:
        patch.setattr(storages.JournalFileBackend, "append_logs", full)
        with pytest.raises(OSError, match=message):
            run(dataset, f"journal://{path}")
    assert run(dataset, f"journal://{path}").record.finished == 4
    for line in path.read_text().splitlines():
        assert "op_code" in json.loads(line)


@pytest.mark.parametrize(
    "damage", [b"\0\0\0\n", b"[1]\n", b'{"op_code": 99}\n', b'{"op_code": 5}\n', b"\xff\n"]
)
def test_a_damaged_journal_is_named(dataset, stored, tmp_path, damage):
    path = tmp_path / "s.log"
    lines = stored["s.log"].splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], damage, *lines[3:]]))
    message = rf"Expected {path} to hold a search \(it is damaged.*\); restore a copy of {path}, or"
    with pytest.raises(ValueError, match=message):
        run(dataset, f"journal://{path}")


def execute(statement):
    def change(path):
        connection = sqlite3.connect(path)
        connection.execute(statement)
        connection.commit()
        connection.close()

    return change


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_text("not a database " * 400),
        lambda path: path.write_bytes(path.read_bytes()[:5000]),
        lambda path: path.write_bytes(path.read_bytes()[:4096] + bytes(path.stat().st_size - 4096)),
        execute("UPDATE trials SET state = 'NONSENSE'"),
        execute("UPDATE trial_user_attributes SET value_json = '{'"),
        execute("UPDATE trial_user_attributes SET value_json = '3'"),
        execute("DELETE FROM trial_user_attributes WHERE key = 'values'"),
        execute("UPDATE trial_user_attributes SET value_json = '{}' WHERE key = 'worker'"),
        execute("UPDATE study_user_attributes SET value_json = '[]'"),
        execute("UPDATE trial_params SET distribution_json = '{}'"),
        execute("ALTER TABLE trial_params DROP COLUMN param_value"),
        execute("UPDATE alembic_version SET version_num = 'none'"),
    ],
)
def test_a_damaged_database_is_named(dataset, stored, tmp_path, damage):
    path = tmp_path / "s.db"
    path.write_bytes(stored["s.db"])
    damage(path)
    message = rf"Expected {path} to hold a search \(it is damaged.*\); restore a copy of {path}, or"
    with pytest.raises(ValueError, match=message):
        run(dataset, f"sqlite:///{path}")


@pytest.mark.parametrize("name", ["a b", "50%20", "what?", "a#b", "ä", "{a}"])
def test_any_folder_holds_its_database(dataset, tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    run(dataset, default_url(folder), trials=1)
    assert [path.name for path in folder.iterdir()] == ["search.db"]

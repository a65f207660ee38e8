"""Fixtures of the search's tests: a graph, workers in processes, a PostgreSQL server."""

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.tuning.examples import graph

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def dataset():
    return graph()


@pytest.fixture
def start_worker(tmp_path):
    """Start workers; whatever still runs in the end is killed."""
    started = []

    def start(storage, trials, *, pause=0.0):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        arguments = (storage, tmp_path, trials, pause)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.tuning.worker", *map(str, arguments)],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def _find_server():
    """The newest PostgreSQL of the machine, and how to run it: it refuses to run as root."""
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda path: [int(n) if n.isdigit() else 0 for n in path.parent.name.split(".")],
    )
    on_path = shutil.which("initdb")
    folders += [Path(on_path).parent] if on_path else []
    folders = [f for f in folders if (f / "initdb").exists() and (f / "postgres").exists()]
    if not folders:
        pytest.skip("no PostgreSQL server: apt-get install postgresql")
    if os.geteuid() != 0:
        return folders[-1], None
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("running as root without a user `postgres` to run the server as")
    if shutil.which("runuser") is None:
        pytest.skip("running as root without `runuser` to leave it")
    return folders[-1], user


@pytest.fixture(scope="session")
def postgresql():
    """The URL of a PostgreSQL server that lives as long as the tests."""
    pytest.importorskip("psycopg", reason='no PostgreSQL driver: pip install "longnn[postgres]"')
    programs, user = _find_server()
    # Not pytest's folder: the server's user cannot enter that.
    folder = Path(tempfile.mkdtemp(prefix="longnn-postgresql-"))
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data, log = folder / "data", folder / "log"

    def call(program, *arguments):
        leave_root = ["runuser", "-u", "postgres", "--"] if user is not None else []
        command = [*leave_root, programs / program, "-D", data, *arguments]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=60)

    options = f"-p {port} -c listen_addresses=127.0.0.1 -c fsync=off -k {folder}"
    try:
        call("initdb", "--auth=trust", "--username=longnn", "--no-sync", "--encoding=UTF8")
        call("pg_ctl", "-l", log, "-o", options, "-w", "start")
        try:
            yield f"postgresql://longnn@127.0.0.1:{port}/postgres"
        finally:
            call("pg_ctl", "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)

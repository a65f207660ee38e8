"""Fixtures of the search's tests: a graph, workers in processes, a PostgreSQL server."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import pytest

from tests.tuning.examples import graph

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def dataset():
    return graph()


@pytest.fixture
def start_worker():
    """Start workers; whatever still runs in the end is killed."""
    started = []

    def start(storage, trials, *, pause=0.0):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "tests.tuning.worker", storage, str(trials), str(pause)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, cwd=ROOT, env=environment, **pipes)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def _find_server():
    """The newest PostgreSQL of the machine, and how to run it: it refuses to run as root."""
    on_path = shutil.which("initdb")
    folders = [
        *Path("/usr/lib/postgresql").glob("*/bin"),
        *([Path(on_path).parent] if on_path else []),
    ]
    folders = [f for f in folders if (f / "initdb").exists() and (f / "postgres").exists()]
    if not folders:
        pytest.skip("no PostgreSQL server: apt-get install postgresql")
    newest = max(folders, key=lambda f: [int(n) for n in f.parent.name.split(".") if n.isdigit()])
    if os.geteuid() != 0:
        return newest, None
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("running as root without a user `postgres` to run the server as")
    if shutil.which("runuser") is None:
        pytest.skip("running as root without `runuser` to leave it")
    return newest, user


class Server:
    """A PostgreSQL server that can be restarted and killed; the user runs it, not root."""

    def __init__(self, folder, programs, user):
        self.folder, self.programs, self.user = folder, programs, user
        self.data = folder / "data"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c fsync=off -k {folder}"
        self.call("initdb", "--auth=trust", "--username=longnn", "--no-sync", "--encoding=UTF8")
        self.start()

    def call(self, program, *arguments):
        leave_root = ["runuser", "-u", "postgres", "--"] if self.user is not None else []
        command = [*leave_root, self.programs / program, "-D", self.data, *arguments]
        subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.DEVNULL, timeout=60)

    def start(self):
        self.call("pg_ctl", "-l", self.folder / "log", "-o", self.options, "-w", "start")

    def stop(self, mode="immediate"):
        self.call("pg_ctl", "-m", mode, "-w", "stop")

    def kill(self):
        """Kill the server's first process; the others follow it."""
        pid = int((self.data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(pid, signal.SIGKILL)
        while any(Path(f"/proc/{child}").exists() for child in children):
            time.sleep(0.05)

    def execute(self, statement):
        import psycopg  # not installed everywhere

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement)

    def url(self, database):
        return f"postgresql://longnn@127.0.0.1:{self.port}/{database}"


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL server that lives as long as the tests."""
    pytest.importorskip("psycopg", reason='no PostgreSQL driver: pip install "longnn[postgres]"')
    programs, user = _find_server()
    # Not pytest's folder: the server's user cannot enter that.
    folder = Path(tempfile.mkdtemp(prefix="longnn-postgresql-"))
    try:
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        made = Server(folder, programs, user)
        yield made
        made.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgresql(server):
    """The URL of a new database of the server."""
    name = f"test_{uuid.uuid4().hex}"
    server.execute(f"CREATE DATABASE {name}")
    return server.url(name)


@pytest.fixture
def storage_url(request, tmp_path):
    """The URL of a new storage of a kind."""
    if request.param == "postgresql":
        return request.getfixturevalue("postgresql")
    names = {"sqlite": "sqlite:///{}/search.db", "journal": "journal://{}/search.log"}
    return names[request.param].format(tmp_path)

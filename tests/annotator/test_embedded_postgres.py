"""The server of a VAR_DIR: many users, none left over, none lost."""

import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import psycopg2
import pytest

from annotator.postgres.embedded import DATABASE, EmbeddedPostgres
from annotator.postgres.guardian import EmbeddedPostgresError, Layout
from tests import ROOT
from tests.processes import wait_for

USER = """
import sys
import tempfile
from pathlib import Path
from annotator.postgres.embedded import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]))
server.ensure()
print("ready", flush=True)
sys.stdin.read()
"""


class User:
    """Another process that uses the server until its standard input ends."""

    def __init__(self, var_dir):
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, str(var_dir)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ready(self):
        assert self.process.stdout.readline() == "ready\n"
        return self

    def leave(self):
        self.process.communicate()

    def kill(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def var_dir(tmp_path):
    folder = tmp_path / "var"
    yield folder
    server = EmbeddedPostgres(folder)
    if server.layout.users_lock.exists():
        server.leave(wait=True)


def postmasters(var_dir):
    """The servers' main processes on a state folder."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if str(Layout(var_dir).data) in (process.info["cmdline"] or []):
            found.append(process.pid)
    return found


def ask(var_dir, statement):
    """The first value that a statement returns; None for one that returns nothing."""
    connection = psycopg2.connect(
        host=str(Layout(var_dir).socket_dir), user="postgres", dbname=DATABASE
    )
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchone()[0] if cursor.description else None
    finally:
        connection.close()


def gone(var_dir):
    return lambda: not postmasters(var_dir)


@pytest.mark.faults
def test_many_first_users_at_once_share_one_server_that_stops_with_the_last(var_dir):
    users = [User(var_dir) for _ in range(6)]
    for user in users:
        user.ready()
    assert len(postmasters(var_dir)) == 1
    for user in users[:-1]:
        user.kill()
    assert ask(var_dir, "SELECT 1") == 1
    users[-1].kill()
    wait_for(gone(var_dir), seconds=15, what="the server to stop")
    assert not (Layout(var_dir).data / "postmaster.pid").exists()


@pytest.mark.faults
def test_users_who_come_while_it_stops_get_it_started_again(var_dir):
    User(var_dir).ready().leave()
    for _ in range(4):
        user = User(var_dir).ready()
        assert ask(var_dir, "SELECT 1") == 1
        user.leave()


@pytest.mark.faults
def test_a_killed_server_is_started_again_with_what_was_committed(var_dir):
    server = EmbeddedPostgres(var_dir)
    server.ensure()
    ask(var_dir, "CREATE TABLE kept (n int)")
    for number in range(3):
        ask(var_dir, f"INSERT INTO kept VALUES ({number})")
        (postmaster,) = postmasters(var_dir)
        os.kill(postmaster, signal.SIGKILL)
        server.ensure()
        assert ask(var_dir, "SELECT count(*) FROM kept") == number + 1
    server.leave(wait=True)
    assert postmasters(var_dir) == []


@pytest.mark.faults
def test_a_killed_guardian_takes_its_server_with_it_and_both_come_back(var_dir):
    server = EmbeddedPostgres(var_dir)
    server.ensure()
    (postmaster,) = postmasters(var_dir)
    os.kill(psutil.Process(postmaster).ppid(), signal.SIGKILL)
    wait_for(lambda: postmaster not in postmasters(var_dir), seconds=15, what="the server to stop")
    server.ensure()
    assert ask(var_dir, "SELECT 1") == 1
    server.leave(wait=True)


def test_it_is_durable_and_reached_by_no_network_and_no_other_person(tmp_path):
    """In a folder whose name is odd and long, after an interrupted first start."""
    var_dir = tmp_path / ("ünïcode, comma and space" + "x" * 120)
    draft = var_dir / "postgres-draft-old"
    draft.mkdir(parents=True)
    (draft / "PG_VERSION").write_text("18\n")
    server = EmbeddedPostgres(var_dir)
    server.ensure()
    try:
        assert not draft.exists()
        for name, value in (
            ("fsync", "on"), ("full_page_writes", "on"), ("synchronous_commit", "on"),
            ("listen_addresses", ""), ("server_encoding", "UTF8"),
        ):  # fmt: skip
            assert ask(var_dir, f"SHOW {name}") == value, name
        for folder in (server.layout.socket_dir, server.layout.data):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        for extension in ("vector", "pg_trgm", "unaccent"):
            ask(var_dir, f"CREATE EXTENSION {extension}")
        version = ask(var_dir, "SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        assert tuple(map(int, version.split("."))) >= (0, 8, 4)
        assert ask(var_dir, "SELECT lower('ÄÉ')") == "äé"
    finally:
        server.leave(wait=True)


@pytest.mark.faults
def test_a_stale_record_that_names_a_living_stranger_does_not_hinder(var_dir):
    server = EmbeddedPostgres(var_dir)
    server.ensure()
    server.leave(wait=True)
    stranger = f"{os.getpid()}\n{server.layout.data}\n1\n5432\n\n*\n\nready\n"
    (server.layout.data / "postmaster.pid").write_text(stranger)
    server.ensure()
    assert ask(var_dir, "SELECT 1") == 1
    server.leave(wait=True)


@pytest.mark.faults
def test_what_cannot_start_says_so_and_ends_the_wait(var_dir, monkeypatch):
    monkeypatch.setattr("annotator.postgres.embedded.START_ATTEMPTS", 2)
    server = EmbeddedPostgres(var_dir)
    server.ensure()
    server.leave(wait=True)
    (server.layout.data / "postgresql.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(EmbeddedPostgresError, match="no_such_setting"):
        server.ensure()
    server.leave(wait=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_the_data_of_another_version_is_left_alone_and_said_so(var_dir):
    data = Layout(var_dir).data
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("17\n")
    with pytest.raises(EmbeddedPostgresError, match=r"PostgreSQL 17.*docs/operations\.md"):
        EmbeddedPostgres(var_dir).ensure()
    assert [path.name for path in data.iterdir()] == ["PG_VERSION"]


@pytest.mark.faults
def test_it_runs_for_a_user_who_is_not_root():
    nobody = pwd.getpwnam("nobody")
    python = shutil.which("python3.11", path="/usr/local/bin:/usr/bin")
    packages = Path(psycopg2.__file__).parents[1]
    if python is None or sys.version_info[:2] != (3, 11):
        pytest.skip("there is no Python 3.11 that every user may run")
    with tempfile.TemporaryDirectory(prefix="inquire-nobody-") as name:
        os.chown(name, nobody.pw_uid, nobody.pw_gid)
        home = Path(name)
        done = subprocess.run(
            [python, "-c", USER, str(home / "var")],
            cwd=ROOT,
            env={"PYTHONPATH": f"{ROOT}:{packages}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            user=nobody.pw_uid,
            group=nobody.pw_gid,
            extra_groups=[],
        )
        if "Permission denied" in done.stderr and "ready" not in done.stdout:
            pytest.skip("this checkout lies where other users may not read")
        assert (done.returncode, done.stdout) == (0, "ready\n")
        assert (home / "var" / "postgres").stat().st_uid == nobody.pw_uid
        wait_for(gone(home / "var"), seconds=15, what="the server to stop")

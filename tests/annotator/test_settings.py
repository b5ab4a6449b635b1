"""A wrong setting is named in one sentence, and nothing starts with it."""

import fcntl
import os
import runpy
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from annotator.environment import BadSetting
from tests import ROOT
from tests.processes import fill


def read(monkeypatch, **variables):
    """The settings that the variables make."""
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))
    return runpy.run_path(str(ROOT / "annotator/settings.py"))


@pytest.mark.parametrize(
    "way",
    [
        ("manage.py", "check"),
        ("-m", "celery", "-A", "annotator", "worker"),
        ("-m", "gunicorn", "-c", "annotator/processes/gunicorn_conf.py"),
    ],
    ids=" ".join,
)
def test_every_way_in_says_what_is_wrong(way, tmp_path):
    own = {"DJANGO_SETTINGS_MODULE": "annotator.settings", "VAR_DIR": str(tmp_path), "PORT": "abc"}
    done = subprocess.run(
        [sys.executable, *way],
        cwd=ROOT,
        env=os.environ | own,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = "PORT='abc': write a whole number.\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


def test_a_misspelled_variable_is_named_in_the_log_and_stops_nothing(tmp_path):
    own = {"VAR_DIR": str(tmp_path), "ALLOWED_HOST": "hunter2", "DATABASE_URL": "postgres://a@b/c"}
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env=os.environ | own | {"DJANGO_SETTINGS_MODULE": "annotator.settings"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = "The variable ALLOWED_HOST is set, and nothing reads it. Is ALLOWED_HOSTS meant?\n"
    assert done.stderr.count(said) == 1
    assert "WARNING annotator.apps" in done.stderr
    assert "hunter2" not in done.stderr


def test_a_wrong_value_is_named_and_no_password_repeated(tmp_path, monkeypatch):
    address = "write an address such as "
    for name, value, says in (
        ("PORT", "70000", "PORT=70000: write a number from 1 to 65535."),
        (
            "HAND_IN_RULE",
            "streak or luck",
            "HAND_IN_RULE: “luck” is not a stop rule. The rules are",
        ),
        ("DATABASE_URL", "mysql://user:hunter2@host/name", f"DATABASE_URL: {address}postgres://"),
        ("DATABASE_URL", "postgres://[/x", f"DATABASE_URL: {address}postgres://"),
        ("DATABASE_URL", "postgres://user:hunter2@host/", "DATABASE_URL names no database"),
        ("CELERY_BROKER_URL", "redis://host:a", f"CELERY_BROKER_URL: {address}redis://"),
        ("IMAGE_REDIRECT", "kept/", "IMAGE_REDIRECT=kept/: begin and end it with a slash"),
        ("S3_ENDPOINT_URL", "nonsense", f"S3_ENDPOINT_URL: {address}https://"),
    ):
        with monkeypatch.context() as patch, pytest.raises(BadSetting) as refused:
            read(patch, VAR_DIR=tmp_path, **{name: value})
        assert str(refused.value).startswith(says)
        assert "hunter2" not in str(refused.value)


def test_the_state_folder_is_closed_to_others(tmp_path, monkeypatch):
    read(monkeypatch, VAR_DIR=tmp_path / "new" / "var")
    made = [one for one in (tmp_path / "new").rglob("*") if one.is_dir()]
    assert {one.name for one in made} >= {"var", "images", "releases", "log"}
    assert {stat.S_IMODE(one.stat().st_mode) for one in made} == {0o700}


def test_what_is_written_is_closed_but_for_those_commands_that_write_for_others(tmp_path):
    own = "import os; os.umask(0o026); import annotator.settings, sys, pathlib as p"
    others = "from core.files import open_as_callers"
    script = f"""{own}
{others}
there = p.Path(sys.argv[1])
(there / "own").mkdir()
(there / "own" / "file").touch()
with open_as_callers():
    (there / "others").mkdir()
    (there / "others" / "file").touch()
(there / "last").touch()
"""
    environment = {**os.environ, "VAR_DIR": str(tmp_path / "var")}
    command = [sys.executable, "-c", script, str(tmp_path)]
    subprocess.run(command, check=True, env=environment, cwd=ROOT)
    modes = [stat.S_IMODE((tmp_path / one).stat().st_mode) for one in (
        "var", "own", "own/file", "others", "others/file", "last",
    )]  # fmt: skip
    assert modes == [0o700, 0o700, 0o600, 0o751, 0o640, 0o600]


def test_a_state_folder_that_cannot_be_one(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    (tmp_path / "images").write_text("")
    for folder, reason in (
        (tmp_path / "file/below", "Not a directory"),
        (tmp_path, "File exists"),
    ):
        with pytest.raises(BadSetting) as refused:
            read(monkeypatch, VAR_DIR=folder)
        assert str(refused.value) == f"VAR_DIR={folder} can't be used as a folder: {reason}."


def test_a_state_folder_that_only_others_may_write(tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o555)
    script = (
        "import os; from annotator.environment import Environment\n"
        # Nobody, since root may write everywhere.
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "Environment().folder('VAR_DIR', None, ())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=os.environ | {"VAR_DIR": f"{theirs}/var"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == f"VAR_DIR={theirs}/var can't be used as a folder: Permission denied.\n"


@pytest.mark.faults
def test_a_state_folder_on_a_disk_that_is_full_or_read_only(small_disk, monkeypatch):
    filler = fill(small_disk)
    with pytest.raises(BadSetting, match=f"be kept in {small_disk}: No space left on device"):
        read(monkeypatch, VAR_DIR=small_disk)
    filler.unlink()
    folder = small_disk / "var"
    read(monkeypatch, VAR_DIR=folder)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(BadSetting, match=f"VAR_DIR={folder}: nothing can be written in {folder}"):
        read(monkeypatch, VAR_DIR=folder)
    with pytest.raises(BadSetting, match="can't be used as a folder: Read-only file system"):
        read(monkeypatch, VAR_DIR=small_disk / "missing")


def test_serve_says_who_has_the_port_or_the_folder(tmp_path, settings):
    settings.VAR_DIR, settings.BIND = tmp_path, "127.0.0.1"
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        settings.PORT = other.getsockname()[1]
        with pytest.raises(CommandError) as refused:
            call_command("serve")
    assert str(refused.value) == (
        f"Cannot listen on 127.0.0.1:{settings.PORT}: Address already in use. "
        f"Stop the program that has the port, or choose another: PORT={settings.PORT % 65535 + 1}."
    )
    with Path(tmp_path / "run/serve.lock").open("w") as file:
        file.write("4711")
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(CommandError, match=rf"already runs on {tmp_path} \(process 4711\)"):
            call_command("serve")

"""Every way in says in one sentence what is wrong with a setting, and ends."""

import os
import runpy
import socket
import subprocess
import sys

import pytest

from annotator.environment import BadSetting
from tests.processes import ROOT, fill, free_port

COMMAND = ("manage.py", "check")
WAYS = [
    COMMAND,
    ("manage.py", "serve"),
    ("manage.py", "demo"),
    ("-m", "celery", "-A", "annotator", "worker"),
    ("-m", "gunicorn", "-c", "annotator/processes/gunicorn_conf.py"),
]
EXAMPLES = {
    "DATABASE_URL": "postgres://user:password@host/name",
    "CELERY_BROKER_URL": "redis://host:6379/0",
    "S3_ENDPOINT_URL": "https://s3.example.org",
}


def run(way, **variables):
    """A program with the application's own settings, run to its end."""
    return subprocess.run(
        [sys.executable, *way],
        cwd=ROOT,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "annotator.settings"} | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def complaint(way, **variables):
    """What a program says to people before it ends with status 1, which it must do."""
    done = run(way, **variables)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_every_way_in_says_what_is_wrong(way, tmp_path):
    said = complaint(way, VAR_DIR=str(tmp_path), PORT="abc")
    assert said == "PORT='abc': write a whole number.\n"


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("PORT", "70000", "PORT=70000: write a number from 1 to 65535."),
        ("IMAGE_MAX_PIXELS", "-1", "IMAGE_MAX_PIXELS=-1: write a number from 1 to 2147483647."),
        ("MINIMUM_LABELS", "x", "MINIMUM_LABELS='x': write a whole number."),
        (
            "CERTIFICATE_RECALL",
            "90",
            "CERTIFICATE_RECALL='90': write a number between 0 and 1.",
        ),
        (
            "HAND_IN_RULE",
            "streak or luck",
            "HAND_IN_RULE: “luck” is no stop rule. Known are streak, certificate:0.9, exhausted; "
            "join several by “and” or “or”.",
        ),
        ("DUE_DATE", "soon", "DUE_DATE='soon': write a date such as 2026-03-31."),
        ("HTTPS_ONLY", "maybe", "HTTPS_ONLY='maybe': write true or false."),
        (
            "LOG_LEVEL",
            "loud",
            "LOG_LEVEL='loud': write one of DEBUG, INFO, WARNING, ERROR, CRITICAL.",
        ),
        (
            "RANKING_SHARD_IMAGES",
            "1000",
            "RANKING_SHARD_IMAGES needs a Redis: set CELERY_BROKER_URL, such as "
            "redis://host:6379/0.",
        ),
        ("LOG_FORMAT", "xml", "LOG_FORMAT='xml': write one of line, json."),
        (
            "MULTIMODAL_ENDPOINTS",
            "nonsense",
            "MULTIMODAL_ENDPOINTS: 'nonsense' is not a name of its own with an address, such as "
            "local=http://127.0.0.1:8001/v1.",
        ),
        *[
            (name, value, f"{name}: write an address such as {example}.")
            for name, example in EXAMPLES.items()
            for value in ("nonsense", "mysql://host/name", "redis://host:a", "postgres://[/x")
        ],
        (
            "DATABASE_URL",
            "postgres://user:hunter2@host/",
            f"DATABASE_URL names no database: write an address such as {EXAMPLES['DATABASE_URL']}.",
        ),
    ],
)
def test_a_wrong_value_is_named_and_no_password_repeated(
    tmp_path, monkeypatch, name, value, sentence
):
    monkeypatch.setenv("VAR_DIR", str(tmp_path))
    monkeypatch.setenv(name, value)
    with pytest.raises(BadSetting) as refused:
        runpy.run_path(str(ROOT / "annotator/settings.py"))
    assert str(refused.value) == sentence


@pytest.mark.parametrize("inside", ["", "file/below"])
def test_a_state_folder_that_cannot_be_one(tmp_path, inside):
    (tmp_path / "file").write_text("")
    (tmp_path / "images").write_text("")
    folder = tmp_path / inside
    said = complaint(COMMAND, VAR_DIR=str(folder))
    reason = "Not a directory" if inside else "File exists"
    assert said == f"VAR_DIR={folder} can't be used as a folder: {reason}.\n"


def test_a_state_folder_on_a_disk_that_is_mounted_read_only(small_disk):
    complete = {"VAR_DIR": str(small_disk / "var")}
    assert run(COMMAND, **complete).returncode == 0
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    sentence = f"VAR_DIR={small_disk}/var: nothing can be written in {small_disk}/var.\n"
    assert complaint(("manage.py", "serve"), **complete) == sentence
    missing = small_disk / "missing"
    said = complaint(COMMAND, VAR_DIR=str(missing))
    assert said == f"VAR_DIR={missing} can't be used as a folder: Read-only file system.\n"


def test_a_state_folder_that_only_others_may_write(tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o555)
    script = (
        "import os; from annotator.environment import Environment\n"
        # Nobody, since root may write everywhere.
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "Environment().folder('VAR_DIR', None, ())"
    )
    said = complaint(("-c", script), VAR_DIR=f"{theirs}/var")
    assert said == f"VAR_DIR={theirs}/var can't be used as a folder: Permission denied.\n"


def test_a_state_folder_without_room_for_the_secret_key(small_disk):
    fill(small_disk)
    said = complaint(COMMAND, VAR_DIR=str(small_disk))
    sentence = f"The secret key can't be kept in {small_disk}: No space left on device.\n"
    assert said == sentence


def test_a_database_that_nobody_serves(tmp_path):
    port = free_port()
    url = f"postgres://somebody:hunter2@127.0.0.1:{port}/none"
    said = complaint(("manage.py", "migrate"), VAR_DIR=str(tmp_path), DATABASE_URL=url)
    assert said.startswith("The server's database doesn't answer now. connection to server at")
    assert f"port {port} failed: Connection refused" in said
    assert "Traceback" not in said
    assert "hunter2" not in said


def test_a_port_that_somebody_has(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        said = complaint(("manage.py", "serve"), VAR_DIR=str(tmp_path), PORT=str(port))
    assert said == (
        f"CommandError: Cannot listen on 127.0.0.1:{port}: Address already in use. "
        f"Stop the program that has the port, or choose another: PORT={port % 65535 + 1}.\n"
    )

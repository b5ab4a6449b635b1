"""What a process imports before it answers, and what it says where the database isn't set up."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from django.db import connection

from annotator.__main__ import main
from tests import ROOT
from tests.annotator.beside import database_beside, working_on
from tests.processes import free_port

SLOW = ("altair", "open_clip", "openai", "pandas", "scipy", "torch", "vl_convert")
#: Redis' own client imports the API of OpenTelemetry where it is installed.
TRACES = ("opentelemetry.exporter", "opentelemetry.instrumentation")


def test_pages_and_api_are_there_without_what_takes_long_to_import_or_isnt_used() -> None:
    code = (
        "import json, sys, annotator.wsgi, annotator.urls; print(json.dumps([*sys.modules]))\n"
        "from annotator.web.openapi import query_parameters as found\n"
        "print(found.cache_info().currsize)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "annotator.settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names, described = map(json.loads, done.stdout.splitlines())
    assert [one for one in names if one in SLOW or one.startswith(TRACES)] == []
    # No request waits until the parameters of its view are found.
    assert described > 50


def test_a_command_says_that_the_database_is_not_set_up(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["manage.py", "verify_lists"])
    says = "The database is not set up, or is older than this program. Run "
    with database_beside("empty") as name, working_on(name), pytest.raises(SystemExit, match=says):
        main()


def test_a_command_says_that_nobody_serves_the_database(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["manage.py", "migrate"])
    connection.close()
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "HOST", "127.0.0.1")
        patch.setitem(connection.settings_dict, "PORT", free_port())
        patch.setitem(connection.settings_dict, "PASSWORD", "hunter2")
        with pytest.raises(SystemExit) as said:
            main()
    connection.close()
    text = str(said.value)
    assert text.startswith("The server's database doesn't answer now. connection to server at")
    assert "Connection refused" in text
    assert "hunter2" not in text

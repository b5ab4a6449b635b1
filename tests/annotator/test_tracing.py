"""What traces by OpenTelemetry need; those of a site are in test_equipped_site.py."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib

import pytest

from tests.processes import ROOT

pytest.importorskip("opentelemetry.sdk", reason="the extra `otel` isn't installed")


def test_nothing_is_imported_without_a_collector() -> None:
    code = (
        "import django, sys; django.setup(); import annotator.wsgi; "
        # Redis' own client imports the API where it is installed.
        "print([name for name in sys.modules if name.startswith("
        "('opentelemetry.exporter', 'opentelemetry.instrumentation'))])"
    )
    assert run(code).stdout.strip() == "[]"


def test_the_extra_is_installed_where_tests_run() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    installed = (ROOT / "requirements-dev.txt").read_text().splitlines()
    assert set(project["optional-dependencies"]["otel"]) <= set(installed)


def test_missing_packages_are_named() -> None:
    code = "import sys; sys.modules['opentelemetry.sdk'] = None; import django; django.setup()"
    done = run(code, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "OTEL_EXPORTER_OTLP_ENDPOINT needs packages that are missing (opentelemetry.sdk.trace): "
        "pip install 'inquire-annotator[otel]'."
    )


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Some Python with the application's settings."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "annotator.settings"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )

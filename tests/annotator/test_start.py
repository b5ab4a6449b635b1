"""What a process imports before it answers."""

import os
import subprocess
import sys

from tests.processes import ROOT

SLOW = ("altair", "open_clip", "pandas", "scipy", "torch", "vl_convert")


def test_the_pages_and_the_api_are_there_without_what_takes_long_to_import() -> None:
    code = (
        "import sys, django; django.setup(); import annotator.urls\n"
        f"print([name for name in {SLOW!r} if name in sys.modules])"
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
    assert done.stdout.strip() == "[]"

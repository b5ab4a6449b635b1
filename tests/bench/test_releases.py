"""The benchmark of releases at a small size: everything it prints comes from a real release."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.processes import ROOT


def test_it_makes_a_release_and_says_what_it_took(tmp_path: Path) -> None:
    sizes = ["--images", "200", "--species", "20", "--judgments", "1000"]
    done = subprocess.run(
        [sys.executable, "-m", "bench.releases", *sizes],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout
    for name in (
        "Bare COPY of 1,000 judged pairs",
        "A release in all formats, without image bytes",
        "Peak memory of the process",
        "Step: Images",
        "File: judgments.csv",
        "File: inquires-size-v1.zip",
    ):
        assert re.search(rf"\| {re.escape(name)} +\|", printed), name
    # Database and files are gone.
    assert list(tmp_path.iterdir()) == []

"""The benchmark of the pages at a small size: every page is asked for, over both corpora."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.processes import ROOT


def test_it_asks_for_every_page_and_says_what_it_read(tmp_path: Path) -> None:
    sizes = ["--images", "3000", "--small", "200", "--species", "150", "--judgments", "2000"]
    done = subprocess.run(
        [sys.executable, "-m", "bench.pages", *sizes, "--rounds", "1", "--folder", str(tmp_path)],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout
    assert printed.startswith("## Pages\n"), done.stderr
    assert "| 200 images | 3,000 images | ×" in re.sub(" +", " ", printed)
    for name in ("Dashboard", "Labelling", "API: species picker", "Admin: retrieval/image"):
        assert re.search(rf"\| {re.escape(name)} +\| \d+ ", printed), printed
    held = re.search(r"holds (\d+) MB of .* over 200 images and (\d+) MB over 3,000;", printed)
    assert held, printed
    assert list(tmp_path.iterdir()) == []

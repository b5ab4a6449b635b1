"""The benchmark of imports at a small size: everything it prints comes from real imports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.benchmark.layouts import write_layout
from tests.processes import ROOT


def test_it_imports_and_says_what_it_took(tmp_path: Path) -> None:
    queries = write_layout(tmp_path / "queries")
    (tmp_path / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "bench.importing", str(queries), "--pairs", "500"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    for name in (
        "Reading 500 annotations with csv.reader",
        "import_benchmark of 500 annotations",
        "import_benchmark of 500 annotations and as many judgments",
    ):
        assert re.search(rf"\| {re.escape(name)} +\|", done.stdout), name
    # Database and files are gone.
    assert list((tmp_path / "tmp").iterdir()) == []

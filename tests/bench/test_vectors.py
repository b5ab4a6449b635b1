"""The benchmark of embeddings in files at a small size: all that it prints is measured."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.processes import ROOT


def test_it_brings_in_and_out_and_says_what_it_took(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.vectors", "--images", "1500", "--dimension", "64"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("## Embeddings from files and to files\n")
    for name, count in (
        ("bare binary COPY into a partition", "1,500"),
        ("`import_embeddings`", "1,500"),
        ("of that: finding each row's image", "1,500"),
        ("`import_embeddings` again, all there", "1,500"),
        ("`import_embeddings` of a fifth", "300"),
        ("bare binary COPY of the partition to a file", "1,500"),
        ("`export_embeddings`", "1,500"),
        ("`export_embeddings` of a fifth", "300"),
    ):
        assert re.search(rf"^\| {re.escape(name)} +\| {count} +\|", done.stdout, re.M), name
    assert "equal to the files, bit for bit." in done.stdout
    assert "not equal" not in done.stdout
    # Database and files are gone.
    assert list(tmp_path.iterdir()) == []

"""The benchmark of text search at a small size: everything it prints comes from real searches."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from bench.text_encoding import texts
from tests.processes import ROOT


def test_it_searches_in_each_way_and_says_what_was_found(tmp_path: Path) -> None:
    options = ["--images", "1500,600", "--searches", "6", "--depth", "20"]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "bench.text_search", *options),
            *("--models", "demo", "--texts", "8"),
        ],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("## Text search\n")
    assert "`python -m bench.text_search --images 1500,600 " in done.stdout
    assert re.search(r"^\| `demo` +\|(.* ms +\|){4} [0-8] of 8 +\|$", done.stdout, re.M)
    rows = re.findall(r"^\| ([\d,]+) +\| ([^|]+?) +\|.*\| (\d\.\d{3}) +\|", done.stdout, re.M)
    assert [(images, way) for images, way, _ in rows] == [
        (images, way)
        for images in ("1,500", "600")
        for way in (
            "packed matrix, exact",
            "database's scan, exact",
            "HNSW of the vectors",
            "HNSW of the signs, 10 × re-ranked",
        )
    ]
    recalls = [float(recall) for _, _, recall in rows]
    assert recalls[0] == recalls[1] == recalls[4] == recalls[5] == 1
    assert min(recalls[2], recalls[6]) > 0.9
    assert min(recalls[3], recalls[7]) > 0.5
    assert done.stdout.count("whole request for 60 results") == 2
    assert "are the same bit for bit." in done.stdout
    # Databases and files are gone.
    assert list(tmp_path.glob("bench-*")) == []


def test_its_texts_differ() -> None:
    made = texts(2000)
    assert len(set(made)) == 2000
    assert made[0] == "two small frogs at night"

"""The benchmark of embedding at a small size: its vectors are those of a real job."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from bench.embedding import trial_images
from retrieval.encoding.batch_size import BatchSize
from tests.processes import ROOT


def test_it_embeds_with_a_real_job_and_shows_both_speeds(tmp_path: Path) -> None:
    small = ["--models", "demo", "--images", "24", "--turns", "2"]
    done = subprocess.run(
        [sys.executable, "-m", "bench.embedding", *small],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path), "EMBEDDING_BATCH_SIZE": "8"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout
    assert printed.startswith("## Embedding\n")
    assert "torch" in printed.splitlines()[2]
    assert f"`python -m bench.embedding {' '.join(small)}`" in printed
    row = re.search(r"\| demo +\| 8 +\| \w+ +\| 24 +" + r"\| ([\d.,]+) +" * 5, printed)
    assert row, printed
    assert all(float(figure.replace(",", "")) > 0 for figure in row.groups())
    assert re.search(r"\| \d+ MB, [+-]\d+ +\|", printed), printed
    assert "WRONG" not in printed
    # Database and files are gone.
    assert list(tmp_path.iterdir()) == []


def test_the_batch_size_is_found_with_turns_smaller_than_a_batch() -> None:
    size = BatchSize(first=1, largest=64)
    for _ in range(50):
        images = trial_images(4, size.now)
        while images >= size.now and not size.settled:
            batch = size.now
            size.measured(batch, 0.3)
            images -= batch
    assert (size.now, size.settled) == (64, True)
    assert trial_images(30_000, 16) == 1024

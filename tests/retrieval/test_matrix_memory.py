"""What ranking takes of memory doesn't grow with the matrix."""

import subprocess
import sys

import pytest

from tests.processes import ROOT

RANK = """
import sys
import numpy as np
from pathlib import Path
from bench.harness import anonymous_bytes
from retrieval.ranking.scan import Eligible, Part, query_of, rank_rows

folder, many = Path(sys.argv[1]), int(sys.argv[2])
vector = np.random.default_rng(3).normal(size=64)
queries = np.array([query_of(np.roll(vector, n) / np.linalg.norm(vector), 64) for n in range(many)])
eligible = Eligible(without=np.array([5, 70_000], np.int64))
rng = np.random.default_rng(1)
for rows in (150_000, 150_000, 600_000):
    path = folder / f"{rows}.vectors"
    if not path.exists():
        with path.open("wb") as file:
            for _ in range(0, rows, 25_000):
                block = rng.normal(size=(25_000, 64))
                block /= np.linalg.norm(block, axis=1, keepdims=True)
                file.write(block.astype(np.float16).tobytes())
            block = None
        np.arange(rows, dtype=np.int64).tofile(folder / f"{rows}.ids")
    ids = np.memmap(folder / f"{rows}.ids", np.int64, "r")
    part = Part(0, ids, ids, np.memmap(path, np.float16, "r").reshape(-1, 64))
    limit = 2000 if many == 1 else 500
    found = rank_rows([part], queries, limit=limit, eligible=eligible)
    assert all(len(one) == limit for one in found)
    print(anonymous_bytes() // 1024, flush=True)
"""


@pytest.mark.parametrize("many", [1, 32])
def test_ranking_four_times_the_rows_takes_no_more_memory(tmp_path, many):
    run = subprocess.run(
        [sys.executable, "-c", RANK, str(tmp_path), str(many)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    _first, small, large = map(int, run.stdout.split())
    # The larger matrix has 58 MB more; both have more rows than are looked at together.
    assert large - small < 12_000

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
from retrieval.ranking.arithmetic import Query
from retrieval.ranking.files import map_file
from retrieval.ranking.selection import Eligible, Part, scores_at, select, select_many

folder, many = Path(sys.argv[1]), int(sys.argv[2])
vector = np.random.default_rng(3).normal(size=64)
queries = [Query.of(np.roll(vector, n) / np.linalg.norm(vector)) for n in range(many)]
eligible = Eligible(without=np.array([5, 70_000], np.int64))
rng = np.random.default_rng(1)
for rows in (25_000, 25_000, 500_000):
    path = folder / f"{rows}.vectors"
    if not path.exists():
        with path.open("wb") as file:
            for _ in range(0, rows, 25_000):
                block = rng.normal(size=(25_000, 64))
                block /= np.linalg.norm(block, axis=1, keepdims=True)
                file.write(block.astype(np.float16).tobytes())
            block = None
        np.arange(rows, dtype=np.int64).tofile(folder / f"{rows}.ids")
    part = Part(
        0,
        map_file(folder / f"{rows}.ids", np.int64),
        map_file(folder / f"{rows}.ids", np.int64),
        map_file(path, np.float16).reshape(-1, 64),
    )
    if many == 1:
        found = [select([part], queries[0], limit=2000, eligible=eligible)]
    else:
        margins = [0.0] * many
        found = list(select_many([part], queries, limit=500, eligible=eligible, margins=margins))
    assert len(scores_at([part], queries[0], found[0][0])) >= 500
    print(anonymous_bytes() // 1024, flush=True)
"""


@pytest.mark.parametrize("many", [1, 32])
def test_ranking_twenty_times_the_rows_takes_no_more_memory(tmp_path, many):
    run = subprocess.run(
        [sys.executable, "-c", RANK, str(tmp_path), str(many)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    _first, small, large = map(int, run.stdout.split())
    # The larger matrix has 58 MB more.
    assert large - small < 12_000

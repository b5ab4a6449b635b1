"""The benchmark of labelling, run small: every row is there and no judgment lost or doubled."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, cast

import pytest

from bench.browsing import GRID_SIZE
from bench.crowd import Act, Crowd, Kept, Round
from bench.site import BenchSite
from tests.e2e.conftest import CHROMIUM
from tests.processes import ROOT

ROWS = [
    "Bare request: a static file",
    "Bare request: logged in, one row",
    "Single: key to next image painted, as fast as keys come",
    "Single: key to next image painted, 3 a second",
    f"Grid: page of {GRID_SIZE} to next page painted, without a pause",
    f"Grid: page of {GRID_SIZE} to next page painted, one in 5 s",
    "Single: judgments a second in the database",
    "Grid: judgments a second in the database",
    "Single: a hundred images: requests / bytes",
    "Grid: a hundred images: requests / bytes",
    "3 annotators, one a second each: acknowledged",
    "3 annotators at full speed: acknowledged",
    "3 annotators: judgments lost / doubled / refused",
]


class Remembered:
    """Stands in for a served application: answers with a judgment history that a test wrote."""

    def __init__(self, history: list[tuple[str, int, str, float]]) -> None:
        self.url = "http://127.0.0.1:1"
        self.annotators = ["ann1", "ann2"]
        self.tokens = dict.fromkeys(self.annotators, "token")
        self.history = history

    def list_images(self, _query: int) -> list[int]:
        return [11, 12, 13, 14]

    def api(self, _user: str, _method: str, path: str) -> Any:
        image = int(path.partition("image=")[2])
        return {
            "results": [
                {"annotator": name, "relevance": relevance, "seconds": seconds}
                for name, of, relevance, seconds in self.history
                if of == image
            ]
        }


@pytest.mark.parametrize(
    ("history", "kept"),
    [
        ([("ann1", 11, "relevant", 0.001), ("ann2", 13, "unsure", 0.001)], Kept(0, 0)),
        ([("ann1", 11, "relevant", 0.001)], Kept(lost=1, doubled=0)),
        (
            [
                ("ann1", 11, "relevant", 0.001),
                ("ann1", 11, "relevant", 0.001),
                ("ann2", 13, "unsure", 0.001),
            ],
            Kept(lost=0, doubled=1),
        ),
        ([("ann1", 11, "unsure", 0.001), ("ann2", 13, "unsure", 0.001)], Kept(lost=1, doubled=1)),
        (
            [
                ("ann1", 11, "relevant", 0.001),
                ("ann2", 13, "unsure", 0.001),
                ("ada", 13, "relevant", 3.0),
            ],
            Kept(0, 0),
        ),
    ],
)
def test_what_the_database_has_is_held_against_what_was_acknowledged(
    history: list[tuple[str, int, str, float]], kept: Kept
) -> None:
    crowd = Crowd(cast(BenchSite, Remembered(history)), query=1)
    done = Round(acts=[Act("ann1", 11, "relevant", 0.001), Act("ann2", 13, "unsure", 0.001)])
    assert crowd.compare([done]) == kept


@pytest.mark.e2e
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_small_run_prints_every_row_and_loses_and_doubles_nothing() -> None:
    options = ("--candidates", "100", "--annotators", "3", "--seconds", "3")
    run = subprocess.run(
        [sys.executable, "-m", "bench.labelling", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    lines = [line for line in run.stdout.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [line[0] for line in cells] == ["What", *ROWS]
    assert all(line[1] for line in cells)
    assert cells[-1][1] == "0 / 0 / 0"
    assert run.stdout.startswith("# Labelling\n\n20")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--candidates", "79"), "--candidates must be at least 80"),
        (("--annotators", "0"), "must be positive"),
        (("--seconds", "0"), "must be positive"),
    ],
)
def test_options_that_measure_nothing_are_refused(options: tuple[str, ...], problem: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "bench.labelling", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 2
    assert problem in run.stderr

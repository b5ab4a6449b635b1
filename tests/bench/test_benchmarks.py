"""Each benchmark at its smallest size: it measures, and says so in tables of finite figures."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.__main__ import SECTIONS, write_section
from bench.harness import in_turn, table
from tests import ROOT

#: What must stand in a section, beside its tables.
SAYS = {
    "loading": ("The same once more",),
    "vectors": ("`export_embeddings` of a fifth", "equal to the files, bit for bit."),
    "ranking": ("A genus, 2,500 images", "6 queries at once"),
    "sharding": ("| 2,000  | 2 ", "the same bit for bit."),
    "text_search": ("HNSW of the vectors", "HNSW of the signs"),
    "learning": ("× bare product", "| 500 "),
    "serving": ("| demo ", "A web process"),
    "embedding": ("| demo ",),
    "first_release": ("| Splits and a release ", "| Handing in "),
    "labeling": ("Grid: judgments a second", "Single: a hundred images"),
    "load": ("| Judgment, from the key ", "| API: audit, drawn ", "0 are lost, 0 doubled"),
    "soak": ("0 are lost, 0 doubled, 0 refused", "All numbers of images are right"),
    "pages": ("| API: species picker ", "| Labeling "),
    "metrics": ("pytrec_eval, from arrays", "ir-measures, from dictionaries"),
    "releases": ("Step: Images", "File: judgments.csv"),
    "curation": ("All figures agree", "| 3,000 (Darwin Core) | written"),
    "context": ("held-out places", "people have favorites"),
    "certified": ("| 2,000, 100, 2 ", "toy queries", "A bootstrap interval"),
    "trust": ("| 20,000 | 500 ", "0.9 recognized, 60 seeds"),
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a path short enough for Chromium's socket."""
    with tempfile.TemporaryDirectory(prefix="b") as path:
        yield Path(path)


@pytest.mark.parametrize("name", SECTIONS)
def test_a_benchmark_measures(name: str, folder: Path, tmp_path: Path) -> None:
    results = tmp_path / "results.md"
    done = subprocess.run(
        [sys.executable, "-m", "bench", name, "--small", str(results)],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    text = results.read_text(encoding="utf-8")
    assert [words for words in SAYS[name] if words not in text] == []
    rows = [line for line in text.splitlines() if re.match(r"\| (?!-)", line)]
    figures = [re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w.])", row) for row in rows]
    assert sum(bool(found) for found in figures) >= 1
    assert all(math.isfinite(float(one.replace(",", ""))) for row in figures for one in row)
    assert not re.search(r"\b(nan|inf)\b", text)
    left = [path.name for path in folder.iterdir() if path.name.startswith("bench-")]
    assert left == [], "a database or files are left behind"


def test_a_section_replaces_its_own_and_leaves_the_others(tmp_path: Path) -> None:
    path = tmp_path / "RESULTS.md"
    for name, text in (
        ("pages", "## Pages\n\nold"),
        ("loading", "## Loading\n\n| a |"),
        ("pages", "new"),
    ):
        write_section(path, name, text)
    text = path.read_text()
    assert text.index("## Loading\n\n| a |") < text.index("new")
    assert "old" not in text


def test_all_have_their_turn_in_each_round_and_the_first_does_not_count() -> None:
    order: list[str] = []
    ways = {name: lambda number, name=name: order.append(name) or number for name in "ab"}
    assert in_turn(2, ways, warm_up=1) == {"a": [1, 2], "b": [1, 2]}
    assert order == list("ababab")


def test_a_table_has_no_ragged_row_and_no_bar_within_a_cell() -> None:
    lines = table("Size | Ours", [[200_000, "1 | 2"], [None, 3.456]]).splitlines()
    assert lines[0] == "| Size    | Ours  |"
    assert lines[2] == "| 200,000 | 1 / 2 |"
    assert lines[3] == "|         | 3.46  |"
    with pytest.raises(ValueError, match="argument 2"):
        table("Size | Ours", [["1"]])

"""The benchmark of loading at a small size: everything it prints comes from real imports."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from bench.loading_file import category_of, write_coco
from tests.processes import ROOT


def test_it_loads_and_says_what_it_took(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "bench.loading", "--images", "1500", "--species", "70"),
            *("--rounds", "1", "--folder", str(tmp_path)),
        ],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("## Loading\n\n")
    assert "`python -m bench.loading --images 1500 --species 70 --rounds 1" in done.stdout
    for name in (
        "Bare COPY of 1,500 rows",
        "import_images --in-place of 1,500 images",
        "The same once more",
        "import_images --in-place of 300 images",
    ):
        assert re.search(rf"^\| {re.escape(name)} +\|", done.stdout, re.M), name
    assert "1,500 skipped" in done.stdout
    # Database and files are gone.
    assert list(tmp_path.iterdir()) == []


def test_the_made_up_file_is_whole_and_the_same_each_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_coco(tmp_path / name, images=50, species=7)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    whole = json.loads((tmp_path / "a").read_text())
    assert [len(whole[key]) for key in ("images", "categories", "annotations")] == [50, 7, 50]
    assert {one["image_id"]: one["category_id"] for one in whole["annotations"]} == {
        number: category_of(number, 7) for number in range(50)
    }
    assert len({one["file_name"] for one in whole["images"]}) == 50

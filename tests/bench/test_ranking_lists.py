"""Comparing lists, and what the section of ranking says of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.ranking_lists import agreement, identical
from bench.ranking_parts import Needs
from bench.ranking_rows import clustered, query_vectors
from bench.ranking_section import Measured, section


def keep(folder: Path, name: str, image_ids: list[int], scores: list[float]) -> None:
    np.savez(
        folder / f"{name}.npz",
        image_ids=np.array(image_ids, dtype=np.int64),
        scores=np.array(scores, dtype=np.float32),
    )


def measured(images: int, seconds: float) -> Measured:
    """A size at which the application took `seconds`, the bare product 10 ms."""
    found = Measured(images, depth=50, vectors=3)
    kinds = ("species", "genus", "similar")
    for method in (
        "matrix",
        "database",
        *(f"{way} {kind}" for way in ("matrix", "database") for kind in kinds),
    ):
        found.rounds[method] = [seconds] * 3
    found.rounds["bare"] = [0.01]
    found.once = {"bare copy": 1, "pack": 2, "many": 3, "one by one": 30, "bare many": 2}
    found.memory = {"before": 1e8, "after single": 2e8, "after many": 3e8}
    return found


def test_lists_are_the_same_only_bit_for_bit(tmp_path: Path) -> None:
    assert not identical(tmp_path, "one-", "other-")
    keep(tmp_path, "one-a", [1, 2], [0.5, 0.25])
    keep(tmp_path, "other-a", [1, 2], [0.5, 0.25])
    keep(tmp_path, "other-b", [3], [0.5])
    assert identical(tmp_path, "one-", "other-")
    keep(tmp_path, "one-b", [3], [np.nextafter(np.float32(0.5), np.float32(1))])
    assert not identical(tmp_path, "one-", "other-")


def test_agreement_counts_images_and_ranks(tmp_path: Path) -> None:
    assert agreement(tmp_path, "one-", "other-") is None
    keep(tmp_path, "one-a", [1, 2, 3, 4], [4, 3, 2, 1])
    keep(tmp_path, "other-a", [1, 3, 2, 9], [4, 3, 2, 1])
    found = agreement(tmp_path, "one-", "other-")
    assert found is not None
    assert (found.images, found.ranks) == (0.75, 0.25)


def test_vectors_are_unit_halves_in_clusters_and_the_same_each_time() -> None:
    first = np.concatenate(list(clustered(5000, 64, seed=1, at_a_time=1500)))
    again = np.concatenate(list(clustered(5000, 64, seed=1, at_a_time=1500)))
    assert (first.shape, first.dtype) == ((5000, 64), np.float16)
    assert first.tobytes() == again.tobytes()
    wide = first.astype(np.float32)
    assert np.abs(np.linalg.norm(wide, axis=1) - 1).max() < 0.002
    # Each has neighbours that no random direction would have.
    nearest = np.sort(wide[:200] @ wide.T, axis=1)[:, -2]
    assert np.median(nearest) > 0.5
    assert query_vectors(7, 64).shape == (7, 64)


def test_the_section_tells_times_ratios_and_what_was_left_out() -> None:
    text = section(
        [measured(1000, 0.02), measured(4000, 0.06)],
        ["9,000 images are left out: no disk."],
        command="python -m bench.ranking",
    )
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in text.splitlines()
        if "|" in line
    ]
    [whole] = [row for row in rows if row[0] == "4,000" and "50" in row]
    assert (whole[2], whole[5], whole[-1]) == ("60.0 ms", "10.0 ms", "6.00")
    # Not measured: FAISS and NumPy.
    assert (whole[4], whole[6], whole[7]) == ("–", "–", "–")
    [costs] = [row for row in rows if row[0] == "4,000" and row[1] == "2,000 rows"]
    assert costs[2:] == ["2.00", "0.75", "100 MB", "200 MB", "300 MB"]
    assert ["4,000", "3 queries at once", "3000.0 ms", "30.00 s", "one by one", "0.10"] in rows
    assert text.startswith("## Ranking\n")
    assert text.endswith("- 9,000 images are left out: no disk.")


def test_a_size_beyond_the_disk_says_what_it_takes(tmp_path: Path) -> None:
    assert Needs(1000, 64).lacks_disk(tmp_path) == ""
    assert "of disk, and" in Needs(10**11, 1024).lacks_disk(tmp_path)
    assert Needs(1000, 64).matrix == 128_000


def test_lists_that_differ_are_told() -> None:
    found = measured(1000, 0.02)
    found.same = False
    assert "**no**" in section([found], [], command="x")

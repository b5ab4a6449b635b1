"""Archives of strangers: what comes out of them is bounded while it does."""

from __future__ import annotations

import random
import zipfile
from pathlib import Path

import pytest

from core.line_stream import GROWTH_FREE, MAX_GROWTH
from core.unpacking import Bounds, UnpackRefused, unpack_zip

pytestmark = pytest.mark.pure


def packed(folder: Path, files: dict[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "packed.zip"
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def unpack(archive: Path, into: Path, **bounds: int) -> Bounds:
    counted = Bounds(**({"most_files": 100} | bounds))
    unpack_zip(archive, lambda name: into / name, counted)
    return counted


def written(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("parts", [1, 40])
def test_zeros_are_refused_in_one_file_and_in_many(tmp_path: Path, kind: int, parts: int) -> None:
    zeros = bytes(4 * GROWTH_FREE // parts)
    archive = packed(tmp_path, {f"{number}.csv": zeros for number in range(parts)}, kind)
    with pytest.raises(UnpackRefused, match=r"csv” becomes more than 64 times"):
        unpack(archive, tmp_path / "out")
    size = archive.stat().st_size
    assert written(tmp_path / "out") <= GROWTH_FREE + MAX_GROWTH * size


def test_tables_and_photos_pass(tmp_path: Path) -> None:
    random.seed(1)
    rows = "".join(
        f"{number},Rana temporaria,2021-05-{random.randint(1, 28):02},52.5,13.4,CC BY 4.0,17\n"
        for number in range(400_000)
    )
    photo = random.randbytes(100_000)
    archive = packed(tmp_path, {"list.csv": rows.encode(), "a/1.jpg": photo, "none.csv": b""})
    assert len(rows) > GROWTH_FREE
    assert archive.stat().st_size < len(rows) / 5
    bounds = unpack(archive, tmp_path / "out")
    # With two folders.
    assert (bounds.files, bounds.size) == (5, len(rows) + len(photo))
    assert (tmp_path / "out" / "a" / "1.jpg").read_bytes() == photo


def test_sizes_that_the_archive_claims_count_for_nothing(tmp_path: Path) -> None:
    archive = packed(tmp_path, {"a.csv": b"abcdefghij" * 10}, zipfile.ZIP_STORED)
    data = archive.read_bytes()
    entry = data.rindex(b"PK\x01\x02")
    # The packed and the unpacked size.
    claimed = data[: entry + 20] + (10).to_bytes(4, "little") * 2 + data[entry + 28 :]
    archive.write_bytes(claimed)
    with pytest.raises(UnpackRefused, match="can't be unpacked"):
        unpack(archive, tmp_path / "out")
    assert written(tmp_path / "out") <= 10


def test_bytes_files_and_folders_are_bounded(tmp_path: Path) -> None:
    archive = packed(tmp_path, {"a/1": b"x" * 60, "a/b/c/2": b"x" * 60})
    # Two files and four folders, with the one that holds them.
    for bounds, why in (
        ({"most_size": 119}, "More than 119 bytes"),
        ({"most_files": 5}, "more than 5 files and folders"),
        ({"most_files": 1}, "more than 1 files and folders"),
        ({"least_free": 2**62}, "The disk has no room"),
    ):
        with pytest.raises(UnpackRefused, match=why):
            unpack(archive, tmp_path / why, **bounds)
    counted = unpack(archive, tmp_path / "out", most_files=6, most_size=120)
    assert (counted.files, counted.size) == (6, 120)


def test_what_is_replaced_counts_once(tmp_path: Path) -> None:
    archive = packed(tmp_path, {"a/1": b"x" * 60})
    bounds = Bounds(most_files=3, most_size=60)
    for _ in range(3):
        unpack_zip(archive, lambda name: tmp_path / "out" / name, bounds)
    assert (bounds.files, bounds.size) == (3, 60)

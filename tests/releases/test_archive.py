"""Archives: equal files give equal bytes, and what is in them."""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path

import pytest

from releases.making.files import write_archive

pytestmark = pytest.mark.pure

FILES = {"b.csv": b"a,b\n" * 500, "a/one.jpg": bytes(range(256)) * 8, "a/two.txt": b""}


def folder(path: Path, *, at: int) -> Path:
    """A directory of FILES whose times are `at`."""
    for name, data in FILES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
        os.utime(path / name, (at, at))
    return path


def test_equal_files_give_equal_bytes(tmp_path: Path) -> None:
    made = []
    for at, names in ((1_000_000_000, list(FILES)), (1_700_000_000, sorted(FILES, reverse=True))):
        source = folder(tmp_path / str(at), at=at)
        (source / "b.csv").chmod(0o600 if at == 1_000_000_000 else 0o755)
        made.append(write_archive(tmp_path / f"{at}.zip", source, names, root="birds-v1"))
    assert made[0]["sha256"] == made[1]["sha256"]
    data = (tmp_path / "1700000000.zip").read_bytes()
    assert data == (tmp_path / "1000000000.zip").read_bytes()
    assert made[1] == {
        "name": "1700000000.zip",
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def test_what_is_in_it(tmp_path: Path) -> None:
    source = folder(tmp_path / "source", at=1_700_000_000)
    written: list[int] = []
    write_archive(
        tmp_path / "a.zip", source, FILES, root="birds-v1", written=lambda: written.append(1)
    )
    assert len(written) == len(FILES)
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [f"birds-v1/{name}" for name in sorted(FILES)]
        assert {name: archive.read(f"birds-v1/{name}") for name in FILES} == FILES
        kinds = {entry.filename: entry.compress_type for entry in archive.infolist()}
    # Images are compressed already.
    assert kinds["birds-v1/a/one.jpg"] == zipfile.ZIP_STORED
    assert kinds["birds-v1/b.csv"] == zipfile.ZIP_DEFLATED
    assert (tmp_path / "a.zip").stat().st_size < 4000

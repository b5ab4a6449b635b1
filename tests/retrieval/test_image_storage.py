"""The store of images: files named by their content, whole or not there."""

from __future__ import annotations

import hashlib
import io
import stat
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from retrieval.images.decoding import ImageRefused
from retrieval.images.storage import (
    content_hash,
    display_path,
    image_store,
    is_stored,
    thumbnail_path,
)
from tests.retrieval.making import encoded, jpeg

pytestmark = pytest.mark.pure


def files(store: Path) -> list[str]:
    return sorted(p.relative_to(store).as_posix() for p in store.rglob("*") if p.is_file())


def test_a_jpeg_is_kept_byte_for_byte_under_its_hash(store: Path) -> None:
    data = jpeg()
    stored = image_store(data)
    sha256 = hashlib.sha256(data).hexdigest()
    assert (stored.sha256, stored.format, stored.size_bytes) == (sha256, "JPEG", len(data))
    assert (stored.width, stored.height) == (40, 30)
    folder = f"{sha256[:2]}/{sha256[2:4]}"
    assert files(store) == [f"{folder}/{sha256}.source", f"{folder}/{sha256}.thumb.jpg"]
    assert display_path(sha256).read_bytes() == data
    assert Image.open(thumbnail_path(sha256)).size == (40, 30)
    assert not any(stat.S_IMODE(p.stat().st_mode) & 0o111 for p in store.rglob("*.*"))
    # Storing it again writes nothing.
    before = {p: p.stat().st_mtime_ns for p in store.rglob("*")}
    assert image_store(data) == stored
    assert {p: p.stat().st_mtime_ns for p in store.rglob("*")} == before


def test_other_images_get_a_display_copy(store: Path) -> None:
    data = encoded(Image.new("RGBA", (8, 6), (0, 0, 0, 0)), "PNG")
    stored = image_store(data)
    assert len(files(store)) == 3
    shown = Image.open(io.BytesIO(display_path(stored.sha256).read_bytes()))
    assert (shown.format, shown.mode, shown.size) == ("JPEG", "RGB", (8, 6))
    assert shown.getpixel((0, 0)) == (255, 255, 255)


def test_a_store_that_fails_half_way_is_not_taken_for_whole(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = jpeg()

    def full(*_arguments: Any) -> None:
        raise OSError("No space left on device")

    with pytest.raises(ImageRefused):
        image_store(data[:50])
    with monkeypatch.context() as patched:
        patched.setattr("os.replace", full)
        with pytest.raises(OSError, match="No space"):
            image_store(data)
    assert files(store) == []
    with monkeypatch.context() as patched:
        patched.setattr("retrieval.images.storage.thumbnail_bytes", full)
        with pytest.raises(OSError, match="No space"):
            image_store(data)
    assert not is_stored(content_hash(data))
    image_store(data)
    assert is_stored(content_hash(data))


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "\n"])
def test_only_hashes_become_paths(store: Path, name: str) -> None:
    with pytest.raises(ValueError, match="is not a SHA-256"):
        thumbnail_path(name)

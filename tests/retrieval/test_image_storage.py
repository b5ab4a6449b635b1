import hashlib
import io
import stat

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


def files(store):
    return sorted(p.relative_to(store).as_posix() for p in store.rglob("*") if p.is_file())


def test_a_jpeg_is_kept_byte_for_byte_under_its_hash(store):
    data = jpeg()
    stored = image_store(data)
    sha256 = hashlib.sha256(data).hexdigest()
    assert (stored.sha256, stored.format, stored.width, stored.height, stored.size_bytes) == (
        *(sha256, "JPEG", 40, 30),
        len(data),
    )
    folder = f"{sha256[:2]}/{sha256[2:4]}"
    assert files(store) == [f"{folder}/{sha256}.source", f"{folder}/{sha256}.thumb.jpg"]
    assert display_path(sha256).read_bytes() == data
    assert Image.open(thumbnail_path(sha256)).size == (40, 30)


def test_other_images_get_a_display_copy(store):
    data = encoded(Image.new("RGBA", (8, 6), (0, 0, 0, 0)), "PNG")
    stored = image_store(data)
    assert len(files(store)) == 3
    shown = Image.open(io.BytesIO(display_path(stored.sha256).read_bytes()))
    assert (shown.format, shown.mode, shown.size) == ("JPEG", "RGB", (8, 6))
    assert shown.getpixel((0, 0)) == (255, 255, 255)


def test_storing_again_writes_nothing(store):
    stored = image_store(jpeg())
    before = {p: p.stat().st_mtime_ns for p in store.rglob("*")}
    assert image_store(jpeg()) == stored
    assert {p: p.stat().st_mtime_ns for p in store.rglob("*")} == before


def test_a_refused_file_leaves_nothing(store):
    with pytest.raises(ImageRefused):
        image_store(jpeg()[:50])
    assert files(store) == []


def test_a_store_that_fails_half_way_is_not_taken_for_whole(store, monkeypatch):
    data = jpeg()

    def full(image):
        raise OSError("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("retrieval.images.storage.thumbnail_bytes", full)
        with pytest.raises(OSError, match="No space"):
            image_store(data)
    assert not is_stored(content_hash(data))
    image_store(data)
    assert is_stored(content_hash(data))


def test_no_temporary_file_stays_when_writing_fails(store, monkeypatch):
    def broken(source, target):
        raise OSError("read-only")

    monkeypatch.setattr("os.replace", broken)
    with pytest.raises(OSError, match="read-only"):
        image_store(jpeg())
    assert files(store) == []


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "\n"])
def test_only_hashes_become_paths(store, name):
    with pytest.raises(ValueError, match="is no SHA-256"):
        thumbnail_path(name)


def test_stored_files_are_not_executable(store):
    image_store(jpeg())
    modes = {stat.S_IMODE(p.stat().st_mode) & 0o111 for p in store.rglob("*") if p.is_file()}
    assert modes == {0}

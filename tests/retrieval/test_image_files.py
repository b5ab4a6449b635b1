"""Bytes, display copies and thumbnails of images in the store and of images that stay where they
are."""

import hashlib
import io
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from PIL import Image as PillowImage

from retrieval.corpus.models import Image, ImageRoot
from retrieval.images.files import (
    ImageChanged,
    ImageGone,
    ImageRef,
    any_far,
    display_file,
    image_file_facts,
    roots_load,
    source_bytes,
    thumbnail_file,
)
from retrieval.images.storage import image_store
from tests.retrieval.making import encoded, image_row, jpeg
from tests.retrieval.rooted import folder_root, rooted

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def var(store):
    """A state folder of the test's own."""
    return store.parent


@pytest.fixture
def root(tmp_path):
    return folder_root(tmp_path / "data", {"1.jpg": jpeg("red")})


def sha256_of(data):
    return hashlib.sha256(data).hexdigest()


def shown(file):
    with file:
        image = PillowImage.open(io.BytesIO(file.read()))
    image.load()
    return image


def cached(var):
    return sorted(path.stat().st_size for path in (var / "thumbnails").glob("*/*"))


def test_an_image_of_the_store_is_read_from_there(var):
    data = encoded(PillowImage.new("RGB", (600, 400), "red"), "PNG")
    stored = image_store(data)
    ref = ImageRef.of(image_row(1, sha256=stored.sha256))
    assert source_bytes(ref) == data
    assert shown(display_file(ref)).size == (600, 400)
    assert shown(thumbnail_file(ref)).size == (384, 256)
    assert image_file_facts(ref) == stored
    assert cached(var) == []


def test_an_image_whose_file_left_the_store_is_gone():
    ref = ImageRef.of(image_row(1))
    for read in (source_bytes, display_file, thumbnail_file, image_file_facts):
        with pytest.raises(ImageGone, match="gone from the store"):
            read(ref)


def test_an_image_at_a_root_is_read_where_it_is(root, var):
    ref = ImageRef.of(rooted(1, root, "1.jpg"))
    assert source_bytes(ref) == jpeg("red")
    with display_file(ref) as file:
        assert file.read() == jpeg("red")
    assert cached(var) == []
    assert list(var.glob("images/*")) == []


def test_what_a_file_is(root, tmp_path):
    turned = PillowImage.Exif()
    turned[0x0112] = 6
    data = jpeg("red", (3000, 2000), exif=turned)
    (tmp_path / "data/2.jpg").write_bytes(data)
    facts = image_file_facts(ImageRef.of(rooted(2, root, "2.jpg", sha256="0" * 64)))
    assert (facts.width, facts.height, facts.format) == (2000, 3000, "JPEG")
    assert (facts.sha256, facts.size_bytes) == (sha256_of(data), len(data))


def quarters(size):
    image = PillowImage.new("RGB", size, "red")
    right, lower = size[0] // 2, size[1] // 2
    image.paste((0, 255, 0), (right, 0, size[0], lower))
    image.paste((0, 0, 255), (0, lower, right, size[1]))
    image.paste((255, 255, 255), (right, lower, *size))
    return image


UPRIGHT = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)]


def corners(image):
    right, lower = image.width - 5, image.height - 5
    return [image.getpixel(place) for place in ((5, 5), (right, 5), (5, lower), (right, lower))]


def near(colours, wanted):
    return all(
        abs(a - b) <= 12
        for one, other in zip(colours, wanted, strict=True)
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("orientation", [1, 6])
def test_a_thumbnail_is_upright_whatever_way_the_camera_was_held(root, tmp_path, orientation, var):
    undo = {3: "ROTATE_180", 6: "ROTATE_90", 8: "ROTATE_270"}
    image = quarters((3200, 1600))
    if orientation in undo:
        image = image.transpose(PillowImage.Transpose[undo[orientation]])
    exif = PillowImage.Exif()
    exif[0x0112] = orientation
    (tmp_path / "data/2.jpg").write_bytes(encoded(image, "JPEG", exif=exif, quality=95))
    ref = ImageRef.of(rooted(2, root, "2.jpg"))
    for file, size in ((thumbnail_file(ref), (384, 192)), (display_file(ref), (2048, 1024))):
        made = shown(file)
        assert (made.format, made.mode, made.size) == ("JPEG", "RGB", size)
        assert made.getexif().get(0x0112, 1) == 1
        assert near(corners(made), UPRIGHT)
    assert len(cached(var)) == 2


def test_a_thumbnail_is_made_once(root, tmp_path, var):
    ref = ImageRef.of(rooted(1, root, "1.jpg"))
    with thumbnail_file(ref) as file:
        first = file.read()
    (tmp_path / "data/1.jpg").unlink()
    with thumbnail_file(ref) as file:
        assert file.read() == first
    assert len(cached(var)) == 1
    with pytest.raises(ImageGone, match="gone from its folder"):
        display_file(ref)


def test_a_file_that_was_replaced_is_not_taken_for_the_one_that_is_known(root, tmp_path):
    ref = ImageRef.of(rooted(1, root, "1.jpg", sha256=sha256_of(jpeg("red"))))
    (tmp_path / "data/1.jpg").write_bytes(jpeg("blue"))
    for read in (source_bytes, display_file, thumbnail_file):
        with pytest.raises(ImageChanged, match="has changed"):
            read(ref)
    assert image_file_facts(ref).sha256 == sha256_of(jpeg("blue"))


def test_a_broken_file_says_what_is_wrong(root, tmp_path, settings):
    files = {"2.jpg": jpeg(size=(900, 700))[:900], "3.jpg": b"", "4.jpg": b"no image"}
    folder_root(tmp_path / "data", files)
    for number, why in ((2, "truncated"), (3, "empty"), (4, "not an image")):
        ref = ImageRef.of(rooted(number, root, f"{number}.jpg"))
        for read in (display_file, thumbnail_file, image_file_facts):
            with pytest.raises(ImageGone, match=why):
                read(ref)
        assert source_bytes(ref) == files[f"{number}.jpg"]
    settings.IMAGE_MAX_PIXELS = 1199
    with pytest.raises(ImageGone, match="40 × 30 pixels; 1199 are allowed"):
        thumbnail_file(ImageRef.of(rooted(1, root, "1.jpg")))


def test_threads_need_no_database_once_roots_are_known(root):
    refs = [ImageRef.of(rooted(1, root, "1.jpg"))] * 20
    roots_load()

    def without_database(ref):
        with connection.execute_wrapper(_no_database):
            return source_bytes(ref), thumbnail_file(ref).read(), display_file(ref).read()

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(without_database, refs))) == 1


def _no_database(execute, sql, params, many, context):
    raise AssertionError(sql)


def test_a_bucket_is_far_and_a_folder_is_not(root):
    roots_load()
    assert not any_far()
    ImageRoot.objects.create(location="s3://bucket/photos")
    roots_load()
    assert any_far()


def test_addresses_of_images_whose_content_is_unknown(root, tmp_path):
    other = folder_root(tmp_path / "other", {})
    rows = [
        rooted(1, root, "1.jpg"),
        rooted(2, root, "2.jpg"),
        rooted(3, other, "1.jpg"),
        rooted(4, root, "1.jpg", size_bytes=5),
    ]
    versions = [image.version for image in rows]
    assert len(set(versions)) == 4
    assert all(len(one) == 8 and set(one) <= set("0123456789abcdef") for one in versions)
    assert Image.objects.get(pk=1).url.startswith(f"/images/1/{versions[0]}.jpg?signature=")
    known = rooted(5, root, "1.jpg", sha256="ab" * 32)
    assert known.thumbnail_url.startswith("/images/5/abababab-thumb.jpg?signature=")

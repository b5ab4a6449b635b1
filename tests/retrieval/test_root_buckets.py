"""Images in a bucket of a real S3 server, and places that become roots."""

import io
from concurrent.futures import ThreadPoolExecutor

import pytest
from PIL import Image as PillowImage

from retrieval.corpus.models import ImageRoot
from retrieval.images import roots as module
from retrieval.images.files import ImageRef, display_file, source_bytes, thumbnail_file
from retrieval.images.roots import (
    ImageGone,
    RootRefused,
    RootUnavailable,
    image_root_get_or_create,
    root_files,
)
from tests.conftest import client_of
from tests.processes import free_port
from tests.retrieval.buckets import KEYS, bucket, bucket_server, client
from tests.retrieval.making import jpeg
from tests.retrieval.rooted import rooted


@pytest.mark.django_db
def test_a_place_is_kept_once_and_must_be_there_at_first(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    made = image_root_get_or_create(location=f"{folder}/")
    assert image_root_get_or_create(location=str(folder)) == made
    assert made.location == str(folder)
    folder.rename(folder.with_name("unmounted"))
    assert image_root_get_or_create(location=str(folder)) == made
    with pytest.raises(RootRefused, match="There is no folder"):
        image_root_get_or_create(location=str(folder.parent / "other"))
    assert ImageRoot.objects.count() == 1


@pytest.fixture(scope="module")
def server():
    with bucket_server() as address:
        bucket(address, "photos", {"inat/train/1.jpg": b"one", "2.jpg": b"two", "inat/ü.jpg": b"u"})
        made = bucket(address, "open-photos", {"2.jpg": b"two"})
        made.put_object(Bucket="open-photos", Key="open.jpg", Body=b"open", ACL="public-read")
        yield address


@pytest.fixture
def reader(annotator):
    return client_of(annotator)


@pytest.fixture
def at_server(server, settings, monkeypatch):
    settings.S3_ENDPOINT_URL = server
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    return server


def test_images_are_read_from_a_bucket_by_many_threads(at_server):
    files = root_files("s3://photos/inat")
    assert (files.read("ü.jpg"), files.near) == (b"u", False)
    assert root_files("s3://photos").read("2.jpg") == b"two"
    with ThreadPoolExecutor(16) as threads:
        assert set(threads.map(files.read, ["train/1.jpg"] * 50)) == {b"one"}


def test_a_name_does_not_leave_the_prefix(at_server):
    for name in ("../2.jpg", "/2.jpg", "train/../../2.jpg", ""):
        with pytest.raises(ImageGone, match="leads out"):
            root_files("s3://photos/inat").read(name)


def test_what_is_gone_is_told_from_what_is_away(at_server, settings, monkeypatch):
    for name in ("train/2.jpg", "2.jpg"):
        with pytest.raises(ImageGone, match="gone from its bucket") as raised:
            root_files("s3://photos/inat").read(name)
        assert not isinstance(raised.value, RootUnavailable)
    with monkeypatch.context() as patched:
        patched.setattr(module, "MAX_BYTES", 2)
        with pytest.raises(ImageGone, match="has 3 bytes; at most 2"):
            root_files("s3://photos").read("2.jpg")
    with pytest.raises(RootUnavailable):
        root_files("s3://other-photos").read("1.jpg")
    settings.S3_ENDPOINT_URL = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(RootUnavailable, match="doesn't answer"):
        root_files("s3://photos").read("2.jpg")


@pytest.mark.django_db
def test_a_bucket_must_be_there_to_become_a_place(at_server, settings):
    assert image_root_get_or_create(location="s3://photos/inat/").location == "s3://photos/inat"
    with pytest.raises(RootRefused, match="isn't there"):
        image_root_get_or_create(location="s3://other-photos")
    settings.S3_ENDPOINT_URL = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(RootRefused, match="doesn't answer"):
        image_root_get_or_create(location="s3://photos/other")


@pytest.mark.django_db
def test_an_image_is_fetched_once_and_a_bucket_that_is_away_is_a_503(
    at_server, store, settings, reader
):
    photos = client(at_server)
    photos.put_object(Bucket="photos", Key="in/1.jpg", Body=jpeg("red"))
    photos.put_object(Bucket="photos", Key="in/2.jpg", Body=b"no image")
    root = image_root_get_or_create(location="s3://photos/in")
    image, broken = rooted(1, root, "1.jpg"), rooted(2, root, "2.jpg")
    ref = ImageRef.of(image)
    for _ in range(2):
        with thumbnail_file(ref) as file:
            assert PillowImage.open(io.BytesIO(file.read())).size == (40, 30)
        with display_file(ref) as file:
            assert file.read() == jpeg("red")
        photos.delete_object(Bucket="photos", Key="in/1.jpg")
    assert len(list((store.parent / "thumbnails").glob("*/*"))) == 2
    with pytest.raises(ImageGone, match="gone from its bucket"):
        source_bytes(ref)
    # What is broken is not kept.
    with pytest.raises(ImageGone, match="not an image"):
        thumbnail_file(ImageRef.of(broken))
    settings.S3_ENDPOINT_URL = f"http://127.0.0.1:{free_port()}"
    assert reader.get(image.url).status_code == 200
    assert reader.get(broken.thumbnail_url).status_code == 503


def test_without_credentials_what_is_open_to_all_is_read(at_server, monkeypatch, tmp_path):
    for name in KEYS:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    assert root_files("s3://open-photos").read("open.jpg") == b"open"
    with pytest.raises(RootUnavailable, match="refuses to send"):
        root_files("s3://open-photos").read("2.jpg")

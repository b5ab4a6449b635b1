"""The answers to requests for images that stay where they are."""

import io

import pytest
from PIL import Image as PillowImage

from retrieval.corpus.models import Image
from retrieval.flags.services import image_withdraw
from tests.retrieval.making import jpeg, unsigned
from tests.retrieval.rooted import folder_root, rooted

pytestmark = pytest.mark.django_db


@pytest.fixture
def image(store, tmp_path):
    return rooted(
        1, folder_root(tmp_path / "data", {"a/1.jpg": jpeg("red", (800, 600))}), "a/1.jpg"
    )


@pytest.fixture
def reader(client, annotator):
    client.force_login(annotator)
    return client


def body(answer):
    return b"".join(answer.streaming_content)


def test_image_and_thumbnail_are_served(reader, image, django_assert_max_num_queries):
    answer = reader.get(image.url)
    assert (answer.status_code, body(answer)) == (200, jpeg("red", (800, 600)))
    assert answer.headers["Cache-Control"] == "private, max-age=31536000, immutable"
    with django_assert_max_num_queries(5):
        thumbnail = reader.get(image.thumbnail_url)
    assert PillowImage.open(io.BytesIO(body(thumbnail))).size == (384, 288)
    assert thumbnail.headers["Content-Type"] == "image/jpeg"
    assert int(thumbnail.headers["Content-Length"]) > 0


def test_an_old_address_is_not_found_once_the_content_is_known(reader, image):
    before = image.url
    Image.objects.update(sha256="12345678" + "0" * 56)
    assert reader.get(before).status_code == 404


def test_an_image_that_is_gone_says_so(reader, image, tmp_path):
    (tmp_path / "data/a/1.jpg").unlink()
    for address in (image.url, image.thumbnail_url):
        answer = reader.get(address)
        assert answer.status_code == 404
        assert answer.content.decode() == "The image's file is gone from its folder."
        assert answer.headers["Cache-Control"] == "private, no-store"


def test_a_file_that_was_replaced_is_not_shown_under_the_old_address(reader, image, tmp_path):
    Image.objects.update(sha256="12345678" + "0" * 56)
    answer = reader.get("/images/1/12345678.jpg")
    assert (answer.status_code, b"has changed" in answer.content) == (404, True)


def test_a_folder_that_is_away_is_a_503(reader, image, tmp_path, caplog):
    (tmp_path / "data").rename(tmp_path / "unmounted")
    answer = reader.get(image.url)
    assert answer.status_code == 503
    assert answer.content.decode() == "The folder of the image's data set isn't there now."
    assert "Image 1 cannot be shown" in caplog.text


def test_nobody_and_annotators_of_a_withdrawn_image_get_no_bytes(
    client, annotator, reviewer, image, store
):
    assert client.get(unsigned(image.thumbnail_url)).status_code == 401
    image_withdraw(image=image, by=reviewer, note="a face")
    client.force_login(annotator)
    assert client.get(image.thumbnail_url).status_code == 404
    assert not (store.parent / "thumbnails").exists()
    client.force_login(reviewer)
    assert client.get(image.thumbnail_url).status_code == 200

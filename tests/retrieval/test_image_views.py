import pytest
from django.test import Client
from PIL import Image as PillowImage

from retrieval.corpus.models import Image
from retrieval.importing.services import import_images
from tests.conftest import token_of
from tests.retrieval.making import coco, encoded, unsigned

pytestmark = pytest.mark.django_db


@pytest.fixture
def images(store, tmp_path):
    """Three images; the third's source is a PNG."""
    path = coco(tmp_path / "data" if (tmp_path / "data").mkdir() is None else tmp_path)
    turquoise = PillowImage.new("RGBA", (40, 30), "turquoise")
    (tmp_path / "data/train/3.jpg").write_bytes(encoded(turquoise, "PNG"))
    import_images(path=path)
    return {image.pk: image for image in Image.objects.all()}


def test_headers_let_only_this_browser_keep_the_image(client, annotator, images):
    client.force_login(annotator)
    headers = client.get(images[1].url).headers
    assert headers["Cache-Control"] == "private, max-age=31536000, immutable"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "train" not in headers["Content-Disposition"]


BY_ADDRESS_BAR = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
BY_IMG = {"Accept": "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"}


def test_anonymous_people_get_the_login_page_and_no_bytes(client, images):
    shown = (unsigned(images[1].url), unsigned(images[1].thumbnail_url))
    for address in (*shown, "/images/999999999/00000000.jpg"):
        answer = client.get(address, headers=BY_ADDRESS_BAR)
        assert (answer.status_code, answer.content) == (302, b"")
        assert answer.headers["Location"].startswith("/login/?next=/images/")


def test_a_page_whose_log_in_ended_gets_no_login_page_for_its_images(client, images):
    for headers in (BY_IMG, {"Accept": "*/*"}, {}):
        answer = client.get(unsigned(images[1].url), headers=headers)
        assert (answer.status_code, answer.content) == (401, b"Log in to see images.")
        assert not answer.cookies


def test_a_token_serves_scripts(client, annotator, images):
    address = unsigned(images[1].url)
    known = client.get(address, headers={"Authorization": f"Token {token_of(annotator)}"})
    assert known.status_code == 200
    unknown = client.get(address, headers={"Authorization": "Token abc"})
    assert unknown.status_code == 401
    assert b"JFIF" not in unknown.content


def test_a_disabled_account_sees_nothing(client, annotator, images):
    client.force_login(annotator)
    token = {"Authorization": f"Token {token_of(annotator)}"}
    annotator.is_active = False
    annotator.save()
    address = unsigned(images[1].url)
    assert client.get(address).status_code == 401
    assert Client().get(address, headers=token).status_code == 401


@pytest.mark.parametrize(
    "address",
    [
        "/images/1/00000000.jpg",
        "/images/999999999/{version}.jpg",
        "/images/1/{version}-big.jpg",
        "/images/1/..%2f..%2fsecret_key.jpg",
    ],
)
def test_other_addresses_are_not_found(client, annotator, images, address):
    client.force_login(annotator)
    assert client.get(address.format(version=images[1].sha256[:8])).status_code == 404


def test_a_file_that_is_gone_is_not_found(client, annotator, images, store):
    for path in store.rglob("*.thumb.jpg"):
        path.unlink()
    client.force_login(annotator)
    assert client.get(images[1].thumbnail_url).status_code == 404

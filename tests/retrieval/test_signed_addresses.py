"""Images at their signed addresses: by a file that is kept, and not after a withdrawal."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.core.signing import TimestampSigner
from django.db import connection, transaction
from django.test import Client
from PIL import Image as PillowImage

from retrieval.corpus.addresses import is_signed, signed
from retrieval.corpus.models import Image
from retrieval.corpus.shown import cache_folder
from retrieval.flags.services import image_restore, image_withdraw
from retrieval.images.storage import image_store
from retrieval.takedown.services import image_take_down
from tests.processes import wait_for
from tests.retrieval.making import encoded, image_row

pytestmark = pytest.mark.django_db

NOON = 1_764_331_200


@pytest.fixture
def image(store: Path) -> Image:
    """An image whose file says where it was taken."""
    exif = PillowImage.Exif()
    exif[0x010E] = "at the nest"
    data = encoded(PillowImage.new("RGB", (800, 600), "teal"), "JPEG", exif=exif)
    return image_row(300, sha256=image_store(data).sha256)


def status(address: str, client: Client | None = None) -> int:
    return int((client or Client()).get(address).status_code)


def kept() -> list[str]:
    return sorted(path.name for path in cache_folder().glob("*/*"))


def test_it_shows_an_image_without_session_row_and_metadata(
    image: Image, django_assert_num_queries: Any
) -> None:
    for address in (image.url, image.thumbnail_url):
        first = Client().get(address)
        with django_assert_num_queries(0):
            second = Client().get(address)
        data = b"".join(second.streaming_content)
        assert data == b"".join(first.streaming_content)
        assert data.startswith(b"\xff\xd8")
        assert b"nest" not in data
        for name in ("Content-Type", "Content-Disposition", "Content-Length", "Cache-Control"):
            assert second.headers[name] == first.headers[name]
        assert second.headers["X-Content-Type-Options"] == "nosniff"
        assert not second.cookies
        assert second.resolver_match.view_name == "image"
    assert kept() == [f"2c-300-{image.version}-thumb.jpg", f"2c-300-{image.version}.jpg"]


def test_without_the_right_signature_one_has_to_be_logged_in(
    image: Image, annotator: Any, client: Client
) -> None:
    path, _, query = image.url.partition("?")
    client.force_login(annotator)
    assert status(image.url) == 200
    for address in (path, image.thumbnail_url.partition("?")[0] + f"?{query}", f"{image.url}x"):
        assert status(address) == 401
        assert status(address, client) == 200
    assert status(f"/images/301/{image.version}.jpg?{query}", client) == 404


def test_it_is_the_same_for_half_a_day_and_ends_within_a_day(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def at(moment: int) -> None:
        monkeypatch.setattr("time.time", lambda: moment)

    def shows(address: str) -> bool:
        path, _, signature = address.partition("?signature=")
        return is_signed(path, signature)

    at(NOON)
    address = signed("/images/1/abcdef01.jpg")
    at(NOON + 12 * 3600 - 1)
    assert signed("/images/1/abcdef01.jpg") == address
    at(NOON + 12 * 3600)
    assert signed("/images/1/abcdef01.jpg") != address
    at(NOON + 24 * 3600)
    assert shows(address)
    at(NOON + 24 * 3600 + 1)
    assert not shows(address)


def test_a_former_key_still_opens_what_it_signed(settings: Any) -> None:
    path, _, signature = signed("/images/1/abcdef01.jpg").partition("?signature=")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "new", [settings.SECRET_KEY]
    assert is_signed(path, signature)
    assert not is_signed(path, TimestampSigner(key="other").sign(path)[len(path) + 1 :])


def test_an_address_from_before_the_withdrawal_shows_nothing_after_it(
    image: Image, annotator: Any, reviewer: Any, clients: dict[str, Client]
) -> None:
    before = [image.url, image.thumbnail_url]
    earlier = cache_folder() / "2c/2c-300-01234567.jpg"
    earlier.parent.mkdir(parents=True, exist_ok=True)
    earlier.write_bytes(b"of an earlier content")
    assert {status(address) for address in before} == {200}
    image_withdraw(image=image, by=reviewer, note="a face")
    assert kept() == []
    for address in before:
        assert status(address) == 401
        assert status(address, clients["annotator"]) == 404
        assert status(address, clients["reviewer"]) == 200
        assert status(address) == 401
    assert kept() == []
    image_restore(image=image, by=reviewer)
    assert {status(address) for address in before} == {200}


def test_an_address_from_before_the_takedown_shows_nothing_to_anybody(
    image: Image, admin: Any, clients: dict[str, Client], django_capture_on_commit_callbacks: Any
) -> None:
    before = [image.url, image.thumbnail_url]
    assert {status(address) for address in before} == {200}
    with django_capture_on_commit_callbacks(execute=True):
        image_take_down(image=image, reason="a face", by=admin)
    assert kept() == []
    assert {status(one) for one in before} == {401}
    for role in ("annotator", "reviewer", "admin"):
        assert {status(one, clients[role]) for one in before} == {404}


@pytest.mark.django_db(transaction=True)
def test_a_file_that_is_written_beside_a_withdrawal_does_not_outlive_it(
    image: Image, reviewer: Any
) -> None:
    statuses = []

    def show() -> None:
        statuses.append(status(image.url))
        connection.close()

    def waits() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
            return cursor.fetchone() is not None

    writer = Thread(target=show)
    with transaction.atomic():
        image_withdraw(image=image, by=reviewer)
        writer.start()
        wait_for(waits, what="the writer to wait for the withdrawal")
    writer.join()
    assert statuses == [200]
    assert kept() == []


def test_machines_that_share_a_bucket_keep_no_files(
    image: Image, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any
) -> None:
    assert status(image.url) == 200
    assert len(kept()) == 1
    for module in ("retrieval.corpus.shown", "retrieval.images.views"):
        monkeypatch.setattr(f"{module}.is_shared", lambda: True)
    with django_assert_max_num_queries(1):
        assert status(image.url) == 200
    assert status(image.thumbnail_url) == 200
    assert len(kept()) == 1


def test_a_file_that_goes_before_it_is_opened_is_made_again(
    image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrieval.images.middleware.shown_name", lambda *_: "2c/gone.jpg")
    assert status(image.url) == 200


def test_a_web_server_in_front_sends_the_file(image: Image, settings: Any) -> None:
    settings.IMAGE_REDIRECT = "/kept-images/"
    assert status(image.url) == 200
    answer = Client().get(image.url)
    name = answer.headers["X-Accel-Redirect"].removeprefix("/kept-images/")
    assert (cache_folder() / name).is_file()
    assert b"".join(answer.streaming_content) == b""
    assert answer.headers["Content-Type"] == "image/jpeg"
    assert answer.headers["Cache-Control"] == "private, max-age=31536000, immutable"
    assert "X-Accel-Redirect" not in Client().get(image.url + "x").headers

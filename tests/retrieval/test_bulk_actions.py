"""Flags and withdrawals of many images at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from core.bulk import MOST_AT_ONCE
from core.file_cache import store
from retrieval.corpus.models import Image, ImageWithdrawal
from retrieval.corpus.shown import cache_folder, shown_key
from retrieval.flags.models import ImageFlag
from retrieval.flags.services import image_flag_raise, image_withdraw, images_withdraw
from tests.conftest import api_of
from tests.retrieval.making import image_row, new_image

pytestmark = pytest.mark.django_db

UNKNOWN = {"id": 9, "why": "There is no such image."}
GONE = {"id": 3, "why": "The image is withdrawn from the corpus."}
AGAIN = "You have flagged the image so already."


@pytest.fixture
def images(reviewer: Any) -> list[Image]:
    """Images 1 to 3, of which the last is withdrawn."""
    made = [image_row(number) for number in (1, 2, 3)]
    image_withdraw(image=made[2], by=reviewer)
    return made


def post(api: APIClient, what: str, **body: Any) -> Any:
    return api.post(f"/api/images/{what}/", body, format="json")


def test_many_images_are_flagged_as_one_is(
    images: list[Image], annotator: Any, annotator_api: APIClient
) -> None:
    image_flag_raise(image=images[0], kind="duplicate", note="of 2", by=annotator)
    sent = {"ids": [2, 1, 3, 9, 2], "reason": "duplicate"}
    for note, done, again in (
        ("", 1, [1]),
        ("", 0, [1, 2]),
        ("twins", 2, []),
        ("twins", 0, [1, 2]),
    ):
        answer = post(annotator_api, "flag-many", **sent, note=note).json()
        expected = [UNKNOWN, GONE, *({"id": pk, "why": AGAIN} for pk in again)]
        assert answer == {"done": done, "skipped": expected}, note
    flags = ImageFlag.objects.values_list("image", "kind", "note", "raised_by__username")
    assert sorted(flags) == [(pk, "duplicate", "twins", annotator.username) for pk in (1, 2)]


def test_many_images_are_withdrawn_as_one_is(
    images: list[Image], annotator: Any, reviewer_api: APIClient, settings: Any, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path
    image_flag_raise(image=images[0], kind="person", by=annotator)
    shown = [(1, "abc"), (1, "abc-thumb"), (257, "abc"), (2, "abc")]
    for pk, version in shown:
        store(cache_folder(), limit=10**9, key=shown_key(pk, version), data=b"x")
    sent = {"ids": [1, 2, 3, 9], "note": "blurred"}
    answer = post(reviewer_api, "withdraw-many", **sent).json()
    assert answer == {"done": 2, "skipped": [UNKNOWN, GONE]}
    again = post(reviewer_api, "withdraw-many", **sent).json()
    assert (again["done"], [one["id"] for one in again["skipped"]]) == (0, [9, 1, 2, 3])
    standing = ImageWithdrawal.objects.filter(restored_at=None).order_by("image")
    assert list(standing.values_list("image", "note")) == [(1, "blurred"), (2, "blurred"), (3, "")]
    assert ImageFlag.objects.get().state == "upheld"
    left = [path.name for path in cache_folder().rglob("*.jpg")]
    assert left == [shown_key(257, "abc")]


def test_thousands_take_no_more_statements_than_a_few(reviewer: Any) -> None:
    Image.objects.bulk_create(new_image(number) for number in range(MOST_AT_ONCE))
    with CaptureQueriesContext(
        connection,
    ) as statements:
        outcome = images_withdraw(image_ids=range(MOST_AT_ONCE), by=reviewer)
    assert (outcome.done, outcome.skipped) == (MOST_AT_ONCE, [])
    assert len(statements) < 20
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
        assert cursor.fetchone()[0] < 300


def test_who_may_and_what_is_refused(
    images: list[Image], researcher: Any, annotator_api: APIClient, reviewer_api: APIClient
) -> None:
    flag = {"ids": [1], "reason": "person"}
    cases: list[tuple[APIClient, str, dict[str, Any], int]] = [
        (APIClient(), "flag-many", flag, 401),
        (api_of(researcher), "flag-many", flag, 403),
        (annotator_api, "withdraw-many", {"ids": [1]}, 403),
        (annotator_api, "flag-many", {"ids": [1], "reason": "ugly"}, 400),
        (annotator_api, "flag-many", {"ids": [1]}, 400),
        (reviewer_api, "withdraw-many", {"ids": []}, 400),
        (reviewer_api, "withdraw-many", {"ids": ["x"]}, 400),
        (reviewer_api, "withdraw-many", {"ids": [*range(MOST_AT_ONCE + 1)]}, 400),
        (reviewer_api, "withdraw-many", {"ids": [1], "note": "x" * 1001}, 400),
    ]
    for api, what, body, status in cases:
        assert post(api, what, **body).status_code == status, (what, status)
    assert not ImageFlag.objects.exists()
    assert ImageWithdrawal.objects.count() == 1

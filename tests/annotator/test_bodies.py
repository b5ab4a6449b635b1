"""Bodies that are hostile rather than wrong: too large, too deep, no text."""

import pytest

pytestmark = pytest.mark.django_db

LARGE = b'{"username": "' + b"x" * (7 * 1024 * 1024) + b'"}'
DEEP = b"[" * 100_000
HALF = rb'{"username": "\ud800", "password": "x"}'
HALF_NAME = rb'{"\udfff": 1}'


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (LARGE, 413, "larger than the server takes"),
        (DEEP, 400, "nested too deeply"),
        (DEEP + b"]" * 100_000, 400, "nested too deeply"),
        (HALF, 400, "surrogate"),
        (HALF_NAME, 400, "surrogate"),
    ],
    ids=["large", "deep and open", "deep", "half a character", "half a character as a name"],
)
@pytest.mark.parametrize("address", ["/api/token/", "/api/queries/"])
def test_a_hostile_body_is_refused_in_words(admin_api, address, body, status, says):
    answer = admin_api.generic("POST", address, body, content_type="application/json")
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    assert says in answer.json()["detail"]


def test_a_whole_pair_is_a_character(anonymous_api):
    body = rb'{"username": "\ud83e\udd89", "password": "x"}'
    answer = anonymous_api.generic("POST", "/api/token/", body, content_type="application/json")
    assert answer.status_code == 401

import pytest
from django.core.exceptions import PermissionDenied
from django.core.exceptions import ValidationError as ModelValidationError
from django.http import Http404
from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.test import APIClient
from rest_framework.views import APIView

from annotator.web.problems import field_errors
from tests.conftest import token_of

pytestmark = pytest.mark.django_db
TYPE = "application/problem+json"


class Item(serializers.Serializer):
    name = serializers.CharField()


class Body(serializers.Serializer):
    species = Item(many=True)


class Failing(APIView):
    permission_classes = ()

    @extend_schema(parameters=[OpenApiParameter("kind")], responses=None)
    def get(self, request):
        kinds = {
            "missing": Http404(),
            "forbidden": PermissionDenied("Only admins may."),
            "model": ModelValidationError({"text": ["Too long."]}),
            "bug": RuntimeError("the password is hunter2"),
        }
        raise kinds[request.query_params["kind"]]

    def post(self, request):
        Body(data=request.data).is_valid(raise_exception=True)


class Guarded(APIView):
    def get(self, request):
        return Response({"name": request.user.username})


urlpatterns = [
    path("api/failing/", Failing.as_view()),
    path("api/guarded/", Guarded.as_view()),
]
handler404 = "annotator.web.problems.page_not_found"


@pytest.fixture
def failing(settings):
    settings.ROOT_URLCONF = __name__
    return APIClient()


def problem(answer):
    assert answer.headers["Content-Type"] == TYPE
    body = answer.json()
    assert set(body) == {"type", "title", "status", "detail", "errors"}
    assert (body["type"], body["status"]) == ("about:blank", answer.status_code)
    return body["status"], body["title"], body["detail"], body["errors"]


def test_each_kind_of_error(failing):
    too_long = {"field": "text", "detail": "Too long."}
    for kind, status, title, detail, errors in (
        ("missing", 404, "Not Found", "Not found.", []),
        ("forbidden", 403, "Forbidden", "Only admins may.", []),
        ("model", 400, "Bad Request", "text: Too long.", [too_long]),
    ):
        answer = failing.get("/api/failing/", {"kind": kind})
        assert problem(answer) == (status, title, detail, errors)


def test_an_unexpected_error_is_logged_and_tells_nothing(failing, caplog):
    status, _title, detail, _errors = problem(failing.get("/api/failing/", {"kind": "bug"}))
    assert status == 500
    assert "hunter2" not in detail
    assert "hunter2" in caplog.text


def test_the_field_of_an_item_in_a_list_is_named(failing):
    answer = failing.post("/api/failing/", {"species": [{"name": "a"}, {"name": ""}, {}]})
    status, _title, detail, errors = problem(answer)
    assert status == 400
    assert errors == [
        {"field": "species.1.name", "detail": "This field may not be blank."},
        {"field": "species.2.name", "detail": "This field is required."},
    ]
    assert detail == "species.1.name: This field may not be blank. (and 1 more)"


def test_what_no_view_takes(failing):
    status, _title, detail, _errors = problem(
        failing.post("/api/failing/", "{", content_type="application/json")
    )
    assert status == 400
    assert detail.startswith("JSON parse error")
    assert problem(failing.post("/api/failing/", "a=1", content_type="text/plain"))[0] == 415
    assert problem(failing.delete("/api/failing/"))[:2] == (405, "Method Not Allowed")
    status, _title, detail, _errors = problem(failing.get("/api/nothing/here/"))
    assert (status, detail) == (404, "There is nothing at /api/nothing/here/.")


def test_a_hostile_body_is_refused_in_words(admin_api):
    deep = b"[" * 100_000
    for body, status, says in (
        (b'{"username": "' + b"x" * (7 * 1024 * 1024) + b'"}', 413, "larger than the server takes"),
        (deep, 400, "nested too deeply"),
        (deep + b"]" * 100_000, 400, "nested too deeply"),
        # Half a character, as a value and as a name.
        (rb'{"username": "\ud800", "password": "x"}', 400, "surrogate"),
        (rb'{"\udfff": 1}', 400, "surrogate"),
    ):
        for address in ("/api/token/", "/api/queries/"):
            answer = admin_api.generic("POST", address, body, content_type="application/json")
            assert problem(answer)[0] == status
            assert says in problem(answer)[2]
    whole = rb'{"username": "\ud83e\udd89", "password": "x"}'
    answer = admin_api.generic("POST", "/api/token/", whole, content_type="application/json")
    assert answer.status_code == 401


def test_a_foreign_host_under_api(anonymous_api):
    assert problem(anonymous_api.get("/api/token/", HTTP_HOST="evil.example.org"))[0] == 400


def test_pages_keep_their_own_errors(client):
    answer = client.get("/nothing/here/")
    assert answer.status_code == 404
    assert answer.headers["Content-Type"].startswith("text/html")


def test_errors_of_nested_lists_keep_their_place():
    assert field_errors({"a": {"b": ["x", "y"]}, "non_field_errors": ["z"]}) == [
        {"field": "a.b", "detail": "x"},
        {"field": "a.b", "detail": "y"},
        {"field": "", "detail": "z"},
    ]


def test_token_refuses_a_wrong_password_and_names_missing_fields(anonymous_api, annotator):
    wrong = anonymous_api.post("/api/token/", {"username": "ann", "password": "x"})
    assert problem(wrong) == (401, "Unauthorized", "Wrong name or password.", [])
    empty = anonymous_api.post("/api/token/", {"username": "ann"})
    assert problem(empty)[3] == [{"field": "password", "detail": "This field is required."}]


def test_no_token_and_a_wrong_token_are_401_and_say_how_to_authenticate(failing):
    anonymous = failing.get("/api/guarded/")
    failing.credentials(HTTP_AUTHORIZATION="Token nonsense")
    wrong = failing.get("/api/guarded/")
    for answer in (anonymous, wrong):
        assert problem(answer)[0] == 401
        assert answer.headers["WWW-Authenticate"] == "Token"


def test_a_token_and_a_session_are_both_taken(failing, annotator):
    failing.credentials(HTTP_AUTHORIZATION=f"Token {token_of(annotator)}")
    assert failing.get("/api/guarded/").json() == {"name": "ann"}
    browser = APIClient()
    browser.force_login(annotator, backend="django.contrib.auth.backends.ModelBackend")
    assert browser.get("/api/guarded/").json() == {"name": "ann"}


def test_a_session_needs_the_csrf_token_to_write(failing, annotator):
    browser = APIClient(enforce_csrf_checks=True)
    browser.force_login(annotator, backend="django.contrib.auth.backends.ModelBackend")
    status, _title, detail, _errors = problem(browser.delete("/api/guarded/"))
    assert status == 403
    assert detail.startswith("CSRF Failed")


def test_an_answer_in_another_format_still_fails_in_json(anonymous_api):
    anonymous_api.credentials(HTTP_AUTHORIZATION="Token nonsense")
    assert problem(anonymous_api.get("/api/schema/"))[0] == 401

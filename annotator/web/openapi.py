"""The description of the API at /api/schema/: what every operation has in common."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from threading import Lock
from typing import Any

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.generators import EndpointEnumerator, SchemaGenerator
from drf_spectacular.plumbing import ComponentRegistry, build_mock_request
from rest_framework.serializers import RegexField

from annotator.web.problems import CONTENT_TYPE

_describing = Lock()

TEXT = r"^[^\x00]*$"
TEXT_NOT_BLANK = r"^[^\x00]*[^\s\x00][^\x00]*$"
PROBLEM = {
    "type": "object",
    "description": "What went wrong (RFC 9457).",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "a sentence for people"},
        "errors": {
            "type": "array",
            "description": "of a body or parameters that are refused",
            "items": {
                "type": "object",
                "properties": {"field": {"type": "string"}, "detail": {"type": "string"}},
                "required": ["field", "detail"],
            },
        },
    },
    "required": ["type", "title", "status", "detail", "errors"],
}


def describe_problems(result: dict[str, Any], **_options: Any) -> dict[str, Any]:
    """Add to each operation the errors that it can answer by its kind, beside those of its own.

    A hook of drf-spectacular's POSTPROCESSING_HOOKS.
    """
    result["components"]["schemas"]["Problem"] = PROBLEM
    content = {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for path, operations in result["paths"].items():
        for operation in operations.values():
            responses = operation["responses"]
            for status in problem_statuses(path, operation):
                responses.setdefault(str(status.value), {"description": status.phrase})
            for status, response in responses.items():
                if status >= "400":
                    response["content"] = content
    return result


def problem_statuses(path: str, operation: dict[str, Any]) -> set[HTTPStatus]:
    """The errors that an operation can answer by its kind."""
    found = {
        HTTPStatus.BAD_REQUEST,  # an unknown parameter
        HTTPStatus.NOT_ACCEPTABLE,
        HTTPStatus.SERVICE_UNAVAILABLE,  # no database
        HTTPStatus.INSUFFICIENT_STORAGE,
    }
    if operation.get("security"):
        # A conflict: X-Annotator is not who is logged in.
        found |= {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.CONFLICT}
        found.add(HTTPStatus.TOO_MANY_REQUESTS)  # API_RATE
    if "{" in path:
        found.add(HTTPStatus.NOT_FOUND)
    if "requestBody" in operation:
        found |= {HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE}
    return found


class TextExtension(OpenApiSerializerFieldExtension):
    """Says of a text that is sent whether it may be blank, and that it holds no NUL character."""

    target_class = "rest_framework.serializers.CharField"
    match_subclasses = True

    def map_serializer_field(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        described: dict[str, Any] = auto_schema._map_serializer_field(
            self.target, direction, bypass_extensions=True
        )
        if direction == "request" and not isinstance(self.target, RegexField):
            described["pattern"] = TEXT if self.target.allow_blank else TEXT_NOT_BLANK
        return described


@cache
def query_parameters(view: Any, method: str) -> frozenset[str] | None:
    """The query parameters that the description names for a method of an API view; None where the
    view doesn't answer the method, or isn't described.
    """
    actions = getattr(view, "actions", None) or {method.lower(): method.lower()}
    if method == "OPTIONS" or not hasattr(view.cls, actions.get(method.lower(), "-")):
        return None
    # Views share their schemas, and these last as long as the generator.
    with _describing:
        generator = SchemaGenerator()
        described = generator.create_view(view, method)
        described.request = build_mock_request(method, "/", described, None)
        operation = described.schema.get_operation("/", "/", "/", method, ComponentRegistry())
    if operation is None:
        return None
    return frozenset(one["name"] for one in operation.get("parameters", []) if one["in"] == "query")


def prepare_query_parameters() -> None:
    """Find the query parameters of all API views, which their first requests would wait for."""
    for _path, _pattern, method, view in EndpointEnumerator().get_api_endpoints():
        query_parameters(view, method)

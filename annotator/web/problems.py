"""Errors of the API as problem documents (RFC 9457), and pages of errors."""

import logging
import math
import sys
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.core.exceptions import ValidationError as ModelValidationError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.views import defaults
from rest_framework import exceptions
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import set_rollback

from core.errors import Invalid, Refused
from core.outages import outage_of

CONTENT_TYPE = "application/problem+json"
logger = logging.getLogger(__name__)


def is_api(request: HttpRequest) -> bool:
    """Whether the request's answer is read by a program rather than a person."""
    return request.path_info.startswith("/api/")


def problem(
    status: int, *, detail: str = "", errors: list[dict[str, str]] | None = None
) -> dict[str, Any]:
    """The members of a problem document; `errors` holds {field, detail} items.

    https://www.rfc-editor.org/rfc/rfc9457
    """
    title = HTTPStatus(status).phrase
    return {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail or title,
        "errors": errors or [],
    }


def problem_response(
    status: int, *, detail: str = "", errors: list[dict[str, str]] | None = None
) -> HttpResponse:
    """A problem document outside Django REST framework."""
    return JsonResponse(
        problem(status, detail=detail, errors=errors), status=status, content_type=CONTENT_TYPE
    )


def field_errors(detail: Any, path: str = "") -> list[dict[str, str]]:
    """Flatten a serializer's nested errors to {field, detail}, fields written `species.0.name`."""
    if isinstance(detail, dict):
        nested = [(field_name(path, key), value) for key, value in detail.items()]
        return [error for name, value in nested for error in field_errors(value, name)]
    if isinstance(detail, list | tuple):
        found = []
        for position, item in enumerate(detail):
            deeper = isinstance(item, dict | list | tuple)
            found += field_errors(item, f"{path}.{position}".strip(".") if deeper else path)
        return found
    return [{"field": path, "detail": str(detail)}]


def field_name(path: str, key: Any) -> str:
    """The dotted name of a member; errors of the whole object keep the object's own name."""
    if key == api_settings.NON_FIELD_ERRORS_KEY or key == "__all__":
        return path
    return f"{path}.{key}".strip(".")


class TooLarge(exceptions.APIException):
    """413: the body is larger than the server reads."""

    status_code = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    default_detail = "The request is larger than the server takes."


def exception_handler(error: Exception, context: dict[str, Any]) -> Response:
    """Turn any error of an API view into a problem document; unexpected ones are logged."""
    if isinstance(error, Http404):
        error = exceptions.NotFound()
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied(str(error) or None)
    elif isinstance(error, RequestDataTooBig):
        error = TooLarge()
    elif isinstance(error, SuspiciousOperation):
        error = exceptions.ParseError()
    elif isinstance(error, Invalid):
        error = exceptions.ValidationError(error.by_field)
    elif isinstance(error, ModelValidationError):
        messages = error.message_dict if hasattr(error, "error_dict") else error.messages
        error = exceptions.ValidationError(messages)
    headers: dict[str, str] = {}
    if isinstance(error, exceptions.ValidationError):
        errors = field_errors(error.detail)
        body = problem(error.status_code, detail=summary(errors), errors=errors)
    elif isinstance(error, Refused):
        body = problem(error.status, detail=str(error))
    elif isinstance(error, exceptions.APIException):
        body = problem(error.status_code, detail=str(error.detail))
        if getattr(error, "auth_header", None):
            headers["WWW-Authenticate"] = error.auth_header  # type: ignore[attr-defined]
    elif outage := outage_of(error):
        logger.error("No answer to %s: %s", context["request"].path, error)
        body = problem(outage.status, detail=outage.sentence)
        headers["Retry-After"] = str(outage.retry_after)
    else:
        logger.exception("Error in %s", context["request"].path, exc_info=error)
        body = problem(500, detail="Something went wrong here; the server's log says what.")
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(max(1, math.ceil(wait)))
    set_rollback()
    # Whatever the view would have answered with, a problem is JSON.
    context["request"].accepted_renderer = JSONRenderer()
    context["request"].accepted_media_type = JSONRenderer.media_type
    return Response(body, status=body["status"], headers=headers, content_type=CONTENT_TYPE)


def summary(errors: list[dict[str, str]]) -> str:
    """One sentence for people: the first error and how many more there are."""
    if not errors:
        return "The request is not valid."
    first = errors[0]
    text = f"{first['field']}: {first['detail']}" if first["field"] else first["detail"]
    return text if len(errors) == 1 else f"{text} (and {len(errors) - 1} more)"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400 outside the API's views, such as a Host header that is not allowed."""
    if is_api(request):
        if isinstance(exception, RequestDataTooBig):
            return problem_response(TooLarge.status_code, detail=TooLarge.default_detail)
        return problem_response(400, detail="The request is malformed.")
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403 outside the API's views."""
    if is_api(request):
        return problem_response(403, detail=str(exception))
    return defaults.permission_denied(request, exception)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404 for an address that no view answers."""
    if is_api(request):
        return problem_response(404, detail=f"There is nothing at {request.path_info}.")
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """500 outside the API's views, also in middleware; 503 or 507 where something is only away.

    Django calls this while it handles the error. The page asks nothing of the database.
    """
    outage = outage_of(sys.exc_info()[1])
    if outage is None:
        return problem_response(500) if is_api(request) else defaults.server_error(request)
    if is_api(request):
        response = problem_response(outage.status, detail=outage.sentence)
    else:
        page = render_to_string("outage.html", {"outage": outage})
        response = HttpResponse(page, status=outage.status)
    response["Retry-After"] = str(outage.retry_after)
    return response

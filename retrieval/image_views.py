"""The pictures themselves, for people and programs that are logged in."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.http import require_safe
from rest_framework.authentication import TokenAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from retrieval.access import role_of
from retrieval.selectors.flags import images_visible_to
from retrieval.storage import display_path, thumbnail_path

_VERSION = re.compile(r"(?P<content>[0-9a-f]{8})(?P<thumbnail>-thumb)?")


@require_safe
def image(request: HttpRequest, pk: int, version: str) -> HttpResponseBase:
    """Serve a picture or its thumbnail as a JPEG; `version` is as `Image.url` writes it.

    An address names the content, so that browsers keep what they have; an address of content that
    the image no longer has is not found, nor is, for annotators, a withdrawn image: it may hold
    personal data. Without a log-in there are no bytes: the login page for who opens the address,
    401 for a page's `<img>` and for programs. The login page in their place would also give the
    browser a new CSRF cookie, and the log-in form in another tab would fail.
    """
    try:
        user = _user(request)
    except AuthenticationFailed as error:
        return _unauthorized(str(error.detail))
    if user is None:
        if "text/html" in request.headers.get("Accept", ""):
            return redirect_to_login(request.get_full_path())
        return _unauthorized("Log in to see pictures.")
    match = _VERSION.fullmatch(version)
    sha256 = images_visible_to(user).filter(pk=pk).values_list("sha256", flat=True).first()
    if not match or not sha256 or not sha256.startswith(match["content"]):
        raise Http404("There is no such image.")
    path = thumbnail_path(sha256) if match["thumbnail"] else display_path(sha256)
    try:
        response = FileResponse(
            path.open("rb"), content_type="image/jpeg", filename=f"{pk}-{version}.jpg"
        )
    except FileNotFoundError:
        raise Http404("The image's file is gone from the store.") from None
    response["Cache-Control"] = "private, max-age=31536000, immutable"
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _unauthorized(why: str) -> HttpResponse:
    return HttpResponse(why, status=401, content_type="text/plain; charset=utf-8")


def _user(request: HttpRequest) -> Any:
    """Who asks, by session or token; None for nobody."""
    if role_of(request.user) is not None:
        return request.user
    authenticated = TokenAuthentication().authenticate(Request(request))
    if authenticated is None or role_of(authenticated[0]) is None:
        return None
    return authenticated[0]

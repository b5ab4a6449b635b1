"""Images at signed addresses, sent from the files that are kept of them."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.urls import ResolverMatch

from retrieval.corpus.addresses import is_signed
from retrieval.corpus.shown import cache_folder, shown_name
from retrieval.images.views import image, jpeg_response

_ADDRESS: Final = re.compile(r"/images/(?P<pk>\d{1,19})/(?P<version>[0-9a-f]{8}(-thumb)?)\.jpg")
#: For the metrics.
_MATCH: Final = ResolverMatch(image, (), {}, "image")


class SignedImages:
    """Answers before sessions, cookies and routes, which take longer than the image. All else it
    passes on: what isn't signed, and images that have no file yet.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Send the image, or have the web server in front send it (IMAGE_REDIRECT)."""
        return _answer(request) or self.get_response(request)


def _answer(request: HttpRequest) -> HttpResponseBase | None:
    address = _ADDRESS.fullmatch(request.path_info)
    if not address or request.method not in ("GET", "HEAD"):
        return None
    pk, version = int(address["pk"]), address["version"]
    signature = request.GET.get("signature", "")
    if not is_signed(request.path_info, signature) or not (name := shown_name(pk, version)):
        return None
    request.resolver_match = _MATCH
    if settings.IMAGE_REDIRECT:
        response = jpeg_response(pk, version, io.BytesIO())
        response["X-Accel-Redirect"] = f"{settings.IMAGE_REDIRECT}{name}"
        return response
    try:
        return jpeg_response(pk, version, (cache_folder() / name).open("rb"))
    except FileNotFoundError:
        return None

"""The files of images, for people and programs that are logged in, and the page of each image."""

from __future__ import annotations

import logging
import re
from typing import Any, BinaryIO

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.db import transaction
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_safe
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request
from rest_framework.settings import api_settings

from core.access import Role, names_hidden_from, require_role, role_of
from core.file_cache import store
from core.outages import STORAGE_AWAY
from core.registries import IMAGE_PANELS, cards
from core.storage import is_shared
from core.world_map import place_dot
from retrieval.corpus.addresses import is_signed
from retrieval.corpus.models import CustomField, Image
from retrieval.corpus.places import hide_places
from retrieval.corpus.shown import cache_folder, shown_files_lock, shown_key
from retrieval.custom_fields.selectors import fields_visible_to, value_text
from retrieval.flags.selectors import flag_reviews, image_visible_to, images_visible_to
from retrieval.flags.serializers import FlagSerializer
from retrieval.images.files import (
    ImageGone,
    ImageRef,
    RootUnavailable,
    display_file,
    thumbnail_file,
)

_VERSION = re.compile(r"(?P<content>[0-9a-f]{8})(?P<thumbnail>-thumb)?")

log = logging.getLogger(__name__)


@login_required
@require_safe
def image_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show an image with its facts and what else the user may know of it; 404 to annotators for a
    withdrawn image.
    """
    require_role(request.user, Role.ANNOTATOR)
    images = images_visible_to(request.user).select_related("species", "takedown")
    image = get_object_or_404(images.prefetch_related("species__names"), pk=pk)
    hide_places([image], request.user)
    [review] = flag_reviews([image])
    context = {
        "section": "corpus",
        "image": image,
        "names_hidden": names_hidden_from(request.user),
        "map": _map_of(image),
        "custom_fields": _custom_fields_of(image, request.user),
        "flags": FlagSerializer(review.flags, many=True, context={"request": request}).data,
        "withdrawal": review.withdrawal,
        "panels": cards(IMAGE_PANELS, request, image),
    }
    return render(request, "retrieval/image.html", context)


def _custom_fields_of(image: Image, user: Any) -> list[tuple[CustomField, str]]:
    """The custom fields that the user sees, of those that the image has, with their values."""
    fields = fields_visible_to(user) if image.custom_fields else ()
    values = image.custom_fields
    return [(field, value_text(values[field.name])) for field in fields if field.name in values]


def _map_of(image: Image) -> str:
    """The image's place on a map of the world; empty where it isn't known or not shown."""
    if image.latitude is None or image.longitude is None:
        return ""
    about = "About where" if image.coordinates_obscured else "Where"
    return place_dot(
        image.latitude, image.longitude, label=f"{about} image {image.pk} was photographed"
    )


@require_safe
def image(request: HttpRequest, pk: int, version: str) -> HttpResponseBase:
    """Serve an image or its thumbnail as a JPEG; `version` is as in `Image.url`.

    The address contains the content's version, so that browsers can cache it. Its signature shows
    an image of the corpus to whoever has it: here for the first time, then `SignedImages` sends the
    file that is kept. Without a valid signature the person has to be logged in. 404 for another
    version, for a missing file and, to annotators, for a withdrawn image, which may hold personal
    data; 503 if the image's root doesn't answer. The version "thumb" redirects to the present
    thumbnail.

    Visitors get the log-in page if they open the address, and 401 for a page's `<img>` or a
    program's request: a log-in page there would replace the CSRF cookie, so that the log-in form
    in another tab would fail.
    """
    signed = is_signed(request.path_info, request.GET.get("signature", ""))
    stored_image = image_visible_to(None, pk) if signed else None
    if stored_image is None:
        try:
            user = _user(request)
        except AuthenticationFailed as error:
            return _text(str(error.detail), status=401)
        if user is None:
            if "text/html" in request.headers.get("Accept", ""):
                return redirect_to_login(request.get_full_path())
            return _text("Log in to see images.", status=401)
        stored_image = image_visible_to(user, pk)
    if stored_image and version == "thumb":
        return redirect(stored_image.thumbnail_url)
    match = _VERSION.fullmatch(version)
    if not match or stored_image is None or match["content"] != stored_image.version:
        raise Http404("There is no such image.")
    ref = ImageRef.of(stored_image)
    try:
        file = thumbnail_file(ref) if match["thumbnail"] else display_file(ref)
    except RootUnavailable as error:
        log.exception("Image %s cannot be shown", pk)
        answer = _text(str(error), status=503)
        answer["Retry-After"] = str(STORAGE_AWAY.retry_after)
        return answer
    except ImageGone as error:
        return _text(str(error), status=404)
    if not is_shared():
        _keep(pk, version, file)
    return jpeg_response(pk, version, file)


def _keep(pk: int, version: str, file: BinaryIO) -> None:
    """Keep the file for signed addresses, if the image is in the corpus."""
    with transaction.atomic():
        shown_files_lock(pk)
        if image_visible_to(None, pk) is None:
            return
        limit, key = settings.THUMBNAIL_CACHE_BYTES, shown_key(pk, version)
        store(cache_folder(), limit=limit, key=key, data=file.read())
    file.seek(0)


def jpeg_response(pk: int, version: str, file: BinaryIO) -> HttpResponseBase:
    """An image's file, which is closed after it."""
    response = FileResponse(file, content_type="image/jpeg", filename=f"{pk}-{version}.jpg")
    response["Cache-Control"] = "private, max-age=31536000, immutable"
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _text(why: str, *, status: int) -> HttpResponse:
    return HttpResponse(why, status=status, content_type="text/plain; charset=utf-8")


def _user(request: HttpRequest) -> Any:
    """Return the user by token or session, as the API does, or None."""
    # The stubs type these classes as the setting's strings.
    classes: Any = api_settings.DEFAULT_AUTHENTICATION_CLASSES
    authenticators = [authenticator() for authenticator in classes]
    user = Request(request, authenticators=authenticators).user
    return user if role_of(user) is not None else None

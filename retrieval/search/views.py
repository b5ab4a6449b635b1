"""The page of free-text search, whole or only its results while a person types."""

from __future__ import annotations

import socket
from functools import partial
from http import HTTPStatus
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from core.access import Role, names_hidden_from, require_role
from core.address_choices import chosen, chosen_ids
from retrieval.embedding.text_vectors import TextsUnavailable
from retrieval.encoding.model_specs import ModelSpecError
from retrieval.search.selectors import SearchUnavailable, search_images
from retrieval.search.turns import SearchBusy, SearchTooSlow
from retrieval.species.selectors import species_by_ids

SEARCH_RESULTS = 60
_STATUS: dict[type[Exception], HTTPStatus] = {
    SearchUnavailable: HTTPStatus.OK,
    ModelSpecError: HTTPStatus.SERVICE_UNAVAILABLE,
    TextsUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    SearchTooSlow: HTTPStatus.SERVICE_UNAVAILABLE,
    SearchBusy: HTTPStatus.TOO_MANY_REQUESTS,
}


@login_required
@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """Free-text search, optionally within species; `part=results` returns only the results."""
    require_role(request.user, Role.ANNOTATOR)
    text = request.GET.get("text", "").strip()[:500]
    species = species_by_ids(chosen_ids(request.GET, "species"))
    context: dict[str, Any] = {
        "text": text,
        "species": species,
        "hide_names": names_hidden_from(request.user),
    }
    status = HTTPStatus.OK
    if text:
        try:
            context["found"] = search_images(
                text=text,
                species_ids=[s.pk for s in species] or None,
                limit=SEARCH_RESULTS,
                person=request.user.pk,
                has_left=partial(_has_left, request),
            )
        except tuple(_STATUS) as error:
            context["error"] = str(error)
            status = _STATUS[type(error)]
    part = chosen(request.GET, "part", ("results",)) == "results"
    template = "retrieval/_search_results.html" if part else "retrieval/search.html"
    return render(request, template, context, status=status)


def _has_left(request: HttpRequest) -> bool:
    """Whether the browser has closed the connection, as a page does that sends a later search."""
    connection = request.META.get("gunicorn.socket")
    if connection is None:
        return False
    try:
        sent: bytes = connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return not sent

"""The page of search, whole or only its results while a person types."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from core.access import Role, names_hidden_from, require_role
from core.address_choices import chosen, chosen_id, chosen_ids
from retrieval.corpus.counts import image_count
from retrieval.corpus.models import Image
from retrieval.corpus.selectors import corpus_images
from retrieval.embedding.text_vectors import TextsUnavailable
from retrieval.encoding.model_specs import ModelSpecError
from retrieval.flags.selectors import image_visible_to
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
    """Search by a text, else for images `like` one, optionally within species; without either the
    images of species, or else of a data set, in order. `part=results` returns only the results.
    """
    require_role(request.user, Role.ANNOTATOR)
    text = request.GET.get("text", "").strip()[:500]
    species = species_by_ids(chosen_ids(request.GET, "species"))
    species_ids = [s.pk for s in species]
    dataset = request.GET.get("dataset", "")[:100]
    like = _image_of(request)
    context: dict[str, Any] = {
        "text": text,
        "like": like,
        "species": species,
        "dataset": dataset,
        "hide_names": names_hidden_from(request.user),
    }
    status = HTTPStatus.OK
    if text or like:
        try:
            context["found"] = search_images(
                text=text,
                like=None if text or like is None else like.pk,
                species_ids=species_ids or None,
                limit=SEARCH_RESULTS,
                person=request.user.pk,
                # As a page does that sends a later search.
                has_left=request.META.get("waitress.client_disconnected", lambda: False),
            )
        except tuple(_STATUS) as error:
            context["error"] = str(error)
            status = _STATUS[type(error)]
    elif species or dataset:
        context["images"] = corpus_images(
            species_ids=species_ids,
            dataset=dataset,
            after=chosen_id(request.GET, "after"),
            limit=SEARCH_RESULTS,
        )
        context["total"] = image_count(species_ids=species_ids) if species else None
    part = chosen(request.GET, "part", ("results",)) == "results"
    template = "retrieval/_search_results.html" if part else "retrieval/search.html"
    return render(request, template, context, status=status)


def _image_of(request: HttpRequest) -> Image | None:
    """The image of the parameter `like`; Http404 for one that isn't there for the user."""
    image_id = chosen_id(request.GET, "like")
    image = None if image_id is None else image_visible_to(request.user, image_id)
    if image is None and image_id is not None:
        raise Http404("There is no such image.")
    return image

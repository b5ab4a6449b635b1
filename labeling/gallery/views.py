"""The page of a query's gallery."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth import get_user_model
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from core.access import Role, at_least, names_hidden_from
from core.address_choices import chosen, chosen_id, chosen_ids, chosen_page
from labeling.candidates.stopping import UNSURE
from labeling.gallery.selectors import (
    LABELS,
    OWN_LABELS,
    GalleryFilter,
    GalleryImage,
    gallery,
    gallery_images,
)
from labeling.judging.access import Act, get_query_for, why_not
from labeling.judging.grades import HIGHEST, LEAST_RELEVANT, grade_names, grade_of
from labeling.judging.models import Judgment, Relevance
from labeling.judging.sources import JudgmentSource
from labeling.queries.models import Query
from retrieval.species.selectors import species_by_ids

#: Images on a page.
PAGE_SIZE: Final = 60
_LISTED: Final = {"yes": True, "no": False}


@login_required
@require_safe
def images(request: HttpRequest, pk: int) -> HttpResponse:
    """The images that were judged for a query, by the filters of the address."""
    query = get_query_for(request.user, pk)
    reviewer = at_least(request.user, Role.REVIEWER)
    names = grade_names(query.grades)
    labels = LABELS if reviewer else OWN_LABELS
    wanted = GalleryFilter(
        label=chosen(request.GET, "label", labels),
        person=chosen_id(request.GET, "person"),
        also=chosen_id(request.GET, "also"),
        source=chosen(request.GET, "source", [*JudgmentSource]),
        grade=_number(chosen(request.GET, "grade", [str(grade) for grade in names])),
        species=tuple(chosen_ids(request.GET, "species")),
        listed=_LISTED.get(chosen(request.GET, "listed", _LISTED)),
    )
    shown = gallery(query=query, user=request.user, wanted=wanted)
    page = chosen_page(Paginator(shown.image_ids, PAGE_SIZE), request.GET)
    judges = Judgment.objects.filter(query=query).order_by().values("annotator")
    people = get_user_model().objects.filter(pk__in=judges).order_by("username")
    context: dict[str, Any] = {
        "query": query,
        "reviewer": reviewer,
        "wanted": wanted,
        "filtered": wanted != GalleryFilter(label=wanted.label),
        "tabs": [
            (name, shown.counts[label], _address(request, label=label), label == wanted.label)
            for label, name in ({"": "All"} | labels).items()
        ],
        "page": page,
        "tiles": [
            (image, _words(query, image.label, image.grade), _said(query, image, wanted.person))
            for image in gallery_images(query=query, user=request.user, image_ids=list(page))
        ],
        "previous": _address(request, page=page.number - 1),
        "next": _address(request, page=page.number + 1),
        "hidden": shown.hidden,
        "people": people if reviewer else [],
        "sources": [(str(source), source.label) for source in JudgmentSource],
        "grades": [
            (grade, names[grade], key)
            for key, grade in enumerate(sorted(names, reverse=True), start=1)
        ]
        if query.grades
        else [],
        "species": species_by_ids(wanted.species),
        "names_hidden": names_hidden_from(request.user),
        "may_correct": not why_not(request.user, query, Act.CORRECT),
        "grade_names": [names.get(grade, "") for grade in range(HIGHEST + 1)],
        "gallery": {
            "api": reverse("api-query-detail", args=[query.pk]),
            "least_relevant_grade": LEAST_RELEVANT.get(query.grades),
        },
    }
    return render(request, "labeling/gallery.html", context)


def _words(query: Query, relevance: str, grade: int | None) -> str:
    """A label as people read it: by its grade where the query asks for one."""
    if not query.grades or relevance == UNSURE:
        return Relevance(relevance).label
    return grade_names(query.grades)[grade_of(grade, relevance)]


def _said(query: Query, image: GalleryImage, person: int | None) -> str:
    """Whom the images are of, with what they said, where it isn't the image's label."""
    label = _words(query, image.label, image.grade)
    for vote in image.votes:
        said = _words(query, vote.relevance, vote.grade)
        if vote.annotator_id == person and said != label:
            return f"{vote.annotator.get_username()}: {said}"
    return ""


def _number(text: str) -> int | None:
    return int(text) if text else None


def _address(request: HttpRequest, **changes: Any) -> str:
    """The page's address with other parameters; the first page where nothing is said of it."""
    parameters = request.GET.copy()
    parameters.pop("page", None)
    for name, value in changes.items():
        parameters[name] = str(value)
        if value in ("", None):
            del parameters[name]
    return f"?{parameters.urlencode()}"

"""The page of the images: the grid with its filters, or the list of species."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from core.access import Role, names_hidden_from, require_role
from core.address_choices import chosen, chosen_page
from core.bulk import MOST_AT_ONCE
from core.errors import Invalid, Missing
from core.jobs.models import Job
from core.jobs.selectors import jobs_visible_to
from core.registries import LinkPlace, links
from retrieval.browsing.actions import actions_for
from retrieval.browsing.choice import Choice, choice_of
from retrieval.browsing.saved import saved_filters
from retrieval.browsing.selectors import MOST_POSITIONS, matches
from retrieval.browsing.serializers import MatchesSerializer, SavedFilterSerializer
from retrieval.corpus.selectors import corpus_counts, datasets
from retrieval.embedding.counts import corpus_coverage
from retrieval.species.selectors import species_by_ids, species_by_name, with_image_counts

SPECIES_PER_PAGE = 50
MOST_JOBS = 8
FIRST_IDS, FIRST_TILES = 500, 60
#: What /search/ had; the place in its list, `after`, is now one to scroll to.
_OF_SEARCH = ("text", "like", "species", "dataset")


@login_required
@require_safe
def corpus(request: HttpRequest) -> HttpResponse:
    """Show the images, or with `view=species` the list of their species."""
    require_role(request.user, Role.ANNOTATOR)
    view = chosen(request.GET, "view", ("species",))
    context: dict[str, Any] = {
        "view": view,
        "links": links(LinkPlace.CORPUS),
        "counts": corpus_counts(),
        "datasets": datasets(),
        "coverage": corpus_coverage(),
        "jobs": jobs_visible_to(request.user).filter(state__in=Job.UNFINISHED)[:MOST_JOBS],
    }
    if view == "species":
        return render(request, "retrieval/species.html", context | _species(request))
    try:
        choice = choice_of(request.GET, request.user)
    except (Invalid, Missing) as error:
        raise Http404(str(error)) from error
    return render(request, "retrieval/images.html", context | _images(choice))


@login_required
@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """Lead to the page of the images, with what an address of the former search page held."""
    require_role(request.user, Role.ANNOTATOR)
    given = request.GET.copy()
    for name in [name for name in given if name not in _OF_SEARCH or not any(given.getlist(name))]:
        del given[name]
    address = reverse("corpus")
    return redirect(f"{address}?{given.urlencode()}" if given else address)


def _species(request: HttpRequest) -> dict[str, Any]:
    name = request.GET.get("name", "").strip()[:100]
    page = chosen_page(Paginator(species_by_name(name), SPECIES_PER_PAGE), request.GET)
    page.object_list = with_image_counts(page.object_list)
    hidden = names_hidden_from(request.user)
    return {"species_text": name, "species_page": page, "names_hidden": hidden}


def _images(choice: Choice) -> dict[str, Any]:
    """What the grid begins with. Ranked images come by the page's first request, since the model
    that reads the text may have to be loaded.
    """
    user, first = choice.user, None
    if not choice.is_ranked:
        found = matches(choice, offset=0, limit=FIRST_IDS, with_tiles=FIRST_TILES)
        first = MatchesSerializer(found).data
    chosen_species = [pk for pk in choice.values.get("species", ()) if pk is not None]
    return {
        "text": choice.text,
        "like": choice.like,
        "species": species_by_ids(chosen_species),
        "page": {
            "first": first,
            "most": MOST_POSITIONS,
            "at_once": MOST_AT_ONCE,
            "filters": [
                {"key": one.key, "parameter": one.parameter, "label": one.label, "shows": one.shows}
                for one in choice.filters
            ],
            "actions": actions_for(user),
            "saved": SavedFilterSerializer(saved_filters(user), many=True).data,
            "shares": user.role == Role.ADMIN,
        },
    }

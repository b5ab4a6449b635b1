"""The page of flagged and withdrawn images."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from core.access import Role, require_role
from core.address_choices import chosen
from core.registries import LinkPlace, links
from retrieval.flags.selectors import flag_reviews, flagged_images, withdrawn_images
from retrieval.flags.serializers import FlagReviewSerializer

FLAGS_AT_ONCE = 24


@login_required
@require_safe
def flags(request: HttpRequest) -> HttpResponse:
    """Show flagged images to reviewers, who decide on them, and withdrawn ones, to restore."""
    require_role(request.user, Role.REVIEWER)
    by_state = {"open": flagged_images(), "withdrawn": withdrawn_images()}
    state = chosen(request.GET, "state", by_state, "open")
    reviews = FlagReviewSerializer(
        flag_reviews(by_state[state][:FLAGS_AT_ONCE]), many=True, context={"request": request}
    )
    counts = {name: images.count() for name, images in by_state.items()}
    context = {
        "state": state,
        "counts": counts,
        "links": links(LinkPlace.FLAGS),
        "page": {
            "state": state,
            "count": counts[state],
            "limit": FLAGS_AT_ONCE,
            "results": reviews.data,
        },
    }
    return render(request, "retrieval/flags.html", context)

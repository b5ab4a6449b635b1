"""The cards of labeling on an image's page."""

from __future__ import annotations

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from labeling.images.selectors import image_in_labeling
from retrieval.corpus.models import Image


def image_panel(request: HttpRequest, image: Image) -> SafeString:
    """The labels, comments and candidate lists of an image that the user may know of."""
    context = {"image": image, "labeling": image_in_labeling(request.user, image)}
    return render_to_string("labeling/_image_panel.html", context, request)

"""The last of the first steps: splits, then a release."""

from __future__ import annotations

from django.urls import reverse

from core.registries import FirstStep
from labeling.queries.models import Query
from releases.models import Release


def _split() -> bool:
    return Query.objects.filter(split_settled=True).exists()


def _released() -> bool:
    return Release.objects.exists()


STEPS = [
    FirstStep(
        "Split the queries",
        "Into those for tuning a method and those for testing it.",
        lambda: reverse("split-queries"),
        _split,
    ),
    FirstStep(
        "Make a release",
        "The labels with checksums, in the formats of the field.",
        lambda: reverse("releases"),
        _released,
        last=True,
    ),
]

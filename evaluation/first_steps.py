"""What follows the first release."""

from __future__ import annotations

from django.urls import reverse

from core.registries import FirstStep
from evaluation.models import Run


def _scored() -> bool:
    return Run.objects.exists()


LEADERBOARD = FirstStep(
    "Fill the leaderboard",
    "Evaluate a model on the release, or submit a run of your own.",
    lambda: reverse("leaderboard-latest"),
    _scored,
)

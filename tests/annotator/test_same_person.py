"""A page that stands open while somebody else logs in does nothing under their name."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from labeling.studio.models import LabelingPreferences

PREFERENCES = "/api/preferences/labeling/"


@pytest.mark.django_db
def test_a_page_of_somebody_else_neither_stores_nor_shows_anything(
    clients: dict[str, Client], annotator: Any, reviewer: Any
) -> None:
    client = clients["reviewer"]
    grid = {"view": {"view": "grid"}}
    for theirs in (str(annotator.pk), "", "x"):
        headers = {"X-Annotator": theirs}
        for answer in (
            client.get(PREFERENCES, headers=headers),
            client.put(PREFERENCES, grid, content_type="application/json", headers=headers),
        ):
            assert (answer.status_code, answer["Content-Type"]) == (409, "application/problem+json")
    assert not LabelingPreferences.objects.exists()
    answer = client.put(
        PREFERENCES,
        grid,
        content_type="application/json",
        headers={"X-Annotator": str(reviewer.pk)},
    )
    assert answer.status_code == 200
    assert LabelingPreferences.objects.get().user == reviewer


@pytest.mark.django_db
def test_who_is_logged_out_is_told_so(annotator: Any) -> None:
    answer = Client().get(PREFERENCES, headers={"X-Annotator": str(annotator.pk)})
    assert answer.status_code == 401

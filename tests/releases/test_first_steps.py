"""The first steps lead an admin from nothing to the first release, then fold into Help."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from labeling.lifecycle.services import query_create
from labeling.queries.models import Query
from releases.models import Release
from retrieval.embedding.embedding_models import embedding_model_get_or_create, model_use
from tests.labeling.conftest import embed, make_images, toy_spec

pytestmark = pytest.mark.django_db


def test_the_steps_are_a_function_of_the_state(
    clients: dict[str, Client], admin: Any, settings: Any
) -> None:
    settings.EMBEDDING_MODEL = toy_spec()
    office = clients["admin"]

    def following(page: str = "/corpus/") -> str:
        text = office.get(page).content.decode()
        return text.partition("data-next-step>")[2].partition("<strong>Next: ")[2].split(".")[0]

    def done() -> int:
        page = office.get("/").content.decode()
        return page.partition("data-first-steps")[2].partition("</ol>")[0].count("Done")

    assert (following(), done()) == ("bring in images", 0)
    for role in ("annotator", "reviewer"):
        for page in ("/", "/corpus/", "/help/"):
            assert "First steps" not in (text := clients[role].get(page).content.decode())
            assert "data-next-step" not in text
    embedding_model_get_or_create()
    images = make_images(3, embedded=False)
    assert (following(), done()) == ("have the model look at them (embed)", 1)
    embed(images)
    assert (following("/models/"), done()) == ("write a query", 2)
    query = query_create(text="a toad", category="Species ID", split="val", created_by=admin)
    Query.objects.update(split_settled=False)
    assert following(f"/queries/{query.pk}/") == "open it"
    for state, title in (
        ("open", "label its images"),
        ("submitted", "review it"),
        ("complete", "split the queries"),
    ):
        Query.objects.filter(pk=query.pk).update(state=state)
        assert following() == title
        assert following("/import/") == title
        if state == "submitted":
            assert following(f"/queries/{query.pk}/label/") == title
    # Of another model nothing is embedded yet.
    model_use(name="demo")
    assert following() == "have the model look at them (embed)"
    model_use(name=toy_spec())
    Query.objects.filter(pk=query.pk).update(split_settled=True)
    assert following("/releases/split/") == "make a release"
    link = '<a class="button compact" href="/releases/">'
    assert link in office.get("/releases/split/").content.decode()
    # The page on which it is done doesn't lead to itself.
    assert link not in office.get("/releases/").content.decode()
    Release.objects.create(name="Toads")
    assert following() == ""
    assert "data-first-steps" not in office.get("/").content.decode()
    assert "Fill the leaderboard" in office.get("/help/").content.decode()

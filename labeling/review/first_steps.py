"""The way from an empty installation to the first release: what an admin does next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from core.access import Role, role_of
from core.registries import LATER_STEPS, FirstStep
from labeling.queries.models import Query
from retrieval.corpus.counts import image_count
from retrieval.embedding.counts import has_embeddings
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.machines import hub_reach

_State = Query.State


@dataclass(frozen=True, slots=True)
class Step:
    """A step, and whether it is done."""

    title: str
    about: str
    address: str
    done: bool


def first_steps(user: Any) -> list[Step]:
    """The steps, for an admin until the first release is made; else none."""
    return list(all_steps()) if first_steps_shown(user) else []


def all_steps() -> Iterator[Step]:
    """Every step with whether it is done, also after the first release."""
    for step in (*_steps(), *LATER_STEPS):
        yield Step(step.title, step.about, step.address(), step.done())


def next_step(user: Any) -> Step | None:
    """The first of a user's steps that is not done."""
    steps = all_steps() if first_steps_shown(user) else ()
    return next((step for step in steps if not step.done), None)


def first_steps_shown(user: Any) -> bool:
    """Whether the user is an admin and no release is made."""
    released = (step.done() for step in LATER_STEPS if step.last)
    return role_of(user) == Role.ADMIN and not any(released)


def _steps() -> list[FirstStep]:
    """Those up to the labels."""
    model = model_in_use()
    return [
        FirstStep(
            "Bring in images",
            "Upload a folder or a ZIP, or import a corpus on the server.",
            lambda: reverse("upload"),
            lambda: image_count() > 0,
        ),
        FirstStep(
            "Have the model look at them (embed)",
            _about_embedding(model),
            lambda: reverse("models", query={"model": model}),
            lambda: has_embeddings(model),
        ),
        FirstStep(
            "Write a query",
            "What an image must show, such as “a mongoose standing upright alert”.",
            lambda: reverse("query-new"),
            Query.objects.exists,
        ),
        FirstStep(
            "Open it",
            "Then its images are put in order, and people can label them.",
            lambda: _of_query("query-detail", _State.DRAFT),
            Query.objects.exclude(state=_State.DRAFT).exists,
        ),
        FirstStep(
            "Label its images",
            "Yourself, or by people whom you invite under People; then hand it in.",
            lambda: _of_query("query-label", _State.OPEN),
            Query.objects.filter(state__in=[_State.SUBMITTED, _State.COMPLETE]).exists,
        ),
        FirstStep(
            "Review it",
            "Decide what people were unsure about, and complete the query.",
            lambda: _of_query("query-review", _State.SUBMITTED),
            Query.objects.filter(state=_State.COMPLETE).exists,
        ),
    ]


def _about_embedding(model: str) -> str:
    hub = hub_reach()
    if hub is not None and not hub.reached and not has_embeddings(model):
        return "Models can't be fetched now: use a local folder, or the built-in model to try out."
    return f"With {model}, which then orders the images of queries, or with another."


def _of_query(page: str, state: str) -> str:
    """The page of the newest query in that state; without one the list of queries."""
    query = Query.objects.filter(state=state).order_by("-pk").values_list("pk", flat=True).first()
    return reverse("dashboard") if query is None else reverse(page, args=[query])

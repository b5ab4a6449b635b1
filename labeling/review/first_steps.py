"""The way from an empty installation to the first query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model

from core.access import Role, role_of
from labeling.queries.models import Query
from retrieval.corpus.counts import image_count
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.models import Embedding


@dataclass(frozen=True, slots=True)
class Step:
    """One step; `route` names the page where it is done."""

    title: str
    about: str
    route: str
    done: bool


def first_steps(user: Any) -> list[Step]:
    """The steps, for an admin until a query was opened; else none."""
    if role_of(user) != Role.ADMIN or Query.objects.exclude(state=Query.State.DRAFT).exists():
        return []
    others = get_user_model().objects.filter(is_active=True).exclude(pk=user.pk)
    return [
        Step(
            "Bring in images",
            "Upload a folder or a ZIP, or import a corpus on the server.",
            "upload",
            image_count() > 0,
        ),
        Step(
            "Embed them",
            f"By {model_in_use()}, which orders the candidates of a query.",
            "corpus",
            Embedding.objects.exists(),
        ),
        Step(
            "Write a query",
            "What an image must show, such as “a mongoose standing upright alert”; then open it.",
            "query-new",
            Query.objects.exists(),
        ),
        Step("Invite annotators", "They label open queries.", "people", others.exists()),
    ]

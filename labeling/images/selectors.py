"""What labeling knows of an image, as far as a person may know it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Count, F, OuterRef

from core.access import Role, at_least
from labeling.candidates.models import Candidate
from labeling.comments.models import Thread
from labeling.comments.selectors import hidden_from, threads_visible_to
from labeling.judging.access import queries_visible_to
from labeling.judging.models import Judgment
from retrieval.corpus.models import Image

#: Of each kind.
MOST_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class ImageInLabeling:
    """The last judgments of an image, its comments and its ranks, of all queries; at most
    MOST_SHOWN of each.
    """

    judgments: Sequence[Judgment]
    """The newest first, with their queries and annotators."""
    threads: Sequence[Thread]
    """With their queries and `number` of comments."""
    candidates: Sequence[Candidate]
    """In the current lists of queries, the highest rank first."""


def image_in_labeling(user: Any, image: Image) -> ImageInLabeling:
    """What the user may know: annotators their own judgments, and comments on what they have judged
    (see `threads_visible_to`). Reviewers know all, but nothing of a query for which they are to
    judge the image blindly.
    """
    queries = queries_visible_to(user).order_by().values("pk")
    judgments = Judgment.objects.filter(image=image, query__in=queries)
    threads = threads_visible_to(user).filter(image=image, query__in=queries)
    candidates: list[Candidate] = []
    if at_least(user, Role.REVIEWER):
        blind = hidden_from(user, query=OuterRef("query"), image=image.pk)
        judgments = judgments.filter(~blind)
        in_use = Candidate.objects.filter(image=image, list=F("list__query__current_list"))
        shown = in_use.filter(~hidden_from(user, query=OuterRef("list__query"), image=image.pk))
        candidates = list(shown.select_related("list__query").order_by("rank", "pk")[:MOST_SHOWN])
    else:
        judgments = judgments.filter(annotator=user)
    latest = judgments.select_related("query", "annotator").order_by("-updated_at", "-pk")
    counted = threads.select_related("query").annotate(number=Count("comments")).order_by("-pk")
    return ImageInLabeling(
        judgments=list(latest[:MOST_SHOWN]),
        threads=list(counted[:MOST_SHOWN]),
        candidates=candidates,
    )

"""Which comments a person may read, and where they are mentioned.

Others' comments on an image could influence its judgment. So annotators read them only after their
own judgment of that image for that query is stored; reviewers read all comments except those on
images that they are to judge blindly.
"""

from __future__ import annotations

from typing import Any, Final

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery

from core.access import Role, at_least
from labeling.audits.models import Draw
from labeling.candidates.models import Candidate
from labeling.comments.models import Comment, Mention, Thread
from labeling.judging.access import queries_visible_to
from labeling.judging.blind import blind_to, votes_on_item
from labeling.judging.models import Judgment
from labeling.queries.models import Query

#: On a dashboard.
MENTIONS_SHOWN: Final = 20


def hidden_from(user: Any, *, query: Any, image: Any) -> Q:
    """The condition that others' comments on an image for a query are hidden from the user.

    `query` and `image` are primary keys, or references to them (`OuterRef`).
    """
    judged = Exists(Judgment.objects.filter(query=query, image=image, annotator=user))
    if not at_least(user, Role.REVIEWER):
        return Q(~judged)
    goes_on = Q(query__state__in=(Query.State.OPEN, Query.State.SUBMITTED))
    drawn = Draw.objects.filter(goes_on, ~Exists(votes_on_item()), query=query, image=image)
    blind = blind_to(user).filter(query=query, image=image)
    return ~Q(judged) & (Exists(drawn) | Exists(blind))


def is_hidden(user: Any, query: Query, image_id: int | None) -> bool:
    """Whether others' comments are hidden from the user: never those on the query itself."""
    if image_id is None:
        return False
    condition = hidden_from(user, query=query.pk, image=image_id)
    return Query.objects.filter(condition, pk=query.pk).exists()


def threads_visible_to(user: Any) -> QuerySet[Thread]:
    """The threads that the user may read, of any query."""
    hidden = hidden_from(user, query=OuterRef("query"), image=OuterRef("image"))
    return Thread.objects.filter(Q(image=None) | ~hidden)


def comments_for(user: Any, query: Query, image_id: int | None) -> dict[str, Any]:
    """A thread as the user may read it: only their own comments where others' are hidden."""
    hidden = is_hidden(user, query, image_id)
    thread = (
        Thread.objects.filter(query=query, image=image_id).select_related("resolved_by").first()
    )
    comments = Comment.objects.filter(thread=thread).select_related("author").order_by("pk")
    if hidden:
        comments = comments.filter(author=user)
    return {
        "image": image_id,
        "hidden": hidden,
        "resolved_by": None if hidden or thread is None else thread.resolved_by,
        "resolved_at": None if hidden or thread is None else thread.resolved_at,
        "results": list(comments) if thread else [],
    }


def comment_counts(user: Any, query: Query) -> list[dict[str, int]]:
    """How many comments the user may read on each image of the query."""
    # Most queries have none, and the query with permissions takes Django several times as long.
    if not Thread.objects.filter(query=query).exclude(image=None).exists():
        return []
    threads = threads_visible_to(user).filter(query=query).exclude(image=None)
    counts = threads.annotate(number=Count("comments")).order_by("image")
    return [{"image": thread.image_id or 0, "comments": thread.number} for thread in counts]


def image_threads(user: Any, query: Query) -> QuerySet[Thread]:
    """The open threads on the query's images that the user may read, and all that mention them;
    with `rank` (None outside the current list), `number` of comments and `readable`.
    """
    readable = threads_visible_to(user).filter(pk=OuterRef("pk"))
    rank = Candidate.objects.filter(list=query.current_list_id, image=OuterRef("image"))
    mentioned = Exists(Mention.objects.filter(thread=OuterRef("pk"), person=user))
    return (
        Thread.objects.filter(query=query)
        .exclude(image=None)
        .annotate(
            readable=Exists(readable),
            rank=Subquery(rank.values("rank")[:1]),
            number=Count("comments"),
        )
        .filter(Q(readable=True, resolved_at=None) | mentioned)
        .order_by("pk")
    )


def mentions_waiting(user: Any) -> QuerySet[Mention]:
    """Where the user is mentioned and hasn't read it, the latest first."""
    return (
        Mention.objects.filter(person=user, thread__query__in=queries_visible_to(user).values("pk"))
        .select_related("thread__query", "comment__author")
        .order_by("-comment")[:MENTIONS_SHOWN]
    )

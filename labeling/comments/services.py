"""Writing comments, and resolving their threads."""

from __future__ import annotations

import re
from typing import Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone

from core.access import Role, at_least
from core.errors import Conflict, Invalid
from labeling.comments.models import Comment, Mention, Thread
from labeling.comments.selectors import threads_visible_to
from labeling.judging.access import sees_query
from labeling.queries.models import Query
from retrieval.flags.selectors import images_visible_to

#: Names that one comment can mention.
MOST_MENTIONS: Final = 20
_NAME: Final = re.compile(r"(?<![\w@.+-])@([\w.@+-]{1,150})")


@transaction.atomic
def comment_add(
    *, query: Query, image_id: int | None, author: Any, text: str, client_id: UUID
) -> bool:
    """Store a comment on a query or on one of its images; False if it was stored before.

    People who are mentioned (`@name`) and may see the query find it on their dashboard. Raises
    Invalid for an image that doesn't exist for the author.
    """
    if Comment.objects.filter(author=author, client_id=client_id).exists():
        return False
    if image_id is not None and not images_visible_to(author).filter(pk=image_id).exists():
        raise Invalid({"image": ["There is no such image."]})
    thread, _ = Thread.objects.get_or_create(query=query, image_id=image_id)  # type: ignore[misc]
    comment, new = Comment.objects.get_or_create(
        author=author, client_id=client_id, defaults={"thread": thread, "text": text}
    )
    if new:
        for person in _mentioned(text, author):
            if at_least(person, Role.ANNOTATOR) and sees_query(person, query):
                Mention.objects.update_or_create(
                    thread=thread, person=person, defaults={"comment": comment}
                )
    return new


def _mentioned(text: str, author: Any) -> list[Any]:
    """The people mentioned in a text; a full stop after a name may be part of the name or not."""
    names = list(dict.fromkeys(_NAME.findall(text)))[:MOST_MENTIONS]
    usernames = {*names, *(name.rstrip(".+-@") for name in names)}
    return list(get_user_model().objects.filter(username__in=usernames).exclude(pk=author.pk))


def thread_resolve(*, query: Query, image_id: int | None, by: Any, resolved: bool) -> None:
    """Resolve a thread, or reopen it. Raises Conflict if there is none that the person can read."""
    threads = threads_visible_to(by).filter(query=query, image=image_id)
    pks = list(threads.values_list("pk", flat=True))
    if not pks:
        raise Conflict("There is no comment here yet.")
    # A thread already in this state keeps who changed it and when.
    rows = Thread.objects.filter(pk__in=pks, resolved_at__isnull=resolved)
    values = (by, timezone.now()) if resolved else (None, None)
    rows.update(resolved_by=values[0], resolved_at=values[1])


def thread_opened(*, query: Query, image_id: int | None, by: Any) -> None:
    """End a person's mention in a thread that they have read."""
    Mention.objects.filter(person=by, thread__query=query, thread__image=image_id).delete()


def mentions_rename(*, name: str, pseudonym: str) -> None:
    """Replace the name of a person who leaves wherever a comment mentions them."""
    mention = re.compile(rf"@{re.escape(name)}(?!\w)", re.IGNORECASE)
    comments = Comment.objects.filter(text__icontains=f"@{name}")
    for comment in comments.select_for_update(of=("self",)).iterator():
        comment.text = mention.sub(f"@{pseudonym}", comment.text)
        comment.save(update_fields=["text"])

"""E-mails to the people who label, where settings.EMAIL_URL names a server."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.mail import EmailMessage, get_connection
from django.db import transaction
from django.db.models import Q
from django.urls import reverse

from core.outside import MAIL
from labeling.queries.models import Query

logger = logging.getLogger(__name__)


def mail_assigned(*, query: Query, people: Any) -> None:
    """Tell people, by primary key, that an open query is assigned to them, once the transaction
    commits.
    """
    _mail(query, people, "assigned to you", "is assigned to you. Its candidates wait for you.")


def mail_sent_back(*, query: Query, person: Any, note: str) -> None:
    """Tell a person that their part of a query is sent back, and why, once the transaction
    commits.
    """
    _mail(query, [person.pk], "sent back", f"is sent back to you:\n\n{note}")


def _mail(query: Query, people: Any, event: str, what: str) -> None:
    if not settings.EMAIL_URL:
        return
    users = get_user_model().objects.filter(pk__in=people, is_active=True).exclude(email="")
    wants = Q(labeling_preferences=None) | Q(labeling_preferences__mails=True)
    page = reverse("query-detail", args=[query.pk])
    link = f"\n\n{settings.SITE_URL.rstrip('/')}{page}" if settings.SITE_URL else ""
    body = (
        f"Query {query.query_id}, “{query.text}”, {what}{link}\n\n"
        "You can switch these e-mails off on your account page."
    )
    # A header is one line.
    subject = " ".join(f"Query {query.query_id} is {event}: {query.text}".split())[:200]
    mails = [
        EmailMessage(subject, body, to=[address])
        for address in users.filter(wants).order_by("pk").values_list("email", flat=True)
    ]
    if mails:
        transaction.on_commit(partial(MAIL.tell, partial(_send, mails)), robust=True)


def _send(mails: list[EmailMessage]) -> None:
    """Send them over one connection; a server that refuses them keeps nobody from labeling."""
    try:
        get_connection().send_messages(mails)
    except OSError:  # smtplib's errors are among these
        logger.exception("%d e-mails could not be sent", len(mails))

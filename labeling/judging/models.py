"""Judgments and their history, and what people judge blindly."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from labeling.candidates.models import CandidateList
from labeling.judging.grades import LONGEST_REASON
from labeling.judging.sources import SOURCE_CHOICES, JudgmentSource
from labeling.queries.models import Query
from retrieval.corpus.models import Image


class Relevance(models.TextChoices):
    """What a person can say of an image."""

    RELEVANT = "relevant", "Relevant"
    NOT_RELEVANT = "not_relevant", "Not relevant"
    UNSURE = "unsure", "Unsure"


class AbstractJudgment(models.Model):
    """What a person says of an image, and where they met it."""

    relevance = models.CharField(max_length=12, choices=Relevance)
    grade = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="from 0 to 3, where the query asks for one"
    )
    reason = models.CharField(
        max_length=LONGEST_REASON, blank=True, db_default="", help_text="why it has this grade"
    )
    source = models.CharField(max_length=10, choices=SOURCE_CHOICES, default=JudgmentSource.LIST)
    candidate_list = models.ForeignKey(
        CandidateList, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    rank = models.PositiveIntegerField(null=True, blank=True, help_text="in that list, from 1")
    revision = models.ForeignKey(
        "labeling.Revision",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
        help_text="of the order that learns, in whose queue it was met",
    )
    place = models.PositiveIntegerField(null=True, blank=True, help_text="in that queue, from 1")
    seconds = models.FloatField(default=0, help_text="active time spent on it")

    class Meta:
        abstract = True


class Judgment(AbstractJudgment):
    """One annotator's current relevance for one (query, image); `JudgmentEvent` has its history.
    Its seconds are those of all changes together. A judgment that was taken back has no row here.
    """

    # No index of its own: three others begin with it.
    query = models.ForeignKey(
        Query, on_delete=models.PROTECT, related_name="judgments", db_index=False
    )
    image = models.ForeignKey(Image, on_delete=models.PROTECT, related_name="judgments")
    annotator = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="judgments"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["query", "image", "annotator"], name="judgment_once_per_annotator"
            ),
            models.CheckConstraint(
                condition=models.Q(relevance__in=["relevant", "not_relevant", "unsure"]),
                name="judgment_relevance_known",
            ),
            # The upper bound keeps NaN out, which PostgreSQL holds for greater than every number.
            models.CheckConstraint(
                condition=models.Q(seconds__range=(0, 1e9)), name="judgment_seconds"
            ),
            models.CheckConstraint(
                condition=models.Q(grade=None) | models.Q(grade__range=(0, 3)),
                name="judgment_grade",
            ),
        ]
        indexes = [
            # An annotator's own labels of one query, joined to its list.
            models.Index(fields=["query", "annotator", "image"], name="judgment_query_annotator"),
            # Last activity on the dashboard.
            models.Index(fields=["query", "-updated_at"], name="judgment_query_recent"),
            # Almost none has one; it is asked where a revision goes with its query.
            models.Index(
                fields=["revision"],
                condition=models.Q(revision__isnull=False),
                name="judgment_revision",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.query_id}/{self.image_id}: {self.relevance}"


class JudgmentEvent(AbstractJudgment):
    """One judgment, or the removal of one, as a client sent it.

    Never changed or removed: a database trigger refuses both.
    """

    # No index of their own: the two below begin with them, and the constraint with the annotator.
    query = models.ForeignKey(
        Query, on_delete=models.PROTECT, related_name="judgment_events", db_index=False
    )
    image = models.ForeignKey(Image, on_delete=models.PROTECT, related_name="+", db_index=False)
    annotator = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    client_id = models.UUIDField(help_text="made by the client, so that a repeat counts once")
    previous = models.CharField(
        max_length=12,
        choices=Relevance,
        blank=True,
        help_text="the judgment before; empty for none",
    )
    relevance = models.CharField(
        max_length=12,
        choices=Relevance,
        blank=True,
        help_text="empty where the judgment was taken back",
    )
    acted_at = models.DateTimeField(help_text="when the person acted; earlier where it had to wait")
    made_at = models.DateTimeField(auto_now_add=True, help_text="when it was stored")

    class Meta:
        ordering = ["pk"]
        constraints = [
            # A judgment sent twice (a lost answer, a retry) is stored once.
            models.UniqueConstraint(
                fields=["annotator", "client_id"], name="judgment_event_client_once"
            ),
            models.CheckConstraint(
                condition=models.Q(seconds__range=(0, 1e9)), name="judgment_event_seconds"
            ),
            models.CheckConstraint(
                condition=models.Q(grade=None) | models.Q(grade__range=(0, 3)),
                name="judgment_event_grade",
            ),
        ]
        indexes = [
            # What one annotator did on a query since some event, and their time in all.
            models.Index(
                fields=["query", "annotator", "id"],
                include=["seconds"],
                name="judgment_event_own",
            ),
            # What was done lately, by anybody.
            models.Index(fields=["made_at"], name="judgment_event_made"),
            # The history of an image.
            models.Index(fields=["image", "query"], name="judgment_event_image"),
            # Almost none has one; it is asked where a revision goes with its query.
            models.Index(
                fields=["revision"],
                condition=models.Q(revision__isnull=False),
                name="judgment_event_revision",
            ),
        ]

    def __str__(self) -> str:
        change = f"{self.previous or 'none'} → {self.relevance or 'none'}"
        return f"{self.query_id}/{self.image_id}: {change}"


class BlindItem(models.Model):
    """An image of a query that people judge without knowing why: by its kind (`judging.blind`) what
    a release's audit drew, a label of somebody else, what a run requests or a reviewer picked. Or
    one that is known already, to see whether a person recognizes it: a seed of an audit, a check
    among opinions. Only `displayed_at` and `used_up_at` change, once each.
    """

    # No index of its own: the unique constraints begin with it.
    query = models.ForeignKey(
        Query, on_delete=models.CASCADE, related_name="blind_items", db_index=False
    )
    kind = models.CharField(max_length=40)
    image = models.ForeignKey(Image, on_delete=models.PROTECT, related_name="+")
    only_for = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        help_text="who is to recognize it, a seed or a check; empty for anybody",
    )
    not_for = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        help_text="who gave the first label",
    )
    place = models.BigIntegerField(help_text="random: people see them in this order")
    made_at = models.DateTimeField(auto_now_add=True)
    displayed_at = models.DateTimeField(
        null=True, help_text="to anybody, or published; empty before"
    )
    audit = models.ForeignKey(
        "labeling.ReleaseAudit",
        on_delete=models.CASCADE,
        null=True,
        related_name="draws",
        help_text="of a release's audit",
    )
    relevance = models.CharField(
        max_length=12,
        choices=Relevance,
        blank=True,
        help_text="of a second opinion the first label, of a check its answer",
    )
    probability = models.FloatField(
        null=True, help_text="of a second opinion that the hash chose: with which"
    )
    boundary = models.BooleanField(default=False, help_text="chosen for its score")
    used_up_at = models.DateTimeField(
        null=True,
        help_text="of a check: when its person's part was sent back for those they missed",
    )
    requested_for = models.CharField(
        max_length=300,
        blank=True,
        help_text="the first run that it was requested for; hidden from annotators",
    )
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )

    class Meta:
        ordering = ["query", "place", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["query", "kind", "image"],
                condition=models.Q(only_for=None),
                name="blind_item_once",
            ),
            models.UniqueConstraint(
                fields=["query", "kind", "image", "only_for"], name="blind_item_once_a_person"
            ),
            models.CheckConstraint(
                condition=models.Q(only_for=None) | models.Q(not_for=None),
                name="blind_item_only_or_not_for",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.query_id}/{self.image_id}: {self.kind}"

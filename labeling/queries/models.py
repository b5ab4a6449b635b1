"""Queries, the changes of their states, parts handed in, and pinned examples."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from labeling.queries.categories import CATEGORIES, supercategory_of
from retrieval.corpus.models import Image, Species


class Query(models.Model):
    """The text that annotators label against."""

    class State(models.TextChoices):
        """See `transitions` for the changes between them."""

        DRAFT = "draft", "Draft"
        OPEN = "open", "Open"
        SUBMITTED = "submitted", "Submitted"
        COMPLETE = "complete", "Complete"
        REJECTED = "rejected", "Rejected"

    class Split(models.TextChoices):
        """INQUIRE's splits."""

        VAL = "val", "Validation"
        TEST = "test", "Test"

    class Order(models.TextChoices):
        """In which order its candidates are labeled where nobody chooses another."""

        CLIP = "clip", "CLIP order"
        LEARNED = "learned", "Order that learns"

    class Grades(models.TextChoices):
        """Whether annotators give one of four grades, and which of them are relevant; see
        `labeling.judging.grades`."""

        NONE = "", "None: relevant, not relevant or unsure"
        PARTLY = "partly", "Four; definitely and partly are relevant"
        DEFINITELY = "definitely", "Four; only definitely is relevant"

    class RejectReason(models.TextChoices):
        """Why a query can't be used in a benchmark."""

        TOO_EASY = "too_easy", "Too easy"
        NOT_COMPREHENSIVE = "not_comprehensive", "Can't be labeled comprehensively"
        UNLABELABLE = "unlabelable", "Can't be labeled from images"
        OTHER = "other", "Other"

    query_id = models.PositiveIntegerField(
        unique=True, help_text="the number that the CSV files carry"
    )
    text = models.CharField(max_length=500)
    category = models.CharField(max_length=60, choices=[(c, c) for c in CATEGORIES])
    iconic_group = models.CharField(max_length=40, blank=True)
    split = models.CharField(max_length=4, choices=Split)
    split_settled = models.BooleanField(
        default=False,
        help_text="drawn, or named by a person or a file; kept when the split of others is drawn",
    )
    scientific_terms = models.BooleanField(
        default=False, help_text="the text uses terms that only an expert knows"
    )
    guidelines = models.TextField(blank=True)
    for_practice = models.BooleanField(
        default=False, help_text="annotators may practice with its labels once it is complete"
    )
    order = models.CharField(max_length=7, choices=Order, default=Order.CLIP)
    hand_in_rule = models.CharField(
        max_length=100,
        blank=True,
        help_text="what allows to hand it in, as `labeling.candidates.rules` reads it; empty for "
        "the setting's",
    )
    grades = models.CharField(
        max_length=10,
        choices=Grades,
        blank=True,
        default=Grades.NONE,
        help_text="which of four grades are relevant; empty where it asks for none",
    )
    species = models.ManyToManyField(Species, blank=True, related_name="queries")
    state = models.CharField(max_length=10, choices=State, default=State.DRAFT)
    reject_reason = models.CharField(max_length=20, choices=RejectReason, blank=True)
    reject_note = models.TextField(blank=True)
    left_open = models.TextField(
        blank=True, help_text="what was unmet, unsure or disputed when it was completed"
    )
    completion_reason = models.TextField(blank=True, help_text="why it was completed nevertheless")
    current_list = models.ForeignKey(
        "labeling.CandidateList",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="the list that is labeled or is being made",
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name_plural = "queries"
        ordering = ["query_id"]
        constraints = [
            models.CheckConstraint(condition=~models.Q(text=""), name="query_text_not_blank"),
            models.CheckConstraint(
                condition=models.Q(
                    state__in=["draft", "open", "submitted", "complete", "rejected"]
                ),
                name="query_state_known",
            ),
            models.CheckConstraint(
                condition=models.Q(split__in=["val", "test"]), name="query_split_known"
            ),
            models.CheckConstraint(
                condition=models.Q(order__in=["clip", "learned"]), name="query_order_known"
            ),
            models.CheckConstraint(
                condition=models.Q(grades__in=["", "partly", "definitely"]),
                name="query_grades_known",
            ),
            models.CheckConstraint(
                condition=models.Q(state="rejected", reject_reason__gt="")
                | (~models.Q(state="rejected") & models.Q(reject_reason="")),
                name="query_rejected_with_reason",
            ),
            models.CheckConstraint(
                condition=models.Q(left_open="", completion_reason="")
                | models.Q(state="complete", left_open__gt="", completion_reason__gt=""),
                name="query_left_open_with_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.query_id}: {self.text}"

    @property
    def supercategory(self) -> str:
        """The supercategory of its category."""
        return supercategory_of(self.category)


class QueryTransition(models.Model):
    """One change of a query's state: who, when, from, to, why.

    From open to open: somebody handed in their part while others labeled on.
    """

    query = models.ForeignKey(Query, on_delete=models.CASCADE, related_name="transitions")
    from_state = models.CharField(max_length=10, choices=Query.State)
    to_state = models.CharField(max_length=10, choices=Query.State)
    reason = models.CharField(max_length=20, choices=Query.RejectReason, blank=True)
    note = models.TextField(blank=True)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.query_id}: {self.from_state} → {self.to_state}"


class Assignment(models.Model):
    """A person's part in a query that they have handed in.

    An annotator who has judged but not handed in has no row; resuming removes it, and reopening the
    query removes all.
    """

    query = models.ForeignKey(
        Query, on_delete=models.CASCADE, related_name="assignments", db_index=False
    )
    annotator = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="assignments"
    )
    handed_in_at = models.DateTimeField(default=timezone.now)
    rule = models.CharField(
        max_length=300,
        blank=True,
        help_text="what met the query's rule: streak, exhausted, streak and certificate:0.9:0.95; "
        "empty for nothing",
    )
    reason = models.CharField(
        max_length=20,
        choices=Query.RejectReason,
        blank=True,
        help_text="why the person gave the query up; empty where they didn't",
    )
    note = models.TextField(blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["query", "annotator"], name="assignment_once_per_annotator"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.query_id}/{self.annotator_id}: handed in"


class QueryExample(models.Model):
    """An image that an admin pinned to a query's guidelines, as relevant or not relevant."""

    # No index of its own: the unique constraint begins with it.
    query = models.ForeignKey(
        Query, on_delete=models.CASCADE, related_name="examples", db_index=False
    )
    image = models.ForeignKey(Image, on_delete=models.CASCADE, related_name="+")
    relevant = models.BooleanField()
    note = models.CharField(max_length=500, blank=True, help_text="why, for annotators")
    pinned_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    pinned_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-relevant", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["query", "image"], name="query_example_once"),
        ]

    def __str__(self) -> str:
        return f"{self.query_id}: {self.image_id} is {'' if self.relevant else 'not '}relevant"

"""Benchmarks, queries, the changes of their states, parts handed in, and pinned examples."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models

from labeling.queries.categories import CATEGORIES, ICONIC_GROUPS, supercategory_of
from retrieval.corpus.models import Image, Species


class Benchmark(models.Model):
    """A named set of queries over the corpus, or over a filter of it, with settings, guidelines,
    people, splits and releases of its own. There is always one: the first.
    """

    name = models.CharField(max_length=100, unique=True)
    guidelines = models.TextField(blank=True, help_text="displayed above those of a query")
    people = models.ManyToManyField(
        settings.AUTH_USER_MODEL,
        blank=True,
        related_name="+",
        help_text="annotators who see its queries; empty for all",
    )
    species = models.ManyToManyField(
        Species, blank=True, related_name="+", help_text="its filter; empty for the whole corpus"
    )
    species_count = models.PositiveIntegerField(default=0, help_text="of the filter")
    settings = models.JSONField(
        default=dict, blank=True, help_text="the installation's settings that it overrides, by name"
    )
    screening = models.BooleanField(
        default=False,
        db_default=False,
        help_text="its queries look for images that don't belong in the corpus; no releases",
    )

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(condition=~models.Q(name=""), name="benchmark_name_not_blank")
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def species_ids(self) -> list[int]:
        """The primary keys of its filter, ascending; empty for the whole corpus."""
        return sorted(self.species.values_list("pk", flat=True)) if self.species_count else []

    def setting(self, name: str) -> Any:
        """The value of a setting for its queries: its own, else the installation's."""
        return self.settings.get(name, getattr(settings, name))


def default_benchmark() -> int:
    """The primary key of the first benchmark that isn't for screening, which is made where there is
    none.
    """
    found = Benchmark.objects.filter(screening=False).values_list("pk", flat=True).first()
    return found or Benchmark.objects.get_or_create(name="Benchmark")[0].pk


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
        EVIDENCE = "evidence", "What is shown (screening): the organism, a trace, the habitat only"

    class RejectReason(models.TextChoices):
        """Why a query can't be used in a benchmark."""

        TOO_EASY = "too_easy", "Too easy"
        NOT_COMPREHENSIVE = "not_comprehensive", "Can't be labeled comprehensively"
        UNLABELABLE = "unlabelable", "Can't be labeled from images"
        OTHER = "other", "Other"

    query_id = models.PositiveIntegerField(
        unique=True, help_text="the number that the CSV files carry"
    )
    benchmark = models.ForeignKey(
        Benchmark, on_delete=models.PROTECT, related_name="queries", default=default_benchmark
    )
    imported = models.BooleanField(
        default=False,
        db_default=False,
        help_text="its number is a file's: an import brought it, and may change it",
    )
    text = models.CharField(
        max_length=500, validators=[RegexValidator(r"\S", "The text is blank.")]
    )
    category = models.CharField(max_length=60, choices=[(c, c) for c in CATEGORIES])
    iconic_group = models.CharField(
        max_length=40,
        blank=True,
        choices=[("", "None in particular"), *((group, group) for group in ICONIC_GROUPS)],
    )
    split = models.CharField(max_length=4, choices=Split)
    split_settled = models.BooleanField(
        default=False,
        help_text="drawn, or named by a person or a file; kept when other splits are drawn",
    )
    scientific_terms = models.BooleanField(
        default=False, help_text="the text uses terms that only an expert knows"
    )
    guidelines = models.TextField(blank=True)
    for_practice = models.BooleanField(
        default=False, help_text="annotators may practice with its labels once it is complete"
    )
    order = models.CharField(
        max_length=7,
        choices=Order,
        default=Order.CLIP,
        help_text="in which its images are labeled where nobody chooses another",
    )
    hand_in_rule = models.CharField(
        max_length=100,
        blank=True,
        help_text="what allows to hand it in: streak, certificate:0.9 (a recall, and behind "
        "another colon a confidence) or exhausted, joined by “and” or “or”; empty for the "
        "setting's",
    )
    grades = models.CharField(
        max_length=10,
        choices=Grades,
        blank=True,
        default=Grades.NONE,
        help_text="which of four grades are relevant, empty where it asks for none; fixed once "
        "judgments have grades",
    )
    annotators_wanted = models.PositiveSmallIntegerField(
        default=0,
        help_text="how many must hand it in; 0 for whoever begins",
    )
    assigned_only = models.BooleanField(
        default=False, help_text="only those assigned, or who have begun, see and label it"
    )
    species = models.ManyToManyField(Species, blank=True, related_name="queries")
    state = models.CharField(max_length=10, choices=State, default=State.DRAFT)
    reject_reason = models.CharField(max_length=20, choices=RejectReason, blank=True)
    reject_note = models.TextField(blank=True)
    left_open = models.TextField(
        blank=True, help_text="what was unmet, unsure or disputed when it was completed"
    )
    completion_reason = models.TextField(
        blank=True, help_text="why it was completed with something left open; else empty"
    )
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
                condition=models.Q(grades__in=["", "partly", "definitely", "evidence"]),
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

    def clean(self) -> None:
        """What no field says by itself."""
        texts = {"text": self.text, "guidelines": self.guidelines}
        errors = {
            name: "NUL characters can't be stored." for name, text in texts.items() if "\0" in text
        }
        if self.grades == Query.Grades.EVIDENCE and not self.benchmark.screening:
            errors["grades"] = "Only screening queries ask what is shown."
        if errors:
            raise ValidationError(errors)

    @property
    def supercategory(self) -> str:
        """The supercategory of its category."""
        return supercategory_of(self.category)

    @property
    def all_guidelines(self) -> str:
        """Those of its benchmark above its own."""
        parts = (self.benchmark.guidelines.strip(), self.guidelines)
        return "\n\n".join(filter(None, parts))


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


class QueryEdit(models.Model):
    """One change of a query's fields: who, when, and each field's value before and after."""

    query = models.ForeignKey(Query, on_delete=models.CASCADE, related_name="edits")
    changes = models.JSONField(help_text="a list of field, value before, value after")
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text="empty where a command made it",
    )
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.query_id}: {', '.join(name for name, _, _ in self.changes)}"


#: The states of a part; of several that hold, the first counts.
PART_STATES: Final = ("handed in", "paused", "sent back", "assigned", "labeling")


class Assignment(models.Model):
    """A person's part in a query: assigned, begun, paused, sent back or handed in.

    Annotators who label a query that asks for no number of people have no row until they hand in.
    Reopening the query removes the rows of those who weren't assigned.
    """

    query = models.ForeignKey(
        Query, on_delete=models.CASCADE, related_name="assignments", db_index=False
    )
    annotator = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="assignments"
    )
    assigned_at = models.DateTimeField(
        null=True, blank=True, help_text="by a reviewer; empty for who began by themselves"
    )
    paused_at = models.DateTimeField(null=True, blank=True)
    sent_back_at = models.DateTimeField(null=True, blank=True)
    sent_back_note = models.TextField(blank=True, help_text="the reviewer's, for the annotator")
    handed_in_at = models.DateTimeField(null=True, blank=True)
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
        return f"{self.query_id}/{self.annotator_id}: {self.state}"

    @property
    def handed_in(self) -> bool:
        """Whether the person has ended their part."""
        return self.handed_in_at is not None

    @property
    def state(self) -> str:
        """One of PART_STATES."""
        held = (self.handed_in_at, self.paused_at, self.sent_back_at, self.assigned_at)
        return next((name for name, at in zip(PART_STATES, held, strict=False) if at), "labeling")


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

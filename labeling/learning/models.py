"""Revisions of the order that learns."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from pgvector.django import HalfVectorField

from labeling.candidates.models import CandidateList


class Revision(models.Model):
    """The direction by which a list's images are ordered, learned from the judgments up to an
    event; it is a function of these and of a further number for each image where there is one (see
    `labeling.learning.ridge`).
    """

    # No index of its own: the unique constraint begins with it.
    candidate_list = models.ForeignKey(
        CandidateList, on_delete=models.CASCADE, related_name="revisions", db_index=False
    )
    annotator = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        help_text="whose judgments it learned from; empty for everyone's",
    )
    number = models.PositiveIntegerField(help_text="from 1")
    last_event = models.BigIntegerField(
        help_text="the judgment event up to which judgments count; 0 for none"
    )
    size = models.PositiveIntegerField(help_text="how many candidates the list held then")
    direction = HalfVectorField()
    feature = models.CharField(
        max_length=100,
        blank=True,
        db_default="",
        help_text="the key of the images' further number; empty without one",
    )
    weight = models.FloatField(
        default=0.0, db_default=0.0, help_text="of the further number, in half precision"
    )
    judged = models.PositiveIntegerField(help_text="images that it learned from")
    relevant = models.PositiveIntegerField(help_text="those of them that are relevant")
    checksum = models.CharField(
        max_length=64, help_text="SHA-256 over image ids and scores in its order"
    )
    made_at = models.DateTimeField(help_text="images withdrawn at this moment are left out")

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["candidate_list", "annotator", "number"],
                nulls_distinct=False,
                name="revision_number_unique",
            ),
            models.CheckConstraint(
                condition=models.Q(relevant__lte=models.F("judged")),
                name="revision_relevant_in_judged",
            ),
        ]

    def __str__(self) -> str:
        return f"revision {self.number} of list {self.candidate_list_id}"

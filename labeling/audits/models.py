"""What audits drew: never changed, so that a certificate can be counted again."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MinLengthValidator
from django.db import models

from labeling.audits.draws import KEY_BYTES
from labeling.candidates.models import CandidateList
from labeling.queries.models import Query
from retrieval.corpus.models import Image


class QueryKey(models.Model):
    """A query's secret, shown to nobody."""

    query = models.OneToOneField(
        Query, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    key = models.BinaryField(
        max_length=KEY_BYTES, validators=[MinLengthValidator(KEY_BYTES)], editable=False
    )
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} of query {self.query_id}"


class DrawKey(QueryKey):
    """Orders a query's next draws, made when it opens: who knows it can tell which images will be
    audited. A release that publishes it ends its use, and the query gets another.
    """


class DrawRound(models.Model):
    """A round of draws from a declared pool: the first `size` of a candidate list.

    It ends when the next one begins: once an image that it could have drawn was judged elsewhere or
    withdrawn, or the list is another or longer; or when a release publishes its key.
    """

    # No index of its own: the unique constraint begins with it.
    query = models.ForeignKey(
        Query, on_delete=models.CASCADE, related_name="draw_rounds", db_index=False
    )
    number = models.PositiveIntegerField(help_text="of the query's rounds, from 1")
    candidate_list = models.ForeignKey(CandidateList, on_delete=models.CASCADE, related_name="+")
    size = models.PositiveIntegerField(help_text="the pool: so many ranks of the list")
    key = models.BinaryField(
        max_length=KEY_BYTES,
        validators=[MinLengthValidator(KEY_BYTES)],
        editable=False,
        help_text="what its draws are ordered by",
    )
    drawn_from = models.BinaryField(
        help_text="a bit a rank, the first the highest: without a judgment, never displayed and "
        "not withdrawn when the round began"
    )
    begun_at = models.DateTimeField(auto_now_add=True)
    begun_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    closed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["query", "number"]
        constraints = [
            models.UniqueConstraint(fields=["query", "number"], name="draw_round_number_once"),
            models.UniqueConstraint(
                fields=["query"],
                condition=models.Q(closed_at__isnull=True),
                name="draw_round_open_once",
            ),
        ]

    def __str__(self) -> str:
        return f"round {self.number} of query {self.query_id}"


class Draw(models.Model):
    """An image that a round drew and somebody was shown; an image is drawn once for a query."""

    # No indexes of their own: the unique constraints begin with them.
    query = models.ForeignKey(Query, on_delete=models.CASCADE, related_name="draws", db_index=False)
    round = models.ForeignKey(
        DrawRound, on_delete=models.CASCADE, related_name="draws", db_index=False
    )
    place = models.PositiveIntegerField(help_text="in the round's draw order, from 1")
    image = models.ForeignKey(Image, on_delete=models.PROTECT, related_name="+")
    displayed_at = models.DateTimeField(auto_now_add=True)
    displayed_to = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )

    class Meta:
        ordering = ["round", "place"]
        constraints = [
            models.UniqueConstraint(fields=["query", "image"], name="draw_image_once"),
            models.UniqueConstraint(fields=["round", "place"], name="draw_place_once"),
        ]

    def __str__(self) -> str:
        return f"{self.query_id}/{self.image_id}: draw {self.place} of round {self.round_id}"


class ReleaseKey(models.Model):
    """The secret that selects what the audits of the next release take, shown to nobody until a
    release publishes it, which ends its use. One is in use at a time in a benchmark.
    """

    key = models.BinaryField(
        max_length=KEY_BYTES, validators=[MinLengthValidator(KEY_BYTES)], editable=False
    )
    share = models.FloatField(help_text="with this probability an unjudged image is audited")
    made_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(share__gt=0, share__lt=1), name="release_key_share"
            ),
        ]

    def __str__(self) -> str:
        return f"release key {self.pk}"


class ReleaseAudit(models.Model):
    """The audit of a query for releases: the key selects some of the images that nobody had judged
    among the first `size` of a list. An image that an earlier audit of the query could select isn't
    part of a later one.
    """

    # No index of its own: the unique constraint begins with it.
    query = models.ForeignKey(
        Query, on_delete=models.CASCADE, related_name="release_audits", db_index=False
    )
    number = models.PositiveIntegerField(help_text="of the query's audits for releases, from 1")
    release_key = models.ForeignKey(ReleaseKey, on_delete=models.PROTECT, related_name="audits")
    candidate_list = models.ForeignKey(CandidateList, on_delete=models.CASCADE, related_name="+")
    size = models.PositiveIntegerField(help_text="so many ranks of the list")
    drawn_from = models.BinaryField(
        help_text="a bit a rank, the first the highest: could be selected"
    )
    unjudged = models.PositiveIntegerField(help_text="how many those are")
    found = models.PositiveIntegerField(help_text="relevant images of the list then")
    seeds = models.PositiveIntegerField(help_text="known positives to mix in")
    drawn_at = models.DateTimeField(auto_now_add=True)
    drawn_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )

    class Meta:
        ordering = ["query", "number"]
        constraints = [
            models.UniqueConstraint(fields=["query", "number"], name="release_audit_number_once"),
        ]

    def __str__(self) -> str:
        return f"release audit {self.number} of query {self.query_id}"

"""The images of a query's gallery as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from core.api.fields import IdField
from labeling.gallery.selectors import LABELS
from labeling.judging.grades import HIGHEST
from labeling.judging.models import Judgment, Relevance
from labeling.judging.sources import SOURCE_CHOICES
from labeling.studio.serializers import ImageBriefSerializer


class GalleryParameters(serializers.Serializer[Any]):
    """All of these must hold."""

    label = serializers.ChoiceField(  # type: ignore[assignment]
        choices=list(LABELS.items()),
        required=False,
        help_text="the consensus, or where a person is named what they said; the last three are "
        "for reviewers",
    )
    person = IdField(required=False, help_text="the id of somebody who judged it")
    also = IdField(required=False, help_text="the id of somebody else who judged it too")
    source = serializers.ChoiceField(  # type: ignore[assignment]
        choices=SOURCE_CHOICES,
        required=False,
        help_text="with which it was judged, by the person where one is named",
    )
    grade = serializers.IntegerField(
        required=False, min_value=0, max_value=HIGHEST, help_text="of the consensus or the person"
    )
    species = serializers.ListField(
        child=IdField(),
        required=False,
        max_length=500,
        help_text="id; repeat it for several; refused where names are hidden",
    )
    listed = serializers.ChoiceField(
        choices=["yes", "no"], required=False, help_text="in the query's current list"
    )
    image = IdField(required=False, help_text="its id")

    def validate_listed(self, listed: str) -> bool:
        """Whether it is "yes"."""
        return listed == "yes"


class GalleryVoteSerializer(serializers.ModelSerializer[Judgment]):
    """Somebody's current judgment of an image."""

    annotator = serializers.IntegerField(source="annotator_id", help_text="their user id")
    username = serializers.CharField(source="annotator.username")
    at = serializers.DateTimeField(source="updated_at")

    class Meta:
        model = Judgment
        fields = ("annotator", "username", "relevance", "grade", "reason", "source", "at")
        read_only_fields = fields


class GalleryImageSerializer(ImageBriefSerializer):
    """A judged image, with the consensus on it; annotators see their own labels alone."""

    relevance = serializers.ChoiceField(
        source="label",
        choices=Relevance.choices,
        help_text="unsure where no reviewer has decided what somebody is unsure of",
    )
    marks = serializers.ListField(
        child=serializers.ChoiceField(choices=[*LABELS][2:]), help_text="what holds besides"
    )
    grade = serializers.IntegerField(allow_null=True, help_text="null without grades")
    rank = serializers.IntegerField(allow_null=True, help_text="null outside the current list")
    votes = GalleryVoteSerializer(many=True, help_text="the latest last")

"""What the labelling page reads of one query, as JSON."""

from __future__ import annotations

from rest_framework import serializers

from labeling.api.serializers import ListSerializer, ProgressSerializer
from labeling.models import Relevance
from retrieval.api.serializers import SpeciesBriefSerializer


class CandidateSerializer(serializers.Serializer):
    """One candidate; relevance is one's own."""

    rank = serializers.IntegerField()
    score = serializers.FloatField(help_text="cosine similarity")
    image = serializers.IntegerField(source="image.pk", help_text="its id")
    url = serializers.CharField(source="image.url")
    thumbnail_url = serializers.CharField(source="image.thumbnail_url")
    width = serializers.IntegerField(source="image.width")
    height = serializers.IntegerField(source="image.height")
    species = SpeciesBriefSerializer(allow_null=True, help_text="null where unknown or hidden")
    latitude = serializers.FloatField(source="image.latitude", allow_null=True)
    longitude = serializers.FloatField(source="image.longitude", allow_null=True)
    location_uncertainty = serializers.FloatField(
        source="image.location_uncertainty", allow_null=True, help_text="metres"
    )
    observed_at = serializers.DateTimeField(source="image.observed_at", allow_null=True)
    relevance = serializers.ChoiceField(choices=Relevance.choices, allow_null=True)


class CandidatesSerializer(serializers.Serializer):
    """Part of a candidate list; results are empty while it isn't ready."""

    list = ListSerializer()
    progress = ProgressSerializer(help_text="one's own")
    count = serializers.IntegerField()
    start_rank = serializers.IntegerField()
    next = serializers.CharField(allow_null=True, help_text="address of what follows")
    results = CandidateSerializer(many=True)


class CandidatesParameters(serializers.Serializer):
    """Which part of a list."""

    start_rank = serializers.IntegerField(min_value=1, max_value=2**31 - 1, default=1)
    limit = serializers.IntegerField(min_value=1, max_value=500, default=100)

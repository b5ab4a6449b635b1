"""Parameters and answers of the API of search."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from core.api.fields import IdField
from retrieval.corpus.serializers import SpeciesOfImage
from retrieval.search.selectors import SearchMethod


class HitSerializer(SpeciesOfImage):
    """One search result; ranks start at 1, the score is the cosine similarity."""

    rank = serializers.IntegerField()
    score = serializers.FloatField()
    image = serializers.IntegerField(source="image.pk")
    url = serializers.CharField(source="image.url")
    thumbnail_url = serializers.CharField(source="image.thumbnail_url")


class SearchResultsSerializer(serializers.Serializer[Any]):
    """The best images for a text or an image; `total` counts those in the filter.

    `method` is how they were ordered: by the packed "matrix" or a "scan" of the database, both
    exact, or by an approximate "index", which may miss some of the best; `how` describes it.
    """

    model = serializers.CharField()
    total = serializers.IntegerField()
    method = serializers.ChoiceField(choices=[method.value for method in SearchMethod])
    how = serializers.CharField(source="method.words")
    exact = serializers.BooleanField(source="method.exact")
    unread = serializers.CharField(
        allow_blank=True, help_text="the end of the text that the model doesn't read"
    )
    seconds = serializers.FloatField()
    results = HitSerializer(source="hits", many=True)


class SearchQuerySerializer(serializers.Serializer[Any]):
    """Parameters of a search: a text, or an image that others are to be like."""

    text = serializers.CharField(max_length=500, required=False)
    like = IdField(required=False, help_text="an image's id, in place of a text")
    species = serializers.ListField(
        child=serializers.CharField(max_length=4000, allow_blank=True),
        default=list,
        max_length=500,
        help_text="ids or names, repeated or separated by commas; a genus, family or look-alike "
        "group means its species",
    )
    limit = serializers.IntegerField(min_value=1, max_value=500, default=50)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if ("text" in given) == ("like" in given):
            raise serializers.ValidationError({"text": "Give a text, or an image in its place."})
        return given

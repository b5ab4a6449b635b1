"""Bodies and answers of actions on many things at once."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from core.api.fields import IdField
from core.bulk import MOST_AT_ONCE


class IdsSerializer(serializers.Serializer[Any]):
    """To what an action applies; each counts once."""

    ids = serializers.ListField(child=IdField(), min_length=1, max_length=MOST_AT_ONCE)


class SkippedSerializer(serializers.Serializer[Any]):
    """A thing that was left as it is."""

    id = serializers.IntegerField()
    why = serializers.CharField()


class BulkOutcomeSerializer(serializers.Serializer[Any]):
    """How many things were changed, and why others were not."""

    done = serializers.IntegerField()
    skipped = SkippedSerializer(many=True)

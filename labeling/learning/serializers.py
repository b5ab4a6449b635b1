"""Revisions of the order that learns as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class QueuedSerializer(serializers.Serializer[Any]):
    """An image of a queue; its place is its position in `queue`, from 1."""

    image = serializers.IntegerField(source="image_id", help_text="its id")
    rank = serializers.IntegerField(help_text="in the frozen list")
    learned = serializers.BooleanField(
        help_text="the learned order put it here; judge it with the source learned, else with list"
    )


class RevisionQueueSerializer(serializers.Serializer[Any]):
    """A revision and the first images that one hasn't judged, in its order."""

    id = serializers.IntegerField(
        source="revision.pk", help_text="judgments made in this queue carry it"
    )
    number = serializers.IntegerField(source="revision.number", help_text="in the list, from 1")
    list = serializers.IntegerField(source="revision.candidate_list_id")
    last_event = serializers.IntegerField(
        source="revision.last_event", help_text="the judgment event up to which it learned"
    )
    judged = serializers.IntegerField(
        source="revision.judged", help_text="images that it learned from"
    )
    relevant = serializers.IntegerField(source="revision.relevant", help_text="those relevant")
    queue = QueuedSerializer(source="images", many=True)

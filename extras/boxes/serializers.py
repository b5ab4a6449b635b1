"""Boxes as the API takes and answers them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from core.api.fields import IdField, NumberField, TruthField
from extras.boxes.matching import MOST_BOXES
from extras.boxes.models import BoxedQuery
from extras.boxes.selectors import KINDS


class BoxSerializer(serializers.Serializer[Any]):
    """One box."""

    bbox = serializers.ListField(
        child=NumberField(min_value=-1e6, max_value=1e6),
        min_length=4,
        max_length=4,
        help_text="x, y, width, height in pixels of the upright source image",
    )
    group = TruthField(
        default=False, help_text="several instances that can't be told apart: COCO's iscrowd"
    )


class BoxedQuerySerializer(serializers.Serializer[Any]):
    """Whether people draw boxes for a query."""

    images = serializers.ChoiceField(
        choices=BoxedQuery.Images.choices, allow_blank=True, help_text="on which; empty for none"
    )


class BoxSetSerializer(serializers.Serializer[Any]):
    """Somebody's boxes on an image."""

    annotator = serializers.CharField(source="annotator.username")
    image = serializers.IntegerField(source="image_id", help_text="its id")
    boxes = BoxSerializer(many=True)
    made_at = serializers.DateTimeField()


class BoxSetWriteSerializer(serializers.Serializer[Any]):
    """All boxes on an image, in place of one's earlier ones; none where none is possible."""

    image = IdField()
    boxes = serializers.ListField(child=BoxSerializer(), max_length=MOST_BOXES)
    client_id = serializers.UUIDField(help_text="made by the client; a repeat is stored once")


class BoxParameters(serializers.Serializer[Any]):
    """Which images."""

    kind = serializers.ChoiceField(
        choices=KINDS,
        default="waiting",
        help_text="those that wait for one's boxes, those that one has boxed, or those on which "
        "people differ (reviewers)",
    )


class BoxTaskSerializer(serializers.Serializer[Any]):
    """An image to box."""

    image = serializers.IntegerField(source="image.pk", help_text="its id")
    url = serializers.CharField(source="image.url")
    width = serializers.IntegerField(source="image.width", help_text="pixels of the source image")
    height = serializers.IntegerField(source="image.height")
    own = BoxSetSerializer(allow_null=True)
    others = BoxSetSerializer(many=True, help_text="only where people differ")


class BoxTasksSerializer(serializers.Serializer[Any]):
    """Images of a query to box."""

    count = serializers.IntegerField(help_text="how many there are")
    results = BoxTaskSerializer(many=True, help_text="the first of them")

"""Candidate lists as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class ListSerializer(serializers.Serializer[Any]):
    """The candidate list; ask again each second while its state is building."""

    state = serializers.ChoiceField(choices=["none", "building", "ready", "failed"])
    detail = serializers.CharField(help_text="why it is empty, incomplete or failed; else empty")
    id = serializers.IntegerField(allow_null=True)
    job = serializers.IntegerField(allow_null=True)
    size = serializers.IntegerField()
    total = serializers.IntegerField(help_text="embedded images of the filter when it was frozen")
    unembedded = serializers.IntegerField()
    complete = serializers.BooleanField(help_text="it holds every image of the filter")
    model = serializers.CharField(help_text="its model; of a pooled list, the first one")
    models = serializers.ListField(
        child=serializers.CharField(),
        help_text="the models whose rankings order it, by reciprocal rank fusion if several",
    )
    frozen_at = serializers.DateTimeField(allow_null=True)
    checksum = serializers.CharField()

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from core.api.fields import TextField


class JobCreateSerializer(serializers.Serializer[Any]):
    """Work that an admin may ask for: embedding the corpus, by default with EMBEDDING_MODEL."""

    kind = serializers.ChoiceField(choices=["embed"])
    model = TextField(max_length=300, default="", allow_blank=True)

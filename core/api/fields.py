"""Serializer fields that convert nothing: neither numbers to text nor text to numbers."""

from __future__ import annotations

import math
from typing import Any

from rest_framework import serializers
from rest_framework.utils import html

from core.ids import LARGEST_ID


class TextField(serializers.CharField):
    """A text; numbers are refused."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class TruthField(serializers.BooleanField):
    """True or false; in a form also the words for them."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, bool) and not _of_a_form(self):
            self.fail("invalid", input=data)
        return super().to_internal_value(data)


class NumberField(serializers.FloatField):
    """A finite number."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, bool) or (isinstance(data, str) and not _of_a_form(self)):
            self.fail("invalid")
        number = super().to_internal_value(data)
        if not math.isfinite(number):
            self.fail("invalid")
        return number


class IdField(serializers.IntegerField):
    """A primary key; refused if no column can hold it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"min_value": 0, "max_value": LARGEST_ID} | options)


def _of_a_form(field: serializers.Field[Any, Any, Any, Any]) -> bool:
    """Whether the field is part of a form, where everything is text."""
    return html.is_html_input(getattr(field.root, "initial_data", None))

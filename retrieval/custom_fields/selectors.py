"""Custom fields of images: which a person sees, and what they hold."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import QuerySet

from core.access import Role, at_least
from core.sql import fetch_all
from retrieval.corpus.models import CustomField, Image

CustomValue = str | float | bool
"""What an image has in a custom field; a date is an ISO text."""
MOST_VALUES: Final = 4
#: Images that are looked at for frequent values.
LOOKED_AT: Final = 1000
LONGEST_VALUE: Final = 60

_IMAGE: Final = Image._meta.db_table
_USES: Final = f"""
WITH counted AS (
    SELECT key, count(*) AS images FROM {_IMAGE} CROSS JOIN jsonb_object_keys(custom_fields) key
     WHERE custom_fields <> '{{}}' GROUP BY key
)
SELECT f.id, coalesce(counted.images, 0), (
           SELECT coalesce(jsonb_agg(value), '[]')::text FROM (
               SELECT value FROM (
                   SELECT custom_fields -> f.name AS value FROM {_IMAGE}
                    WHERE jsonb_exists(custom_fields, f.name) LIMIT {LOOKED_AT}
               ) looked_at
               GROUP BY value ORDER BY count(*) DESC, value LIMIT {MOST_VALUES}
           ) frequent)
  FROM {CustomField._meta.db_table} f LEFT JOIN counted ON counted.key = f.name
"""


@dataclass(frozen=True, slots=True)
class FieldUse:
    """A custom field with what images have in it."""

    field: CustomField
    images: int
    """How many have a value, withdrawn ones among them."""
    values: list[str]
    """Frequent ones, the most frequent first, as people read them."""


def custom_fields_used() -> list[FieldUse]:
    """All custom fields by name; two SQL queries."""
    uses = {pk: (images, json.loads(values)) for pk, images, values in fetch_all(_USES)}
    return [
        FieldUse(field, images, [_shortened(value_text(value)) for value in values])
        for field in CustomField.objects.all()
        for images, values in [uses.get(field.pk, (0, []))]
    ]


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def fields_visible_to(user: Any) -> QuerySet[CustomField]:
    """The custom fields that a user may see, by name: reviewers all, others those that an admin has
    shown to annotators.
    """
    fields = CustomField.objects.all()
    return fields if at_least(user, Role.REVIEWER) else fields.filter(shown_to_annotators=True)


def shown_field_names(images: Iterable[Image]) -> list[str]:
    """The custom fields of images that whoever labels may see, reviewers too: another may hold the
    label that is judged blindly. One SQL query if any of the images has a value.
    """
    if not any(image.custom_fields for image in images):
        return []
    return list(CustomField.objects.filter(shown_to_annotators=True).values_list("name", flat=True))


def values_of(image: Image, names: Iterable[str]) -> dict[str, CustomValue]:
    """The image's values in the fields with these names, in the names' order."""
    return {name: image.custom_fields[name] for name in names if name in image.custom_fields}


def value_text(value: CustomValue) -> str:
    """A value as people read it, and as releases have it: 3, 2.5, yes, 2024-09-27."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)

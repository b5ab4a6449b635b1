"""Changes of custom fields by admins, which the log keeps."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction

from core.errors import Conflict, Invalid
from core.locks import is_locked, lock_key
from core.text import has_controls
from retrieval.corpus.models import CustomField, Image

LONGEST_NAME: Final = 100

_IMAGE: Final = Image._meta.db_table
_RENAME: Final = f"""
UPDATE {_IMAGE}
   SET custom_fields = custom_fields - %(old)s || jsonb_build_object(%(new)s::text,
                                                                     custom_fields -> %(old)s)
 WHERE jsonb_exists(custom_fields, %(old)s)
"""
_DELETE: Final = f"""
UPDATE {_IMAGE} SET custom_fields = custom_fields - %(name)s
 WHERE jsonb_exists(custom_fields, %(name)s)
"""


@transaction.atomic
def custom_field_change(
    *,
    field: CustomField,
    by: Any,
    name: str | None = None,
    shown_to_annotators: bool | None = None,
    in_releases: bool | None = None,
) -> CustomField:
    """Rename a field, show it to annotators or hide it, have it in releases that are made from now
    on or leave it out; None leaves as it is.

    Raises CustomField.DoesNotExist, Invalid for a name that is blank, too long, of another field or
    has control characters, and Conflict for a new name while images are imported.
    """
    field = CustomField.objects.select_for_update().get(pk=field.pk)
    said = []
    if name is not None and (name := name.strip()) != field.name:
        _require_name(field, name)
        _require_no_import()
        _update(_RENAME, old=field.name, new=name)
        said.append(f"Renamed it from “{field.name}”")
        field.name = name
    if shown_to_annotators is not None and shown_to_annotators != field.shown_to_annotators:
        field.shown_to_annotators = shown_to_annotators
        said.append("Showed it to annotators" if shown_to_annotators else "Hid it from annotators")
    if in_releases is not None and in_releases != field.in_releases:
        field.in_releases = in_releases
        said.append("Put it into releases" if in_releases else "Left it out of releases")
    if said:
        field.save()
        _log(field, by, CHANGE, "; ".join(said))
    return field


@transaction.atomic
def custom_field_delete(*, field: CustomField, by: Any) -> int:
    """Delete a field with its values; returns how many images had one. Releases that have it keep
    it. Raises CustomField.DoesNotExist, and Conflict while images are imported.
    """
    field = CustomField.objects.select_for_update().get(pk=field.pk)
    _require_no_import()
    images = _update(_DELETE, name=field.name)
    values = "1 value" if images == 1 else f"{images:,} values"
    _log(field, by, DELETION, f"Deleted it with {values}")
    field.delete()
    return images


def _require_name(field: CustomField, name: str) -> None:
    problem = ""
    if not 0 < len(name) <= LONGEST_NAME:
        problem = f"Give a name of at most {LONGEST_NAME} characters."
    elif has_controls(name):
        problem = "The name has characters that can't be seen."
    elif CustomField.objects.filter(name=name).exclude(pk=field.pk).exists():
        problem = f"Another field is called “{name}”."
    if problem:
        raise Invalid({"name": [problem]})


def _require_no_import() -> None:
    """An import would go on to write values under the name that it has read."""
    if is_locked(lock_key("importing")):
        raise Conflict("Images are being imported. Change the field after that.")


def _update(statement: str, **values: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return int(cursor.rowcount)


def _log(field: CustomField, by: Any, flag: int, what: str) -> None:
    LogEntry.objects.create(
        user=by,
        content_type=ContentType.objects.get_for_model(CustomField),
        object_id=str(field.pk),
        object_repr=field.name,
        action_flag=flag,
        change_message=what,
    )

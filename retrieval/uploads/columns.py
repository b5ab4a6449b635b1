"""The columns of an uploaded table: which choice is remembered, and which a person's form holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final

from core.jobs.models import Job
from retrieval.corpus.models import CustomField
from retrieval.importing.choices import ImportChoices
from retrieval.importing.headers import FIELDS
from retrieval.importing.services import IMPORT_KIND

#: Columns whose use can be chosen; further ones are guessed.
MOST_CHOSEN: Final = 200
#: Imports among which a table with the same headers is looked for.
_REMEMBERED: Final = 200
_KEPT: Final = "kept:"


def remembered_choices(headers: Collection[str], choices: ImportChoices) -> ImportChoices | None:
    """The choices with the columns of the newest import of a table with these headers."""
    jobs = Job.objects.filter(kind=IMPORT_KIND, state=Job.State.DONE, params__has_key="choices")
    for params in jobs.order_by("-pk").values_list("params", flat=True)[:_REMEMBERED]:
        earlier = ImportChoices.from_json(params["choices"])
        if set(headers) == {*earlier.columns, *earlier.custom_fields}:
            return replace(choices, columns=earlier.columns, custom_fields=earlier.custom_fields)
    return None


def columns_chosen(
    form: Mapping[str, str], columns: Collection[Mapping[str, Any]], choices: ImportChoices
) -> ImportChoices:
    """The choices with those of a form: `column-0` is the field of the first of a preview's
    columns, `kept:` and a kind, or nothing; `day_first` is `yes`, `no` or nothing.
    """
    chosen, custom_fields = dict[str, str](), dict[str, str]()
    for number, column in enumerate(columns):
        use = form.get(f"column-{number}")
        if use is None:
            continue
        kind = use.removeprefix(_KEPT)
        if use.startswith(_KEPT) and kind in CustomField.Kind.values:
            custom_fields[column["header"]] = kind
        else:
            chosen[column["header"]] = use if use in FIELDS else ""
    day_first = {"yes": True, "no": False}.get(form.get("day_first", ""))
    return replace(choices, columns=chosen, custom_fields=custom_fields, day_first=day_first)


def columns_offered(table: Mapping[str, Any]) -> dict[str, Any]:
    """What the form of a preview's table needs beside the preview itself."""
    return {
        "fields": [(field.name, field.label) for field in FIELDS.values()],
        "kinds": [
            (f"{_KEPT}{kind.value}", f"Keep as {kind.label.lower()}") for kind in CustomField.Kind
        ],
        "columns": [
            {
                **column,
                "use": column["field"] or (f"{_KEPT}{column['kind']}" if column["kept"] else ""),
            }
            for column in table["columns"][:MOST_CHOSEN]
        ],
        "further": max(0, len(table["columns"]) - MOST_CHOSEN),
        "asks_order": any(one["about"] == "day_first" for one in table["questions"])
        or table["day_first"] is not None,
    }

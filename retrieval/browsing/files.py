"""The matches as a CSV, with no more than the person may see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Any, Final

from core.access import names_hidden_from
from core.csv_rows import csv_field, spreadsheet_text
from core.sql import fetch_all
from retrieval.browsing.choice import Choice
from retrieval.browsing.filters import IMAGE
from retrieval.browsing.selectors import MOST_POSITIONS, matches
from retrieval.custom_fields.selectors import fields_visible_to
from retrieval.flags.selectors import images_visible_to

AT_ONCE: Final = 2000
_COLUMNS: Final = (
    "id", "file_name", "data_set", "species", "taxon_text", "folder", "license", "date",
)  # fmt: skip
#: Told by the names of species, or telling them.
_HIDDEN: Final = ("file_name", "species", "taxon_text", "folder")


def csv_lines(choice: Choice, *, image_ids: Sequence[int] | None = None) -> Iterator[str]:
    """Yield the lines of the CSV: of all matches by id, or of the best MOST_POSITIONS by score; or
    of some images in their order. Memory doesn't grow with their number.
    """
    hidden = _HIDDEN if names_hidden_from(choice.user) else ()
    columns = [name for name in _COLUMNS if name not in hidden]
    fields = [one.name for one in fields_visible_to(choice.user)]
    scored = ["score"] if choice.is_ranked else []
    yield _line([*columns, *scored, *fields])
    for scores in _stretches(choice, image_ids):
        images = images_visible_to(choice.user).select_related("species").in_bulk(list(scores))
        for image_id, score in scores.items():
            if image := images.get(image_id):
                seen, species = image.observed_at, image.species
                values = {
                    "id": image.pk,
                    "file_name": image.file_name,
                    "data_set": image.dataset,
                    "species": species.scientific_name if species else "",
                    "taxon_text": image.taxon_text,
                    "folder": image.folder,
                    "license": image.license,
                    "date": seen.astimezone(UTC).isoformat() if seen else "",
                    "score": score,
                }
                custom = (image.custom_fields.get(name) for name in fields)
                yield _line([*(values[name] for name in (*columns, *scored)), *custom])


def _stretches(
    choice: Choice, image_ids: Sequence[int] | None
) -> Iterator[dict[int, float | None]]:
    """Some images at once, with their scores."""
    if choice.is_ranked or image_ids is not None:
        ranked = choice.is_ranked and matches(choice, offset=0, limit=MOST_POSITIONS).ranked
        ranking = ranked.ranking if ranked else [(one, None) for one in image_ids or ()]
        for start in range(0, len(ranking), AT_ONCE):
            yield dict(ranking[start : start + AT_ONCE])
        return
    where, values = choice.condition()
    statement = f"SELECT i.id FROM {IMAGE} i WHERE i.id > %s AND {where} ORDER BY i.id LIMIT %s"
    last = -1
    while rows := fetch_all(statement, [last, *values, AT_ONCE]):
        yield {image_id: None for (image_id,) in rows}
        last = rows[-1][0]


def _line(values: Sequence[Any]) -> str:
    return ",".join(map(_field, values)) + "\n"


def _field(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return csv_field(spreadsheet_text(value))
    return "" if value is None else repr(value)

"""What a person chose on the images' page, as its address holds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.http import QueryDict

from core.errors import Invalid
from core.ids import id_of
from retrieval.browsing.filters import IN_CORPUS, Condition, FlagFilter, ImageFilter, filters_for

ORDERS: Final = {"": "i.id", "newest": "i.created_at DESC, i.id DESC"}
LONGEST_TEXT: Final = 500


@dataclass(frozen=True)
class Choice:
    """A text or an image to rank by, an order for images that aren't ranked, and filters."""

    filters: Sequence[ImageFilter]
    """All that the person may use."""
    values: dict[str, Any]
    """Those of the filters that are used, by their keys."""
    text: str = ""
    like: int | None = None
    order: str = ""

    @property
    def is_ranked(self) -> bool:
        """Whether the images are ordered by their scores."""
        return bool(self.text) or self.like is not None

    @property
    def species_ids(self) -> list[int] | None:
        """The species, if there is no filter but that of species; none for the whole corpus. None
        if there are others.
        """
        if not self.values:
            return []
        species = self.values.get("species")
        return species if species and len(self.values) == 1 and None not in species else None

    def condition(self, *, without: str = "") -> Condition:
        """The condition on images; without the filter of a key, by which they are counted then.

        Withdrawn images meet it only where they are chosen.
        """
        conditions, values = list[str](), list[Any]()
        used = {key: value for key, value in self.values.items() if key != without}
        if FlagFilter.WITHDRAWN not in used.get("flag", ()):
            conditions.append(IN_CORPUS)
        for one in self.filters:
            if one.key in used:
                condition, of_condition = one.where(used[one.key])
                conditions.append(condition)
                values += of_condition
        return " AND ".join(conditions), values


def choice_of(parameters: QueryDict, user: Any) -> Choice:
    """Return what the parameters of an address mean for a user.

    Raises Invalid, naming the parameter, for what is no value of it, or none for this user.
    """
    filters = filters_for(user)
    values: dict[str, Any] = {}
    for one in filters:
        if texts := _texts_of(one, filters, parameters):
            try:
                values[one.key] = one.read(texts)
            except ValueError as error:
                raise Invalid({one.parameter: [str(error)]}) from error
    known = {one.parameter for one in filters}
    for name in ("species", "folder", "taxon", "location"):
        if name in parameters and name not in known and any(parameters.getlist(name)):
            raise Invalid({name: ["What this filter tells is hidden from you."]})
    custom = [one for one in filters if one.parameter == "field"]
    for text in parameters.getlist("field"):
        if not any(text.startswith(f"{one.label}:") for one in custom):
            raise Invalid({"field": [f"“{text[:50]}” names no field that you may see."]})
    text, like = parameters.get("text", "").strip()[:LONGEST_TEXT], parameters.get("like", "")
    if like and id_of(like) is None:
        raise Invalid({"like": [f"“{like[:50]}” is no id of an image."]})
    if (order := parameters.get("order", "")) not in ORDERS:
        raise Invalid({"order": [f"“{order[:50]}” is no order."]})
    if (text or like) and FlagFilter.WITHDRAWN in values.get("flag", ()):
        raise Invalid({"flag": ["A search leaves withdrawn images out."]})
    return Choice(filters, values, text, None if text else id_of(like), order)


def _texts_of(one: ImageFilter, filters: Sequence[ImageFilter], parameters: QueryDict) -> list[str]:
    """The texts of a filter's parameter; those of a custom field without its name."""
    if one.parameter != "field":
        return [text for text in parameters.getlist(one.parameter) if text or one.takes_empty]
    names = sorted((f.label for f in filters if f.parameter == "field"), key=len, reverse=True)
    return [
        text[len(one.label) + 1 :]
        for text in parameters.getlist("field")
        # A name may hold a colon, and begin with another name.
        if next((name for name in names if text.startswith(f"{name}:")), None) == one.label
    ]

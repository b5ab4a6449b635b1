"""What a person chose on the images' page, as its address holds it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from django.http import QueryDict

from core.errors import Invalid, Missing
from core.ids import id_of
from retrieval.browsing.filters import IN_CORPUS, Condition, FlagFilter, ImageFilter, filters_for
from retrieval.corpus.models import Image
from retrieval.flags.selectors import image_visible_to

ORDERS: Final = {"": "i.id", "newest": "i.created_at DESC, i.id DESC"}
LONGEST_TEXT: Final = 500


@dataclass
class Choice:
    """A text or an image to rank by, an order for images that aren't ranked, and filters."""

    user: Any
    values: dict[str, Any] = field(default_factory=dict)
    """Those of the filters that are used, by their keys."""
    text: str = ""
    like: Image | None = None
    order: str = ""

    @cached_property
    def filters(self) -> list[ImageFilter]:
        """All that the person may use."""
        return filters_for(self.user)

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

    Raises Invalid, naming the parameter, for what is no value of it, or none for this user, and
    Missing for an image to be like that isn't there for the user.
    """
    choice = Choice(user)
    texts = {one.key: parameters.getlist(one.parameter) for one in choice.filters}
    custom = [one for one in choice.filters if one.parameter == "field"]
    texts |= {one.key: [] for one in custom}
    for text in parameters.getlist("field"):
        # A name may hold a colon, and begin with another name.
        named = [one for one in custom if text.startswith(f"{one.label}:")]
        if not named:
            raise Invalid({"field": [f"“{text[:50]}” names no field that you may see."]})
        found = max(named, key=lambda one: len(one.label))
        texts[found.key].append(text[len(found.label) + 1 :])
    for name in ("species", "folder", "taxon", "location"):
        if name not in texts and any(parameters.getlist(name)):
            raise Invalid({name: ["What this filter tells is hidden from you."]})
    for one in choice.filters:
        if given := [text for text in texts[one.key] if text or one.takes_empty]:
            try:
                choice.values[one.key] = one.read(given)
            except ValueError as error:
                raise Invalid({one.parameter: [str(error)]}) from error
    choice.text = parameters.get("text", "").strip()[:LONGEST_TEXT]
    if like := parameters.get("like", ""):
        if (image_id := id_of(like)) is None:
            raise Invalid({"like": [f"“{like[:50]}” is no id of an image."]})
        choice.like = None if choice.text else image_visible_to(user, image_id)
        if not choice.is_ranked:
            raise Missing("There is no such image.")
    choice.order = parameters.get("order", "")
    if choice.order not in ORDERS:
        raise Invalid({"order": [f"“{choice.order[:50]}” is no order."]})
    if choice.is_ranked and FlagFilter.WITHDRAWN in choice.values.get("flag", ()):
        raise Invalid({"flag": ["A search leaves withdrawn images out."]})
    return choice

"""Saving filters of the images' page, and reading those that a person may use."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Q
from django.http import QueryDict

from core.access import Role, at_least
from core.errors import Forbidden, Invalid, Missing
from retrieval.browsing.choice import choice_of
from retrieval.browsing.models import SavedFilter


def saved_filters(user: Any) -> list[SavedFilter]:
    """Return the person's own filters and those that are shared, by name, without those of what is
    hidden from the person.
    """
    found = SavedFilter.objects.filter(Q(owner=user) | Q(shared=True)).order_by("name", "pk")
    return [one for one in found if _is_usable(one, user)]


@transaction.atomic
def filter_save(*, name: str, address: str, shared: bool, by: Any) -> SavedFilter:
    """Save a filter, in place of the person's own of that name.

    Raises Invalid for an address that means nothing to the person, and Forbidden where somebody
    else than an admin shares it.
    """
    if shared and not at_least(by, Role.ADMIN):
        raise Forbidden("Only an admin shares a filter with everybody.")
    choice_of(QueryDict(address), by)
    saved, _ = SavedFilter.objects.update_or_create(
        owner=by, name=name, defaults={"address": address, "shared": shared}
    )
    return saved


@transaction.atomic
def filter_remove(*, pk: int, by: Any) -> None:
    """Remove a filter of one's own, or as an admin a shared one. Raises Missing for any other."""
    mine = Q(owner=by) | (Q(shared=True) if at_least(by, Role.ADMIN) else Q())
    if not SavedFilter.objects.filter(mine, pk=pk).delete()[0]:
        raise Missing("There is no such filter of yours.")


def _is_usable(saved: SavedFilter, user: Any) -> bool:
    try:
        choice_of(QueryDict(saved.address), user)
    except (Invalid, Missing):
        return False
    return True

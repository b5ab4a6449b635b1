"""Parameters of pages' addresses; an invalid value raises Http404 and is never ignored."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from django.core.paginator import InvalidPage, Page, Paginator
from django.http import Http404, QueryDict

from core.ids import id_of


def chosen(parameters: QueryDict, name: str, known: Container[str], usual: str = "") -> str:
    """Return a parameter's value, one of `known`; `usual` if it is absent or empty."""
    value = parameters.get(name, "")
    if value and value not in known:
        raise Http404(f"“{value[:50]}” is none of the values of {name}.")
    return value or usual


def chosen_id(parameters: QueryDict, name: str) -> int | None:
    """Return the id in a parameter, or None if it is absent or empty."""
    found = chosen_ids(parameters, name)
    return found[-1] if found else None


def chosen_ids(parameters: QueryDict, name: str) -> list[int]:
    """Return the ids in a parameter, in their order, each once; empty values are ignored."""
    found = []
    for text in filter(None, parameters.getlist(name)):
        number = id_of(text)
        if number is None:
            raise Http404(f"“{text[:50]}” is no id for {name}.")
        found.append(number)
    return list(dict.fromkeys(found))


def chosen_page(pages: Paginator[Any], parameters: QueryDict) -> Page[Any]:
    """Return the page with the number in `page`, by default the first."""
    try:
        return pages.page(parameters.get("page") or 1)
    except InvalidPage as error:
        raise Http404(str(error)) from error

"""Terms of the field with their explanations in templates."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from core.terms import TERMS

register = template.Library()


@register.simple_tag(takes_context=True)
def term(context: template.Context, word: str, shown: str = "") -> SafeString:
    """A term of `core.terms.TERMS`, by default shown by its own name; its sentence appears where
    one points at it, focuses it or taps it. KeyError: an unknown term."""
    # The first dictionary is the same in included templates, so an id is given once on a page.
    rendered: dict[str, Any] = context.render_context.dicts[0]  # type: ignore[assignment]
    numbers: Iterator[int] = rendered.setdefault("term_numbers", count(1))
    identifier = f"term-{next(numbers)}"
    return format_html(
        '<span class="term"><button type="button" class="term-word" aria-describedby="{id}">'
        '{shown}</button><span class="term-sentence" role="tooltip" id="{id}">{sentence}</span>'
        "</span>",
        id=identifier,
        shown=shown or word,
        sentence=TERMS[word],
    )

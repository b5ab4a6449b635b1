"""Markdown that people write, as HTML that is safe to show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from django.urls import reverse
from django.utils.html import format_html, urlize
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from core.ids import id_of

#: What links may lead to; "" is this site. Images are `image:` and an id of the corpus.
SCHEMES: Final = {"", "http", "https", "mailto", "image"}
_ELSEWHERE: Final = ' target="_blank" rel="noopener noreferrer"'


def markdown_html(text: str, *, heading: int = 3) -> SafeString:
    """A text in Markdown as HTML, its highest headings on level `heading`.

    HTML in it is shown as written, web addresses are links, and single line breaks stay. An image
    is one of the corpus, `![caption](image:12345)`; of any other, the caption alone is shown.
    """
    tokens = _MARKDOWN.parse(text)
    headings = [token for token in tokens if token.type.startswith("heading_")]
    highest = min((int(token.tag[1]) for token in headings), default=1)
    for token in headings:
        token.tag = f"h{min(int(token.tag[1]) - highest + heading, 6)}"
    for token in tokens:
        token.attrs.pop("style", None)  # A column's alignment; the page's policy allows no styles.
    # The renderer escapes all that is text.
    html = str(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})).strip()
    return mark_safe(html)  # noqa: S308


def _safe(address: str) -> bool:
    try:
        return urlsplit(address).scheme.lower() in SCHEMES
    except ValueError:
        return False


def _text(_: Any, tokens: Sequence[Token], place: int, _options: Any, env: Any) -> str:
    content = tokens[place].content
    if env.get("in a link"):
        return format_html("{}", content)
    return urlize(content, autoescape=True).replace("<a href=", f"<a{_ELSEWHERE} href=")


def _link_open(_: Any, tokens: Sequence[Token], place: int, _options: Any, env: Any) -> str:
    env["in a link"] = True
    address = str(tokens[place].attrGet("href"))
    away = mark_safe(_ELSEWHERE if urlsplit(address).netloc else "")
    return format_html('<a href="{}"{}>', address, away)


def _link_close(_: Any, _tokens: Sequence[Token], _place: int, _options: Any, env: Any) -> str:
    env["in a link"] = False
    return "</a>"


def _image(renderer: Any, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
    caption = renderer.renderInlineAsText(tokens[place].children, options, env)
    found = re.fullmatch(r"image:(\d+)", str(tokens[place].attrGet("src")))
    pk = id_of(found[1]) if found else None
    if pk is None:
        return format_html("{}", caption)
    return format_html(
        '<span class="captioned"><img src="{}" alt="" loading="lazy"><span>{}</span></span>',
        reverse("image", args=[pk, "thumb"]),
        caption or f"Image {pk}",
    )


_MARKDOWN: Final = MarkdownIt("js-default", {"breaks": True})
_MARKDOWN.validateLink = _safe  # type: ignore[method-assign]
for _rule in (_text, _link_open, _link_close, _image):
    _MARKDOWN.add_render_rule(_rule.__name__[1:], _rule)

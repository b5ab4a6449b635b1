"""Markdown that people write, as HTML that is safe to show."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from django.urls import reverse
from django.utils.html import format_html, urlize
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from core.ids import id_of

#: What links may lead to; "" is this site. Images are `image:` and an id of the corpus.
SCHEMES: Final = {"", "http", "https", "mailto", "image"}


class _Parser(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        parts = _parts(url)
        return parts is not None and parts.scheme.lower() in SCHEMES


_PARSER: Final = _Parser("js-default", {"breaks": True})


def markdown_html(text: str, *, heading: int = 3) -> SafeString:
    """A text in Markdown as HTML, its highest headings on level `heading`.

    HTML in it is shown as written, web addresses are links, and single line breaks stay. An image
    is one of the corpus, `![caption](image:12345)`; of any other, the caption alone is shown. What
    can't be read as Markdown is shown as written: no text raises.
    """
    tokens = _PARSER.parse(text)
    headings = [token for token in tokens if token.type.startswith("heading_")]
    highest = min((int(token.tag[1]) for token in headings), default=1)
    for token in headings:
        token.tag = f"h{min(int(token.tag[1]) - highest + heading, 6)}"
    for token in tokens:
        token.attrs.pop("style", None)  # A column's alignment; the page's policy allows no styles.
        linked = False
        for part in token.children or ():
            if part.type in ("link_open", "link_close"):
                linked = part.type == "link_open"
                parts = _parts(str(part.attrGet("href") or ""))
                if parts and parts.netloc:
                    part.attrs |= {"target": "_blank", "rel": "noopener noreferrer"}
            elif part.type == "image":
                part.type, part.content = "html_inline", _image(part)
            elif part.type == "text" and not linked:
                links = urlize(part.content, autoescape=True)
                elsewhere = '<a target="_blank" rel="noopener noreferrer" href='
                part.type, part.content = "html_inline", links.replace("<a href=", elsewhere)
    html: str = _PARSER.renderer.render(tokens, _PARSER.options, {})
    return mark_safe(html.strip())


def _parts(url: str) -> SplitResult | None:
    """The parts of a web address; None where it can't be read as one: `http://[a:b]`."""
    try:
        return urlsplit(url)
    except ValueError:
        return None


def _image(token: Token) -> str:
    caption = RendererHTML().renderInlineAsText(token.children, _PARSER.options, {})
    found = re.fullmatch(r"image:(\d+)", str(token.attrGet("src")))
    if not found or (pk := id_of(found[1])) is None:
        return format_html("{}", caption)
    return format_html(
        '<span class="captioned"><img src="{}" alt="" loading="lazy"><span>{}</span></span>',
        reverse("image", args=[pk, "thumb"]),
        caption or f"Image {pk}",
    )

"""Markdown of guidelines and comments: what it shows, and that it lets no HTML through."""

from __future__ import annotations

import re

import pytest

from core.markdown import markdown_html

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<a href='javascript:alert(1)'>x</a>",
        "[x](javascript:alert(1))",
        "[x](&#106;avascript:alert(1))",
        "[x](\x01javascript:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "[x](vbscript:x) <javascript:alert(1)>",
        "[x]: javascript:alert(1)\n\n[x]",
        "![x](javascript:alert(1)) ![x](data:image/svg+xml,x) ![x](https://example.org/a.png)",
        '![" onerror=alert(1) x="](image:7)',
        'https://example.org/"onmouseover="alert(1)',
        '[x](https://example.org/"onmouseover="alert(1) "\\" onclick=alert(1)")',
        "| a |\n|:-:|\n| <b style=x> |",
        "```<b onclick=x>\n<script>\n```",
    ],
)
def test_markdown_lets_no_html_through(text):
    html = markdown_html(text)
    for tag, attributes in re.findall(r"<(\w+)([^>]*)>", html):
        assert tag in {
            *("p", "a", "br", "span", "img", "pre", "code"),
            *("table", "thead", "tbody", "tr", "th", "td"),
        }
        found = dict(re.findall(r'\s([\w-]+)="([^"]*)"', attributes))
        assert re.sub(r'\s[\w-]+="[^"]*"', "", attributes) == ""
        assert set(found) <= {"href", "src", "alt", "loading", "class", "target", "rel", "title"}
        assert found.get("href", "https://example.org/").startswith("https://example.org/")
        assert found.get("src", "/images/7/thumb.jpg") == "/images/7/thumb.jpg"


def test_markdown_shows_links_headings_and_images_of_the_corpus():
    html = markdown_html("## Two\n\n### Three\n\none\ntwo, www.example.org. [*a*](/help/)")
    assert html == (
        "<h3>Two</h3>\n<h4>Three</h4>\n<p>one<br>\ntwo, "
        '<a target="_blank" rel="noopener noreferrer" href="http://www.example.org">'
        'www.example.org</a>. <a href="/help/"><em>a</em></a></p>'
    )
    image = markdown_html("![the *tail*](image:12345)")
    assert '<img src="/images/12345/thumb.jpg" alt="" loading="lazy"><span>the tail</span>' in image
    assert markdown_html("![no id](image:99999999999999999999)") == "<p>no id</p>"


def test_what_is_no_address_is_shown_as_written():
    for text in ("see [the page](http://[a:b])", "![a newt](http://[a:b])", "see http://[::1]/a"):
        assert markdown_html(text) == f"<p>{text}</p>"
    for text in ("http://[a:b]", "<http://[a:b]>", "[x]: http://[::1\n\n[x]", "[x](//[)"):
        assert markdown_html(text)

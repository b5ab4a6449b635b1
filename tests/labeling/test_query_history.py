"""A query's history in words: what differs in a text that was changed."""

from __future__ import annotations

import pytest
from django.template.loader import render_to_string

from labeling.lifecycle.history import differing_words
from tests.pages import laid_flat

pytestmark = pytest.mark.pure

OLD = "Count each bird that stands on the ground, also where grass hides its legs."
NEW = "Count each bird that stands on a branch, also where grass hides its <b>feet</b>. Or less."


def test_the_words_that_differ_are_told_apart_and_both_texts_are_whole():
    parts = differing_words(OLD, NEW)
    assert parts == [
        ("same", "Count each bird that stands on "),
        ("del", "the ground, "),
        ("ins", "a branch, "),
        ("same", "also where grass hides its "),
        ("del", "legs."),
        ("ins", "<b>feet</b>. Or less."),
    ]
    for text, other in ((OLD, "ins"), (NEW, "del")):
        assert "".join(words for kind, words in parts if kind != other) == text


def test_short_texts_and_those_that_share_little_are_told_whole():
    assert differing_words("val", "test") == []
    assert differing_words("", NEW) == []
    assert differing_words(OLD, "None of these words stood in what was written before it.") == []


def test_the_page_marks_words_and_lets_no_html_through():
    changes = [("guidelines", OLD, NEW), ("split", "val", "")]
    page = laid_flat(render_to_string("labeling/_changes.html", {"changes": changes}))
    assert '<del><span class="visually-hidden">Removed: </span>the ground, </del>' in page
    assert "Added: </span>&lt;b&gt;feet&lt;/b&gt;. Or less.</ins>" in page
    assert "<del>val</del> → nothing" in page

"""Terms of the field: each that a template uses is explained there and on the Help page."""

from __future__ import annotations

import re
from pathlib import Path

from django.template import Context, Template
from django.utils.html import escape

from core.terms import TERMS

ROOT = Path(__file__).parents[2]


def test_templates_use_terms_that_exist():
    templates = [*ROOT.glob("templates/**/*.html"), *ROOT.glob("extras/*/templates/**/*.html")]
    used = {
        (str(path.relative_to(ROOT)), word)
        for path in templates
        for word in re.findall(r'{% term "([^"]+)"', path.read_text())
    }
    assert used
    assert not [(path, word) for path, word in used if word not in TERMS]


def test_a_term_is_described_by_its_sentence():
    page = Template('{% load terms %}{% term "streak" "Streaks" %}{% term "Holm" %}').render(
        Context()
    )
    identifiers = re.findall(r'aria-describedby="([^"]+)"', page)
    assert len(set(identifiers)) == 2
    assert identifiers == re.findall(r'role="tooltip" id="([^"]+)"', page)
    assert ">Streaks</button>" in page
    assert escape(TERMS["streak"]) in page


def test_help_lists_every_term(clients):
    page = clients["annotator"].get("/help/").content.decode()
    assert not [word for word, sentence in TERMS.items() if escape(sentence) not in page]

"""The list of where judgments are made, and the script that has its letters."""

import re

import pytest

from labeling.judging.sources import BY_PEOPLE, NOT_LABELING, JudgmentSource
from tests import ROOT

pytestmark = pytest.mark.pure


def test_the_studio_has_the_letters_of_all_sources():
    script = (ROOT / "static/js/studio/stopping.js").read_text()
    [listed] = re.findall(r"export const SOURCES = \{(.*?)\}", script, re.DOTALL)
    assert dict(re.findall(r'(\w+): "(\w)"', listed)) == {
        str(one): one.letter for one in JudgmentSource
    }


def test_releases_and_interfaces_have_the_values_in_order():
    values = ["list", "search", "similar", "audit", "import", "learned", "second", "run"]
    values += ["correction", "reader", "picked"]
    assert list(JudgmentSource) == values
    assert [one for one in values if one not in BY_PEOPLE] == ["import"]
    assert NOT_LABELING == ("import", "audit", "second", "run", "reader", "picked", "correction")

"""What the forms of queries and splits do only in a browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.site import Site

pytestmark = pytest.mark.e2e


def test_the_rule_is_chosen_and_only_another_one_is_typed(log_in: Callable[..., Page]) -> None:
    page = log_in("ada", "/queries/new/")
    expect(page.get_by_label("Split")).to_be_hidden()
    page.get_by_text("More", exact=True).click()
    text = page.get_by_label("The other rule")
    expect(page.get_by_label("As usual here.")).to_be_checked()
    expect(text).to_be_hidden()
    page.get_by_label("Another rule").check()
    expect(text).to_be_visible()
    page.get_by_role("radio", name="Whole list: every").check()
    expect(text).to_be_hidden()


def test_a_draw_is_applied_only_with_the_fields_that_were_previewed(
    site: Site, log_in: Callable[..., Page]
) -> None:
    site.open_query("a heron in the rain, to be drawn")
    page = log_in("ada", "/releases/split/?val_share=0.2&seed=0&unfinished=on&redraw=on")
    apply = page.get_by_role("button", name="Apply this draw")
    expect(apply).to_be_enabled()
    page.get_by_label("Seed").fill("1")
    expect(apply).to_be_disabled()
    expect(page.get_by_text("preview the draw again")).to_be_visible()
    page.get_by_label("Seed").fill("0")
    expect(apply).to_be_enabled()
    page.get_by_label("Meet the share in each category").check()
    expect(apply).to_be_disabled()
    page.get_by_role("button", name="Preview the draw").click()
    expect(apply).to_be_enabled()

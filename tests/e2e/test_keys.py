"""Keys: shown where they work, changed by pressing others, the same in every browser.

How keys are read and compared is tested in tests/js/keys.test.js.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from labeling.studio.keymap import ACTIONS
from tests.e2e.labeling import (
    open_label_page,
    painted,
    press,
    saved,
    shown,
    wait_painted,
    wait_same,
)
from tests.site import Site

pytestmark = pytest.mark.e2e


def key_event(page: Page, key: str, code: str, **more: object) -> None:
    """A key of a keyboard that Playwright has no layout for."""
    page.evaluate(
        "init => document.body.dispatchEvent(new KeyboardEvent('keydown', init))",
        {"key": key, "code": code, "bubbles": True, "cancelable": True, **more},
    )


def shown_key(page: Page, action: str) -> str:
    return page.locator(f"[data-key-for={action}]").first.inner_text()


def test_the_help_lists_every_action_and_grades_have_keys_and_reasons(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a mouse in straw", grades="partly")
    page = log_in("ann")
    open_label_page(page, site, query)
    meter = page.locator(".meters .streak")
    meter.get_by_role("button", name="Negatives in a row").click()
    expect(meter.get_by_role("tooltip")).to_be_visible()
    assert page.evaluate("document.activeElement === document.body")  # the keys stay with the page
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog).to_be_visible()
    for action in ACTIONS:
        row = dialog.locator(f"[data-keys-of={action.name}]")
        assert row.locator(".keys-key:not(.add)").count() == len(action.keys)
    page.keyboard.press("r")  # keys of the page rest while the help is open
    assert painted(page) == 1
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    press(page, "r")
    page.locator("[data-reason]").fill("Not in straw 3")
    page.locator("[data-reason]").press("Enter")
    press(page, "2")
    press(page, "4")
    saved(page)
    stored = site.api("ann", "GET", f"/api/queries/{query}/judgments/")["results"]
    assert [(one["relevance"], one["grade"], one["reason"]) for one in stored] == [
        ("relevant", None, ""),
        ("relevant", 2, "Not in straw 3"),
        ("not_relevant", 0, ""),
    ]
    # After a reload too, undo gives a grade back with its reason, and the history tells both.
    page.goto(f"{site.url}/queries/{query}/label/?rank=2")
    wait_painted(page, 2)
    press(page, "1")
    page.keyboard.press("z")
    wait_painted(page, 2)
    saved(page)
    page.keyboard.press("h")
    newest = page.get_by_role("dialog", name="History").locator("li").first
    expect(newest).to_contain_text("Partly")
    expect(newest).to_contain_text("Not in straw 3")
    # So does a review know one's grade after a reload.
    site.judge("otto", query, [(stored[1]["image"], "not_relevant")])
    reviewer = log_in("rita")
    reviewer.goto(f"{site.url}/queries/{query}/review/")
    wait_painted(reviewer, 1)
    reviewer.keyboard.press("1")
    saved(reviewer)
    reviewer.reload()
    expect(reviewer.locator(".stage")).to_contain_text("No more images to decide")
    reviewer.keyboard.press("ArrowLeft")
    expect(reviewer.locator("[data-given]")).to_have_text("Labeled: definitely")


def kept_keys(site: Site) -> Any:
    """Otto's keys by action, as the database has them."""
    return site.api("otto", "GET", "/api/preferences/labeling/")["keys"]


def test_changed_keys_hold_at_once_after_a_reload_and_in_another_browser(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a horse in a paddock")
    page = log_in("otto")
    open_label_page(page, site, query)
    page.get_by_role("button", name="Keys").click()
    dialog = page.get_by_role("dialog", name="Keys")
    dialog.get_by_role("button", name="Relevant: R. Replace", exact=True).click()
    page.keyboard.press("q")
    expect(dialog.locator("[data-keys-state]")).to_contain_text("“Relevant” has Q now")

    # A key that something else has: named at once, and taken over only when one says so.
    dialog.get_by_role("button", name="Unsure: U. Replace", exact=True).click()
    page.keyboard.press("n")
    expect(dialog.locator("[data-keys-state]")).to_contain_text("N is a key of “Not relevant”")
    dialog.get_by_role("button", name="Reassign").click()

    row = dialog.locator("[data-keys-of=skip]")
    keys = row.locator(".keys-key:not(.add)")
    row.get_by_role("button", name="Add a key for Skip").click()
    page.keyboard.press("Escape")  # leaves it as it is, and the dialog open
    expect(keys).to_have_text(["→", "S"])
    row.get_by_role("button", name="Add a key for Skip").click()
    page.keyboard.press("Control+ArrowRight")
    expect(keys).to_have_text(["→", "S", "Ctrl+→"])
    row.get_by_role("button", name=": S. Replace").click()
    dialog.get_by_role("button", name="Remove this key").click()
    expect(keys).to_have_text(["→", "Ctrl+→"])
    wait_same(lambda: kept_keys(site)["skip"], ["ArrowRight", "Ctrl+ArrowRight"])
    dialog.get_by_role("button", name="Done").click()
    assert [shown_key(page, name) for name in ("relevant", "unsure", "not_relevant")] == [
        "Q",
        "N",
        "2",
    ]

    page.keyboard.press("r")  # nothing any more
    press(page, "q")
    press(page, "n")
    page.reload()
    wait_painted(page, 3)
    press(page, "2")
    page.keyboard.press("Control+ArrowRight")
    wait_painted(page, 5)
    saved(page)
    other = log_in("otto")
    open_label_page(other, site, query)
    assert shown_key(other, "relevant") == "Q"
    press(other, "q")
    saved(other)
    found = site.candidates("otto", query, limit=5)["results"]
    given = [one["relevance"] for one in found]
    assert given == ["relevant", "unsure", "not_relevant", "relevant", None]

    other.keyboard.press("?")
    row = other.locator("[data-keys-of=skip]")
    row.get_by_role("button", name="Reset the keys of Skip").click()
    expect(row.locator(".keys-key:not(.add)")).to_have_text(["→", "S"])
    other.get_by_role("button", name="Reset all keys").click()
    wait_same(lambda: kept_keys(site)["unsure"], ["u", "3"])
    other.keyboard.press("Escape")
    assert shown_key(other, "relevant") == "R"


def test_other_layouts_typing_and_held_keys(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a cat at a window")
    page = log_in("ann")
    open_label_page(page, site, query)
    key_event(page, "к", "KeyR")  # Cyrillic, at the place of R
    wait_painted(page, 2)
    key_event(page, "N", "KeyN", shiftKey=True)
    wait_painted(page, 3)
    key_event(page, "n", "KeyN", isComposing=True)
    key_event(page, "n", "KeyN", ctrlKey=True)
    key_event(page, "n", "KeyN", repeat=True)
    page.keyboard.press("/")
    field = page.get_by_role("combobox").or_(page.locator("input[type=search]")).first
    field.focus()
    page.keyboard.type("run")
    expect(field).to_have_value("run")
    assert shown(page, "judged").inner_text() == "2"
    saved(page)
    given = [one["relevance"] for one in site.candidates("ann", query, limit=4)["results"]]
    assert given == ["relevant", "not_relevant", None, None]

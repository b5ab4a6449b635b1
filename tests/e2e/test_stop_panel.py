"""The stop panel in a real browser: which rules hold, what is open, and the ways out."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e import tiles
from tests.e2e.conftest import PHONE
from tests.e2e.labeling import fits, last_transition, open_label_page, open_panel, press, rules
from tests.e2e.tiles import all_not
from tests.site import Site

pytestmark = pytest.mark.e2e


def state(site: Site, query: int) -> str:
    return str(site.api("ada", "GET", f"/api/queries/{query}/")["state"])


def test_before_the_rule_is_met_it_says_what_is_open_and_handing_in_needs_a_note(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a goose on a lake, stopping")
    labels = all_not(1, 40) | {4: "relevant", 9: "unsure"}
    del labels[31], labels[33]
    tiles.label(site, "ann", query, labels)
    tiles.label(site, "ann", query, {60: "relevant"}, source="similar")
    page = log_in("ann")
    open_label_page(page, site, query)
    panel = open_panel(page)
    expect(panel.get_by_role("heading")).to_have_text("Progress")
    expect(panel.locator("[data-stop-verdict]")).to_have_text(
        "Not yet: 74 more negatives in a row needed."
    )
    assert rules(panel) == {
        "Negatives in a row": ("26 of 100", False),
        "Or the whole list labeled": ("39 of 150", False),
    }
    expect(panel.locator('[data-stop-figure="relevant"]')).to_have_text("2")
    expect(panel.locator('[data-stop-figure="unsure"]')).to_have_text("1")
    todo = panel.locator("[data-stop-todo] li")
    expect(todo.nth(0)).to_contain_text(
        "2 skipped candidates before rank 40; the streak waits at rank 31."
    )
    expect(todo.nth(1)).to_contain_text("1 unsure; it counts as not relevant.")
    todo.nth(0).get_by_role("button", name="Go there").click()
    expect(panel).to_be_hidden()
    expect(page.locator("[data-single][data-painted='31']")).to_be_visible()
    press(page, "n", 2)
    open_panel(page)
    assert rules(panel)["Negatives in a row"] == ("36 of 100", False)
    expect(todo).to_have_count(1)
    expect(panel.get_by_role("button", name="Extend the list")).to_be_hidden()
    expect(panel.get_by_role("button", name="Complete")).to_be_hidden()

    panel.get_by_role("button", name="Hand in").click()
    expect(panel.get_by_role("status")).to_have_text(
        "Give a reason for stopping here, or continue labeling."
    )
    expect(panel.get_by_label("Why hand in now?")).to_be_focused()
    assert state(site, query) == "open"
    expect(panel.locator(".primary")).to_have_text("Continue labeling")
    panel.get_by_label("Why hand in now?").fill("Only two of them exist.")
    panel.get_by_role("button", name="Hand in").click()
    expect(page.get_by_role("heading", name="Queries", exact=True)).to_be_visible()
    assert last_transition(site, query) == ("submitted", "", "Only two of them exist.")


def test_it_opens_once_when_the_rule_is_met_and_again_after_it_was_unmet(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a lark singing, stopping")
    tiles.label(site, "ann", query, all_not(1, 80))
    page = log_in("ann")
    assert tiles.open_grid(page, site, "ann", query, size=30) == list(range(81, 111))
    page.keyboard.press("Enter")
    panel = page.locator("[data-stop]")
    expect(panel).to_be_visible()
    expect(panel.get_by_role("heading")).to_have_text("The stop rule is met")
    assert rules(panel)["Negatives in a row"] == ("110 of 100", True)
    assert tiles.ranks(page)[0] == 111
    # Keys neither label nor answer while the question stands, not even the one for the next page.
    for key in ("Enter", "Space", "n"):
        page.keyboard.press(key)
    expect(panel).to_be_visible()
    assert state(site, query) == "open"
    expect(panel.locator(".primary")).to_have_text("Hand in")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    tiles.wait_stored(site, "ann", query, list(all_not(1, 110).items()))
    progress = site.progress("ann", query)
    assert (progress["streak"], progress["stop"]["met"]) == (110, True)
    tiles.tile(page, 112).click()
    open_panel(page)
    expect(panel.locator("[data-stop-todo]")).to_contain_text(
        "1 mark in the grid is not submitted."
    )
    panel.get_by_role("button", name="Continue labeling").click()
    page.reload()
    tiles.wait_seen(page)
    expect(panel).to_be_hidden()

    page.keyboard.press("g")
    expect(page.locator("[data-single][data-painted]")).to_be_visible()
    press(page, "n")
    expect(panel).to_be_hidden()
    press(page, "r")
    expect(page.locator("[data-show=streak]").first).not_to_have_text("111")
    # Where the streak is, one hands in once it is long enough.
    beside = page.locator(".meters").get_by_role("button", name="Hand in")
    expect(beside).to_be_hidden()
    page.keyboard.press("z")
    expect(panel).to_be_visible()
    page.keyboard.press("Escape")
    beside.click()
    expect(panel.locator("[data-stop-early]")).to_be_hidden()
    panel.get_by_role("button", name="Hand in").click()
    expect(page.get_by_role("heading", name="Queries", exact=True)).to_be_visible()
    assert last_transition(site, query) == ("submitted", "", "")
    assert site.progress("ada", query)["judged"] == 111


def test_it_counts_without_a_connection_and_hands_in_what_is_saved_and_allowed(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a newt in mud, stopping")
    tiles.label(site, "ann", query, all_not(1, 97))
    page = log_in("ann")
    page.route("**/changes/*", lambda route: route.abort())  # it hears of nothing
    open_label_page(page, site, query)
    panel = page.locator("[data-stop]")
    expect(panel).to_be_hidden()
    page.context.set_offline(True)
    press(page, "n", 9)  # stops at the question
    expect(panel).to_be_visible()
    hand_in = panel.get_by_role("button", name="Hand in")
    hand_in.click()
    expect(panel.get_by_role("status")).to_contain_text("3 labels still to be saved")
    assert state(site, query) == "open"
    # Closed, it is called off.
    panel.get_by_role("button", name="Continue labeling").click()
    page.context.set_offline(False)
    tiles.wait_stored(site, "ann", query, list(all_not(1, 100).items()))
    assert state(site, query) == "open"
    with page.expect_response(f"**/api/queries/{query}/"):  # what the panel reads once
        open_panel(page)
    page.context.set_offline(True)
    hand_in.click()
    expect(panel.get_by_role("status")).to_contain_text("There is no connection to the server.")
    expect(hand_in).to_be_enabled()
    page.context.set_offline(False)
    site.api("ada", "PATCH", f"/api/queries/{query}/", {"state": "complete", "note": "Enough."})
    hand_in.click()
    expect(panel.get_by_role("status")).to_contain_text("complete")
    expect(panel).to_be_visible()
    assert state(site, query) == "complete"


def test_a_query_is_given_up_with_a_reason_on_a_phone(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a cricket chirping, given up")
    page = log_in("ann", viewport=PHONE, has_touch=True, is_mobile=True)
    open_label_page(page, site, query)
    press(page, "r", 3)
    panel = open_panel(page)
    panel.get_by_text("Give up this query").tap()
    give_up = panel.get_by_role("button", name="Give up")
    give_up.tap()
    expect(panel.get_by_role("status")).to_have_text("Choose a reason for giving up.")
    panel.get_by_label(re.compile("Another reason")).check()
    give_up.tap()
    expect(panel.get_by_role("status")).to_have_text("Describe the reason in the note.")
    panel.get_by_label("Note").fill("The text is about a sound.")
    assert fits(page, panel)
    give_up.tap()
    expect(page.get_by_role("heading", name="Queries", exact=True)).to_be_visible()
    assert last_transition(site, query) == ("submitted", "other", "The text is about a sound.")
    assert site.progress("rita", query)["judged"] == 3


def test_a_reviewer_completes_beside_somebody_who_still_labels(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a mole on a lawn, stopping")
    tiles.label(site, "otto", query, {1: "relevant"})
    page = log_in("rita")
    open_label_page(page, site, query)
    press(page, "r", 2)
    panel = open_panel(page)
    expect(panel.locator("[data-stop-others]")).to_contain_text("Still labeling: otto.")
    panel.get_by_role("button", name="Complete").click()
    # The rule isn't met, so the page that says so asks for the reason.
    expect(page.get_by_role("heading", name="Complete query")).to_be_visible()
    page.get_by_label("Why the query is complete").fill("Only two of them exist.")
    page.get_by_role("button", name="Complete").click()
    expect(page.get_by_text("The query is complete now.")).to_be_visible()
    assert last_transition(site, query)[0] == "complete"


def test_a_list_labeled_to_its_end_is_extended(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("an eel in a stream, stopping")
    tiles.label(site, "ann", query, dict.fromkeys(range(1, 146), "relevant"))
    page = log_in("ann")
    assert tiles.open_grid(page, site, "ann", query) == list(range(146, 151))
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    message = page.locator("[data-message]")
    expect(message).to_contain_text("The end of the list so far")
    expect(message.get_by_role("button", name="Extend the list")).to_be_visible()
    panel: Locator = open_panel(page)
    expect(panel.locator("[data-stop-verdict]")).to_contain_text("The end of the list is reached.")
    expect(panel.locator("[data-stop-rules]")).to_contain_text("The list holds 150 of 260 images")
    panel.get_by_role("button", name="Extend the list").click()
    expect(panel).to_be_hidden()
    assert tiles.wait_seen(page, 151)[0] == 151
    expect(page.locator("[data-show=candidates]").first).to_have_text("260")
    expected = dict.fromkeys(range(1, 147), "relevant") | all_not(147, 150)
    tiles.wait_stored(site, "ann", query, sorted(expected.items()))

"""The stop panel in a real browser: which rules hold, what is open, and the ways out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.e2e import tiles
from tests.e2e.conftest import PHONE
from tests.e2e.labeling import fits, open_label_page, press
from tests.site import Site

pytestmark = pytest.mark.e2e

NOT = "not_relevant"


@pytest.fixture(autouse=True)
def usual_view(site: Site) -> Iterator[None]:
    """The page as nobody has changed it, for these tests and others."""
    for user in ("ann", "rita"):
        tiles.prefer(site, user)
    yield
    for user in ("ann", "rita"):
        tiles.prefer(site, user)


def all_not(first: int, last: int) -> dict[int, str]:
    return dict.fromkeys(range(first, last + 1), NOT)


def open_panel(page: Page) -> Locator:
    page.keyboard.press("p")
    expect(page.locator("[data-stop]")).to_be_visible()
    return page.locator("[data-stop]")


def rules(panel: Locator) -> dict[str, tuple[str, bool]]:
    """Each rule with its numbers and whether it holds."""
    found = panel.locator("[data-stop-rules] li").evaluate_all(
        "all => all.map(one => [one.querySelector('.stop-name').textContent,"
        " one.querySelector('.stop-value').firstChild.textContent, 'holds' in one.dataset])"
    )
    return {name: (text, holds) for name, text, holds in found}


def figure(panel: Locator, name: str) -> Locator:
    return panel.locator(f'[data-stop-figure="{name}"]')


def last_transition(site: Site, query: int) -> tuple[str, str, str]:
    """State, reason and note of the last change of a query's state."""
    with site.served.database() as cursor:
        cursor.execute(
            "SELECT to_state, reason, note FROM labeling_querytransition"
            " WHERE query_id = %s ORDER BY id DESC LIMIT 1",
            [query],
        )
        return cursor.fetchone()


def test_before_the_rule_is_met_the_panel_tells_how_far_it_is(
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
    expect(panel.get_by_role("heading")).to_have_text("Where you stand")
    expect(panel.locator("[data-stop-verdict]")).to_have_text(
        "Not yet: 74 more negatives in a row needed."
    )
    assert rules(panel) == {
        "Negatives in a row": ("26 of 100", False),
        "Or the whole list labeled": ("39 of 150", False),
    }
    expect(figure(panel, "relevant")).to_have_text("2")
    expect(figure(panel, "unsure")).to_have_text("1")
    todo = panel.locator("[data-stop-todo] li")
    expect(todo.nth(0)).to_contain_text(
        "2 skipped candidates before rank 40; the streak waits at rank 31."
    )
    expect(todo.nth(1)).to_contain_text("1 unsure; it counts as not relevant.")
    todo.nth(1).get_by_role("button", name="Go there").click()
    expect(panel).to_be_hidden()
    expect(page.locator("[data-single][data-painted='9']")).to_be_visible()
    open_panel(page)
    todo.nth(0).get_by_role("button", name="Go there").click()
    expect(page.locator("[data-single][data-painted='31']")).to_be_visible()
    press(page, "n", 2)
    open_panel(page)
    assert rules(panel)["Negatives in a row"] == ("36 of 100", False)
    expect(todo).to_have_count(1)
    page.get_by_role("button", name="Continue labeling").click()
    expect(page.locator("[data-show=judged]").first).to_have_text("41")


def test_handing_in_early_needs_a_note(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a swan asleep, stopping")
    page = log_in("ann")
    open_label_page(page, site, query)
    press(page, "r", 2)
    panel = open_panel(page)
    page.wait_for_load_state("networkidle")
    # An annotator is not offered to complete.
    assert panel.get_by_role("button").all_inner_texts() == ["✕", "Continue labeling", "Hand in"]
    panel.get_by_role("button", name="Hand in").click()
    expect(panel.get_by_role("status")).to_have_text(
        "Give a reason for stopping here, or continue labeling."
    )
    expect(panel.get_by_label("Why hand in now?")).to_be_focused()
    assert site.api("ada", "GET", f"/api/queries/{query}/")["state"] == "open"
    panel.get_by_label("Why hand in now?").fill("Only two of them exist.")
    panel.get_by_role("button", name="Hand in").click()
    expect(page.get_by_role("heading", name="Queries")).to_be_visible()
    assert last_transition(site, query) == ("submitted", "", "Only two of them exist.")


def test_the_panel_opens_once_when_the_rule_is_met_and_again_after_it_was_unmet(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a stoat in winter, stopping")
    tiles.label(site, "ann", query, all_not(1, 99))
    page = log_in("ann")
    open_label_page(page, site, query)
    panel = page.locator("[data-stop]")
    expect(panel).to_be_hidden()
    assert site.progress("ann", query)["stop"]["met"] is False
    press(page, "n")
    expect(panel).to_be_visible()
    expect(panel.get_by_role("heading")).to_have_text("The stop rule is met")
    assert rules(panel)["Negatives in a row"] == ("100 of 100", True)
    tiles.wait_saved(page)
    progress = site.progress("ann", query)
    assert (progress["streak"], progress["stop"]["met"]) == (100, True)
    page.keyboard.press("n")  # keys label nothing while the question stands
    panel.get_by_role("button", name="Continue labeling").click()
    press(page, "n", 2)
    expect(panel).to_be_hidden()
    page.reload()
    expect(page.locator("[data-single][data-painted='103']")).to_be_visible()
    expect(panel).to_be_hidden()

    press(page, "r")
    expect(page.locator("[data-show=streak]").first).to_have_text("0")
    page.keyboard.press("z")
    expect(panel).to_be_visible()
    expect(panel.locator("[data-stop-early]")).to_be_hidden()
    panel.get_by_role("button", name="Hand in").click()
    expect(page.get_by_role("heading", name="Queries")).to_be_visible()
    assert last_transition(site, query) == ("submitted", "", "")
    assert site.progress("ada", query)["judged"] == 102


def test_a_page_of_the_grid_that_meets_the_rule_is_stored_whole_and_the_next_one_stands_there(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a lark singing, stopping")
    tiles.label(site, "ann", query, all_not(1, 80))
    page = log_in("ann")
    assert tiles.open_grid(page, site, "ann", query, size=30) == list(range(81, 111))
    page.keyboard.press("Enter")
    expect(page.locator("[data-stop]")).to_be_visible()
    assert tiles.ranks(page)[0] == 111
    page.keyboard.press("Escape")
    expect(page.locator("[data-stop]")).to_be_hidden()
    tiles.wait_stored(site, "ann", query, list(all_not(1, 110).items()))
    tiles.tile(page, 112).click()
    panel = open_panel(page)
    expect(panel.locator("[data-stop-todo]")).to_contain_text(
        "1 mark in the grid is not submitted."
    )


def test_handing_in_waits_until_every_label_is_saved(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a newt in mud, stopping")
    tiles.label(site, "ann", query, all_not(1, 99))
    page = log_in("ann")
    open_label_page(page, site, query)
    page.context.set_offline(True)
    press(page, "n")
    panel = page.locator("[data-stop]")
    expect(panel).to_be_visible()
    panel.get_by_role("button", name="Hand in").click()
    expect(panel.get_by_role("status")).to_contain_text("1 label still to be saved")
    assert site.api("ada", "GET", f"/api/queries/{query}/")["state"] == "open"
    # Closed, it is called off.
    panel.get_by_role("button", name="Continue labeling").click()
    page.context.set_offline(False)
    tiles.wait_stored(site, "ann", query, list(all_not(1, 100).items()))
    assert site.api("ada", "GET", f"/api/queries/{query}/")["state"] == "open"
    open_panel(page)
    page.context.set_offline(True)
    panel.get_by_role("button", name="Hand in").click()
    expect(panel.get_by_role("status")).to_contain_text("There is no connection to the server.")
    expect(panel.get_by_role("button", name="Hand in")).to_be_enabled()
    page.context.set_offline(False)
    panel.get_by_role("button", name="Hand in").click()
    expect(page.get_by_role("heading", name="Queries")).to_be_visible()
    assert site.api("ada", "GET", f"/api/queries/{query}/")["state"] == "submitted"


def test_what_the_server_says_against_it_is_shown_in_the_panel(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a rat in a cellar, stopping")
    tiles.label(site, "ann", query, all_not(1, 100))
    page = log_in("ann")
    page.route("**/changes/*", lambda route: route.abort())  # it hears of nothing
    with page.expect_response(f"**/api/queries/{query}/"):  # what the panel reads once
        page.goto(f"{site.url}/queries/{query}/label/")
    panel = page.locator("[data-stop]")
    expect(panel).to_be_visible()  # met already, and nobody has gone on
    site.api("ada", "PATCH", f"/api/queries/{query}/", {"state": "complete", "note": "Enough."})
    panel.get_by_role("button", name="Hand in").click()
    expect(panel.get_by_role("status")).to_contain_text("complete")
    expect(panel).to_be_visible()
    assert site.api("ada", "GET", f"/api/queries/{query}/")["state"] == "complete"


@pytest.mark.parametrize(
    ("choice", "code", "note"),
    [
        ("decided from images", "unlabelable", ""),
        ("Another reason", "other", "The text is about a sound."),
    ],
)
def test_a_query_is_given_up_with_a_reason(
    site: Site, log_in: Callable[..., Page], choice: str, code: str, note: str
) -> None:
    query = site.open_query(f"a cricket chirping, given up as {code}")
    page = log_in("ann", viewport=PHONE, has_touch=True, is_mobile=True)
    open_label_page(page, site, query)
    press(page, "r", 3)
    panel = open_panel(page)
    panel.get_by_text("Give up this query").tap()
    give_up = panel.get_by_role("button", name="Give up")
    give_up.tap()
    expect(panel.get_by_role("status")).to_have_text("Choose a reason for giving up.")
    panel.get_by_label(re.compile(choice)).check()
    if code == "other":
        give_up.tap()
        expect(panel.get_by_role("status")).to_have_text("Describe the reason in the note.")
    panel.get_by_label("Note").fill(note)
    assert fits(page, panel)
    give_up.tap()
    expect(page.get_by_role("heading", name="Queries")).to_be_visible()
    assert last_transition(site, query) == ("submitted", code, note)
    told = site.api("rita", "GET", f"/api/queries/{query}/")
    assert told["state"] == "submitted"
    assert told["progress"]["judged"] == 3
    assert (told["given_up"]["reason"], told["given_up"]["note"]) == (code, note)


def test_a_reviewer_completes_from_the_panel(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a mole on a lawn, stopping")
    page = log_in("rita")
    open_label_page(page, site, query)
    press(page, "r", 2)
    panel = open_panel(page)
    panel.get_by_role("button", name="Complete").click()
    # The rule isn't met, so the page that says so asks for the reason.
    expect(page.get_by_role("heading", name="Complete query")).to_be_visible()
    expect(page.locator("[data-left-open]")).to_contain_text(
        "The stop rule “streak or exhausted” isn't met: 0 of 100"
    )
    page.get_by_label("Why the query is complete").fill("Only two of them exist.")
    page.get_by_role("button", name="Complete").click()
    expect(page.get_by_text("The query is complete now.")).to_be_visible()
    told = site.api("ada", "GET", f"/api/queries/{query}/")
    assert (told["state"], told["completion_reason"]) == ("complete", "Only two of them exist.")
    assert site.progress("ada", query)["judged"] == 2


def test_one_hands_in_while_another_labels_on(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a mole in a meadow, stopping")
    other = log_in("otto")
    open_label_page(other, site, query)
    press(other, "r")
    tiles.wait_stored(site, "otto", query, [(1, "relevant")])
    page = log_in("ann")
    open_label_page(page, site, query)
    press(page, "r")
    panel = open_panel(page)
    expect(panel.locator("[data-stop-others]")).to_contain_text("Still labeling: otto.")
    panel.get_by_label("Why hand in now?").fill("Only one of them exists.")
    panel.get_by_role("button", name="Hand in").click()
    expect(page.get_by_role("heading", name="Queries")).to_be_visible()
    open_label_page(other, site, query)
    press(other, "r", 2)
    tiles.wait_stored(site, "otto", query, [(rank, "relevant") for rank in (1, 2, 3)])
    assert site.api("ada", "GET", f"/api/queries/{query}/")["state"] == "open"
    page.goto(f"{site.url}/queries/{query}/")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("link", name="Label", exact=True)).to_be_visible()


def test_a_list_at_its_end_is_extended_from_the_panel(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("an eel in a stream, stopping")
    tiles.label(site, "ann", query, dict.fromkeys(range(1, 150), "relevant"))
    page = log_in("ann")
    open_label_page(page, site, query)
    panel = open_panel(page)
    expect(panel.get_by_role("button", name="Extend the list")).to_be_hidden()
    panel.get_by_role("button", name="Continue labeling").click()
    page.keyboard.press("r")
    expect(page.locator("[data-message]")).to_contain_text("The end of the list so far")
    open_panel(page)
    expect(panel.locator("[data-stop-verdict]")).to_contain_text("The end of the list is reached.")
    expect(panel.locator("[data-stop-rules]")).to_contain_text("The list holds 150 of 260 images")
    panel.get_by_role("button", name="Extend the list").click()
    expect(panel).to_be_hidden()
    expect(page.locator("[data-single][data-painted='151']")).to_be_visible()
    expect(page.locator("[data-show=candidates]").first).to_have_text("260")


def test_a_minimum_of_labels_is_a_rule_of_its_own(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a vole in moss, stopping")
    tiles.label(site, "ann", query, all_not(1, 118))

    def ask_for_120(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | {"minimum_labels": 120})

    page = log_in("ann")
    page.route("**/outline/", ask_for_120)
    open_label_page(page, site, query)
    panel = open_panel(page)
    assert rules(panel) == {
        "Negatives in a row": ("118 of 100", True),
        "Minimum number of labels": ("118 of 120", False),
        "Or the whole list labeled": ("118 of 150", False),
    }
    expect(panel.locator("[data-stop-verdict]")).to_have_text("Not yet: 2 more labels needed.")
    panel.get_by_role("button", name="Continue labeling").click()
    press(page, "n", 2)
    expect(panel).to_be_visible()
    assert rules(panel)["Minimum number of labels"] == ("120 of 120", True)


def test_where_a_certificate_is_asked_for_the_streak_is_a_place_to_pause(
    site: Site, log_in: Callable[..., Page]
) -> None:
    rule = "streak and certificate:0.9"
    query = site.open_query("a wren in a hedge, stopping", hand_in_rule=rule)
    tiles.label(site, "ann", query, dict.fromkeys(range(1, 41), "relevant") | all_not(41, 139))
    page = log_in("ann")
    open_label_page(page, site, query)
    panel = page.locator("[data-stop]")
    page.context.set_offline(True)
    press(page, "n")
    expect(panel.get_by_role("heading")).to_have_text("A place to pause")
    expect(panel.locator("[data-stop-verdict]")).to_contain_text("asks for a certificate")
    page.context.set_offline(False)
    tiles.wait_saved(page)
    panel.get_by_role("button", name="Continue labeling").click()
    open_panel(page)
    certificate = panel.locator("[data-stop-rules] li").nth(1)
    expect(certificate).to_contain_text("80 % of 90 % recall certified")
    assert rules(panel)["Negatives in a row"] == ("100 of 100", True)
    expect(panel.get_by_label("Why hand in now?")).to_be_visible()
    panel.get_by_role("link", name="Audit").click()
    page.get_by_role("button", name="Draw images").click()
    expect(page.locator("[data-single][data-painted='1']")).to_be_visible()
    press(page, "n", 4)
    expect(page.locator("[data-message]")).to_contain_text("Certified")
    page.get_by_role("link", name="To the ranking").click()
    expect(panel.get_by_role("heading")).to_have_text("The stop rule is met")
    assert rules(panel)["And a certificate"] == ("90 % of 90 % recall certified", True)
    expect(panel.locator("[data-stop-early]")).to_be_hidden()
    panel.get_by_role("button", name="Hand in").click()
    expect(page.get_by_role("heading", name="Queries")).to_be_visible()
    assert last_transition(site, query) == ("submitted", "", "")

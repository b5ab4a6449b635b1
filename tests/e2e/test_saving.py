"""Judgments on their way from a real browser to the database: each arrives once and in order.

Outbox, sender, undo and changes are tested in tests/js; here is what only a browser can lose.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e.labeling import (
    events,
    images_of,
    judge,
    log_in_again,
    new_tab,
    open_label_page,
    shown,
    wait_painted,
    wait_same,
)
from tests.processes import wait_for
from tests.site import Site

pytestmark = pytest.mark.e2e

ADDRESS = "**/judgments/"
#: Whether the browser keeps four judgments that wait.
KEPT = """() => new Promise((resolve) => {
  const opening = indexedDB.open("inquire-annotator");
  opening.onsuccess = () => {
    const count = opening.result.transaction("queue").objectStore("queue").count();
    count.onsuccess = () => {
      opening.result.close();
      resolve(count.result === 4);
    };
  };
})"""
#: Whether the browser has these images without the network.
CACHED = """async (urls) => {
  const cached = { cache: "only-if-cached", mode: "same-origin" };
  const found = urls.map((url) => fetch(url, cached).then((answer) => answer.ok, () => false));
  return (await Promise.all(found)).every(Boolean);
}"""
#: "-" takes a label back.
NAMES = {"r": "relevant", "n": "not_relevant", "u": "unsure", "-": None}
Act = tuple[str, int, str | None]


def acts(site: Site, query: int, *steps: str) -> list[Act]:
    """What steps such as "r1" or "-1", at rank 1, must leave in the database."""
    images = images_of(site, query, 40)
    return [("ann", images[int(step[1:]) - 1], NAMES[step[0]]) for step in steps]


def row(letters: str, start: int = 1) -> list[str]:
    """The steps of judging one by one."""
    return [f"{letter}{rank}" for rank, letter in enumerate(letters, start)]


def saved(page: Page, text: str = "All saved") -> None:
    expect(page.locator("[data-saved]")).to_contain_text(text, timeout=60_000)


def undo(page: Page, *judged: int) -> None:
    """Undo by the key until so many are judged, after each step."""
    for left in judged:
        page.keyboard.press("z")
        expect(shown(page, "judged")).to_have_text(str(left))


def test_labeling_goes_on_without_a_connection(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a swan on a river")
    page = log_in("ann")
    open_label_page(page, site, query)
    judge(page, "rn")
    saved(page)
    urls = [one["url"] for one in site.candidates("ann", query, limit=12)["results"]]
    wait_for(lambda: page.evaluate(CACHED, urls), what="the next images")
    page.context.set_offline(True)
    judge(page, "nnuu" + "n" * 4)
    undo(page, 9, 8)
    page.keyboard.press("y")
    saved(page, "11 waiting")
    expect(page.locator("[data-notices]")).to_contain_text("no connection")
    expect(shown(page, "judged")).to_have_text("9")
    assert site.progress("ann", query)["judged"] == 2
    page.context.set_offline(False)
    saved(page)
    expect(page.locator("[data-notices]")).not_to_contain_text("no connection")
    steps = [*row("rnnnuu" + "n" * 4), "-10", "-9", "n9"]
    assert events(site, query) == acts(site, query, *steps)


def test_a_killed_server_a_full_disk_and_an_expired_session_in_one_go(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a swan taking off")
    page = log_in("ann")
    open_label_page(page, site, query)
    judge(page, "rnn")
    for process in site.served.find("gunicorn"):
        process.send_signal(signal.SIGKILL)
    judge(page, "nu")
    full = {"detail": "The server's disk is full."}
    page.route(ADDRESS, lambda route: route.fulfill(status=507, json=full))
    judge(page, "u")
    wait_for(site.served.healthy, seconds=90, what="the server's return", pause=0.2)
    saved(page, "Disk full")
    page.context.clear_cookies()
    page.unroute(ADDRESS)
    saved(page, "Logged out")
    judge(page, "r")
    log_in_again(page, site, "ann")
    saved(page)
    assert events(site, query) == acts(site, query, *row("rnnnuur"))


def test_what_a_crashed_tab_leaves_is_sent_from_the_next_page_and_can_be_undone(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a swan with its young")
    page = log_in("ann")
    context = page.context
    open_label_page(page, site, query)
    page.route(ADDRESS, lambda route: route.abort())
    judge(page, "rnru")
    saved(page, "4 waiting")
    page.wait_for_function(KEPT)
    with pytest.raises(Exception, match="crash"):
        page.goto("chrome://crash")
    assert events(site, query) == []
    context.new_page().goto(f"{site.url}/corpus/")
    wait_same(lambda: events(site, query), acts(site, query, *row("rnru")))
    page = context.new_page()
    page.goto(f"{site.url}/queries/{query}/label/")
    wait_painted(page, 5)
    expect(shown(page, "relevant")).to_have_text("2")
    undo(page, 3, 2)
    saved(page)
    assert events(site, query) == acts(site, query, *row("rnru"), "-4", "-3")


def test_a_page_that_is_left_sends_what_waits_once_more(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a swan that leaves")
    page = log_in("ann")
    open_label_page(page, site, query)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route(ADDRESS, hold, times=1)
    judge(page, "rnu")
    page.goto("about:blank")
    wait_same(lambda: events(site, query), acts(site, query, *row("rnu")))
    # The next page asks for the answers, and nothing counts twice.
    open_label_page(page, site, query)
    saved(page)
    assert len(held) == 1
    assert events(site, query) == acts(site, query, *row("rnu"))


def test_what_the_server_refuses_is_told_until_it_is_decided_also_on_other_pages(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a swan on ice")
    page = log_in("ann")
    open_label_page(page, site, query)
    page.route(ADDRESS, lambda route: route.abort())
    judge(page, "rr")
    saved(page, "2 waiting")
    site.judge("ann", query, [(image, "not_relevant") for image in images_of(site, query, 2)])
    page.unroute(ADDRESS)
    notices = page.locator("[data-notices]")
    expect(notices).to_contain_text("2 judgments were not stored")
    expect(shown(page, "relevant")).to_have_text("0")
    page.get_by_role("button", name="Show them").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Use mine").first.click()
    expect(shown(page, "relevant")).to_have_text("1")
    keep = dialog.get_by_role("button", name="Keep the stored label")
    expect(keep).to_have_count(1)
    keep.click()
    expect(dialog).to_be_hidden()
    expect(notices).not_to_contain_text("not stored")
    saved(page)

    page.route(ADDRESS, lambda route: route.abort())
    judge(page, "n")
    saved(page, "1 waiting")
    site.api("ada", "PATCH", f"/api/queries/{query}/", {"state": "complete", "note": "Enough."})
    other = new_tab(page, site, "/corpus/")
    page.close()
    notice = other.locator(".notice", has_text="1 judgment of yours")
    expect(notice).to_contain_text("for “a swan on ice” was not stored: The query is complete")
    # The labeling page of a closed query isn't there any more: the notice is on each page instead.
    other.goto(f"{site.url}/queries/{query}/label/")
    expect(notice.get_by_role("link")).to_have_attribute("href", f"/queries/{query}/")
    notice.get_by_role("button", name="Dismiss").click()
    expect(notice).to_be_hidden()
    other.goto(site.url)
    expect(other.get_by_role("heading", name="Queries", exact=True)).to_be_visible()
    expect(notice).to_be_hidden()
    assert sorted(events(site, query)[:2]) == sorted(acts(site, query, "n1", "n2"))
    [last] = events(site, query)[2:]
    assert last in acts(site, query, "r1", "r2")


def test_a_session_is_undone_and_done_again_by_keys_over_a_reload(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a deer at the edge of a wood")
    page = log_in("ann")
    open_label_page(page, site, query)
    judge(page, "rnu")
    expect(shown(page, "judged")).to_have_text("3")
    page.reload()
    wait_painted(page, 4)
    undo(page, 2, 1, 0)
    expect(shown(page, "rank")).to_have_text("1")
    expect(page.locator("[data-do=undo]")).to_be_disabled()
    page.keyboard.press("Control+Shift+z")
    expect(shown(page, "judged")).to_have_text("1")
    saved(page)
    assert events(site, query) == acts(site, query, *row("rnu"), "-3", "-2", "-1", "r1")


def test_two_tabs_label_the_same_list_without_undoing_each_other(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("an owl in a barn")
    page = log_in("ann")
    open_label_page(page, site, query)
    tab = new_tab(page, site, f"/queries/{query}/label/")
    wait_painted(tab, 1)
    judge(page, "rn")
    expect(shown(tab, "judged")).to_have_text("2")
    expect(shown(tab, "relevant")).to_have_text("1")
    # The second tab goes on at what neither has labeled.
    tab.keyboard.press("End")
    wait_painted(tab, 3)
    judge(tab, "uu")
    expect(shown(page, "judged")).to_have_text("4")
    page.bring_to_front()
    page.keyboard.press("End")
    wait_painted(page, 5)
    # Undo takes back one's own tab's step, though the other's came later.
    undo(page, 3)
    wait_painted(page, 2)
    expect(shown(tab, "judged")).to_have_text("3")
    for one in (page, tab):
        saved(one)
    assert events(site, query) == acts(site, query, *row("rnuu"), "-2")


def test_an_open_page_stores_nothing_as_who_logs_in_beside_it(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a fox whose page outlives its session")
    page = log_in("ann")
    open_label_page(page, site, query)
    image = images_of(site, query, 1)[0]
    before = site.api("otto", "GET", "/api/preferences/labeling/")["view"]
    log_in_again(page, site, "otto")
    judge(page, "rn")
    saved(page, "Other user")
    with page.expect_response("**/api/preferences/labeling/") as kept:
        page.keyboard.press("g")
    assert kept.value.status == 409
    page.keyboard.press("f")
    dialog = page.get_by_role("dialog", name="Flag this image")
    expect(dialog.get_by_role("status")).to_contain_text("Somebody else is logged in")
    page.keyboard.press("1")
    expect(dialog.get_by_role("button", name="Duplicate")).to_be_disabled()

    assert events(site, query) == []
    assert site.api("otto", "GET", "/api/preferences/labeling/")["view"] == before
    flags = site.api("otto", "GET", f"/api/images/{image}/flags/")
    assert (flags["results"] if isinstance(flags, dict) else flags) == []
    log_in_again(page, site, "ann")
    saved(page)
    assert events(site, query) == acts(site, query, *row("rn"))

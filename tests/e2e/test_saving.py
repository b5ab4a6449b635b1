"""The labeling page tells what is saved and what waits, and goes on through every trouble."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.labeling import judge, open_label_page, shown, wait_painted
from tests.e2e.outboxes import events, images_of, log_in_again, new_tab
from tests.processes import wait_for
from tests.site import Site

pytestmark = pytest.mark.e2e

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
NAMES = {"r": "relevant", "n": "not_relevant", "u": "unsure"}


def acts(site: Site, query: int, keys: str) -> list[tuple[str, int, str]]:
    """What `keys` from the first rank on must leave in the database."""
    images = images_of(site, query, len(keys))
    return [("ann", image, NAMES[key]) for image, key in zip(images, keys, strict=True)]


def saved(page: Page, text: str) -> None:
    expect(page.locator("[data-saved]")).to_contain_text(text, timeout=60_000)


def test_labeling_goes_on_without_a_connection(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a swan on a river")
    page = log_in("ann")
    open_label_page(page, site, query)
    judge(page, "rn")
    saved(page, "All saved")
    # Twelve are decoded ahead, the files of many more are kept.
    page.wait_for_function(
        "() => new Set(performance.getEntriesByType('resource')"
        ".map(({ name }) => new URL(name).pathname)"
        ".filter((path) => /^.images.\\d+.[0-9a-f]+[.]jpg$/.test(path))).size > 40"
    )
    page.context.set_offline(True)
    judge(page, "nnuu" + "n" * 26)
    saved(page, "30 waiting")
    expect(page.locator("[data-notices]")).to_contain_text("no connection")
    expect(shown(page, "judged")).to_have_text("32")
    assert site.progress("ann", query)["judged"] == 2
    page.context.set_offline(False)
    saved(page, "All saved")
    expect(page.locator("[data-notices]")).not_to_contain_text("no connection")
    assert events(site, query) == acts(site, query, "rnnnuu" + "n" * 26)


def test_a_crashed_labeling_page_opened_again_still_has_every_label(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a swan with its young")
    page = log_in("ann")
    context = page.context
    open_label_page(page, site, query)
    page.route("**/judgments/", lambda route: route.abort())
    judge(page, "rnru")
    saved(page, "4 waiting")
    page.wait_for_function(KEPT)
    with pytest.raises(Exception, match="crash"):
        page.goto("chrome://crash")
    page = context.new_page()
    page.goto(f"{site.url}/queries/{query}/label/")
    wait_painted(page, 5)
    expect(shown(page, "judged")).to_have_text("4")
    expect(shown(page, "relevant")).to_have_text("2")
    judge(page, "n")
    saved(page, "All saved")
    page.keyboard.press("z")
    page.keyboard.press("z")
    expect(shown(page, "judged")).to_have_text("3")
    saved(page, "All saved")
    found = events(site, query)
    assert found[:5] == acts(site, query, "rnrun")
    assert [what for _, _, what in found[5:]] == [None, None]


def test_a_killed_server_and_an_expired_session_in_one_go(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a swan taking off")
    page = log_in("ann")
    open_label_page(page, site, query)
    judge(page, "rnn")
    for process in site.served.find("gunicorn"):
        process.send_signal(signal.SIGKILL)
    judge(page, "nu")
    page.context.clear_cookies()
    wait_for(site.served.healthy, seconds=90, what="the server's return", pause=0.2)
    saved(page, "Logged out")
    expect(page.locator("[data-notices]")).to_contain_text("log")
    judge(page, "r")
    log_in_again(page.context, site, "ann").close()
    page.bring_to_front()
    saved(page, "All saved")
    assert events(site, query) == acts(site, query, "rnnnur")


def test_labels_refused_after_the_page_was_closed_are_told_on_the_next_page(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a swan on ice")
    page = log_in("ann")
    open_label_page(page, site, query)
    judge(page, "r")
    saved(page, "All saved")
    page.route("**/judgments/", lambda route: route.abort())
    judge(page, "nn")
    saved(page, "2 waiting")
    site.api("ada", "PATCH", f"/api/queries/{query}/", {"state": "complete", "note": "Enough."})
    other = new_tab(page, site, "/corpus/")
    page.close()
    notice = other.locator(".notice", has_text="2 judgments of yours")
    expect(notice).to_contain_text("for “a swan on ice” were not stored: The query is complete")
    # The labeling page of a closed query isn't there any more: the notice is on each page instead.
    other.goto(f"{site.url}/queries/{query}/label/")
    expect(notice).to_be_visible()
    expect(notice.get_by_role("link")).to_have_attribute("href", f"/queries/{query}/")
    notice.get_by_role("button", name="Dismiss").click()
    expect(notice).to_be_hidden()
    other.goto(site.url)
    expect(other.get_by_role("heading", name="Queries")).to_be_visible()
    expect(notice).to_be_hidden()
    assert events(site, query) == acts(site, query, "r")


def test_a_label_that_would_overwrite_another_is_shown_until_it_is_decided(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a swan asleep")
    page = log_in("ann")
    open_label_page(page, site, query)
    page.route("**/judgments/", lambda route: route.abort())
    judge(page, "rr")
    saved(page, "2 waiting")
    [first, second] = images_of(site, query, 2)
    site.judge("ann", query, [(first, "not_relevant"), (second, "not_relevant")])
    page.unroute("**/judgments/")
    notices = page.locator("[data-notices]")
    expect(notices).to_contain_text("2 judgments were not stored")
    expect(shown(page, "relevant")).to_have_text("0")
    page.reload()
    wait_painted(page, 3)
    expect(shown(page, "relevant")).to_have_text("0")
    expect(notices).to_contain_text("2 judgments were not stored")
    page.get_by_role("button", name="Show them").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Use mine").first.click()
    expect(shown(page, "relevant")).to_have_text("1")
    leave = dialog.get_by_role("button", name="Keep the stored label")
    expect(leave).to_have_count(1)
    leave.click()
    expect(notices).not_to_contain_text("not stored")
    saved(page, "All saved")
    page.reload()
    wait_painted(page, 3)
    expect(notices).not_to_contain_text("not stored")
    assert sorted(events(site, query)[:2]) == sorted(
        [("ann", first, "not_relevant"), ("ann", second, "not_relevant")]
    )
    assert len(events(site, query)) == 3
    labels = {c["relevance"] for c in site.candidates("ann", query, limit=2)["results"]}
    assert labels == {"relevant", "not_relevant"}

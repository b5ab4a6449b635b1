"""Two tabs, two devices, two people: each sees what changed, none undoes the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.labeling import judge, open_label_page, shown, wait_painted
from tests.e2e.outboxes import Desk, events, images_of, log_in_again, new_tab
from tests.site import Site

pytestmark = pytest.mark.e2e

OPEN = """async (query) => {
  const [{ CandidateStore }, { Changes }] = await Promise.all([
    import("/static/js/studio/store.js"),
    import("/static/js/studio/changes.js"),
  ]);
  window.store = new CandidateStore(`/api/queries/${query}/`);
  window.heard = [];
  for (const kind of ["labels", "list", "withdrawn", "query", "matching"]) {
    window.store.addEventListener(kind, ({ detail }) => window.heard.push([kind, detail]));
  }
  await window.store.load();
  window.changes = new Changes(window.store, window.boxes[query]);
}"""
ASK = """async () => {
  await window.changes.poll();
  return { others: window.changes.others, failing: window.changes.failing };
}"""
KEPT = """() => Object.values(window.store.caches).map((cache) => cache.entries.size)"""


class Studio(Desk):
    """Store, outbox and changes of one query on a page that has none of its own."""

    def __init__(self, page: Page, query: int) -> None:
        super().__init__(page, query)
        page.evaluate(OPEN, query)

    def ask(self) -> dict[str, Any]:
        """Ask the server for changes now."""
        return dict(self.page.evaluate(ASK))

    def labels(self, count: int) -> list[str | None]:
        """What the store has for the first ranks."""
        return list(
            self.page.evaluate(
                "(n) => Array.from({length: n}, (_, i) => window.store.entry(i + 1).relevance)",
                count,
            )
        )

    def progress(self) -> dict[str, Any]:
        return dict(self.page.evaluate("window.store.progress"))

    def heard(self, kind: str) -> list[Any]:
        found = self.page.evaluate("window.heard")
        return [detail for name, detail in found if name == kind]


def test_two_tabs_label_the_same_list_without_undoing_each_other(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("an owl in a barn")
    images = images_of(site, query, 6)
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
    page.keyboard.press("z")
    expect(shown(page, "judged")).to_have_text("3")
    wait_painted(page, 2)
    expect(shown(tab, "judged")).to_have_text("3")
    for one in (page, tab):
        expect(one.locator("[data-saved]")).to_contain_text("All saved")
    assert events(site, query) == [
        ("ann", images[0], "relevant"),
        ("ann", images[1], "not_relevant"),
        ("ann", images[2], "unsure"),
        ("ann", images[3], "unsure"),
        ("ann", images[1], None),
    ]


def test_labels_from_another_device_are_taken_over_and_waiting_ones_kept(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("an owl on a fence")
    images = images_of(site, query, 6)
    page = log_in("ann", "/")
    studio = Studio(page, query)
    marks = [(images[0], "relevant"), (images[1], "unsure"), (images[5], "unsure")]
    site.judge("ann", query, marks)
    studio.ask()
    assert studio.labels(3) == ["relevant", "unsure", None]
    assert sorted(studio.heard("labels")[-1]["images"]) == sorted([images[0], images[1], images[5]])
    site.judge("ann", query, [(images[0], None)])
    studio.ask()
    assert studio.labels(2) == [None, "unsure"]
    studio.ask()
    assert len(studio.heard("labels")) == 2

    # What waits here stands here, until the server has said what it makes of it.
    page.route("**/judgments/", lambda route: route.abort())
    page.evaluate("(image) => window.store.set(image, 'not_relevant')", images[2])
    studio.add([(images[2], "not_relevant")], expected=None)
    site.judge("ann", query, [(images[2], "relevant"), (images[3], "relevant")])
    studio.ask()
    assert studio.labels(4) == [None, "unsure", "not_relevant", "relevant"]
    page.unroute("**/judgments/")
    studio.drained()
    assert [one["result"]["code"] for one in studio.told("refused")] == ["conflict"]
    assert studio.labels(4) == [None, "unsure", "relevant", "relevant"]
    server = site.progress("ann", query)
    local = studio.progress()
    assert {name: local[name] for name in server} == server


def test_a_page_opened_with_judgments_waiting_shows_them(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("an owl at its nest")
    images = images_of(site, query, 4)
    page = log_in("ann", "/")
    page.context.route("**/judgments/", lambda route: route.abort())
    desk = Desk(page, query)
    desk.add([(images[0], "relevant"), (images[1], "not_relevant"), (images[0], None)])
    desk.add([(images[2], "unsure")])
    page.goto(f"{site.url}/corpus/")
    studio = Studio(page, query)
    assert studio.labels(4) == [None, "not_relevant", "unsure", None]
    assert studio.progress()["judged"] == 2
    studio.wait(waiting=4)
    page.context.unroute("**/judgments/")
    studio.drained()
    assert [c["relevance"] for c in site.candidates("ann", query, limit=4)["results"]] == [
        None,
        "not_relevant",
        "unsure",
        None,
    ]


def test_another_person_is_counted_and_their_labels_stay_theirs(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("an owl and a mouse")
    images = images_of(site, query, 3)
    ann, otto = Studio(log_in("ann", "/"), query), Studio(log_in("otto", "/"), query)
    ann.add([(images[0], "relevant"), (images[1], "relevant")])
    ann.drained()
    otto.add([(images[0], "not_relevant")])
    otto.drained()
    [other] = otto.ask()["others"]
    assert (other["annotator"], other["judged"]) == ("ann", 2)
    assert [one["annotator"] for one in ann.ask()["others"]] == ["otto"]
    assert otto.labels(2) == ["not_relevant", None]
    ann.add([(images[0], None)])
    ann.drained()
    assert events(site, query) == [
        ("ann", images[0], "relevant"),
        ("ann", images[1], "relevant"),
        ("otto", images[0], "not_relevant"),
        ("ann", images[0], None),
    ]
    standing = site.api("rita", "GET", f"/api/queries/{query}/judgments/")["results"]
    assert sorted((one["annotator"], one["relevance"]) for one in standing) == [
        ("ann", "relevant"),
        ("otto", "not_relevant"),
    ]


def test_withdrawn_images_a_longer_list_and_a_closed_query_are_noticed(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("an owl at dusk")
    images = images_of(site, query, 5)
    studio = Studio(log_in("ann", "/"), query)
    studio.add([(image, "not_relevant") for image in images[:2]])
    studio.drained()
    studio.ask()
    site.api("rita", "POST", f"/api/images/{images[2]}/withdraw/", {"note": "a test"})
    try:
        studio.ask()
        assert studio.heard("withdrawn")[-1] == {"ranks": [3]}
        assert studio.page.evaluate("window.store.next(2)") == 4
        assert studio.page.evaluate("window.store.visible(3)") is False
        assert studio.page.evaluate("window.store.details(3)") is None
        assert studio.progress()["candidates"] == studio.page.evaluate("window.store.size") - 1
    finally:
        site.api("rita", "POST", f"/api/images/{images[2]}/restore/")
    studio.ask()
    assert studio.page.evaluate("window.store.next(2)") == 3

    size = studio.page.evaluate("window.store.size")
    site.api("otto", "POST", f"/api/queries/{query}/extend/", {})
    studio.ask()
    assert studio.page.evaluate("window.store.size") > size
    assert len(studio.heard("list")) == 1
    assert studio.labels(3) == ["not_relevant", "not_relevant", None]

    site.api("ada", "PATCH", f"/api/queries/{query}/", {"state": "complete", "note": "Enough."})
    studio.ask()
    assert studio.heard("query")[-1] == {"state": "complete", "can_label": False}
    studio.page.context.set_offline(True)
    assert studio.ask()["failing"] is True
    studio.page.context.set_offline(False)
    assert studio.ask()["failing"] is False


def test_details_and_pictures_come_ahead_and_are_let_go(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("an owl in the moonlight")
    page = log_in("ann", "/")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    studio = Studio(page, query)
    found = page.evaluate("window.store.known.of([1, 2, 100, 101, 9999, 0])")
    assert [one and one["rank"] for one in found] == [1, 2, 100, 101, None, None]
    assert sum("candidates/?start_rank" in url for url in asked) == 2
    page.evaluate("window.store.prefetch([3, 4, 5], 'image')")
    page.wait_for_function(
        "() => [3, 4, 5].every((rank) => window.store.imageNow(rank)?.naturalWidth)"
    )
    page.evaluate("window.store.release([4])")
    assert page.evaluate("[3, 4, 5].map((r) => window.store.imageNow(r) !== null)") == [
        False,
        True,
        False,
    ]
    page.evaluate(
        """async () => {
          for (let rank = 1; rank <= 120; rank += 1) await window.store.image(rank);
        }"""
    )
    assert page.evaluate(KEPT)[0] == 64
    studio.add([(found[1]["image"], "relevant")])
    page.evaluate("(image) => window.store.set(image, 'relevant')", found[1]["image"])
    assert page.evaluate("window.store.peek(2).relevance") == "relevant"
    studio.drained()

    # Within a filter only what it shows is fetched, and counts stay those of the whole list.
    before = studio.progress()
    page.reload()
    asked.clear()
    studio = Studio(page, query)
    page.evaluate("window.store.setMatching([2, 90, 140])")
    assert page.evaluate("window.store.visibleRanks(1, 10)") == [2, 90, 140]
    assert page.evaluate("window.store.next(1, { unlabeled: true })") == 90
    assert page.evaluate("window.store.previous(140)") == 90
    found = page.evaluate("window.store.known.of([90])")
    assert [one["rank"] for one in found] == [90]
    assert page.evaluate("window.store.peek(140).rank") == 140
    assert [url.split("?")[1] for url in asked if "candidates/" in url] == ["ranks=90,140"]
    counts = studio.progress()
    assert (counts["candidates"], counts["judged"]) == (before["candidates"], before["judged"])


def test_a_picture_that_failed_comes_when_the_connection_is_back(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("an owl asleep")
    page = log_in("ann", "/")
    Studio(page, query)
    page.evaluate("window.store.details(1)")
    page.context.new_cdp_session(page).send("Network.clearBrowserCache")
    page.context.set_offline(True)
    assert page.evaluate("window.store.image(1).then(() => 'there', () => 'failed')") == "failed"
    page.evaluate(
        """() => {
          window.back = [];
          window.store.addEventListener("image", ({ detail }) => window.back.push(detail));
        }"""
    )
    page.context.set_offline(False)
    page.wait_for_function("() => window.back.length")
    assert page.evaluate("window.back") == [{"rank": 1, "kind": "image"}]
    assert page.evaluate("window.store.imageNow(1).naturalWidth") > 0
    # It is known too where the image is fetched for another reason.
    page.evaluate("window.store.details(2)")
    page.route("**/images/**", lambda route: route.abort())
    assert page.evaluate("window.store.image(2).then(() => 'there', () => 'failed')") == "failed"
    page.unroute("**/images/**")
    page.evaluate("window.store.prefetch([2], 'image')")
    page.wait_for_function("() => window.back.length > 1", timeout=4000)


def test_somebody_else_at_the_same_browser_sees_only_their_own(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("an owl in a hollow tree")
    images = images_of(site, query, 2)
    page = log_in("ann", "/")
    page.route("**/judgments/", lambda route: route.abort())
    desk = Desk(page, query)
    desk.add([(images[0], "relevant")])
    page.context.clear_cookies()
    ottos = log_in_again(page.context, site, "otto")
    studio = Studio(ottos, query)
    assert studio.labels(1) == [None]
    assert studio.state()["waiting"] == 0
    assert studio.told("remote") == []


def test_a_page_left_open_shows_no_labels_of_who_logged_in_since(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("an owl on a signpost")
    images = images_of(site, query, 3)
    page = log_in("ann", "/")
    studio = Studio(page, query)
    site.judge("ann", query, [(images[0], "unsure")])
    page.context.clear_cookies()
    log_in_again(page.context, site, "otto").close()
    site.judge("otto", query, [(images[0], "relevant"), (images[1], "relevant")])
    assert studio.ask()["failing"] is True
    assert studio.labels(2) == [None, None]
    loading = "window.store.load().then(() => '', (error) => error.message)"
    assert "Somebody else" in page.evaluate(loading)
    page.context.clear_cookies()
    log_in_again(page.context, site, "ann").close()
    assert studio.ask()["failing"] is False
    assert studio.labels(2) == ["unsure", None]
    assert page.evaluate(loading) == ""


def test_more_acts_than_one_answer_holds_end_with_the_last(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("an owl by a window")
    images = images_of(site, query, 2)
    studio = Studio(log_in("ann", "/"), query)
    for start in range(3):
        relevance = ("relevant", "unsure")[start % 2]
        site.judge("ann", query, [(image, relevance) for image in images] * 200)
    site.judge("ann", query, [(images[0], "not_relevant")])
    studio.ask()
    assert studio.labels(2) == ["not_relevant", "relevant"]
    assert len(studio.heard("labels")) == 1

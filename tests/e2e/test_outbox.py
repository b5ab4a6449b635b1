"""Judgments on their way: each arrives exactly once and in order.

Whatever happens to network, server, tab or session. The outbox is driven on pages that have no
labeling of their own.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from itertools import pairwise

import pytest
from playwright.sync_api import Page, Route

from tests.e2e.outboxes import Desk, Mark, events, images_of, log_in_again, new_tab
from tests.processes import wait_for
from tests.site import Site

pytestmark = pytest.mark.e2e

ADDRESS = "**/judgments/"
RELEVANCES = ("relevant", "not_relevant", "unsure")

#: Notes from when to when each request for judgments ran, on the clock that all tabs share:
#: performance.now() begins anew in each of them, and clocks are set meanwhile.
TIMED = """() => {
  const fetch = window.fetch;
  window.spans = [];
  window.fetch = async (path, options) => {
    const start = Date.now();
    const response = await fetch(path, options);
    const body = await response.text();
    if (options.method === "POST") window.spans.push([start, Date.now()]);
    return new Response(body, response);
  };
}"""


def marks_for(images: list[int]) -> list[Mark]:
    return [(image, RELEVANCES[place % 3]) for place, image in enumerate(images)]


def arrived(who: str, marks: list[Mark]) -> list[tuple[str, int, str | None]]:
    return [(who, image, relevance) for image, relevance in marks]


def test_judgments_made_without_network_arrive_once_and_in_order(
    site: Site, log_in: Callable[..., Page]
) -> None:
    first, second = site.open_query("a hawk in the rain"), site.open_query("a crab on sand")
    page = log_in("ann", "/")
    desk, other = Desk(page, first), Desk(page, second)
    marks, others = marks_for(images_of(site, first, 120)), marks_for(images_of(site, second, 4))
    page.context.set_offline(True)
    for mark in marks[:3]:
        desk.add([mark])
    desk.wait(waiting=3, problem="offline", saved=0, elsewhere=0)
    other.add(others[:2])
    desk.add(marks[3:])
    again = (marks[0][0], "unsure")
    desk.add([again, (marks[1][0], None)])
    other.add(others[2:])
    desk.wait(waiting=122, elsewhere=4)
    other.wait(waiting=4, elsewhere=122)
    assert desk.state()["durable"] is True
    assert events(site, first) == []

    page.context.set_offline(False)
    desk.drained()
    other.drained()
    desk.wait(waiting=0, problem=None, saved=122, elsewhere=0, unsavedSeconds=0)
    assert events(site, first) == arrived("ann", [*marks, again, (marks[1][0], None)])
    assert events(site, second) == arrived("ann", others)
    # Across both queries nothing overtook what was made before it.
    assert [one["query"] for one in page.evaluate("window.told") if one["kind"] == "answer"] == [
        first,
        second,
        *[first] * 2,
        second,
    ]


def test_a_server_killed_while_judgments_are_made_gets_each_once(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a goat on a cliff")
    desk = Desk(log_in("otto", "/"), query)
    marks = marks_for(images_of(site, query, 60))
    for place, mark in enumerate(marks):
        desk.add([mark])
        if place in (15, 40):
            for process in site.served.find("gunicorn"):
                process.send_signal(signal.SIGKILL)
    wait_for(site.served.healthy, seconds=90, what="the server's return", pause=0.2)
    desk.drained()
    assert events(site, query) == arrived("otto", marks)
    assert desk.state()["problem"] is None


def test_a_lost_answer_is_asked_for_again_and_counts_once(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a lizard on a wall")
    page = log_in("ann", "/")
    desk = Desk(page, query)
    marks = marks_for(images_of(site, query, 5))
    lost: list[int] = []

    def lose(route: Route) -> None:
        lost.append(route.fetch().status)
        route.abort()

    page.route(ADDRESS, lose, times=2)
    desk.add(marks)
    desk.drained()
    assert lost == [200, 200]
    assert [one["status"] for one in desk.told("answer")[0]["results"]] == ["repeated"] * 5
    assert events(site, query) == arrived("ann", marks)


@pytest.mark.parametrize("sending", [False, True], ids=["waiting", "sending"])
def test_what_a_crashed_tab_leaves_is_sent_from_the_page_opened_next(
    site: Site, log_in: Callable[..., Page], sending: bool
) -> None:
    query = site.open_query("a whale's back")
    page = log_in("ann", "/")
    context = page.context
    marks = marks_for(images_of(site, query, 7))
    page.evaluate(
        """(sending) => {
          window.fetch = () => {
            window.asked = true;
            return sending ? new Promise(() => {}) : Promise.reject(new TypeError("cut"));
          };
        }""",
        sending,
    )
    desk = Desk(page, query)
    desk.add(marks[:4])
    desk.add(marks[4:])
    page.wait_for_function("() => window.asked")
    desk.wait(waiting=7, problem=None if sending else "offline")
    page.on("crash", lambda _: None)
    with pytest.raises(Exception, match="crash"):
        page.goto("chrome://crash")
    assert events(site, query) == []

    context.new_page().goto(f"{site.url}/search/")
    wait_for(
        lambda: site.progress("ann", query)["judged"] == 7,
        seconds=60,
        what="the judgments of the crashed tab",
        pause=0.3,
    )
    assert events(site, query) == arrived("ann", marks)


def test_leaving_the_page_sends_what_waits_once_more(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a heron in reeds")
    page = log_in("ann", "/")
    marks = marks_for(images_of(site, query, 6))
    page.evaluate(
        """() => {
          const fetch = window.fetch;
          window.fetch = (path, options) =>
            options?.keepalive ? fetch(path, options) : Promise.reject(new TypeError("cut"));
        }"""
    )
    desk = Desk(page, query)
    desk.add(marks)
    desk.wait(waiting=6, problem="offline")
    page.goto("about:blank")
    wait_for(lambda: site.progress("ann", query)["judged"] == 6, what="the farewell")
    # The next page asks for the answers, and nothing counts twice.
    page.goto(site.url)
    desk = Desk(page, query)
    desk.drained()
    assert events(site, query) == arrived("ann", marks)


def test_a_session_that_expired_is_taken_up_after_the_next_log_in(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a moth on bark")
    page = log_in("ann", "/")
    desk = Desk(page, query)
    marks = marks_for(images_of(site, query, 8))
    desk.add(marks[:2])
    desk.drained()
    page.context.clear_cookies()
    desk.add(marks[2:5])
    desk.add(marks[5:])
    desk.wait(waiting=6, problem="logged_out")
    assert site.progress("ann", query)["judged"] == 2
    # A new session has a new CSRF token, which this page doesn't hold.
    log_in_again(page.context, site, "ann").close()
    desk.drained()
    desk.wait(waiting=0, problem=None, saved=8)
    assert events(site, query) == arrived("ann", marks)


def test_somebody_else_s_session_takes_no_judgments_of_mine(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a bat in flight")
    page = log_in("ann", "/")
    desk = Desk(page, query)
    marks = marks_for(images_of(site, query, 6))
    page.context.clear_cookies()
    ottos = log_in_again(page.context, site, "otto")
    desk.add(marks[:4])
    desk.wait(waiting=4, problem="other_user")
    own = Desk(ottos, query)
    own.add([(marks[5][0], "unsure")])
    own.drained()
    assert own.state()["saved"] == 1
    desk.wait(waiting=4, problem="other_user")
    assert events(site, query) == [("otto", marks[5][0], "unsure")]

    page.context.clear_cookies()
    log_in_again(page.context, site, "ann")
    desk.drained()
    assert events(site, query)[1:] == arrived("ann", marks[:4])


def test_a_lost_csrf_cookie_is_fetched_anew(site: Site, log_in: Callable[..., Page]) -> None:
    query = site.open_query("a newt in a pond")
    page = log_in("ann", "/")
    desk = Desk(page, query)
    marks = marks_for(images_of(site, query, 2))
    page.context.clear_cookies(name="csrftoken")
    desk.add(marks)
    desk.drained()
    assert [one["problem"] for one in desk.told("state")] == [None] * len(desk.told("state"))
    assert events(site, query) == arrived("ann", marks)


def test_a_refused_judgment_is_kept_with_its_reason_until_it_is_dismissed(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a ray over gravel")
    page = log_in("ann", "/")
    desk = Desk(page, query)
    first, second = images_of(site, query, 2)
    desk.add([(first, "relevant")])
    desk.drained()
    site.api("ada", "PATCH", f"/api/queries/{query}/", {"state": "complete", "note": "Enough."})
    desk.add([(first, "unsure"), (second, "relevant")])
    desk.drained()
    told = desk.told("refused")
    assert [(one["record"]["image"], one["stands"]) for one in told] == [
        (first, "relevant"),
        (second, None),
    ]
    assert {one["result"]["code"] for one in told} == {"closed"}
    assert "complete" in told[0]["result"]["detail"]
    assert desk.state()["saved"] == 1

    page.reload()
    desk = Desk(page, query)
    kept = wait_for(lambda: desk.told("refused"), what="what was refused before")
    assert [one["record"]["image"] for one in kept] == [first, second]
    ids = [one["record"]["client_id"] for one in kept]
    page.evaluate("([query, ids]) => window.boxes[query].dismiss(ids)", [query, ids])
    assert desk.told("dismissed")[0]["client_ids"] == ids
    page.reload()
    Desk(page, query)
    assert page.evaluate("query => window.boxes[query].refused()", query) == []
    assert events(site, query) == arrived("ann", [(first, "relevant")])


def test_a_stale_page_does_not_write_over_what_it_has_not_seen(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a stork on a roof")
    page = log_in("ann", "/")
    desk = Desk(page, query)
    first, second = images_of(site, query, 2)
    site.judge("ann", query, [(first, "not_relevant")])
    desk.add([(first, "relevant"), (second, "relevant")], expected=None)
    desk.drained()
    [refused] = desk.told("refused")
    assert (refused["result"]["code"], refused["stands"]) == ("conflict", "not_relevant")
    assert refused["record"]["image"] == first
    assert events(site, query) == arrived("ann", [(first, "not_relevant"), (second, "relevant")])


def test_a_query_that_is_gone_refuses_all_of_its_judgments_with_a_reason(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query, next_query = site.open_query("a worm in soil"), site.open_query("a tick on a leaf")
    page = log_in("ann", "/")
    desk, following = Desk(page, query), Desk(page, next_query)
    images = images_of(site, query, 3)
    page.context.set_offline(True)
    desk.add(marks_for(images))
    following.add([(images_of(site, next_query, 1)[0], "relevant")])
    desk.wait(waiting=3, problem="offline", elsewhere=1)
    request = site.api("ada", "PATCH", f"/api/queries/{query}/", {"state": "draft"})
    assert request["state"] == "draft"
    page.context.set_offline(False)
    desk.drained()
    following.drained()
    refused = desk.told("refused")
    assert [one["record"]["image"] for one in refused] == images
    assert all(one["result"]["detail"] for one in refused)
    assert events(site, query) == []
    assert following.state()["saved"] == 1


@pytest.mark.parametrize("broken", ["no database", "no space"])
def test_without_a_database_judgments_are_sent_and_the_page_can_warn(
    site: Site, log_in: Callable[..., Page], broken: str
) -> None:
    query = site.open_query(f"a jellyfish, {broken}")
    page = log_in("ann", "/")
    page.add_init_script(
        "indexedDB.open = () => { throw new DOMException('', 'SecurityError'); };"
        if broken == "no database"
        else "IDBObjectStore.prototype.put = () => {"
        " throw new DOMException('', 'QuotaExceededError'); };"
    )
    page.goto(site.url)
    desk, other = Desk(page, query), Desk(new_tab(page, site), query)
    marks = marks_for(images_of(site, query, 5))
    page.context.set_offline(True)
    desk.add(marks[:2])
    desk.add(marks[2:])
    desk.wait(waiting=5, durable=False, problem="offline")
    # The other tab has nothing to send and says so, but not of what this page alone holds.
    wait_for(lambda: [one["problem"] for one in other.told("state")].count(None) > 5)
    problems = [one["problem"] for one in desk.told("state")]
    offline = next(place for place, problem in enumerate(problems) if problem)
    assert len(problems) > offline + 2
    assert all(problems[offline:])
    page.context.set_offline(False)
    desk.drained()
    assert desk.state()["saved"] == 5
    assert events(site, query) == arrived("ann", marks)


#: Notes how many judgments each request for them holds, and has the server take 0.8 s for it.
SLOWED = """() => {
  const fetch = window.fetch;
  window.sizes = [];
  window.fetch = async (path, options) => {
    if (options.method === "POST") {
      window.sizes.push(JSON.parse(options.body).length);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return fetch(path, options);
  };
}"""


def test_a_slow_server_gets_fewer_requests_with_more_in_each(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a wren in a hedge")
    page = log_in("ann", "/")
    page.evaluate(SLOWED)
    desk = Desk(page, query)
    marks = marks_for(images_of(site, query, 5))
    desk.add(marks[:1])
    desk.wait(saved=1)
    # These come while it rests.
    for mark in marks[1:4]:
        desk.add([mark])
    desk.wait(saved=4)
    desk.add(marks[4:])
    # Who waits for the answer doesn't wait for the end of the rest.
    desk.drained()
    assert page.evaluate("window.sizes") == [1, 3, 1]
    assert events(site, query) == arrived("ann", marks)


def test_one_request_at_a_time_over_all_tabs_in_the_order_of_the_judgments(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a flock of starlings")
    page = log_in("ann", "/")
    desk, other = Desk(page, query), Desk(new_tab(page, site), query)
    marks = marks_for(images_of(site, query, 40))
    for tab in (desk.page, other.page):
        tab.evaluate(TIMED)
    for place, mark in enumerate(marks):
        (desk, other)[place % 2].add([mark])
    desk.drained()
    other.drained()
    assert events(site, query) == arrived("ann", marks)
    spans = sorted(span for tab in (desk.page, other.page) for span in tab.evaluate("window.spans"))
    assert len(spans) > 1
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    # Both tabs know of every judgment of the other.
    for here, mine in ((desk, 0), (other, 1)):
        heard = [one["marks"][0]["image"] for one in here.told("remote")]
        assert heard == [image for image, _ in marks[1 - mine :: 2]]
        here.wait(waiting=0, saved=40)

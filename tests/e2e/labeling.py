"""Steps that tests of the labeling page share, whatever the view."""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Locator, Page, expect

from tests.processes import wait_for
from tests.site import Site

#: A window that no other test has, for a browser context that has fetched nothing yet.
UNUSED = {"width": 1366, "height": 851}
EVENTS = """
SELECT username, image_id, NULLIF(relevance, '')
FROM labeling_judgmentevent e JOIN annotator_user u ON u.id = e.annotator_id
WHERE query_id = %s ORDER BY e.id
"""
PAINTED = "document.querySelector('[data-single]').dataset.painted"


def open_label_page(page: Page, site: Site, query: int) -> None:
    """The labeling page of a query, with the first picture painted."""
    page.goto(f"{site.url}/queries/{query}/label/")
    expect(page.locator("[data-single][data-painted]")).to_be_visible()


def shown(page: Page, name: str) -> Locator:
    """Where the page shows a number or a word by this name."""
    return page.locator(f"[data-show='{name}']").first


def painted(page: Page) -> int:
    """The rank whose picture is on the screen."""
    return int(page.evaluate(PAINTED))


def wait_painted(page: Page, rank: int) -> None:
    """Wait until the picture of this rank is on the screen."""
    expect(page.locator("[data-single]")).to_have_attribute("data-painted", str(rank))


def press(page: Page, key: str, times: int = 1) -> None:
    """Press a key once for each candidate, after the next one is on the screen; stops at a question
    or at the list's end.
    """
    for _ in range(times):
        before = page.evaluate(PAINTED)
        page.keyboard.press(key)
        page.wait_for_function(
            "before => { const root = document.querySelector('#studio');"
            f" const now = {PAINTED};"
            " return (now && now !== before) || root.dataset.state === 'end'"
            " || document.querySelector('dialog[open]'); }",
            arg=before,
        )
        if page.locator("dialog[open]").count():
            return


def press_elsewhere(page: Page, key: str, code: str, **held: bool) -> None:
    """Press a key of a keyboard whose letters aren't Latin, e.g. "и" at the place of B."""
    page.evaluate(
        "options => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', options))",
        {"key": key, "code": code, "bubbles": True, "cancelable": True, **held},
    )


def judge(page: Page, keys: str) -> None:
    """Press one key for each candidate, once its picture is on the screen."""
    for key in keys:
        rank = int(shown(page, "rank").inner_text())
        wait_painted(page, rank)
        page.keyboard.press(key)
        expect(shown(page, "rank")).not_to_have_text(str(rank))


def saved(page: Page, timeout: float = 15_000) -> None:
    """Wait until nothing waits to be sent."""
    expect(page.locator("[data-saved]")).to_contain_text("All saved", timeout=timeout)


def poll(page: Page) -> None:
    """Have the page ask at once what happened elsewhere, as it does when the network is back."""
    page.evaluate("window.dispatchEvent(new Event('online'))")


def view_kept(page: Page, view: str) -> Any:
    """A context that ends when the server keeps this view, which a reload may be faster than."""
    kept = f'"view":"{view}"'
    return page.expect_response(lambda answer: kept in (answer.request.post_data or ""))


def click_now(button: Locator) -> None:
    """Click without waiting, if it is still there: what failed is also loaded again by itself."""
    button.evaluate_all("all => all.forEach((one) => one.click())")


def below(address: str) -> str:
    """An address without the name of its server."""
    return urlsplit(address)._replace(scheme="", netloc="").geturl()


def note_fetched(page: Page) -> set[str]:
    """The addresses on this server that the page fetches from now on, a growing set."""
    paths: set[str] = set()
    page.on("requestfinished", lambda request: paths.add(below(request.url)))
    return paths


def wait_fetched(page: Page, fetched: set[str], urls: list[str]) -> None:
    """Wait until the page has fetched these images and had time to decode them."""
    # Events come while something is asked of the page.
    wait_for(lambda: (page.title(), fetched.issuperset(urls))[1], seconds=30, what="the images")
    page.evaluate(
        """async (urls) => {
          await Promise.all(urls.map((url) => Object.assign(new Image(), { src: url }).decode()));
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        }""",
        urls,
    )


def wait_held(page: Page, held: Sized, count: int = 1) -> None:
    """Wait until so many requests are held back by a route of the test."""
    # Routes are called while something is asked of the page.
    wait_for(lambda: (page.title(), len(held) >= count)[1], seconds=20, what="requests to hold")


def box(locator: Locator) -> dict[str, Any]:
    """Where an element is on the screen; it must be there."""
    found = locator.bounding_box()
    assert found is not None
    return dict(found)


def wait_same(read: Callable[[], Any], expected: Any) -> None:
    """Wait until what is read, e.g. from the database, is exactly this."""
    wait_for(
        lambda: read() == expected,
        seconds=20,
        what=f"{expected}, where {read()} was read in the beginning",
        pause=0.2,
    )


def own(site: Site, user: str, query: int) -> dict[int, tuple[str, str]]:
    """Relevance and source of one's judgments by image, as the database has them."""
    found = site.api(user, "GET", f"/api/queries/{query}/judgments/?limit=500")["results"]
    return {one["image"]: (one["relevance"], one["source"]) for one in found}


def wait_stored(site: Site, user: str, query: int, expected: dict[int, tuple[str, str]]) -> None:
    """Wait until one's judgments in the database are exactly these, as `own` gives them."""
    wait_same(lambda: own(site, user, query), expected)


def focused(page: Page) -> Any:
    """Which element has the focus, by what tells it apart."""
    return page.evaluate(
        "() => { const at = document.activeElement;"
        " return at.dataset.image || at.dataset.do || at.id || at.tagName; }"
    )


def fits(page: Page, dialog: Locator) -> bool:
    """Whether a dialog lies inside the window and nothing of it makes one scroll sideways."""
    return bool(
        dialog.evaluate(
            "dialog => { const box = dialog.getBoundingClientRect();"
            " return box.left >= 0 && box.right <= innerWidth && box.top >= 0"
            " && box.bottom <= innerHeight + 1 && dialog.scrollWidth <= dialog.clientWidth"
            " && document.documentElement.scrollWidth <= innerWidth; }"
        )
    )


def open_panel(page: Page) -> Locator:
    """The stop panel."""
    page.keyboard.press("p")
    expect(page.locator("[data-stop]")).to_be_visible()
    return page.locator("[data-stop]")


def rules(panel: Locator) -> dict[str, tuple[str, bool]]:
    """Each rule of the stop panel with its numbers and whether it holds."""
    found = panel.locator("[data-stop-rules] li").evaluate_all(
        "all => all.map(one => [one.querySelector('.stop-name').textContent,"
        " one.querySelector('.stop-value').firstChild.textContent, 'holds' in one.dataset])"
    )
    return {name: (text, holds) for name, text, holds in found}


def last_transition(site: Site, query: int) -> tuple[str, str, str]:
    """State, reason and note of the last change of a query's state."""
    with site.served.database() as cursor:
        cursor.execute(
            "SELECT to_state, reason, note FROM labeling_querytransition"
            " WHERE query_id = %s ORDER BY id DESC LIMIT 1",
            [query],
        )
        state, reason, note = cursor.fetchone()
    return state, reason, note


def images_of(site: Site, query: int, count: int) -> list[int]:
    """The first images of the query's list."""
    return [one["image"] for one in site.candidates("ada", query, limit=count)["results"]]


def events(site: Site, query: int) -> list[tuple[str, int, str | None]]:
    """Every act of judging that the database holds of a query, in order: who, image, relevance."""
    with site.served.database() as cursor:
        cursor.execute(EVENTS, [query])
        return list(cursor.fetchall())


def new_tab(page: Page, site: Site, path: str = "/") -> Page:
    """Another tab of the same browser, with the same session."""
    tab = page.context.new_page()
    tab.goto(site.url + path)
    return tab


def log_in_again(page: Page, site: Site, user: str) -> None:
    """Have somebody, or the same person anew, be logged in in the browser of an open page."""
    page.context.clear_cookies()
    page.context.add_cookies(site.cookies(user))
    page.bring_to_front()

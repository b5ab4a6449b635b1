"""What has reached the database, and other tabs of the same browser."""

from __future__ import annotations

from playwright.sync_api import Page

from tests.site import Site

EVENTS = """
SELECT username, image_id, NULLIF(relevance, '')
FROM labeling_judgmentevent e JOIN annotator_user u ON u.id = e.annotator_id
WHERE query_id = %s ORDER BY e.id
"""


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

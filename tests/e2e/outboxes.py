"""The page's outbox driven from a test, and what has reached the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from playwright.sync_api import BrowserContext, Page

from tests.processes import wait_for
from tests.site import PASSWORD, Site

Mark = tuple[int, str | None]

# Under its plain name the module would be another than the page's own.
OPEN = """async (query) => {
  const names = await import("/static/staticfiles.json", { with: { type: "json" } });
  const { Outbox } = await import(`/static/${names.default.paths["js/saving/outbox.js"]}`);
  const user = Number(document.querySelector("meta[name=user-id]").content);
  const box = new Outbox({ user, query, url: `/api/queries/${query}/judgments/` });
  window.told ??= [];
  for (const kind of ["answer", "refused", "dismissed", "remote", "state"]) {
    box.addEventListener(kind, ({ detail }) => window.told.push({ query, kind, ...detail }));
  }
  window.boxes = { ...window.boxes, [query]: box };
}"""
ADD = """([query, records]) => window.boxes[query].add(
  records.map((record) => ({ seconds: 1.5, source: "list", ...record }))
)"""
STATE = """async (query) => {
  const { waiting, saved, problem, durable, elsewhere, unsavedSeconds } = window.boxes[query];
  return { waiting, saved, problem: problem?.kind ?? null, durable, elsewhere, unsavedSeconds };
}"""
EVENTS = """
SELECT username, image_id, NULLIF(relevance, '')
FROM labeling_judgmentevent e JOIN annotator_user u ON u.id = e.annotator_id
WHERE query_id = %s ORDER BY e.id
"""


class Desk:
    """One query's outbox on one page."""

    def __init__(self, page: Page, query: int) -> None:
        self.page = page
        self.query = query
        page.evaluate(OPEN, query)

    def add(self, marks: Sequence[Mark], **fields: Any) -> None:
        """Judge; returns when the browser keeps it."""
        records = [{"image": image, "relevance": relevance, **fields} for image, relevance in marks]
        self.page.evaluate(ADD, [self.query, records])

    def state(self) -> dict[str, Any]:
        return dict(self.page.evaluate(STATE, self.query))

    def wait(self, **wanted: Any) -> None:
        """Until the outbox says so, e.g. `wait(waiting=3, problem="offline")`."""

        def said() -> bool:
            state = self.state()
            return all(state[name] == value for name, value in wanted.items())

        wait_for(said, seconds=60, what=f"{wanted}, there is {self.state()}")

    def drained(self) -> None:
        """Until the server has answered for everything."""
        self.page.evaluate("query => window.boxes[query].drained()", self.query)

    def told(self, kind: str) -> list[dict[str, Any]]:
        """The details of the events of one kind, oldest first."""
        told = self.page.evaluate("() => window.told")
        return [one for one in told if one["kind"] == kind and one["query"] == self.query]


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


def log_in_again(context: BrowserContext, site: Site, user: str) -> Page:
    """Log in on a new tab of the same browser."""
    page = context.new_page()
    page.goto(f"{site.url}/login/")
    page.get_by_label("User name").fill(user)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("heading", name="Queries").wait_for()
    return page

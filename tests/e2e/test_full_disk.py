"""The server's disk is really full: labels wait in the browser, and arrive when there is room."""

from __future__ import annotations

import threading
import time
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.labeling import events, images_of, judge, open_label_page
from tests.processes import fill, wait_for
from tests.site import Site
from tests.worlds import start_site

pytestmark = [pytest.mark.e2e, pytest.mark.faults]

#: PostgreSQL writes its log until there is no room for another file of it, and stops.
WRITE = """
from django.db import connection
for _ in range(1000):
    connection.cursor().execute("SELECT pg_logical_emit_message(false, '', repeat('x', 1000000))")
"""


@pytest.fixture
def site(small_disk: Path) -> Iterator[Site]:
    """An application of its own whose whole state, its database too, lies on a small disk."""
    site = start_site(small_disk / "var", CANDIDATE_DEPTH="40", DISK_MIN_FREE_BYTES="0")
    try:
        site.served.wait_healthy()
        yield site
    finally:
        site.served.end()


def statuses(site: Site) -> set[int]:
    """What the pages and addresses answer that ask the database or write something."""
    found = set()
    for method, path, body in (
        ("GET", "/healthz", None),
        ("GET", "/login/", None),
        ("GET", "/api/queries/", None),
        ("GET", "/api/flags/", None),
        ("POST", "/api/queries/", {"text": "a newt", "category": "Species ID", "split": "val"}),
        ("POST", "/api/token/", {"username": "ann", "password": "wrong"}),
    ):
        try:
            site.api("" if "token" in path else "ada", method, path, body)
        except urllib.error.HTTPError as error:
            found.add(error.code)
        except ValueError:
            pass  # a page, and no JSON
    return found


def written(site: Site) -> bool:
    """Whether the database could write much."""
    return site.served.manage("shell", "-c", WRITE, check=False).returncode == 0


def refuses(site: Site) -> bool:
    """Whether nothing can be written, and not for a moment alone: the database starts again while
    there is room in what it has written of its log.
    """
    query = {"text": "a newt", "category": "Species ID", "split": "val"}
    for _ in range(4):
        try:
            site.api("ada", "POST", "/api/queries/", query)
        except urllib.error.HTTPError as error:
            if error.code != 507:
                return False
        else:
            return False
        time.sleep(0.5)
    return True


@contextmanager
def kept_full(disk: Path) -> Iterator[None]:
    """Leave no room on a disk while the block runs, whatever else is removed from it."""
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(0.05):
            fill(disk)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        fill(disk).unlink()


def test_labels_wait_for_room_on_the_servers_disk(
    site: Site, small_disk: Path, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a fox in the snow")
    images = images_of(site, query, 12)
    page = log_in("ann")
    open_label_page(page, site, query)
    judge(page, "rn")
    expect(page.locator("[data-saved-text]")).to_have_text("All saved · 2")

    web = site.served.find("gunicorn")
    with kept_full(small_disk):
        # A command can fail for another reason, so an address has to say why.
        wait_for(lambda: not written(site) and refuses(site), what="the database's end")
        judge(page, "nrun")
        # A request may wait for the database, which tries to start again.
        saved = page.locator("[data-saved-text]")
        expect(saved).to_have_text("Disk full · 4 waiting, 2 saved", timeout=120_000)
        notice = page.locator("[data-notices]")
        expect(notice).to_contain_text(
            "The server's disk is full. 4 judgments are stored in this browser and will be sent "
            "when there is room."
        )
        assert statuses(site) <= {401, 503, 507}
        assert 507 in statuses(site)
        assert site.served.find("gunicorn") == web, "a web process died"

    expect(saved).to_have_text("All saved · 6", timeout=120_000)
    expect(notice).not_to_contain_text("disk is full")
    wanted = ["relevant", "not_relevant", "not_relevant", "relevant", "unsure", "not_relevant"]
    assert events(site, query) == [
        ("ann", image, what) for image, what in zip(images, wanted, strict=False)
    ]

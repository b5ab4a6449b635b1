"""Images from a folder of one's own into the corpus, in the browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.retrieval.making import jpeg
from tests.site import Site

pytestmark = pytest.mark.e2e
NAMES = ("Rana temporaria", "Bufo bufo")


def test_a_folder_is_uploaded_looked_at_and_imported(
    site: Site, log_in: Callable[..., Page], tmp_path: Path
) -> None:
    for species, colors in zip(NAMES, (("teal", "navy"), ("olive",)), strict=True):
        (tmp_path / "pond" / species).mkdir(parents=True)
        for color in colors:
            (tmp_path / "pond" / species / f"{color}.jpg").write_bytes(jpeg(color, (60, 40)))
    (tmp_path / "pond" / ".DS_Store").write_bytes(b"litter")
    page = log_in("ada")
    page.goto(f"{site.url}/corpus/")
    page.get_by_role("link", name="Import images").click()
    send = page.get_by_role("button", name="Upload")
    expect(send).to_be_disabled()
    page.get_by_label("A folder").set_input_files(tmp_path / "pond")
    # The first request for a piece breaks off, and is sent again.
    broken: list[str] = []

    def once(route: Route) -> None:
        if broken:
            route.continue_()
        else:
            broken.append("files")
            route.abort()

    page.route(re.compile("/files/"), once)
    send.click()
    expect(page.get_by_role("heading", name="The first images")).to_be_visible(timeout=30_000)
    assert broken
    expect(page.get_by_role("cell", name="Rana temporaria/navy.jpg")).to_be_visible()
    expect(page.locator("dl.figures")).to_contain_text("3")
    assert list((site.served.var_dir / "uploads").rglob("navy.jpg"))
    assert site.open_to_others() == []
    page.get_by_label("Name of the data set").fill("pond")
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("heading", name="Import of pond")).to_be_visible()
    expect(page.locator(".badge.done")).to_be_visible(timeout=30_000)
    expect(page.locator("[data-job-count]")).to_have_text("3 of 3")

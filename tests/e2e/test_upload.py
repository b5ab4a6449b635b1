"""Images from a folder of one's own into the corpus, in the browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.retrieval.making import jpeg
from tests.site import Site

pytestmark = pytest.mark.e2e
FORGET = """
from retrieval.corpus.models import Image, Species
Image.objects.filter(dataset="pond").delete()
Species.objects.filter(images=None, scientific_name__in={names!r}).delete()
"""
NAMES = ("Rana temporaria", "Bufo bufo")


@pytest.fixture
def forgotten(site: Site) -> Iterator[None]:
    """What is imported leaves again: other tests need a corpus that is embedded whole."""
    yield
    site.served.manage("shell", "-c", FORGET.format(names=NAMES))


def test_a_folder_is_uploaded_looked_at_and_imported(
    site: Site, log_in: Callable[..., Page], tmp_path: Path, forgotten: None
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

    def once(route: object) -> None:
        if broken:
            route.continue_()  # type: ignore[attr-defined]
        else:
            broken.append("files")
            route.abort()  # type: ignore[attr-defined]

    page.route(re.compile("/files/"), once)
    send.click()
    expect(page.get_by_role("heading", name="The first images")).to_be_visible()
    assert broken
    expect(page.get_by_role("cell", name="Rana temporaria/navy.jpg")).to_be_visible()
    expect(page.locator("dl.figures")).to_contain_text("3")
    page.get_by_label("Name of the data set").fill("pond")
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("heading", name="Import of pond")).to_be_visible()
    expect(page.locator(".badge.done")).to_be_visible(timeout=30_000)
    expect(page.locator("[data-job-count]")).to_have_text("3 of 3")

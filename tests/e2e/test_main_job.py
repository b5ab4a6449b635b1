"""The whole way in the browser: search, query, label, review, complete, release, evaluate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import DESKTOP
from tests.e2e.labeling import box, open_label_page, press, wait_painted
from tests.site import Site

pytestmark = pytest.mark.e2e


def test_from_a_search_to_an_evaluated_release(
    site: Site, log_in: Callable[..., Page], tmp_path: Path
) -> None:
    admin = log_in("ada")
    admin.goto(f"{site.url}/corpus/")
    admin.get_by_label("Search by a text").fill("a spider on a rock")
    admin.get_by_label("Only these species").press_sequentially("hoper marsh")
    admin.get_by_role("option").first.click()
    expect(admin.locator(".tile img[src]").first).to_be_visible()
    admin.get_by_role("button", name="Make this a query").click()
    admin.get_by_label("Category").select_option("Species ID")
    admin.get_by_label("Guidelines").fill("The whole animal must be in the picture.")
    admin.get_by_role("button", name="Save").click()
    admin.get_by_role("button", name="Open it").click()
    expect(admin.locator(".badge.open")).to_be_visible()
    query = int(admin.url.rstrip("/").rsplit("/", 1)[1])

    annotator = log_in("ann", "/")
    expect(annotator.get_by_role("link", name="New query")).to_be_hidden()
    expect(annotator.get_by_role("link", name="a spider on a rock").first).to_be_visible()
    open_label_page(annotator, site, query)
    expect(annotator.locator("[data-side]")).to_contain_text("The whole animal must be")
    # On a small phone nothing needs scrolling.
    annotator.set_viewport_size({"width": 360, "height": 640})
    assert annotator.evaluate("document.documentElement.scrollWidth") <= 360
    assert annotator.evaluate("document.documentElement.scrollHeight") <= 640
    button = box(annotator.locator("[data-do=relevant]"))
    assert button["y"] + button["height"] <= 640
    assert box(annotator.locator(".canvas img"))["height"] >= 200
    annotator.set_viewport_size(DESKTOP)  # type: ignore[arg-type]
    size = len(site.candidates("ann", query)["results"])
    press(annotator, "r", 1)
    press(annotator, "u", 1)
    press(annotator, "n", size - 2)
    expect(annotator.locator(".stage")).to_contain_text("The list is exhausted")
    annotator.locator(".stage").get_by_role("button", name="Hand in").click()
    panel = annotator.get_by_role("dialog")
    expect(panel.get_by_role("heading")).to_have_text("The list is exhausted")
    expect(panel.locator("[data-stop-rules]")).to_contain_text(f"{size} of {size}")
    panel.get_by_role("button", name="Hand in", exact=True).click()
    expect(annotator.get_by_role("heading", name="Queries", exact=True)).to_be_visible()

    reviewer = log_in("rita")
    reviewer.goto(f"{site.url}/queries/{query}/review/")
    wait_painted(reviewer, 1)
    reviewer.locator("[data-do=relevant]").click()
    reviewer.locator("[data-bar=single] [data-do=skip]").click()
    reviewer.locator(".stage").get_by_role("link", name="Complete").click()
    reviewer.get_by_role("button", name="Complete").click()
    expect(reviewer.locator(".badge.complete").first).to_be_visible()

    admin.goto(f"{site.url}/releases/")
    admin.get_by_label("Name").fill("first")
    admin.get_by_role("button", name="Make release").click()
    expect(admin.get_by_role("heading", name="first")).to_be_visible()
    annotations = admin.get_by_role("link", name="inquire_annotations.csv", exact=True)
    expect(annotations).to_be_visible(timeout=60_000)
    with admin.expect_download() as download:
        annotations.click()
    rows = download.value.path().read_text().splitlines()
    assert rows[0] == "query_id,image_id,image_path"
    number = site.api("ada", "GET", f"/api/queries/{query}/")["query_id"]
    assert len([row for row in rows[1:] if row.startswith(f"{number},")]) == 2

    release, run = tmp_path / "release", tmp_path / "run.trec"
    commands = (
        ("export_release", "second", str(release), "--new"),
        ("export_run", str(run), "--release", str(release)),
        ("evaluate", str(run), "--release", str(release), "--k", "50"),
    )
    # One process for all, since each takes seconds to start.
    lines = ["from django.core.management import call_command"]
    lines += [f"call_command(*{one})" for one in commands]
    printed = site.served.manage("shell", "-c", "\n".join(lines))
    assert "AP@50" in printed.stdout
    assert site.open_to_others() == []

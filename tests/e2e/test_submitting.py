"""What researchers come for: submit a run, see its figures, and publish it on the leaderboard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from playwright.sync_api import FilePayload, Page, ViewportSize, expect

from tests.e2e.axe import problems
from tests.e2e.conftest import DESKTOP, NARROW
from tests.processes import wait_for
from tests.site import Site

pytestmark = pytest.mark.e2e

WINDOWS: tuple[ViewportSize, ...] = (
    DESKTOP,
    {"width": 390, "height": 844},
    NARROW,
)
METHOD = "A hybrid of two retrievers with a name as long as people give them"


@dataclass
class Task:
    """A release, and a run on it whose figure is known."""

    release: int
    run: bytes
    broken: bytes
    figure: str
    """mAP@50 over the test queries, in percent."""


@pytest.fixture
def task(site: Site) -> Task:
    """A release with two test queries that are complete."""
    rows = []
    broken = b"999999 Q0 1 1 0.5 x\n"
    for text, relevant, order in (
        ("a newt for a submitted run", [0, 2], [0, 1, 2]),
        ("a heron for a submitted run", [4], [3, 4]),
    ):
        query = site.open_query(text, split="test", category="Species ID")
        listed = [one["image"] for one in site.candidates("ann", query, limit=8)["results"]]
        site.judge("ann", query, [(listed[place], "relevant") for place in relevant])
        site.judge("ann", query, [(listed[5], "not_relevant")])
        site.api("ada", "PATCH", f"/api/queries/{query}/", {"state": "complete", "note": "Enough."})
        number = site.api("ada", "GET", f"/api/queries/{query}/")["query_id"]
        rows += [
            f"{number} Q0 {listed[place]} {rank} {1 - rank / 10} mine\n"
            for rank, place in enumerate(order, start=1)
        ]
        broken += f"{number} Q0 {listed[0]} 1 inf x\n".encode()
    # The run is short, which a release that hides its test labels refuses.
    wanted = {"name": "Submitting", "test_labels": "public"}
    release = site.api("ada", "POST", "/api/releases/", wanted)["id"]
    wait_for(
        lambda: site.api("ada", "GET", f"/api/releases/{release}/")["state"] == "done",
        what="the release",
    )
    # Average precision: (1 + 2/3) / 2 of the newt and 1/2 of the heron.
    figure = f"{100 * (5 / 6 + 1 / 2) / 2:.1f}"
    return Task(release, "".join(rows).encode(), broken, figure)


def choose(page: Page, content: bytes) -> None:
    """Choose a file of this content on the submission page."""
    file: FilePayload = {"name": "run.trec", "mimeType": "text/plain", "buffer": content}
    page.get_by_label("Run file").set_input_files(file)


def test_from_logging_in_to_the_leaderboard(
    site: Site, log_in: Callable[..., Page], task: Task
) -> None:
    page = log_in("rosa", "/")
    expect(page.get_by_role("heading", name="Leaderboard of")).to_be_visible()
    page.get_by_role("link", name="Submit a run").click()
    wrong = problems(page)

    choose(page, task.broken)
    page.get_by_label("Method").fill(METHOD)
    page.get_by_label("Training data").fill("DFN-5B")
    page.get_by_label("Queries in it").select_option("test")
    page.get_by_role("button", name="Submit").click()
    alert = page.get_by_role("alert").filter(has_text="The file is refused: 3 errors")
    expect(alert).to_be_visible()
    lines = [row.split("\t") for row in alert.locator("tbody tr").all_inner_texts()]
    assert [row[0] for row in lines] == ["1", "2", "3"]
    assert "no query 999999" in lines[0][2]
    assert lines[1][1:] == ["score", "'inf' is not a finite number"]
    wrong += problems(page)

    page.get_by_role("link", name="Delete this run").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="My runs")).to_be_visible()
    expect(page.get_by_role("link", name=METHOD, exact=True)).to_have_count(0)

    page.goto(f"{site.url}/releases/{task.release}/submit/")
    choose(page, task.run)
    page.get_by_label("Method").fill(METHOD)
    page.get_by_label("Training data").fill("DFN-5B")
    page.get_by_label("Queries in it").select_option("test")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("status").filter(has_text="is taken in")).to_be_visible()
    expect(page.get_by_role("heading", name="Scores on")).to_be_visible()
    wrong += problems(page)
    page.get_by_role("link", name="My runs").click()
    row = page.get_by_role("row").filter(has_text=METHOD)
    expect(row.get_by_text("Private")).to_be_visible()
    expect(row.get_by_role("cell").nth(3)).to_contain_text(task.figure)
    row.get_by_role("link", name="Edit").click()
    expect(page.get_by_label("Training data")).to_have_value("DFN-5B")
    page.get_by_label("Parameters, in millions").fill("986")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("986 million")).to_be_visible()
    private = page.url

    other = log_in("rolf")
    other.goto(f"{site.url}/releases/{task.release}/leaderboard/")
    expect(other.get_by_text(METHOD)).to_have_count(0)
    other.get_by_role("link", name="My runs").click()
    expect(other.get_by_text("No runs yet")).to_be_visible()
    wrong += problems(other)
    answer = other.goto(private)
    assert answer is not None
    assert answer.status == 404

    page.get_by_role("link", name="Edit card, publish").click()
    page.get_by_role("link", name="Publish").click()
    expect(page.get_by_role("heading", name=f"Publish “{METHOD}”?")).to_be_visible()
    wrong += problems(page)
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_text("The run is public now.")).to_be_visible()

    other.goto(f"{site.url}/releases/{task.release}/leaderboard/")
    title = other.get_by_role("link", name=METHOD, exact=True)
    line = other.locator("table[data-board] tbody tr").filter(has=title)
    for window in WINDOWS:
        other.set_viewport_size(window)
        expect(title).to_be_visible()
        expect(line).to_contain_text("986")
        expect(line.locator("td[data-value]").nth(1)).to_contain_text(task.figure)
    title.click()
    expect(other.get_by_role("heading", name=METHOD)).to_be_visible()
    expect(other.get_by_role("link", name="Edit card, publish")).to_be_hidden()
    assert wrong == []

"""Undo and redo: over the whole session, across reloads and crashes, each tab its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import SCRIPTS
from tests.e2e.labeling import judge, open_label_page, shown, wait_painted
from tests.e2e.outboxes import events, images_of, new_tab
from tests.site import Site

pytestmark = pytest.mark.e2e

OPEN = """async (query) => {
  const { UndoStack } = await import("/static/js/saving/undo.js");
  const user = Number(document.querySelector("meta[name=user-id]").content);
  window.stack = new UndoStack({ user, query });
  await window.stack.ready;
}"""
PUSH = """async (numbers) => {
  for (const number of numbers) {
    const marks = [{ image: number, from: null, to: "relevant" }];
    window.last = window.stack.push({ marks, source: "list" });
  }
  await window.last;
}"""
MOVE = """async ([way, times]) => {
  const moved = [];
  for (let time = 0; time < times; time += 1) {
    const step = await window.stack[way]();
    moved.push(step?.marks[0].image ?? null);
  }
  await window.stack.writing;
  return moved;
}"""


class Stack:
    """The undo stack of a query on one page; a step is a number."""

    def __init__(self, page: Page, query: int) -> None:
        self.page = page
        if page.url == "about:blank":
            page.goto(SCRIPTS)
        page.evaluate(OPEN, query)

    def push(self, *numbers: int) -> None:
        self.page.evaluate(PUSH, list(numbers))

    def undo(self, times: int = 1) -> list[int | None]:
        return list(self.page.evaluate(MOVE, ["undo", times]))

    def redo(self, times: int = 1) -> list[int | None]:
        return list(self.page.evaluate(MOVE, ["redo", times]))

    def can(self) -> tuple[bool, bool]:
        undo, redo = self.page.evaluate("() => [window.stack.canUndo, window.stack.canRedo]")
        return undo, redo


def test_steps_are_taken_back_and_done_again_across_reloads(
    script_page: Page,
) -> None:
    page = script_page
    stack = Stack(page, 990_001)
    assert stack.can() == (False, False)
    stack.push(1, 2, 3, 4)
    assert stack.undo(2) == [4, 3]
    page.reload()
    stack = Stack(page, 990_001)
    assert stack.can() == (True, True)
    assert stack.redo() == [3]
    page.reload()
    stack = Stack(page, 990_001)
    assert stack.undo(2) == [3, 2]
    stack.push(5)
    assert stack.can() == (True, False)
    page.reload()
    stack = Stack(page, 990_001)
    assert stack.can() == (True, False)
    assert stack.undo(4) == [5, 1, None, None]
    assert stack.redo(4) == [1, 5, None, None]
    # Another query has steps of its own.
    assert Stack(page, 990_002).can() == (False, False)


def test_the_oldest_steps_go_beyond_two_thousand(script_page: Page) -> None:
    page = script_page
    Stack(page, 990_003).push(*range(2050))
    page.reload()
    stack = Stack(page, 990_003)
    assert stack.undo(2001) == [*range(2049, 49, -1), None]


def test_each_tab_has_its_own_steps_and_a_crashed_one_leaves_them(
    script_page: Page,
) -> None:
    page = script_page
    first, second = Stack(page, 990_004), Stack(page.context.new_page(), 990_004)
    first.push(1, 2)
    assert second.can() == (False, False)
    second.push(3)
    first.push(4)
    assert second.undo(2) == [3, None]
    assert first.undo() == [4]
    first.page.reload()
    first = Stack(first.page, 990_004)
    assert first.undo() == [2]
    second.page.close()
    first.redo(2)
    first.push(5)
    context = page.context
    with pytest.raises(Exception, match="crash"):
        page.goto("chrome://crash")
    page = context.new_page()
    page.goto(SCRIPTS)
    assert Stack(page, 990_004).undo(4) == [5, 4, 2, 1]


def test_a_browser_without_a_database_undoes_until_the_page_is_left(
    script_page: Page,
) -> None:
    page = script_page
    page.context.add_init_script("indexedDB.open = () => { throw new Error('no'); };")
    page.goto(SCRIPTS)
    stack = Stack(page, 990_005)
    stack.push(1, 2)
    assert stack.undo() == [2]
    assert stack.redo() == [2]
    page.reload()
    assert Stack(page, 990_005).can() == (False, False)


def test_a_whole_session_is_undone_and_done_again_by_keys(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a deer at the edge of a wood")
    images = images_of(site, query, 4)
    page = log_in("ann")
    open_label_page(page, site, query)
    judge(page, "rnun")
    expect(shown(page, "judged")).to_have_text("4")
    page.reload()
    wait_painted(page, 5)
    for left in (3, 2, 1, 0):
        page.keyboard.press("z")
        expect(shown(page, "judged")).to_have_text(str(left))
        expect(shown(page, "rank")).to_have_text(str(left + 1))
    expect(page.locator("[data-do=undo]")).to_be_disabled()
    for done in (1, 2):
        page.keyboard.press("Control+Shift+z")
        expect(shown(page, "judged")).to_have_text(str(done))
    expect(page.locator("[data-saved]")).to_contain_text("All saved")
    assert site.progress("ann", query)["judged"] == 2
    what: list[str | None] = ["relevant", "not_relevant", "unsure", "not_relevant"]
    acts = [*zip(images, what, strict=True), *[(image, None) for image in reversed(images)]]
    acts += [(images[0], "relevant"), (images[1], "not_relevant")]
    assert events(site, query) == [("ann", *act) for act in acts]


def test_undo_without_a_connection_waits_in_order_too(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a deer by a lake")
    images = images_of(site, query, 3)
    page = log_in("ann")
    open_label_page(page, site, query)
    judge(page, "r")
    expect(page.locator("[data-saved]")).to_contain_text("All saved")
    page.context.set_offline(True)
    judge(page, "nn")
    for left in (2, 1, 0):
        page.keyboard.press("z")
        expect(shown(page, "judged")).to_have_text(str(left))
    page.keyboard.press("y")
    expect(page.locator("[data-saved]")).to_contain_text("6 waiting")
    page.context.set_offline(False)
    expect(page.locator("[data-saved]")).to_contain_text("All saved")
    labels = [c["relevance"] for c in site.candidates("ann", query, limit=3)["results"]]
    assert labels == ["relevant", None, None]
    assert events(site, query) == [
        ("ann", images[0], "relevant"),
        ("ann", images[1], "not_relevant"),
        ("ann", images[2], "not_relevant"),
        ("ann", images[2], None),
        ("ann", images[1], None),
        ("ann", images[0], None),
        ("ann", images[0], "relevant"),
    ]


def test_a_label_changed_elsewhere_since_is_not_undone(
    site: Site, log_in: Callable[..., Page]
) -> None:
    query = site.open_query("a deer in the mist")
    page = log_in("ann")
    open_label_page(page, site, query)
    judge(page, "r")
    expect(page.locator("[data-saved]")).to_contain_text("All saved")
    tab = new_tab(page, site, f"/queries/{query}/label/")
    wait_painted(tab, 2)
    tab.keyboard.press("ArrowLeft")
    wait_painted(tab, 1)
    tab.keyboard.press("u")
    expect(tab.locator("[data-saved]")).to_contain_text("All saved")
    expect(shown(page, "relevant")).to_have_text("0")
    page.bring_to_front()
    page.keyboard.press("z")
    expect(page.locator("[data-hint]")).to_contain_text("changed elsewhere")
    assert site.candidates("ann", query, limit=1)["results"][0]["relevance"] == "unsure"
    assert len(events(site, query)) == 2

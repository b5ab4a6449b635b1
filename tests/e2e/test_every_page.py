"""Every page and every dialog, at 320 pixels and dark, wide and light, in a world whose names and
texts are long words: axe-core finds nothing serious, nothing scrolls sideways or lies beside the
window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from django.conf import settings
from playwright.sync_api import Browser, Page, expect

from tests.e2e.axe import problems
from tests.e2e.conftest import NARROW
from tests.e2e.labeling import box, open_label_page, press, saved
from tests.processes import wait_for
from tests.site import Site

pytestmark = pytest.mark.e2e

WORD = "W" * 60


@dataclass
class Places:
    """Queries, a release and runs of every kind there is a page for."""

    open: int
    submitted: int
    rejected: int
    complete: int
    draft: int
    release: int
    runs: list[int]
    number: int
    """Of the complete query, as runs have it."""
    annotator: int
    """Ann."""
    image: int
    """Labeled, flagged and pinned."""
    dataset: str
    job: int


@dataclass
class Look:
    """Collects what is wrong on the pages that were looked at, so that one run tells all."""

    page: Page
    site: Site
    axe: tuple[str, ...] = ("dark", "light")
    """The schemes in which axe-core looks: roles that see much of the same have one each."""
    wrong: list[str] = field(default_factory=list)

    def at(self, name: str) -> None:
        """Check what stands on screen now."""
        self.wrong += [f"{name}: {one}" for one in problems(self.page, self.axe)]

    def pages(self, *paths: str) -> None:
        for path in paths:
            answer = self.page.goto(self.site.url + path)
            assert answer is not None
            assert answer.ok or WORD in path or path.startswith(("/password/", "/first")), path
            expect(self.page.locator("main")).to_be_visible()
            self.at(path)


@pytest.fixture(scope="module")
def places(site: Site, browser: Browser) -> Places:
    with site.served.database() as cursor:
        cursor.execute("UPDATE annotator_user SET username = %s || username", [WORD])
        for table, column, word in (
            ("retrieval_species", "scientific_name", "W" * 80),
            ("retrieval_speciesname", "name", "W" * 90),
        ):
            first = f"SELECT min(id) FROM {table}"
            cursor.execute(f"UPDATE {table} SET {column} = %s WHERE id = ({first})", [word])
    species = [one["scientific_name"] for one in site.api("ada", "GET", "/api/species/")["results"]]

    def change(user: str, query: int, **fields: str) -> None:
        site.api(user, "PATCH", f"/api/queries/{query}/", fields)

    opened = site.open_query(WORD, species=species[:12], guidelines="W" * 300 + "\n\nNo traces.")
    listed = [one["image"] for one in site.candidates("ada", opened, limit=60)["results"]]
    for image, relevant in ((listed[0], True), (listed[1], False)):
        example = {"image": image, "relevant": relevant, "note": "W" * 200}
        site.api("ada", "POST", f"/api/queries/{opened}/examples/", example)
    for user, kind in (("otto", "person"), ("ann", "poor_quality")):
        flag = {"kind": kind, "note": "W" * 200}
        site.api(user, "POST", f"/api/images/{listed[0]}/flags/", flag)
    for user, relevance in (("ann", "relevant"), ("otto", "not_relevant")):
        site.judge(user, opened, dict.fromkeys(listed[:6], relevance).items())
    states = {}
    for letters, state in ((200, "submitted"), (198, "rejected"), (199, "complete")):
        query = states[state] = site.open_query("W" * letters, guidelines="W" * 300)
        images = [one["image"] for one in site.candidates("ann", query, limit=20)["results"]]
        site.judge("ann", query, dict.fromkeys(images[:15], "relevant").items())
        site.judge("otto", query, dict.fromkeys(images[:15:3], "unsure").items())
        if state != "complete":
            change("ann", query, state="submitted", give_up="other", note="W" * 200)
    change("ada", states["rejected"], state="rejected", reject_reason="too_easy", reject_note=WORD)
    complete = states["complete"]
    change("ada", complete, state="complete", note="W" * 150)
    if "boxes" in settings.EXTRAS:
        site.api("ada", "PUT", f"/api/queries/{complete}/boxes/", {"images": "all"})
    number = site.api("ada", "GET", f"/api/queries/{complete}/")["query_id"]
    draft = {"text": "W" * 197, "category": "Species ID", "split": "test"}
    # The runs are short, which a release that hides its test labels refuses.
    wanted = {"name": WORD, "test_labels": "public"}
    release = site.api("ada", "POST", "/api/releases/", wanted)["id"]

    def wait_done(path: str, name: str = "done") -> None:
        wait_for(lambda: site.api("ada", "GET", path)["state"] == name, seconds=60, what=path)

    wait_done(f"/api/releases/{release}/")
    ranks = (f"{number} Q0 {image} {rank} {-rank} W\n" for rank, image in enumerate(listed, 1))
    file = {"name": "run.trec", "mimeType": "text/plain", "buffer": "".join(ranks).encode()}
    runs = []
    with browser.new_context() as context:
        token = {"Authorization": site.headers("ada")["Authorization"]}
        for name in ("W" * 100, "W" * 99):
            answer = context.request.post(
                f"{site.url}/api/releases/{release}/runs/",
                headers=token,
                multipart={"name": name, "publish": "true", "split": "test", "file": file},
            )
            runs.append(answer.json()["id"])
    for run in runs:
        wait_done(f"/api/runs/{run}/", "ready")
    return Places(
        open=opened,
        submitted=states["submitted"],
        rejected=states["rejected"],
        complete=complete,
        draft=site.api("ada", "POST", "/api/queries/", draft)["id"],
        release=release,
        runs=runs,
        number=number,
        annotator=site.api("ann", "GET", f"/api/queries/{opened}/outline/")["annotator"],
        image=listed[0],
        dataset=site.api("ada", "GET", "/api/data-sets/")["results"][0],
        job=site.api("ada", "GET", "/api/jobs/?limit=1")["results"][0]["id"],
    )


@pytest.fixture
def look(log_in: Callable[..., Page], site: Site, places: Places) -> Iterator[Callable[..., Look]]:
    """`look("ann")` looks at pages as that person; the test fails for what any look found."""
    looks = []

    def start(user: str, *axe: str) -> Look:
        looks.append(Look(log_in(user), site, axe or ("dark", "light")))
        return looks[-1]

    yield start
    wrong = [one for each in looks for one in each.wrong]
    assert not wrong, "\n".join(wrong)


def test_pages_before_the_log_in(browser: Browser, site: Site) -> None:
    with browser.new_context() as context:
        look = Look(context.new_page(), site)
        look.pages("/login/")
        look.page.get_by_label("User name").fill(WORD)
        look.page.get_by_label("Password").fill("wrong")
        look.page.get_by_role("button", name="Log in").click()
        expect(look.page.get_by_role("alert")).to_be_visible()
        look.at("/login/ refused")
        look.pages(f"/{WORD}/", "/password/MQ/abcdef12/", "/first-admin/abcdef12/")
    assert not look.wrong, "\n".join(look.wrong)


def test_pages_of_an_annotator(look: Callable[..., Look], places: Places) -> None:
    look("ann", "dark").pages(
        "/",
        "/?search=no+such+query",
        f"/queries/{places.open}/",
        f"/queries/{places.open}/audit/",
        f"/queries/{places.open}/images/",
        f"/queries/{places.open}/requested/",
        f"/queries/{places.submitted}/",
        *([f"/queries/{places.complete}/boxes/"] if "boxes" in settings.EXTRAS else []),
        f"/people/{places.annotator}/labeling/",
        f"/images/{places.image}/",
        "/corpus/?species=1&species=2",
        "/help/",
        "/how-to-label/",
        *(["/look-alikes/1/2/"] if "lookalikes" in settings.EXTRAS else []),
        "/practice/",
        "/account/",
        "/account/password/",
        f"/{WORD}/",
    )


def test_pages_of_reviewer_and_admin(look: Callable[..., Look], places: Places) -> None:
    admin = look("ada", "light")
    admin.pages(
        "/",
        f"/queries/{places.open}/",
        *(f"/queries/{places.open}/{name}/" for name in ("edit", "review", "complete")),
        f"/queries/{places.draft}/",
        *(f"/queries/{places.draft}/{name}/" for name in ("delete", "review")),
        f"/queries/{places.submitted}/",
        f"/queries/{places.submitted}/review/?kind=unsure",
        f"/queries/{places.rejected}/",
        f"/queries/{places.complete}/",
        f"/queries/{places.complete}/images/?listed=yes",
        *([f"/queries/{places.complete}/nature/"] if "nature" in settings.EXTRAS else []),
        *(["/duplicates/"] if "duplicates" in settings.EXTRAS else []),
        *(f"/queries/{name}/" for name in ("new", "import", "open")),
        *(["/look-alikes/"] if "lookalikes" in settings.EXTRAS else []),
        *(["/readers/"] if "reading" in settings.EXTRAS else []),
        *("/agreement/", "/flags/", "/corpus/", "/models/", "/import/"),
        f"/corpus/?text={WORD}",
        "/corpus/?view=species",
        *(f"/images/{places.image}/", f"/corpus/?like={places.image}"),
        *("/data-sets/", f"/data-sets/show/?dataset={places.dataset}"),
        *(f"/corpus/?dataset={places.dataset}", f"/data-sets/remove/?dataset={places.dataset}"),
        *("/manage/", "/manage/jobs/", "/manage/settings/"),
        *("/log/", f"/jobs/{places.job}/", "/how-to-label/edit/", "/practice/"),
        *("/benchmarks/", "/benchmarks/1/", "/people/", "/people/1/leave/", "/people/1/"),
    )
    admin.page.get_by_role("button", name="Make a link").click()
    expect(admin.page.get_by_role("heading", name="Link for")).to_be_visible()
    admin.at("a link for a person")
    if "simulation" in settings.EXTRAS:
        admin.pages(f"/simulations/?query={places.number}")
        admin.page.get_by_label("Seeds").fill("5")
        admin.page.get_by_role("button", name="Simulate").click()
        expect(admin.page.locator(".chart-wrap svg").first).to_be_visible(timeout=60_000)
        admin.at("a simulation")


def test_pages_of_releases_and_runs(look: Callable[..., Look], places: Places) -> None:
    admin = look("ada", "light")
    of_release, (run, other) = f"/releases/{places.release}", places.runs
    cards = (f"{of_release}/rerank/", f"/runs/{run}/card/")
    admin.pages("/releases/", f"{of_release}/", "/runs/", *cards)
    if "species_task" in settings.EXTRAS:
        admin.pages("/leaderboard/species/")
    # What axe-core says of these is tested with what they do.
    names = ["statistics", "leaderboard", "bias", "submit"]
    if "boxes" in settings.EXTRAS:
        names.append("detection")
    if "correlations" in settings.EXTRAS:
        names.append("correlations")
    shown = (f"/runs/{run}/", f"/runs/{run}/queries/{places.number}/")
    compared = f"/runs/compare/?a={run}&b={other}"
    admin.axe = ()
    admin.pages(*(f"{of_release}/{one}/" for one in names), *shown, compared)


def test_the_keyboard_skips_a_long_table(
    site: Site, log_in: Callable[..., Page], places: Places
) -> None:
    rows = site.api("ada", "GET", "/api/queries/?limit=1")["count"]
    for number in range(rows, 9):
        draft = {"text": f"draft {number} to skip", "category": "Species ID", "split": "test"}
        site.api("ada", "POST", "/api/queries/", draft)
    page = log_in("ada", "/")
    skip = page.get_by_role("link", name="Skip the table")
    page.get_by_role("button", name="Show", exact=True).focus()
    page.keyboard.press("Tab")
    expect(skip).to_be_focused()
    assert box(skip)["height"] > 20
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("() => !document.activeElement.closest('[aria-label=Queries]')")
    page.keyboard.press("Shift+Tab")  # from there back into the table's last row
    assert page.evaluate("() => Boolean(document.activeElement.closest('[aria-label=Queries] tr'))")


@contextmanager
def dialog(look: Look, key: str, name: str) -> Iterator[None]:
    """What a key opens: checked after what the test does in it, then closed by Escape."""
    page = look.page
    page.keyboard.press(key)
    expect(page.locator("dialog[open]")).to_be_visible()
    page.wait_for_load_state("networkidle")
    yield
    look.at(name)
    for _ in range(3):
        if page.locator("dialog[open]").count():
            page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)


def test_the_labeling_page_with_each_dialog_and_both_views(
    site: Site, look: Callable[..., Look], places: Places
) -> None:
    at = look("otto")
    page = at.page
    open_label_page(page, site, places.open)
    press(page, "n")
    saved(page)
    press(page, "ArrowLeft")
    with dialog(at, "h", "history"):
        expect(page.get_by_role("dialog").get_by_role("listitem")).not_to_have_count(0)
    with dialog(at, "f", "flags"):
        expect(page.locator("[data-kind=poor_quality]")).to_be_enabled()
        page.keyboard.press("6")
        expect(page.locator("[data-kind=poor_quality][aria-pressed=true]")).to_be_visible()
    with dialog(at, "m", "more like this, larger"):
        expect(page.locator(".similar-tile").first).to_be_focused()
        for key in ("r", "ArrowRight", "n"):
            page.keyboard.press(key)
        at.at("more like this")
        page.keyboard.press("Enter")
    with dialog(at, "?", "keys"):
        pass
    with dialog(at, "p", "stop panel"):
        pass
    with dialog(at, "c", "comments"):
        page.locator("[data-comments-text]").fill(f"Is this\n{WORD}?")
        page.locator("[data-comments-send]").click()
        expect(page.locator(".comment-text")).to_have_count(1)
    page.locator("[data-tone-open]").click()
    at.at("single, with brightness")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.locator("[data-filters]")).to_be_visible()
    at.at("filters")
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    expect(page.locator("[data-tiles] [data-seen]").first).to_be_visible()
    page.keyboard.press("Space")
    at.at("grid, one marked")
    page.context.set_offline(True)
    page.keyboard.press("Enter")
    expect(page.locator("[data-saved]")).to_contain_text("wait")
    at.at("grid, without a connection")
    page.context.set_offline(False)


def test_the_reference_where_one_may_pin(
    site: Site, look: Callable[..., Look], places: Places
) -> None:
    at = look("ada")
    page = at.page
    open_label_page(page, site, places.open)
    page.keyboard.press("e")
    expect(page.locator("[data-reference]")).not_to_contain_text("Loading")
    page.get_by_text("Pin the image on screen").click()
    page.locator("[data-reference] details[data-species] summary").last.click()
    at.at("reference")
    page.locator("[data-reference] .reference-pinned button").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    at.at("reference, an example")


def test_words_of_the_labeling_page_stay_whole_and_apart(
    site: Site, log_in: Callable[..., Page], places: Places
) -> None:
    page = log_in("rita", viewport=NARROW)
    open_label_page(page, site, places.open)
    # At 360 pixels no button breaks a word of its own.
    relevant, unsure = (
        page.locator(f"[data-bar=single] [data-do={name}]") for name in ("relevant", "unsure")
    )
    line, text = relevant.evaluate(
        "one => { const range = document.createRange(); range.selectNodeContents(one);"
        " return [parseFloat(getComputedStyle(one).lineHeight),"
        " range.getBoundingClientRect().height]; }"
    )
    assert box(relevant)["height"] == box(unsure)["height"]
    assert text < 1.5 * line
    # Where the streak waits lies over nothing else.
    press(page, "s")
    press(page, "n")
    expect(page.locator("[data-gap]")).to_have_text("waits at rank 1")
    for width in (900, 1024, 1366):
        page.set_viewport_size({"width": width, "height": 800})
        shown = page.locator(".meters > div, .saved").evaluate_all(
            "all => all.filter((one) => one.checkVisibility()).map((one) => {"
            " const range = document.createRange(); range.selectNodeContents(one);"
            " const { left, right } = range.getBoundingClientRect(); return [left, right]; })"
        )
        assert len(shown) >= 4
        for (_, right), (left, _) in pairwise(shown):
            assert right <= left + 1, width
        assert shown[-1][1] <= width

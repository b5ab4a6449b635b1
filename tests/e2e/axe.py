"""axe-core on a page: what people with disabilities stumble over, by the rules that a machine can
check.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib.resources import files

from playwright.sync_api import Page

from tests.e2e.conftest import DESKTOP

# The page's own policy lets no script in, so the script's text is evaluated from outside.
_SCRIPT = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
_BAD = ("serious", "critical")
#: A window of 1280 pixels at a zoom of 400 % (WCAG 2.2, success criterion 1.4.10).
ZOOMED = {"width": 320, "height": 640}


def problems(page: Page, axe: Collection[str] = ("dark", "light")) -> list[str]:
    """What is wrong with what stands on screen now: narrow and dark, wide and light. axe-core,
    which takes most of the time, looks in these schemes alone.
    """
    wrong = []
    for size, scheme in ((ZOOMED, "dark"), (DESKTOP, "light")):
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        found = violations(page) if scheme in axe else []
        found += wider_than_window(page) + outside_window(page)
        wrong += [f"{page.url}, {size['width']}, {scheme}: {one}" for one in found]
    return wrong


def violations(page: Page) -> list[str]:
    """Serious and critical violations, as "rule: selector (what is wrong)"."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(f"() => {{ {_SCRIPT} }}")
    found = page.evaluate(
        "() => axe.run(document, { resultTypes: ['violations'], preload: false })"
    )
    return [
        f"{one['id']}: {' '.join(map(str, node['target']))} ({node['failureSummary']})"
        for one in found["violations"]
        if one["impact"] in _BAD
        for node in one["nodes"]
    ]


def wider_than_window(page: Page) -> list[str]:
    """What makes the page scroll sideways, if it does."""
    if page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"):
        return []
    wide: list[str] = page.evaluate(
        "() => [...document.querySelectorAll('body *')]"
        ".filter((one) => one.getBoundingClientRect().right > innerWidth + 1)"
        ".slice(0, 5).map((one) => `wider than the window: ${one.tagName} ${one.className}`)"
    )
    return wide or ["wider than the window"]


def outside_window(page: Page) -> list[str]:
    """What one presses or fills in, and lies wholly or in part beside the window."""
    found: list[str] = page.evaluate(
        "() => [...document.querySelectorAll("
        "'button, .button, input, select, summary, .site-user *')]"
        ".filter((one) => one.checkVisibility()"
        " && !one.closest('.visually-hidden, .skip-link, .board, [data-strip]'))"
        ".filter((one) => { const { left, right, width } = one.getBoundingClientRect();"
        " return width && (left < -1 || right > innerWidth + 1); })"
        ".map((one) => `outside: ${one.className} ${one.textContent.trim().slice(0, 20)}`)"
    )
    return found

"""axe-core on a page: what people with disabilities stumble over, by the rules that a machine can
check.
"""

from __future__ import annotations

from importlib.resources import files

from playwright.sync_api import Page

# The page's own policy lets no script in, so the script's text is evaluated from outside.
_SCRIPT = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
_BAD = ("serious", "critical")


def violations(page: Page, *rules: str) -> list[str]:
    """Serious and critical violations of all rules, or of some, as "rule: selector (what is
    wrong)".
    """
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(f"() => {{ {_SCRIPT} }}")
    found = page.evaluate(
        "(rules) => axe.run(document, { resultTypes: ['violations'],"
        " ...(rules.length ? { runOnly: rules } : {}) })",
        list(rules),
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

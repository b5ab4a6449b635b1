"""The species picker: found by any name with slips, whole groups, pasted lists, many chips."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from demo.species import SPECIES
from tests.e2e.axe import violations, wider_than_window
from tests.e2e.conftest import NARROW
from tests.site import Site

pytestmark = pytest.mark.e2e

PASTE = """(input, text) => {
  const data = new DataTransfer();
  data.setData("text/plain", text);
  const event = { clipboardData: data, bubbles: true, cancelable: true };
  return input.dispatchEvent(new ClipboardEvent("paste", event));
}"""


def on_search(page: Page, site: Site) -> Locator:
    page.goto(f"{site.url}/corpus/")
    return page.get_by_label("Only these species")


def search(field: Locator, text: str) -> Locator:
    """Type into the picker, and wait for the list of what was found."""
    field.fill("")
    field.press_sequentially(text)
    options = field.page.locator(".picker-options [role=option]")
    expect(options.first).to_be_visible()
    return options


def chips(page: Page) -> list[str]:
    return page.locator(".chip .chip-name").all_inner_texts()


def add(page: Page, names: list[str]) -> None:
    """`fill` types what it fills in, which takes seconds for thousands of lines."""
    field = page.get_by_label("Names, one on each line")
    field.evaluate("(field, text) => { field.value = text; }", "\n".join(names))
    page.get_by_role("button", name="Add these").click()


def test_by_keyboard_alone(site: Site, log_in: Callable[..., Page]) -> None:
    page = log_in("ada")
    field = on_search(page, site)
    field.press_sequentially("xyzzy")
    expect(page.locator(".picker-note")).to_have_text("No species has this name.")
    expect(field).to_have_attribute("aria-expanded", "false")
    page.context.set_offline(True)
    field.fill("owl")
    expect(page.locator(".picker-note")).to_have_text("The server can't be reached.")
    page.context.set_offline(False)

    options = page.get_by_role("option")
    search(field, "hopper")
    expect(field).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    second = options.nth(1)
    expect(second).to_have_attribute("aria-selected", "true")
    expect(field).to_have_attribute("aria-activedescendant", str(second.get_attribute("id")))
    chosen = second.locator(".picker-title").inner_text()
    page.keyboard.press("Enter")
    expect(field).to_have_attribute("aria-expanded", "false")
    expect(field).to_have_value("")
    [name] = chips(page)
    assert chosen.startswith(name)

    page.keyboard.type("rose stilt")
    expect(options.first).to_be_visible()
    page.keyboard.press("Escape")
    expect(options.first).to_be_hidden()
    page.keyboard.press("Enter")  # a name is no choice yet: the form is not sent, the list is back
    expect(options.first).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator(".picker .chip")).to_have_count(2)

    page.locator(".chip-name").last.focus()
    page.keyboard.press("Enter")
    card = page.locator(".chip-card")
    expect(card.get_by_role("button")).to_have_count(3)
    page.keyboard.press("Escape")
    expect(card).to_have_count(0)
    expect(page.locator(".chip-name").last).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert chips(page) == [name]
    expect(page.locator(".chip-remove").first).to_be_focused()
    page.keyboard.press("Enter")
    assert chips(page) == []
    expect(field).to_be_focused()


def test_a_query_gets_the_species_groups_and_pasted_lists_that_were_picked(
    site: Site, log_in: Callable[..., Page]
) -> None:
    page = log_in("ada", "/queries/new/")
    page.get_by_label("Query text").fill("a hopper on one leg")
    page.get_by_label("Category").select_option("Species ID")
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Split").select_option("test")
    field = page.get_by_label("Species filter")
    option = search(field, "moorhupfer").first
    expect(option.locator(".picker-matched")).to_have_text("“Moorhüpfer” (German)")
    expect(option.locator("i")).to_have_text("Paludisaltus communis")
    expect(option).to_contain_text("Anura › Paludisaltidae › Paludisaltus")
    picture = option.locator("img")
    assert picture.evaluate("img => img.decode().then(() => img.naturalWidth > 0)")
    option.click()
    expect(page.locator(".chip-name")).to_have_text(["Marsh Hopper"])
    page.locator(".chip-name").click()
    page.get_by_role("button", name="+ Genus Paludisaltus (2 species)").click()
    expect(page.locator(".picker .chip")).to_have_count(2)
    search(field, "paludisaltidae")
    family = page.get_by_role("option", name="Family Paludisaltidae")
    expect(family).to_contain_text("3 species")
    family.click()
    expect(page.locator(".picker .chip")).to_have_count(3)
    assert sorted(chips(page)) == ["Marsh Hopper", "Moss Hopper", "Reed Hopper"]
    search(field, "paludisaltid")
    family.click()
    report = page.locator(".picker-report")
    expect(report).to_contain_text("are already chosen")

    field.fill("")
    assert field.evaluate(PASTE, "Marsh Hopper\n") is True  # one name is text like any other
    text = '1. "Marsh Hopper"\n2) Lumifringa cristata\tNessie; rose stlit\r\nPetroscincus'
    assert field.evaluate(PASTE, text) is False  # the picker takes it, the field gets nothing
    expect(report).to_contain_text("5 names read, 3 species added, 1 chosen before.")
    expect(report).to_contain_text("2 names not found:")
    missing = report.locator("li")
    expect(missing.nth(0)).to_have_text("Nessie")
    expect(missing.nth(1)).to_contain_text("rose stlit")
    missing.nth(1).get_by_role("button", name="Rose Stilt").click()
    expect(missing).to_have_count(1)
    report.get_by_role("button", name="Remove this message").click()
    expect(report).to_be_hidden()
    expect(field).to_have_value("")
    picked = sorted(chips(page))
    assert picked == [
        *("Banded Rockskink", "Crested Sunfinch", "Frilled Rockskink", "Marsh Hopper"),
        *("Moss Hopper", "Reed Hopper", "Rose Stilt"),
    ]
    page.get_by_role("button", name="Create as a draft").click()
    expect(page.locator(".badge.draft")).to_be_visible()
    query = int(page.url.rstrip("/").rsplit("/", 1)[1])
    species = site.api("ada", "GET", f"/api/queries/{query}/")["species"]
    english = {kind.scientific_name: kind.english for kind in SPECIES}
    assert sorted(english[one["scientific_name"]] for one in species) == picked


def test_many_chips_fold_and_are_removed_and_put_back(
    site: Site, log_in: Callable[..., Page]
) -> None:
    page = log_in("ada")
    on_search(page, site)
    page.get_by_role("button", name="Paste a list").click()
    known = [kind.scientific_name for kind in SPECIES]
    names = known + [f"unknown species {n}" for n in range(2001 - len(known))]
    add(page, names)
    report = page.locator(".picker-report")
    expect(report).to_contain_text("The list has 2,001 names; at most 2,000 names can be")
    add(page, names[: len(known) + 1])
    expect(report).to_contain_text(f"{len(known) + 1} names read, {len(known)} species added.")
    chip = page.locator(".picker .chip")
    expect(chip).to_have_count(len(SPECIES))
    fold = page.get_by_role("button", name=f"and {len(SPECIES) - 12} more")
    expect(fold).to_have_attribute("aria-expanded", "false")
    assert chip.locator("visible=true").count() == 12
    fold.click()
    expect(page.get_by_role("button", name="Show fewer")).to_be_visible()
    assert chip.locator("visible=true").count() == len(SPECIES)
    page.get_by_role("button", name=f"Remove all {len(SPECIES)}").click()
    expect(chip).to_have_count(0)
    page.get_by_role("button", name="Put back").click()
    expect(chip).to_have_count(len(SPECIES))
    page.get_by_label("Search by a text").fill("a bird")
    expect(page.locator("[data-status]")).to_contain_text("exact")
    page.reload()
    expect(chip).to_have_count(len(SPECIES))
    expect(fold).to_be_visible()


def test_by_touch_on_a_narrow_phone(site: Site, log_in: Callable[..., Page]) -> None:
    page = log_in("ada", viewport=NARROW, has_touch=True, is_mobile=True, color_scheme="dark")
    field = on_search(page, site)
    page.get_by_role("button", name="Filters").click()
    wrong: list[str] = []

    def look(where: str) -> None:
        found = violations(page) + wider_than_window(page)
        wrong.extend(f"{where}: {one}" for one in found)

    search(field, "hopper")
    look("list")
    page.get_by_role("option", name="Moss Hopper").tap()
    expect(page.locator(".picker .chip")).to_have_count(1)
    page.locator(".chip-name").tap()
    expect(page.locator(".chip-card .button").first).to_be_visible()
    look("card")
    page.locator(".chip-card .button", has_text="Family").tap()
    expect(page.locator(".picker .chip")).to_have_count(3)
    page.get_by_role("button", name="Paste a list").tap()
    page.get_by_label("Names, one on each line").fill("Rose Stilt\nNessie\nhoper mos")
    page.get_by_role("button", name="Add these").tap()
    expect(page.locator(".picker-missing li")).to_have_count(2)
    look("report")
    small = (
        page.locator(".picker button")
        .locator("visible=true")
        .evaluate_all(
            "all => all.filter(one => one.getBoundingClientRect().height < 44)"
            ".map(one => one.textContent)"
        )
    )
    assert (wrong, small) == ([], [])

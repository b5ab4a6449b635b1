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

PARSE = """async (text) => {
  const { parseNames } = await import("/static/js/species/names.js");
  return parseNames(text);
}"""
PASTE = """(input, text) => {
  const data = new DataTransfer();
  data.setData("text/plain", text);
  const event = { clipboardData: data, bubbles: true, cancelable: true };
  return input.dispatchEvent(new ClipboardEvent("paste", event));
}"""


def on_search(page: Page, site: Site) -> Locator:
    page.goto(f"{site.url}/search/")
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


def paste_list(page: Page, text: str) -> None:
    page.get_by_role("button", name="Paste a list").click()
    add(page, text)


def add(page: Page, text: str) -> None:
    """`fill` types what it fills in, which takes seconds for thousands of lines."""
    field = page.get_by_label("Names, one a line")
    field.evaluate("(field, text) => { field.value = text; }", text)
    page.get_by_role("button", name="Add these").click()


def test_an_option_tells_all_that_one_chooses_by(site: Site, log_in: Callable[..., Page]) -> None:
    page = log_in("ada")
    field = on_search(page, site)
    found = site.api("ada", "GET", "/api/species/?search=marsh+hopper")["results"][0]
    for typed, matched in (
        ("hopper marsh", None),
        ("moorhupfer", "“Moorhüpfer” (German)"),
        ("marhs hoppr", None),
        ("bog hopper", "“Bog Hopper” (English)"),
    ):
        option = search(field, typed).first
        named = option.locator(".picker-matched")
        if matched is None:
            expect(named).to_have_count(0)
        else:
            expect(named).to_have_text(matched)
        expect(option.locator("i")).to_have_text("Paludisaltus communis")
        expect(option.locator("i")).to_have_css("font-style", "italic")
        expect(option).to_contain_text("Marsh Hopper")
        expect(option).to_contain_text("Anura › Paludisaltidae › Paludisaltus")
        expect(option).to_contain_text(f"{found['image_count']} images")
        picture = option.locator("img")
        expect(picture).to_have_attribute("src", found["thumbnail_url"])
        assert picture.evaluate("img => img.decode().then(() => img.naturalWidth > 0)")


def test_by_keyboard_alone(site: Site, log_in: Callable[..., Page]) -> None:
    page = log_in("ada")
    field = on_search(page, site)
    field.focus()
    page.keyboard.type("hopper")
    options = page.get_by_role("option")
    expect(options.first).to_be_visible()
    shown = options.evaluate_all("all => all.map(one => one.textContent)")
    assert [name for name in shown if "Hopper" in name] == shown[:3]
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
    expect(page.locator(".chip")).to_have_count(2)

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


def test_a_group_is_added_with_one_click(site: Site, log_in: Callable[..., Page]) -> None:
    page = log_in("ada")
    field = on_search(page, site)
    search(field, "paludisaltidae")
    images = sum(
        site.api("ada", "GET", f"/api/species/?search={name}+hopper")["results"][0]["image_count"]
        for name in ("marsh", "moss", "reed")
    )
    family = page.get_by_role("option", name="Family Paludisaltidae")
    expect(family).to_contain_text(f"3 species, {images} images")
    family.click()
    expect(page.locator(".chip")).to_have_count(3)
    assert sorted(chips(page)) == ["Marsh Hopper", "Moss Hopper", "Reed Hopper"]
    search(field, "paludisaltid")
    family.click()
    expect(page.locator(".picker-report")).to_contain_text("are already chosen")
    assert len(chips(page)) == 3


def test_a_chip_adds_its_genus_family_and_look_alikes(
    site: Site, log_in: Callable[..., Page]
) -> None:
    page = log_in("ada")
    field = on_search(page, site)
    search(field, "moss hopper").first.click()
    for button, expected in (
        ("+ Genus Paludisaltus (2 species)", ["Marsh Hopper", "Moss Hopper"]),
        (
            "+ Look-alike group “spotted hoppers” (2 species)",
            ["Marsh Hopper", "Moss Hopper"],
        ),
        (
            "+ Family Paludisaltidae (3 species)",
            ["Marsh Hopper", "Moss Hopper", "Reed Hopper"],
        ),
    ):
        page.locator(".chip-name", has_text="Moss Hopper").click()
        page.get_by_role("button", name=button).click()
        expect(page.locator(".chip")).to_have_count(len(expected))
        assert sorted(chips(page)) == expected
    search(field, "dusk warbler").first.click()
    page.locator(".chip-name", has_text="Dusk Warbler").click()
    expect(page.locator(".chip-card button")).to_have_count(1)
    expect(page.locator(".chip-card")).to_contain_text("Family Lumifringidae (3 species)")


def test_a_pasted_list_adds_what_it_finds_and_tells_what_it_does_not(
    site: Site, log_in: Callable[..., Page]
) -> None:
    page = log_in("ada")
    field = on_search(page, site)
    search(field, "marsh hopper").first.click()
    text = (
        '1. "Marsh Hopper"\n2) Lumifringa cristata\tNessie; moorhupfer\r\nhoper mos, Petroscincus'
    )
    assert field.evaluate(PASTE, text) is False  # the picker takes it, the field gets nothing
    report = page.locator(".picker-report")
    expect(report).to_contain_text("6 names read, 3 species added, 1 chosen before.")
    expect(report).to_contain_text("2 names not found:")
    assert sorted(chips(page)) == [
        "Banded Rockskink",
        "Crested Sunfinch",
        "Frilled Rockskink",
        "Marsh Hopper",
    ]
    missing = report.locator("li")
    expect(missing).to_have_count(2)
    expect(missing.nth(0)).to_have_text("Nessie")
    expect(missing.nth(1)).to_contain_text("hoper mos")
    missing.nth(1).get_by_role("button", name="Moss Hopper").click()
    expect(missing).to_have_count(1)
    assert "Moss Hopper" in chips(page)
    report.get_by_role("button", name="Remove this message").click()
    expect(report).to_be_hidden()
    expect(field).to_have_value("")


def test_one_pasted_name_is_text_like_any_other(site: Site, log_in: Callable[..., Page]) -> None:
    page = log_in("ada")
    field = on_search(page, site)
    assert field.evaluate(PASTE, "Marsh Hopper\n") is True


def test_names_are_read_from_lists_as_people_have_them(script_page: Page) -> None:
    for text, names in (
        ("a b\nc d", ["a b", "c d"]),
        ("a b, c d;e f\tg\r\n\r\nh", ["a b", "c d", "e f", "g", "h"]),
        ("1. Strix aluco\n2) Bubo bubo\n(3) Asio otus", ["Strix aluco", "Bubo bubo", "Asio otus"]),
        ("12\tStrix aluco\t1758\n13\tBubo bubo\t", ["Strix aluco", "Bubo bubo"]),
        ("12 Strix aluco", ["Strix aluco"]),
        ("- Strix aluco\n• “Bubo bubo”\n* 'Asio otus'", ["Strix aluco", "Bubo bubo", "Asio otus'"]),
        ('"Strix aluco","Bubo bubo"', ["Strix aluco", "Bubo bubo"]),
        ("Strix aluco (Linnaeus, 1758)", ["Strix aluco (Linnaeus"]),
        ("Strix  aluco\nstrix aluco\n STRIX ALUCO ", ["Strix aluco"]),
        ("Chevêche d’Athéna\nМышь", ["Chevêche d’Athéna", "Мышь"]),
        ("2-spot Ladybird\n7 spotted", ["2-spot Ladybird", "spotted"]),
        (" \n;,\t", []),
    ):
        expected = [name.removesuffix("'") for name in names]
        assert [name.removesuffix("'") for name in script_page.evaluate(PARSE, text)] == expected


def test_two_thousand_names_at_once(site: Site, log_in: Callable[..., Page]) -> None:
    page = log_in("ada")
    on_search(page, site)
    known = [kind.english for kind in SPECIES]
    names = known + [f"unknown species {n}" for n in range(2000 - len(known))]
    paste_list(page, "\n".join([*names, "one too many"]))
    report = page.locator(".picker-report")
    expect(report).to_contain_text("The list has 2,001 names; at most 2,000 names can be")
    add(page, "\n".join(names))
    expect(report).to_contain_text(f"2,000 names read, {len(known)} species added.")
    expect(report).to_contain_text(f"{2000 - len(known):,} names not found:")
    expect(page.locator(".chip")).to_have_count(len(known))


def test_many_chips_fold_and_are_removed_and_put_back(
    site: Site, log_in: Callable[..., Page]
) -> None:
    page = log_in("ada")
    on_search(page, site)
    paste_list(page, ", ".join(kind.scientific_name for kind in SPECIES))
    chip = page.locator(".chip")
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
    page.get_by_label("Text").fill("a bird")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".image-grid img").first).to_be_visible()
    page.reload()
    expect(chip).to_have_count(len(SPECIES))
    expect(fold).to_be_visible()


def test_a_query_gets_the_species_that_were_picked(site: Site, log_in: Callable[..., Page]) -> None:
    page = log_in("ada")
    page.goto(f"{site.url}/queries/new/")
    page.get_by_label("Query text").fill("a stilt on one leg")
    page.get_by_label("Category").select_option("Species ID")
    page.get_by_label("Split").select_option("test")
    search(page.get_by_label("Species filter"), "litornis")
    page.get_by_role("option", name="Genus Litornis").click()
    expect(page.locator(".chip")).to_have_count(2)
    page.get_by_role("button", name="Create as a draft").click()
    expect(page.locator(".badge.draft")).to_be_visible()
    query = int(page.url.rstrip("/").rsplit("/", 1)[1])
    species = site.api("ada", "GET", f"/api/queries/{query}/")["species"]
    assert sorted(one["scientific_name"] for one in species) == [
        "Litornis aestuarii",
        "Litornis rosea",
    ]


def test_what_is_not_there_is_said(site: Site, log_in: Callable[..., Page]) -> None:
    page = log_in("ada")
    field = on_search(page, site)
    field.press_sequentially("xyzzy")
    expect(page.locator(".picker-note")).to_have_text("No species has this name.")
    expect(field).to_have_attribute("aria-expanded", "false")
    page.context.set_offline(True)
    field.fill("owl")
    expect(page.locator(".picker-note")).to_have_text("The server can't be reached.")
    page.context.set_offline(False)


def test_by_touch_on_a_narrow_phone(site: Site, log_in: Callable[..., Page]) -> None:
    page = log_in("ada", viewport=NARROW, has_touch=True, is_mobile=True, color_scheme="dark")
    field = on_search(page, site)
    wrong = []

    def look(where: str) -> None:
        found = violations(page) + wider_than_window(page)
        wrong.extend(f"{where}: {one}" for one in found)

    search(field, "hopper")
    look("list")
    page.get_by_role("option", name="Moss Hopper").tap()
    expect(page.locator(".chip")).to_have_count(1)
    page.locator(".chip-name").tap()
    expect(page.locator(".chip-card .button").first).to_be_visible()
    look("card")
    page.locator(".chip-card .button", has_text="Family").tap()
    expect(page.locator(".chip")).to_have_count(3)
    page.get_by_role("button", name="Paste a list").tap()
    page.get_by_label("Names, one a line").fill("Rose Stilt\nNessie\nhoper mos")
    look("paste")
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

"""The datasheet: its figures, and what it leaves to people."""

import re

import pytest

from releases.formats.base import Access
from releases.formats.datasheet import write
from releases.snapshot.snapshot import Snapshot
from tests.releases.snapshots import (
    empty_snapshot,
    format_files,
    header,
    image,
    pair,
    query,
    toy_judgments,
    toy_queries,
    toy_snapshot,
    write_snapshot,
)

pytestmark = pytest.mark.pure


def sheet(snapshot, directory):
    """The datasheet's answers by question."""
    (file,) = format_files(write, snapshot, directory)
    assert (file.name, file.access) == ("DATASHEET.md", Access.OPEN)
    text = (directory / file.name).read_text(encoding="utf-8")
    parts = re.split(r"^\*\*(.+?)\*\*$", re.sub(r"^## .*$", "", text, flags=re.M), flags=re.M)
    return dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))


def answer(answers, words):
    """The one answer whose question holds these words."""
    (found,) = [text for question, text in answers.items() if words in question]
    return found


def cells(text):
    """Rows of all tables of an answer, by their first cell."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}


@pytest.fixture
def toy(tmp_path):
    return sheet(toy_snapshot(tmp_path / "snapshot"), tmp_path)


def test_counts_of_both_splits(toy):
    totals = answer(toy, "How many instances")
    found = cells(totals)
    assert found["queries"] == ["2", "3", "5"]
    assert found["judged pairs"] == ["7", "6", "13"]
    assert found["relevant pairs"] == ["5", "3", "8"]
    assert found["queries without a relevant image"] == ["0", "1", "1"]
    assert found["judged images, validation"] == ["3", "3.5", "3.5", "4"]
    assert found["relevant images, test"] == ["0", "1", "1.0", "2"]
    assert found["Behavior"] == ["Mating, Courtship, Reproduction", "1", "2"]
    assert found["none"] == ["0", "1"]
    assert "12 images are named by a pair or a fixed list, of 3 species." in totals
    assert "Queries with scientific terms: 1 of 5 (20.0 %)." in totals


def test_licenses_with_the_share_of_each(toy):
    found = cells(answer(toy, "Under which licenses"))
    assert found["CC BY-NC 4.0"] == [
        "5", "41.7 %", "yes", "name the rights holder and the licence; no commercial use",
    ]  # fmt: skip
    assert found["not given"] == ["3", "25.0 %", "no", "no licence is given"]
    assert found["CC0"] == ["1", "8.3 %", "yes", "none"]
    assert found["made up, for fun https://example.org/licence"][2] == "no"
    assert "Copies of 7 of 12 (58.3 %) images may be passed on" in answer(toy, "Under which lic")


def test_known_limits(toy):
    lines = answer(toy, "errors, sources of noise").splitlines()
    for line, words in zip(
        lines,
        (
            "- 1 of 5 (20.0 %) queries have no candidate list here",
            "- 4 of 5 (80.0 %) queries were labeled without a species filter",
            "- 4 of 4 (100.0 %) candidate lists were cut off",
            "- 4 of 4 (100.0 %) candidate lists were not judged to their end",
            "- 14 of 25 (56.0 %) images of the fixed lists for re-ranking were not judged",
            "- 9 of 13 (69.2 %) pairs were judged by one person only",
            "- 1 of 17 (5.9 %) judgments are unsure",
        ),
        strict=True,
    ):
        assert line.startswith(words)


def test_time_people_and_agreement(toy):
    effort = answer(toy, "How long did people take")
    # 13 judgments of 2.5 seconds and 4 of 4 seconds.
    assert "over the 17 whose time is known: median 2.5, mean 2.9; together 0.8 minutes" in effort
    # Query 8 took 4 times 2.5 seconds and 4 times 4.
    assert "A query took 0.1 minutes in the median, 0.2 minutes on average, at most 0.4" in effort
    assert cells(effort)["annotator_1"] == ["13", "0.5 minutes"]
    assert cells(effort)["annotator_2"] == ["4", "0.3 minutes"]
    assert "Judgments per query: 3.4 on average." in effort
    assert cells(effort)["2"] == ["4 of 13 (30.8 %)"]
    # They differ about one of four.
    assert "4 pairs were judged by two people or more. Of two judgments of a pair 75.0 %" in effort
    assert "Krippendorff's alpha is 0.53" in effort
    assert answer(toy, "Who was involved").startswith("2 annotators judged.")


def test_hours_times_pay(tmp_path):
    changed = header(pay_per_hour="1550.50 USD")
    snapshot = write_snapshot(
        tmp_path / "snapshot", header=changed, queries=toy_queries(), judgments=toy_judgments()
    )
    assert Snapshot(snapshot.directory).header == changed
    # 48.5 seconds.
    paid = (
        "An hour was paid with 1550.50 USD; the 0.8 minutes of active time below come to 20.89 USD."
    )
    assert paid in answer(sheet(snapshot, tmp_path), "Who was involved")


def test_missing_facts_and_times(toy):
    missing = answer(toy, "information missing")
    assert "a species: 10 of 12 (83.3 %)" in missing
    assert "coordinates: 9 of 12 (75.0 %)" in missing
    assert "from 2022-06-01 to 2022-06-01" in answer(toy, "timeframe")
    assert cells(answer(toy, "mechanisms"))["toy/clip"] == ["5", "4"]
    assert "2 of 5 (40.0 %) are kept" in answer(toy, "sampling strategy")
    # What data can't tell is left to people.
    funding = answer(toy, "Who funded the creation of the dataset?")
    assert funding == "*To be written by the maintainers.*"


def test_names_are_no_markup(tmp_path):
    snapshot = write_snapshot(
        tmp_path / "snapshot", header=header(name="<b>*A*</b>\n# B | [c](d)", made_by="__ada__")
    )
    format_files(write, snapshot, tmp_path)
    text = (tmp_path / "DATASHEET.md").read_text(encoding="utf-8")
    assert text.startswith(
        "# Datasheet of \\<b\\>\\*A\\*\\</b\\> \\# B \\| \\[c\\](d), version 2\n"
    )
    assert "by \\_\\_ada\\_\\_ with" in text


def test_a_release_with_nothing_has_a_datasheet(tmp_path):
    answers = sheet(empty_snapshot(tmp_path / "snapshot"), tmp_path)
    assert cells(answer(answers, "How many instances"))["queries"] == ["0", "0", "0"]
    assert answer(answers, "Under which licenses") == "There are no images."
    assert answer(answers, "errors, sources of noise") == "None that the data show."
    assert "No judgment's time is known." in answer(answers, "How long did people take")
    assert "names only the images" in answer(answers, "sample of a larger set")
    assert answer(answers, "Who was involved") == "Nobody has judged yet."


def test_an_imported_release_says_what_it_cannot_know(tmp_path):
    snapshot = write_snapshot(
        tmp_path / "snapshot",
        header=header(origin="imported", models=[], annotators=0, consensus=""),
        queries=[query(1, "a", model="", list_size=0, list_total=0)],
        pairs=[pair(1, 7, True, rank=None)],
        images=[image(7, rights_holder="")],
    )
    answers = sheet(snapshot, tmp_path)
    assert "names 1 relevant pair, and none" in answer(answers, "label or target")
    assert answer(answers, "acquired").startswith("Which images are relevant was read from files")
    assert "as their licenses ask" not in answer(answers, "people, and can individuals")
    limits = answer(answers, "errors, sources of noise")
    assert limits.startswith("- The release was imported from files.")
    assert "one person only" not in limits
    assert "doesn't say how candidate images were found" in answer(answers, "mechanisms")
    assert "How many people judged isn't known." in answer(answers, "Who was involved")
    assert answer(answers, '"raw" data') == "The release holds no single judgments."
    assert "imported as its files were" in answer(answers, "preprocessing")


def test_what_was_left_open_is_counted_and_listed_with_its_reason(tmp_path):
    queries = [
        query(3, split="val", left_open="2 images are unsure.", completion_reason="=1, so be it"),
        query(8, left_open="The stop rule isn't met.", completion_reason="Eight exist."),
        query(13),
    ]
    snapshot = write_snapshot(tmp_path / "snapshot", header=header(), queries=queries)
    files = format_files(write, snapshot, tmp_path)
    assert [(file.name, file.access) for file in files[1:]] == [
        ("left_open.csv", Access.LABELS),
        ("left_open_val.csv", Access.OPEN),
    ]
    first = 'query_id,left_open,reason\n3,2 images are unsure.,"\'=1, so be it"\n'
    assert (tmp_path / "left_open_val.csv").read_text() == first
    assert (tmp_path / "left_open.csv").read_text() == (
        first + "8,The stop rule isn't met.,Eight exist.\n"
    )
    text = (tmp_path / "DATASHEET.md").read_text()
    assert "2 of 3 (66.7 %) queries were completed with something left open" in text
    assert "Eight" not in text

"""The datasheet: its figures, and what it leaves to people."""

import dataclasses
import hashlib
import re

import pytest

from releases.formats.base import Access
from releases.formats.datasheet import write
from releases.snapshot.snapshot import (
    AuditedImage,
    DrawnRound,
    PoolImage,
    ReleasedAudit,
    Snapshot,
)
from tests.releases.snapshots import (
    empty_snapshot,
    format_files,
    header,
    image,
    judgment,
    pair,
    query,
    toy_fixed,
    toy_images,
    toy_judgments,
    toy_pairs,
    toy_queries,
    toy_snapshot,
    write_snapshot,
)

pytestmark = pytest.mark.pure


def sheet(snapshot, directory, *, several=False):
    """The datasheet's answers by question; `several`: it isn't the only file."""
    file, *others = format_files(write, snapshot, directory)
    assert bool(others) == several
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


def rich_snapshot(directory, **values):
    """The toy release with something left open in both splits, a reviewer who only corrected, and
    audits of queries 3, 8 and, of which nothing is released, 55: of the first two an image waits.
    """
    left = {3: "2 images wait for a second opinion.", 8: "The stop rule isn't met."}
    queries = [
        dataclasses.replace(one, left_open=left[one.query_id], completion_reason="Enough.")
        if one.query_id in left
        else one
        for one in toy_queries()
    ]
    corrections = [
        judgment(query_id, image_id, annotator=3, source="correction", seconds=0.0)
        for query_id, image_id in ((3, 1), (8, 1))
    ]
    judgments = sorted(
        [*toy_judgments(), *corrections], key=lambda row: (row.query_id, row.image_id)
    )
    audited = [
        AuditedImage(query_id, image_id, audit=1, drawn=image_id > 9, label="", withdrawn=False)
        for query_id in (3, 8, 55)
        for image_id in (9, 10)
    ]
    splits = {3: "val", 8: "test", 55: "val"}
    audits = [
        ReleasedAudit(query_id, 1, split, "00" * 32, 0.1, query_id != 55, unjudged=2, found=0)
        for query_id, split in splits.items()
    ]
    pools = [
        PoolImage(query_id, image_id, image_id, label, False, drawable, drawn, drawn)
        for query_id in (3, 21)
        for image_id, label, drawable, drawn in (
            (1, "relevant", 0, 0),
            (2, "" if query_id == 3 else "not_relevant", 1, 1),
        )
    ]
    return write_snapshot(
        directory,
        header=header(annotators=3, **values),
        queries=queries,
        pairs=toy_pairs(),
        judgments=judgments,
        images=toy_images(),
        fixed=toy_fixed(),
        rounds=[DrawnRound(query_id, 1, "00" * 32, True) for query_id in (3, 21)],
        pools=pools,
        release_audits=audits,
        audited=audited,
    )


@pytest.mark.parametrize(
    ("test_labels", "checksum"),
    [
        ("public", "425e35936fc8bf27b97af7d526448b0f00b75eccf1ad1c0330e1c8a200767eb0"),
        ("hidden", "d74d933c7eab186aa730ecd44661351cafe0bf938d83be5c3c6385aaa3387f82"),
    ],
)
def test_an_earlier_release_keeps_its_datasheet(tmp_path, test_labels, checksum):
    snapshot = rich_snapshot(tmp_path / "snapshot", formats=3, test_labels=test_labels)
    format_files(write, snapshot, tmp_path)
    assert hashlib.sha256((tmp_path / "DATASHEET.md").read_bytes()).hexdigest() == checksum


def test_with_hidden_labels_every_count_names_the_queries_that_it_is_of(tmp_path):
    answers = sheet(rich_snapshot(tmp_path / "whole", test_labels="hidden"), tmp_path, several=True)
    totals = cells(answer(answers, "How many instances"))
    assert totals["queries"] == ["2", "3", "5"]
    assert totals["validation queries without a relevant image"] == ["0"]
    limits = answer(answers, "errors, sources of noise")
    assert "- 1 of 2 (50.0 %) validation queries were labeled without a species filter" in limits
    assert "- 2 of 2 (100.0 %) candidate lists of validation queries were cut off" in limits
    assert "- 3 of 10 (30.0 %) images of the fixed lists of validation queries" in limits
    left = next(line for line in limits.splitlines() if "left open" in line)
    assert left.startswith("- 1 of 2 (50.0 %) validation queries")
    assert left.endswith("left\\_open\\_val.csv says what and why.")
    assert "Random audits bound what was missed in 2 of 2 (100.0 %) validation queries" in limits
    assert "certificates\\_val.csv has the counts" in limits
    assert "| model | candidates asked for | queries of both splits |" in answer(
        answers, "mechanisms"
    )
    assert "Validation queries with a species filter: 1 of 2" in answer(answers, "sampling str")
    # The second annotator judged test queries alone.
    assert answer(answers, "Who was involved").startswith(
        "1 annotator judged validation queries; 1 more person only corrected labels in review."
    )
    raw = answer(answers, '"raw" data')
    assert raw == "Every single judgment of validation queries (8) is in judgments\\_val.csv."


def test_a_reviewer_who_only_corrected_is_no_annotator(tmp_path):
    answers = sheet(rich_snapshot(tmp_path / "whole"), tmp_path, several=True)
    assert answer(answers, "Who was involved").startswith(
        "2 annotators judged; 1 more person only corrected labels in review."
    )


def test_what_was_left_open_may_be_any_of_its_reasons(tmp_path):
    answers = sheet(rich_snapshot(tmp_path / "whole"), tmp_path, several=True)
    limits = answer(answers, "errors, sources of noise")
    assert "2 of 5 (40.0 %) queries were completed with something left open" in limits
    assert "or images that waited in an audit or for a second opinion. left\\_open.csv" in limits


def test_before_an_audit_is_done_it_says_so_instead_of_a_recall(tmp_path):
    limits = answer(
        sheet(rich_snapshot(tmp_path / "whole"), tmp_path, several=True), "errors, sources of noise"
    )
    queries, release = (part for part in limits.split("\n\n") if "audit" in part and part[0] != "-")
    assert "Not audited yet: 1 image waits for a judgment in 1 of 2 (50.0 %) of them" in queries
    # Of the other query everything is known.
    assert "recall is at least 100 % in the 1 query without such images" in queries
    assert "all of them judged" not in queries
    # Of the query that isn't released nobody can judge the third.
    assert "Not audited yet: 2 images wait for a judgment, so no recall is stated." in release
    assert "recall over" not in release

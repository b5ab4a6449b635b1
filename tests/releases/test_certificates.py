"""Certificates of a release's queries: made, written, and computed again from its files alone."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from math import floor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from labeling.audits.models import DrawKey, DrawRound
from labeling.audits.selectors import audit_state
from labeling.audits.services import audit_draw, draw_keys_end
from labeling.queries.models import Assignment, Query
from releases.making.services import release_export, release_verify
from releases.models import Release
from releases.snapshot.certificates import certificates
from releases.snapshot.snapshot import Snapshot
from retrieval.corpus.models import Image
from retrieval.flags.services import image_withdraw
from tests.labeling.judging import item, judge, record
from tests.releases.conftest import World
from tests.releases.snapshots import toy_snapshot
from tests.releases.test_verify_release import run
from tests.releases.toy import make_list, make_query
from tests.retrieval.making import new_image

pytestmark = pytest.mark.django_db

FIRST_ID = 1001
IMAGES = 60
JUDGED = 10
"""The images of the ranked pass: the first two are relevant."""
NO = "not_relevant"


def audited(query_id: int, annotator: Any, **values: Any) -> Query:
    """An open query over all images, its ranked pass over."""
    query = make_query(query_id, f"query {query_id}", state=Query.State.OPEN, **values)
    make_list(query, [FIRST_ID + n for n in range(IMAGES)])
    judge(query, annotator, range(2), "relevant")
    judge(query, annotator, range(2, JUDGED), NO)
    return query


def drawn(query: Query, annotator: Any, *relevance: str) -> list[int]:
    """Draw images and judge them so; their numbers."""
    found = audit_draw(query=query, annotator=annotator, count=len(relevance))
    numbers = [image_id - FIRST_ID for image_id in found.to_judge]
    items = [
        item(number, one, source="audit") for number, one in zip(numbers, relevance, strict=True)
    ]
    assert {one.status for one in record(query, annotator, *items)} == {"stored"}
    return numbers


def undrawn(query: Query, count: int = 1) -> list[int]:
    """Images that could still be drawn."""
    return [int(place) for place in audit_state(query).left.nonzero()[0][:count]]


def completed(query: Query, annotator: Any, rule: str = "streak") -> None:
    Assignment.objects.create(
        query=query, annotator=annotator, rule=rule, handed_in_at=timezone.now()
    )
    Query.objects.filter(pk=query.pk).update(state=Query.State.COMPLETE)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def verify(directory: Path) -> tuple[int, str]:
    return run("verify_certificates", str(directory))


@pytest.fixture(scope="module")
def corpus(world: World) -> World:
    Image.objects.bulk_create(
        new_image(n, id=FIRST_ID + n, file_name=f"toy/{n}.jpg") for n in range(IMAGES)
    )
    return world


@pytest.fixture(scope="module")
def queries(corpus: World) -> list[Query]:
    """Two completed queries with audits, of the validation (1) and of the test split (2), and one
    without (3)."""
    annotator = corpus.person("annotator")
    made = [audited(1, annotator, split="val"), audited(2, annotator), audited(3, annotator)]
    for query in made[:2]:
        drawn(query, annotator, NO, "relevant", NO)
        judge(query, annotator, undrawn(query, 1 + query.query_id), "relevant")
        drawn(query, annotator, *[NO] * 7, "unsure")
    for query in made:
        completed(query, annotator)
    return made


def export(folder: Path, name: str = "Birds", **options: Any) -> Path:
    """Make the next version, and write its files to a folder, which it returns."""
    target = folder / f"export-{name}-{Release.objects.count() + 1}"
    release_export(name=name, directory=target, new=True, options=options)
    return target


@pytest.fixture(scope="module")
def keys(queries: list[Query]) -> dict[int, bytes]:
    """The keys by which each query's images were drawn, before they are published."""
    return dict(DrawKey.objects.values_list("query", "key"))


@pytest.fixture(scope="module")
def files(queries: list[Query], keys: Any, corpus: World) -> Path:
    """The files of a release with hidden test labels; they aren't changed."""
    return export(corpus.folder)


def change(kind: str, query: Query, annotator: Any, other_annotator: Any, reviewer: Any) -> None:
    """Draw five images of a query, and let happen to some what can."""
    one, *_, other = drawn(query, annotator, "relevant", NO, NO, NO, "unsure")
    outside = undrawn(query)
    if kind == "displayed":
        audit_draw(query=query, annotator=annotator, count=4)
    elif kind == "withdrawn":
        for number in (one, *outside):
            image_withdraw(image=Image(pk=FIRST_ID + number), by=reviewer)
    elif kind == "disputed":
        judge(query, other_annotator, [one, other, 0, 5], NO)
        judge(query, reviewer, [other], NO)
    elif kind == "taken back":
        record(query, annotator, item(one, None), item(1, None), item(9, None))
        drawn(query, annotator, NO, NO)
    elif kind == "all":
        judge(query, annotator, undrawn(query, IMAGES), NO)
    else:
        # The list is another then: what was drawn of the old one certifies nothing.
        make_list(query, [FIRST_ID + n for n in range(5, IMAGES)])
        if kind == "other list":
            drawn(query, annotator, NO, NO, NO)


KINDS = ("displayed", "disputed", "taken back", "all", "other list", "old list", "withdrawn")


class TestMaking:
    def test_one_row_a_round_with_the_bound_on_the_last_as_the_audits_say(
        self, queries: list[Query], files: Path
    ) -> None:
        first, last = (one for one in rows(files / "certificates.csv") if one["query_id"] == "1")
        assert list(first.values()) == [
            *("1", "1", "60", "1", "2", "50", "3", "1"), *("", "", "", "", "", ""),
        ]  # fmt: skip
        # Found: two in the ranked pass, a draw and two on the side. The unsure one isn't.
        found, missing = 5, int(last["missing_at_most"])
        assert list(last.values()) == [
            *("1", "2", "60", "1", "5", "45", "8", "1"),
            *("5", str(missing), repr(found / (found + missing)), "0.95", "streak", ""),
        ]  # fmt: skip
        assert 10 < missing < 45
        made = {one.query.query_id: one for one in certificates(Snapshot(files / "snapshot"))}
        assert sorted(made) == [1, 2]
        now = audit_state(queries[0])
        assert list(made[1].rounds.values()) == now.rounds[:2]
        assert (made[1].found, made[1].missing_at_most) == (now.found, now.now.missing_at_most)
        assert made[1].recall_at_least == now.now.recall_at_least
        assert release_verify(release=Release.objects.get()) == []

    def test_counts_as_the_audits_do(
        self, corpus: World, other_annotator: Any, tmp_path: Path
    ) -> None:
        annotator, reviewer = corpus.person("annotator"), corpus.person("reviewer")
        Query.objects.update(state=Query.State.OPEN)
        reason = {"left_open": "1 image is unsure.", "completion_reason": "=late, sorry"}
        rule = "streak and certificate:0.9:0.95"
        queries = {kind: audited(n, annotator, split="val") for n, kind in enumerate(KINDS, 11)}
        for kind, query in queries.items():
            change(kind, query, annotator, other_annotator, reviewer)
        for query in queries.values():
            completed(query, annotator, rule=rule)
            Query.objects.filter(pk=query.pk).update(**reason)
        states = {kind: audit_state(query) for kind, query in queries.items()}
        folder = export(tmp_path, "Changed")
        made = {one.query.query_id: one for one in certificates(Snapshot(folder / "snapshot"))}
        # What certifies nothing isn't published.
        old = queries.pop("old list")
        assert set(made) == {query.query_id for query in queries.values()}
        assert not old.draw_rounds.filter(closed_at__isnull=False).exists()
        for kind, query in queries.items():
            now, one = states[kind], made[query.query_id]
            assert next(iter(one.rounds)) == (2 if kind == "other list" else 1)
            assert list(one.rounds.values()) == now.rounds, kind
            assert (one.found, one.missing_at_most) == (now.found, now.now.missing_at_most), kind
        for name in ("certificates.csv", "certificates_val.csv"):
            last = {row["query_id"]: row for row in rows(folder / name)}.values()
            assert {(row["rule"], row["reason"]) for row in last} == {(rule, "'=late, sorry")}
        status, said = verify(folder)
        assert status == 0
        assert "Not checked" in said

    def test_without_audits_there_is_no_file(self, corpus: World, tmp_path: Path) -> None:
        Query.objects.update(state=Query.State.OPEN)
        annotator = corpus.person("annotator")
        completed(audited(11, annotator), annotator)
        folder = export(tmp_path, "Bare")
        assert not [*folder.glob("certificates*")]
        assert "andom audits" not in (folder / "DATASHEET.md").read_text()
        assert verify(folder) == (0, "Bare v1 has no audits, so there is nothing to check.\n")
        # A snapshot from before there were audits has none either.
        assert list(certificates(toy_snapshot(tmp_path / "old"))) == []


def test_publishing_a_key_ends_its_use(
    queries: list[Query], keys: dict[int, bytes], files: Path, corpus: World, tmp_path: Path
) -> None:
    query, _, unaudited = queries
    annotator = corpus.person("annotator")
    published = {one.query_id: one.key for one in Snapshot(files / "snapshot").rounds()}
    assert published == {number: bytes(keys[queries[number - 1].pk]).hex() for number in (1, 2)}
    after = dict(DrawKey.objects.values_list("query", "key"))
    assert [after[one.pk] == keys[one.pk] for one in queries[:2]] == [False, False]
    assert after.get(unaudited.pk) == keys.get(unaudited.pk)
    assert not DrawRound.objects.filter(closed_at=None).exists()
    draw_keys_end(keys=[bytes(32)])
    assert dict(DrawKey.objects.values_list("query", "key")) == after
    # The rounds that were, and what they bound, stay; the next draw begins another.
    bound = audit_state(query).now
    query.assignments.all().delete()
    Query.objects.filter(pk=query.pk).update(state=Query.State.OPEN)
    drawn(query, annotator, NO, NO)
    completed(query, annotator)
    assert audit_state(query).now.missing_at_most <= bound.missing_at_most
    folder = export(tmp_path, test_labels="public")
    rounds = [one for one in Snapshot(folder / "snapshot").rounds() if one.query_id == 1]
    assert [one.key for one in rounds[:2]] == [published[1]] * 2
    assert rounds[2].key == bytes(after[query.pk]).hex() != published[1]
    assert verify(files)[0] == verify(folder)[0] == 0
    # The datasheets tell bounds and assumptions, of the open queries alone where labels are hidden.
    hidden, public = ((one / "DATASHEET.md").read_text() for one in (files, folder))
    assert "bound what was missed in 1 of 1 (100.0 %) validation queries" in hidden
    assert "bound what was missed in 2 of 3 (66.7 %) queries" in public
    percent = floor(1000 * float(rows(files / "certificates_val.csv")[1]["recall_at_least"])) / 10
    sure = f"With 95 % confidence, each query by itself, recall is at least {percent:g}"
    assert f"{sure} %. The bounds hold" in hidden
    assert "recognized every relevant image" in hidden


class TestHidden:
    def test_open_files_tell_nothing_of_test_queries(self, files: Path) -> None:
        access = {one["name"]: one["access"] for one in Release.objects.get().file_list}
        for name in ("certificates.csv", "snapshot/rounds.parquet", "snapshot/pools.parquet"):
            assert access[name] == "labels"
        for name in ("certificates_val.csv", *(f"snapshot_open/{one}.parquet" for one in
                     ("rounds", "pools", "queries"))):  # fmt: skip
            assert access[name] == "open"
        opened = Snapshot(files / "snapshot_open")
        assert {one.query_id for one in opened.rounds()} == {1}
        assert {one.query_id for one in opened.pools()} == {1}
        assert [one.rule for one in opened.queries.values()] == ["streak", "", ""]
        assert {one["query_id"] for one in rows(files / "certificates_val.csv")} == {"1"}
        assert {one["query_id"] for one in rows(files / "certificates.csv")} == {"1", "2"}

    def test_open_files_alone_are_verified(self, files: Path, tmp_path: Path) -> None:
        folder = tmp_path / "open"
        for one in Release.objects.get().file_list:
            if one["access"] == "open":
                target = folder / one["name"]
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(files / one["name"], target)
        status, said = verify(folder)
        assert (status, said.split("\n")[0]) == (
            0, "Birds v1: computed 1 certificate again, of 2 rounds with 11 draws.",
        )  # fmt: skip
        text = (folder / "certificates_val.csv").read_text()
        (folder / "certificates_val.csv").write_text(text.replace(",0.95,", ",0.99,"))
        status, said = verify(folder)
        assert (status, said.split("\n")[0]) == (
            1,
            "certificates_val.csv, query 1, round 2: confidence is '0.99', computed again '0.95'",
        )


Lines = list[dict[str, Any]]


def change_rows(files: Path, table: str, change: Callable[[Lines], Lines | None]) -> None:
    """Change the rows of a table of both snapshots, or replace them."""
    for folder in ("snapshot", "snapshot_open"):
        path = files / folder / f"{table}.parquet"
        whole = pq.read_table(path)
        lines = whole.to_pylist()
        pq.write_table(pa.Table.from_pylist(change(lines) or lines, schema=whole.schema), path)


def change_text(files: Path, old: str, new: str) -> None:
    """Change certificates.csv."""
    path = files / "certificates.csv"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def draw(lines: Lines, round: int, place: int) -> dict[str, Any]:
    """A draw of query 1."""
    wanted = (1, round, place)
    [found] = [one for one in lines if (one["query_id"], one["round"], one["place"]) == wanted]
    return found


def swap(lines: Lines) -> None:
    one, other = draw(lines, 1, 1), draw(lines, 1, 3)
    one["place"], other["place"] = 3, 1


def strip(files: Path) -> None:
    """Leave nothing of the audits of query 1 but the judgments."""
    for table in ("rounds", "pools"):
        change_rows(files, table, lambda lines: [one for one in lines if one["query_id"] != 1])
    for path in files.glob("certificates*.csv"):
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not line.startswith("1,")))


FIRST_ROW = "1,1,60,1,2,50,3,1,,,,,,\n"
TAMPERED: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "a draw swapped": (
        lambda files: change_rows(files, "pools", swap),
        ("query 1: round 1: draw 1 is image ",),
    ),
    "a draw left out": (
        lambda files: change_rows(
            files, "pools", lambda lines: draw(lines, 2, 8).update(round=0, place=0)
        ),
        (
            "was judged in an audit, but no round drew it",
            "certificates.csv, query 1, round 2: draws is '8', computed again '7'",
        ),
    ),
    "a hit turned into a miss": (
        lambda files: change_rows(files, "pools", lambda lines: draw(lines, 1, 2).update(label=NO)),
        (
            "is not relevant to the audit, but by the release's judgments it is relevant\n",
            "certificates.csv, query 1, round 1: hits is '1', computed again '0'",
        ),
    ),
    "a hit turned into a miss in the counts": (
        lambda files: change_text(files, FIRST_ROW, FIRST_ROW.replace("3,1,", "3,0,")),
        ("certificates.csv, query 1, round 1: hits is '0', computed again '1'",),
    ),
    "a better row before the true one": (
        lambda files: change_text(files, FIRST_ROW, FIRST_ROW.replace("3,1,", "3,0,") + FIRST_ROW),
        ("certificates.csv, line 3, round: the row is listed twice",),
    ),
    "a round left out": (
        lambda files: change_rows(
            files, "rounds", lambda lines: [one for one in lines if one["round"] == 1]
        ),
        (
            "query 1: its pool names round 2, which is missing",
            "certificates.csv, query 1, round 2: the snapshot has no such round",
        ),
    ),
    "a better bound": (
        lambda files: change_text(files, ",0.95,", ",0.99,"),
        ("certificates.csv, query 1, round 2: confidence is '0.99', computed again '0.95'",),
    ),
    "another key": (
        lambda files: change_rows(files, "rounds", lambda lines: lines[1].update(key="00" * 32)),
        ("query 1: round 2: draw ", "but in the order of the published key it is image "),
    ),
    "no pool": (
        lambda files: change_rows(
            files, "pools", lambda lines: [one for one in lines if one["query_id"] == 2]
        ),
        ("query 1: it has rounds but no pool",),
    ),
    "nothing left of a query but its judgments": (
        strip,
        ("query 1: it has 0 rounds, but had 2 when made\n",),
    ),
}


def test_files_as_they_were_made_and_tampered_ones(
    files: Path, tmp_path: Path, django_db_blocker: Any
) -> None:
    with django_db_blocker.block():
        status, said = verify(files)
    assert status == 0
    assert said.startswith(
        "Birds v1: computed 2 certificates again, of 4 rounds with 22 draws.\nChecked: each "
        "round drew the first images in the order of its published key"
    )
    assert said.endswith("No difference.\n")
    for name, (tamper, expected) in TAMPERED.items():
        folder = tmp_path / name
        for part in ("snapshot", "snapshot_open"):
            shutil.copytree(files / part, folder / part)
        for path in files.glob("*.*"):
            shutil.copyfile(path, folder / path.name)
        tamper(folder)
        status, said = verify(folder)
        assert status == 1, name
        for text in expected:
            assert text in said, name
        assert "the certificates don't follow from these files." in said
    with pytest.raises(CommandError, match=r"holds no release: it has no snapshot/\."):
        call_command("verify_certificates", str(tmp_path))

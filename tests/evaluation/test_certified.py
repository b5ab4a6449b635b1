"""Ranges of scores on pages and in exports, by the certificate of a release with audits."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import pytest

from evaluation.leaderboard.certified import least_ahead, mean_ranges, missing_on, unknown
from evaluation.leaderboard.export import export as board_export
from evaluation.leaderboard.selectors import board_runs
from evaluation.runs.models import Run
from evaluation.runs.services import run_publish
from labeling.audits.services import audit_draw
from labeling.judging.models import BlindItem
from labeling.queries.models import Query
from releases.models import Release
from releases.snapshot.certificates import certificate_of, certificates
from releases.snapshot.release_certificate import release_certificate
from releases.snapshot.snapshot import Snapshot
from tests.conftest import client_of
from tests.evaluation.runs import scored_run
from tests.releases.test_certificates import audited, completed, drawn
from tests.releases.test_release_certificate import (
    FIRST_ID,
    IMAGES,
    JUDGED,
    complete,
    corpus,
    export,
    handed_in,
    queries,
    shares,
)

__all__ = ["corpus", "export", "queries", "shares"]

RELEVANT = [FIRST_ID + n for n in range(JUDGED // 2)]
REFUSED = [FIRST_ID + n for n in range(JUDGED // 2, JUDGED)]


@pytest.fixture
def release(queries: list[Query], export: Any) -> Release:
    """Of two test queries, of which 11 images each are found, and one that was rejected."""
    Query.objects.update(split="test")
    export(test_labels="public")
    return Release.objects.get()


@pytest.fixture
def runs(release: Release) -> list[Run]:
    """One that has what is labeled relevant first; one that has images before it that are labeled
    not relevant; and one that has images before it that nobody judged for the query."""
    orders = {
        "labeled": lambda _: RELEVANT + REFUSED,
        "behind": lambda _: REFUSED[:5] + RELEVANT,
        "unlabeled": lambda query: unknown(release, "test").images[query][:6].tolist() + RELEVANT,
    }
    made = [
        scored_run(release, {query: order(query) for query in (1, 2)}, name=name)
        for name, order in orders.items()
    ]
    for run in made:
        run_publish(run=run)
    return made


def test_the_release_misses_at_most_what_its_certificate_says(release: Release) -> None:
    certificate = release_certificate(Snapshot(release.snapshot_directory))
    found = unknown(release, "test")
    assert certificate is not None
    assert found is not None
    assert found.most == certificate.found_at_audit + certificate.missing_at_most - 22
    judged = set(RELEVANT + REFUSED)
    for query_id, images in found.images.items():
        assert not judged & set(images.tolist()), query_id
        assert len(images) < IMAGES - JUDGED
    assert sorted(found.images) == [1, 2]


def test_means_have_ranges(release: Release, runs: list[Run], reviewer: Any) -> None:
    board = (shown := board_runs(release, "full", reviewer)).board("test")
    most = missing_on(board, shown, "AP@50").most
    ranges = mean_ranges(board, shown, "R@50")
    labeled, behind, unlabeled = runs
    # It has 10 of 11 relevant images of both queries, and none of those that may be relevant.
    low = min(np.mean([10 / (11 + one), 10 / (11 + most - one)]) for one in range(most + 1))
    assert ranges[labeled.pk].mean == pytest.approx((low, 10 / 11))
    assert ranges[behind.pk].mean == ranges[labeled.pk].mean
    assert ranges[unlabeled.pk].mean[1] > 10 / 11
    for found in ranges.values():
        assert found.with_queries[0] <= found.mean[0] <= found.mean[1] <= found.with_queries[1]
    random = [one for one in shown.runs.values() if one.kind == Run.Kind.RANDOM]
    assert not set(ranges) & {one.pk for one in random}
    assert least_ahead(board, shown, labeled.pk, behind.pk, "AP@50") > 0
    assert least_ahead(board, shown, behind.pk, unlabeled.pk, "AP@50") <= 0
    assert mean_ranges(board, shown, "RR@50") == {}
    rerank = board_runs(release, "rerank", reviewer)
    assert missing_on(board, rerank, "AP@50") is None


def test_pages_say_it(release: Release, runs: list[Run], reviewer: Any) -> None:
    client = client_of(reviewer)
    page = client.get(f"/releases/{release.pk}/leaderboard/")
    row = page.context["table"].rows[0]
    assert row.run == runs[0]
    assert row.ahead_of == 2
    assert row.figures[0].missing.count("–") == 1
    text = page.content.decode()
    assert f"labels {row.figures[0].missing}" in text
    assert "Stays ahead of No. 2" in text
    most = unknown(release, "test").most
    assert f"at most {most} relevant images without a label" in " ".join(text.split())
    # The places are those by another measure then.
    address = f"/releases/{release.pk}/leaderboard/?sort=nDCG@50"
    assert "Stays ahead" not in client.get(address).content.decode()
    pair = client.get(f"/runs/compare/?a={runs[0].pk}&b={runs[1].pk}").content.decode()
    assert "Whatever the labels miss, labeled stays ahead, by +" in pair
    other = client.get(f"/runs/compare/?a={runs[2].pk}&b={runs[1].pk}").content.decode()
    assert "could put the two in the other order" in other
    assert (
        "With what labels may miss: mAP@50" in client.get(f"/runs/{runs[0].pk}/").content.decode()
    )


def test_a_run_stays_ahead_of_all_that_share_a_place_or_says_nothing(
    release: Release, runs: list[Run], reviewer: Any
) -> None:
    client, possible = client_of(reviewer), unknown(release, "test").images
    labeled, behind, _ = runs
    # It has the mean of "behind", but images before its hits that may be relevant.
    orders = {query: possible[query][:5].tolist() + RELEVANT for query in (1, 2)}
    other = run_publish(run=scored_run(release, orders, name="also behind"))
    page = client.get(f"/releases/{release.pk}/leaderboard/")
    rows = {row.run.pk: row for row in page.context["table"].rows}
    assert (rows[behind.pk].place, rows[other.pk].place) == (2, 2)
    board = (shown := board_runs(release, "full", reviewer)).board("test")
    assert least_ahead(board, shown, labeled.pk, behind.pk, "AP@50") > 0
    assert least_ahead(board, shown, labeled.pk, other.pk, "AP@50") < 0
    assert rows[labeled.pk].ahead_of is None
    pair = client.get(f"/runs/compare/?a={behind.pk}&b={other.pk}").content.decode()
    assert "neither run is ahead: their means are equal" in pair


def test_before_the_audit_is_done_there_are_no_ranges_and_pages_say_why(
    corpus: None, export: Any, annotator: Any, reviewer: Any
) -> None:
    made = handed_in(1, annotator, split="test")
    complete(made, reviewer)
    waiting = BlindItem.objects.count()
    export(test_labels="public")
    release = Release.objects.get()
    run = run_publish(run=scored_run(release, {1: RELEVANT}, name="run"))
    page = client_of(reviewer).get(f"/releases/{release.pk}/leaderboard/")
    assert page.context["table"].rows[0].figures[0].missing == ""
    note = " ".join(page.content.decode().split())
    assert f"isn’t audited yet: {waiting} drawn images wait for a judgment" in note
    assert "“Labels”: the range" not in note
    assert "labels may miss:" not in client_of(reviewer).get(f"/runs/{run.pk}/").content.decode()
    task = json.loads(board_export(release, "json"))["tasks"]["full"]
    assert task["missing_labels"] == {}


def test_a_query_whose_audit_is_not_done_has_no_ranges(
    corpus: None, export: Any, annotator: Any, reviewer: Any
) -> None:
    made = audited(1, annotator, split="test")
    drawn(made, annotator, *["not_relevant"] * 3)
    audit_draw(query=made, annotator=annotator, count=2)
    completed(made, annotator)
    export(test_labels="public")
    release = Release.objects.get()
    run = run_publish(run=scored_run(release, {1: RELEVANT}, name="run"))
    page = client_of(reviewer).get(f"/runs/{run.pk}/queries/1/")
    assert "ranges" not in page.context
    assert "isn’t audited yet: 2 drawn images wait for a judgment" in page.content.decode()


def test_the_page_of_a_query_has_the_ranges_by_its_own_certificate(
    corpus: None, export: Any, annotator: Any, reviewer: Any
) -> None:
    made = audited(1, annotator, split="test")
    drawn(made, annotator, *["not_relevant"] * 30)
    completed(made, annotator)
    export(test_labels="public")
    release = Release.objects.get()
    snapshot = Snapshot(release.snapshot_directory)
    [known] = certificates(snapshot)
    found = certificate_of(snapshot, 1)
    assert found is not None
    assert found[0] == known
    possible = found[1]
    assert certificate_of(snapshot, 2) is None
    # 20 of the pool have no label; the run has two of them between the known ones.
    assert len(possible) == 20
    order = [FIRST_ID, *possible[:2], FIRST_ID + 1]
    run = run_publish(run=scored_run(release, {1: order}, name="run"))
    page = client_of(reviewer).get(f"/runs/{run.pk}/queries/1/")
    ranges, most = dict(page.context["ranges"]), known.missing_at_most
    assert 2 < most < 18
    # At worst all that may be missing are elsewhere; at best two stand where the run has some.
    assert ranges["R@50"] == f"{200 / (2 + most):.1f}–100.0"
    assert ranges["AP@50"] == f"{150 / (2 + most):.1f}–100.0"
    text = " ".join(page.content.decode().split())
    assert f"leaves at most {most} relevant images of its pool without a label" in text


def test_exports_have_it(release: Release, runs: list[Run]) -> None:
    rows = [
        row
        for row in csv.DictReader(io.StringIO(board_export(release, "csv")))
        if row["name"] == "labeled" and row["split"] == "test"
    ]
    [whole] = [row for row in rows if row["subset"] == "all"]
    low, high = (float(whole[f"nDCG@50_labels_{edge}"]) for edge in ("low", "high"))
    assert low < float(whole["nDCG@50"]) <= high + 1e-12
    assert {row["AP@50_labels_low"] for row in rows if row["subset"] != "all"} == {""}
    task = json.loads(board_export(release, "json"))["tasks"]["full"]
    assert task["missing_labels"]["test"]["confidence"] == 0.95
    scores = {run["name"]: run["scores"] for run in task["runs"]}
    assert scores["labeled"]["test"]["all"]["with_missing_labels"]["nDCG@50"] == [low, high]


def test_nothing_is_said_where_nothing_is_bounded(
    corpus: None, export: Any, annotator: Any, reviewer: Any, settings: Any
) -> None:
    settings.RELEASE_AUDIT_SHARE = 0.0
    complete(handed_in(1, annotator, split="test"), reviewer)
    export(test_labels="public")
    release = Release.objects.get()
    run = run_publish(run=scored_run(release, {1: RELEVANT}, name="run"))
    assert unknown(release, "test") is None
    page = client_of(reviewer).get(f"/releases/{release.pk}/leaderboard/")
    assert page.context["table"].rows[0].figures[0].missing == ""
    assert "labels may miss" not in page.content.decode()
    assert "labels may miss" not in client_of(reviewer).get(f"/runs/{run.pk}/").content.decode()

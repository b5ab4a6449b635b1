"""`manage.py simulate`: what it takes, what it refuses and what it prints."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
from releases.making.services import release_claim, release_make
from releases.models import Release
from retrieval.corpus.models import Image
from retrieval.embedding.models import Embedding
from retrieval.flags.services import image_withdraw
from tests.labeling.conftest import FIRST_ID
from tests.labeling.judging import judge
from tests.releases.complete_queries import IMAGES, RELEVANT, complete_query, open_query
from tests.releases.conftest import World
from tests.releases.snapshots import query as snapshot_query
from tests.releases.toy_release import ready_release, toy_release

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def query(corpus: World) -> Query:
    """A query whose list was judged whole."""
    return complete_query(30, by=corpus.person("admin"), annotator=corpus.person("annotator"))


@pytest.fixture(scope="module")
def release(query: Query, corpus: World) -> Release:
    """Of a query that was judged whole, one that wasn't, and one without a relevant image."""
    people = {"by": corpus.person("admin"), "annotator": corpus.person("annotator")}
    complete_query(31, **people, judged=12, relevant=[1, 2, 3, 4, 5])
    complete_query(32, **people, judged=5, relevant=[])
    options = {"rerank_model": ""}
    return release_make(release=release_claim(name="Toads", created_by=None, options=options))


def printed(*arguments: str) -> str:
    out = io.StringIO()
    call_command("simulate", *arguments, stdout=out, verbosity=0)
    return out.getvalue()


def simulated(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed(*arguments, "--json"))
    return found


def test_a_query_that_was_judged_whole(query: Query) -> None:
    found = simulated("30", "--seeds", "50", "--stop", "streak:5,certificate:0.6,exhausted")
    [figures] = found["queries"]
    assert (figures["query_id"], figures["query_text"]) == (30, "a toad, number 30")
    assert (figures["images"], figures["relevant"]) == (IMAGES, len(RELEVANT))
    assert not figures["closed_world"]
    assert figures["world"] == "All 40 embedded images of the filter were judged."
    frozen, active, random = figures["orders"]
    assert frozen["labels_to"] == {"80": 20, "95": 20, "100": 20}
    assert [one["runs"] for one in (frozen, active, random)] == [1, 1, 50]
    assert len(frozen["curve"]) == len(figures["curve_labels"]) == IMAGES + 1
    stops = {(one["order"], one["stop"]): one for one in figures["stops"]}
    assert len(stops) == 9
    streak = stops["frozen", "streak:5"]
    assert (streak["labels"], streak["recall"], streak["coverage"]) == (15, 0.75, None)
    assert streak["saved"] == pytest.approx(25 / 40)
    assert streak["below_target"]["share"] == 1
    certificate = stops["frozen", "certificate:0.6"]
    assert (certificate["runs"], certificate["target"]) == (50, 0.6)
    assert certificate["coverage"]["low"] > 0.9
    assert stops["random", "exhausted"]["labels"] == IMAGES
    assert found["plan"]["seeds"] == 50


def test_the_labels_are_the_consensus_without_withdrawn_images(corpus: World) -> None:
    admin, annotator = corpus.person("admin"), corpus.person("annotator")
    reviewer = corpus.person("reviewer")
    query = open_query(40, admin)
    judge(query, reviewer, [1], "relevant")
    judge(query, reviewer, [4], "unsure")
    judge(query, annotator, RELEVANT, "relevant")
    judge(query, annotator, set(range(IMAGES)) - set(RELEVANT), "not_relevant")
    query_transition(query=query, to_state="complete", by=admin, note="for the test")
    image_withdraw(image=Image(pk=FIRST_ID), by=admin, note="a person")
    [figures] = simulated("40", "--order", "frozen")["queries"]
    assert (figures["images"], figures["relevant"]) == (IMAGES - 1, 3)
    assert figures["orders"][0]["labels_to"] == {"80": 19, "95": 19, "100": 19}
    assert figures["orders"][0]["atd"] == (1 + 9 + 19) / 3


def test_of_a_query_that_wasnt_judged_whole_the_judged_images_are_the_world(
    corpus: World,
) -> None:
    people = {"by": corpus.person("admin"), "annotator": corpus.person("annotator")}
    complete_query(41, **people, judged=12)
    [figures] = simulated("41", "--order", "frozen")["queries"]
    assert (figures["images"], figures["relevant"], figures["closed_world"]) == (13, 4, True)
    assert figures["world"].startswith(
        "Closed world: the 13 judged images of a list of 40. The others are left out, since what "
        "was not judged is not known to be not relevant"
    )
    # The last one found is the 13th of those that were judged.
    assert figures["orders"][0]["labels_to"]["100"] == 13
    Embedding.objects.filter(image_id=FIRST_ID + 2).delete()
    [figures] = simulated("41", "--order", "frozen")["queries"]
    assert figures["images"] == 12
    assert "1 judged images outside it or not embedded are left out." in figures["world"]


def test_what_cant_be_done_is_refused(release: Release, corpus: World) -> None:
    open_query(50, corpus.person("admin"))
    toy_release()
    positives = ready_release("Positives", queries=[snapshot_query(3)], negatives_known=False)
    for arguments, says in (
        (["99"], "There is no query 99."),
        (["Frogs"], 'There is no release "Frogs".'),
        (["30", "--order", "clip"], 'There is no order "clip"; there are frozen, active, random.'),
        (["30", "--order", "frozen,frozen"], "Name at least one order, each once."),
        (["30", "--stop", "streak"], '"streak" is no stop rule'),
        (["30", "--noise", "1"], "The noise is a share from 0 to less than 1, not 1."),
        (["30", "--reader", "auc:2"], '"auc:2" is no reader: write auc:0.9, with an AUC from 0.5'),
        (["30", "--reader", "auc:0.9,auc:0.9"], "Name at least one reader, each once."),
        (["30", "--seeds", "0"], "'0' is not a whole number from 1"),
        (["30", "--csv", "/dev/null/a.csv"], "/dev/null/a.csv: "),
        (["50"], "Query 50 isn't complete, so nobody knows"),
        (["32"], "Query 32 has no relevant image in its list"),
        (["Toy"], "Query 1 has no candidate list of a model that is here"),
        (["Positives"], "Positives v1 names relevant images alone"),
    ):
        with pytest.raises(CommandError, match=re.escape(says)):
            printed(*arguments)
    positives.snapshot_directory.rename(positives.directory / "elsewhere")
    with pytest.raises(CommandError, match="The files of Positives v1 are lost"):
        printed("Positives")


def test_all_queries_of_a_release(release: Release, tmp_path: Path) -> None:
    options = ["--seeds", "20", "--order", "frozen,random", "--stop", "streak:5,certificate:0.5"]
    path = tmp_path / "figures.csv"
    found = simulated("Toads", *options, "--csv", str(path))
    assert [one["query_id"] for one in found["queries"]] == [30, 31]
    for one in found["queries"]:
        alone = simulated(str(one["query_id"]), *options)["queries"]
        assert alone == [one]
    assert simulated("30", "31", "32", *options) == found
    assert found["left_out"] == [
        "Query 32 has no relevant image in its list, so there is no recall to measure."
    ]
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["query_id"], row["order"], row["stop"]) for row in rows[:5]] == [
        ("30", "frozen", "streak:5"),
        ("30", "frozen", "certificate:0.5"),
        ("30", "random", "streak:5"),
        ("30", "random", "certificate:0.5"),
        ("31", "frozen", "streak:5"),
    ]
    assert rows[0]["labels_to_95"] == "20.0"
    assert (rows[0]["coverage"], rows[1]["runs"], rows[4]["closed_world"]) == ("", "20", "True")
    means = {(row["order"], row["stop"]): row for row in found["means"]}
    streak = means["frozen", "streak:5"]
    assert streak["labels_to_95"] == (20 + 6) / 2
    assert streak["times_frozen"] == 1
    assert (streak["queries"], streak["runs"]) == (2, 2)
    # One of the two stops below 0.9.
    assert streak["below_target"] == 0.5
    assert means["random", "certificate:0.5"]["runs"] == 40
    both = [row for row in rows if (row["order"], row["stop"]) == ("random", "certificate:0.5")]
    covered = sum(float(row["coverage"]) * 20 for row in both)
    assert means["random", "certificate:0.5"]["coverage"] == pytest.approx(covered / 40)


def test_readers_add_their_orders_and_what_their_doubt_finds(
    release: Release, tmp_path: Path
) -> None:
    path = tmp_path / "figures.csv"
    options = ["--seeds", "20", "--active-seeds", "2", "--order", "active", "--stop", "exhausted"]
    readers = ["--reader", "auc:0.99,auc:0.7:0.5"]
    found = simulated("Toads", *options, *readers, "--noise", "0.5", "--csv", str(path))
    orders = [
        "active",
        *("read auc:0.99", "screened auc:0.99", "read auc:0.7:0.5", "screened auc:0.7:0.5"),
    ]
    for one in found["queries"]:
        assert [order["order"] for order in one["orders"]] == orders
        assert [doubt["order"] for doubt in one["doubts"]] == [orders[1], orders[3]]
    # Of the two queries' mean shares of relevant images, 4 of 40 and 5 of 12.
    assert found["plan"]["prevalence"] == pytest.approx((4 / 40 + 5 / 12) / 2)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["second_opinions"] != "" for row in rows[:5]] == [False, True, False, True, False]
    assert float(rows[1]["errors_found"]) > float(rows[1]["errors_at_random"]) > 0
    lines = printed("Toads", *options, *readers, "--noise", "0.5").splitlines()
    start = next(at for at, line in enumerate(lines) if "doubted labels" in line)
    assert lines[start + 1].startswith("read auc:0.99 ")
    assert "doubts" not in simulated("30", *options, *readers)["queries"][0]


def test_tables_for_people(release: Release) -> None:
    lines = printed("Toads", "--seeds", "5", "--noise", "0.1").splitlines()
    assert lines[:3] == [
        "Means over 2 queries; 9 of 52 images are relevant.",
        "1 of them are closed worlds: the judged images alone, since what was not judged is not "
        "known to be not relevant.",
        "Each run misses 10 % of the relevant images at random.",
    ]
    assert lines[4].split()[:5] == ["order", "labels", "to", "80", "%"]
    assert [line.split()[0] for line in lines[5:8]] == ["frozen", "active", "random"]
    assert lines[5].split()[1:5] == ["12.5", "13.0", "13.0", "1.00"]
    assert [line.split()[:2] for line in lines[10:13]] == [
        ["frozen", "streak:100"],
        ["frozen", "certificate:0.9"],
        ["frozen", "exhausted"],
    ]
    assert lines[-2:] == [
        "Left out:",
        "  Query 32 has no relevant image in its list, so there is no recall to measure.",
    ]
    alone = printed("30", "--seeds", "2", "--order", "frozen").splitlines()
    assert alone[:2] == [
        "Query 30: a toad, number 30",
        "4 of 40 images are relevant. All 40 embedded images of the filter were judged.",
    ]

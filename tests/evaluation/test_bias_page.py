"""The page of a pool's bias and its files: nothing of hidden test labels."""

from __future__ import annotations

import csv
import io
import shutil

import pytest
from django.core.cache import cache
from django.db import connection, transaction

from evaluation.leaderboard.selectors import board_runs
from evaluation.runs.models import Run
from evaluation.runs.services import run_publish
from releases.models import Release
from retrieval.embedding.models import EmbeddingModel
from tests.conftest import client_of
from tests.evaluation.runs import scored_run
from tests.evaluation.test_bias import write_ranks
from tests.releases.snapshots import image, judgment, pair, query
from tests.releases.toy_release import ready_release

pytestmark = pytest.mark.django_db

JUDGMENTS = [
    judgment(1, 1),
    judgment(1, 1, annotator=2, source="search"),
    judgment(1, 2, "not_relevant"),
    judgment(1, 3, source="run"),
    judgment(2, 5, source="audit"),
]


def small_release(**values):
    """Two queries with judgments from three sources, and an embedding model's run among three."""
    release = ready_release(
        queries=[query(1, split="val"), query(2, split="test")],
        pairs=[pair(1, 1, True), pair(1, 2, False), pair(1, 3, True), pair(2, 5, True)],
        images=[image(number) for number in range(1, 7)],
        **{"judgments": JUDGMENTS, **values},
    )
    model = EmbeddingModel.objects.create(name="clip:a", dimension=4)
    orders = {"a": [1, 2, 6], "b": [3, 6, 1], "c": [6, 2, 1]}
    for name, order in orders.items():
        own = {"kind": Run.Kind.MODEL, "embedding_model": model} if name == "a" else {}
        run_publish(run=scored_run(release, {1: order, 2: [5, *order]}, name=name, **own))
    return release


def test_the_page_and_its_files(var_dir, researcher, reviewer, annotator):
    release = small_release(test_labels="hidden")
    address, browser = f"/releases/{release.pk}/bias", client_of(researcher)
    page = browser.get(f"{address}/?first=10&split=test")
    # Of hidden test labels nothing: the validation split alone, whatever is asked for.
    assert [value for value, _ in page.context["splits"]] == ["val"]
    assert "this is about the validation queries" in page.content.decode()
    report = page.context["report"]
    assert [(one.source, one.judgments, one.pairs, one.relevant) for one in report.origins] == [
        ("list", 2, 2, 1),
        ("run", 1, 1, 1),
        ("search", 1, 1, 1),
    ]
    # Without the ranks of models the runs stand for them: a and c find 1 and 2, b 1 and 3.
    assert page.context["model_rows"][1][:5] == ["b", "2", "1", "83.3", "33.3"]
    assert "runs are left out in place of models" in page.content.decode()
    assert [row[0] for row in page.context["run_rows"]] == ["b", "a", "c"]

    a, b = "clip:a", "clip:b"
    ranks = release.snapshot_directory / "model_ranks.parquet"
    write_ranks(ranks, (1, 1, a, 1), (1, 2, a, 2), (1, 3, a, 70), (1, 3, b, 1), (2, 5, b, 1))
    cache.clear()
    shown = browser.get(f"{address}.json").json()
    assert (shown["models_of_pool"], shown["relevant"]) == (True, 2)
    a, b = shown["models"]
    assert (a["model"], a["runs"], a["found"], a["unique"]) == ("clip:a", ["a"], 1, 1)
    # Without image 1 only 3 is left, which a lacks; b has it first.
    assert a["without"]["scores"] == [0, 1, 0]
    assert b["runs"] == []
    assert "Rankings depend on the pool" in shown["sentence"]
    table = list(csv.DictReader(io.StringIO(browser.get(f"{address}.csv").content.decode())))
    assert len(table) == 3 * (1 + 2 * 2)
    assert {row["labels"] for row in table} == {"all", "without", "alone"}

    both = client_of(reviewer).get(f"{address}.json?split=both").json()
    assert (both["queries"], both["relevant"]) == (2, 3)
    assert "audit" in {one["source"] for one in both["origins"]}
    assert client_of(reviewer).get(f"{address}.xlsx").status_code == 404
    assert client_of(annotator).get(f"{address}/").status_code == 403
    assert client_of(annotator).get(f"{address}.csv").status_code == 403
    # Few judged runs are marked where labels are seen.
    address = f"/releases/{release.pk}/leaderboard/?split=val"
    marked = browser.get(address).content.decode()
    assert ">Few judged</span>" in marked
    assert "fewer than 8 of a run’s first 10 images were judged" in marked
    assert board_runs(release, Run.Task.FULL, researcher).coverage("test") == []
    assert len(board_runs(release, Run.Task.FULL, reviewer).coverage("test")) == 4


def test_another_release_of_the_same_id_shows_its_own(var_dir, researcher):
    """As after a backup of an older state was restored, beside the cache of the newer one."""
    with transaction.atomic():
        first = small_release()
        assert len(shown_origins(first, researcher)) == 3
        shutil.rmtree(first.snapshot_directory)
        transaction.set_rollback(True)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT setval(pg_get_serial_sequence(%s, 'id'), %s, false)",
            [Release._meta.db_table, first.pk],
        )
    second = small_release(judgments=[judgment(1, 1)])
    assert second.pk == first.pk
    assert [one["source"] for one in shown_origins(second, researcher)] == ["list"]


def shown_origins(release, user):
    return client_of(user).get(f"/releases/{release.pk}/bias.json?split=val").json()["origins"]

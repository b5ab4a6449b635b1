"""What a run's models compute for a query, on a chart and in the exports."""

from __future__ import annotations

import csv
import io
import json

import pytest

from evaluation.leaderboard.board_charts import board_charts
from evaluation.leaderboard.choice import Choice
from evaluation.leaderboard.export import leaderboard_csv, leaderboard_json
from evaluation.leaderboard.selectors import published_runs
from evaluation.leaderboard.table import leaderboard_table
from evaluation.leaderboard.website import leaderboard_html
from evaluation.runs.computation import gflops_per_query
from evaluation.runs.models import Run
from evaluation.runs.services import run_publish
from releases.models import Release
from retrieval.embedding.models import EmbeddingModel
from tests.evaluation.runs import scored_run
from tests.releases.toy_release import TOY_FIXED, toy_release

pytestmark = pytest.mark.django_db

ORDERS = {query_id: [6, 5, 4, 3, 2, 1] for query_id in TOY_FIXED}


@pytest.fixture
def release(var_dir: object) -> Release:
    return toy_release()


def model_of(name: str, image: float | None, text: float | None) -> EmbeddingModel:
    """A model by the billions of operations for an image and for a text."""
    flops = [None if each is None else int(each * 1e9) for each in (image, text)]
    return EmbeddingModel.objects.create(
        name=name, dimension=2, image_flops=flops[0], text_flops=flops[1]
    )


def run_of(release: Release, model: EmbeddingModel, **values: object) -> Run:
    """A published run of a model."""
    run = scored_run(
        release,
        ORDERS,
        **{"name": model.name, "kind": "model", "embedding_model": model, **values},
    )
    return run_publish(run=run)


def test_images_are_encoded_once_for_all_queries_and_a_second_stage_adds_its_own(
    release: Release,
) -> None:
    small, large = model_of("small", 8, 0.5), model_of("large", 300, 40)
    first = run_of(release, small)
    # The toy's six images are encoded once for its four queries.
    assert gflops_per_query(first, release) == 6 / 4 * 8 + 0.5
    reranked = {"kind": "rerank_embedding", "name": "small → large"}
    second = run_of(release, large, first_stage=first, rerank_depth=2, **reranked)
    assert gflops_per_query(second, release) == (6 / 4 * 8 + 0.5) + (2 * 300 + 40)
    # The two lists that are fit for re-ranking have four images each.
    fixed = run_of(release, large, task="rerank")
    assert gflops_per_query(fixed, release) == 4 * 300 + 40
    fixed = run_of(release, large, task="rerank", rerank_depth=3, **reranked)
    assert gflops_per_query(fixed, release) == 3 * 300 + 40


def test_what_is_not_known_is_not_drawn(release: Release) -> None:
    known, unknown = model_of("known", 8, 0.5), model_of("unknown", 8, None)
    submitted = run_publish(run=scored_run(release, ORDERS, name="submitted"))
    runs = [
        run_of(release, known),
        run_of(release, unknown),
        submitted,
        run_of(
            release, known, kind="rerank_embedding", first_stage=submitted, rerank_depth=2, name="r"
        ),
    ]
    assert [gflops_per_query(run, release) for run in runs] == [12.5, None, None, None]
    board = published_runs(release, "full")
    choice = Choice(measure="AP@50")
    table = leaderboard_table(choice, board)
    assert board_charts(choice, board, table)["tradeoffs"] == []
    run_of(release, model_of("another", 16, 0.5))
    board = published_runs(release, "full")
    [plot] = board_charts(choice, board, leaderboard_table(choice, board))["tradeoffs"]
    assert (plot["title"], plot["stated"]) == ("Computation", 2)
    assert "Computation (GFLOPs a query)" in plot["chart"]
    assert "a second stage adds the images" in leaderboard_html(release)


def test_exports_have_the_figure(release: Release) -> None:
    run_of(release, model_of("known", 8, 0.5))
    run_publish(run=scored_run(release, ORDERS, name="submitted"))
    rows = csv.DictReader(io.StringIO(leaderboard_csv(release)))
    assert {(row["name"], row["gflops_per_query"]) for row in rows if row["kind"] != "best"} == {
        ("known", "12.5"),
        ("submitted", ""),
    }
    runs = json.loads(leaderboard_json(release))["tasks"]["full"]["runs"]
    assert {run["name"]: run["gflops_per_query"] for run in runs} == {
        "known": 12.5,
        "submitted": None,
    }

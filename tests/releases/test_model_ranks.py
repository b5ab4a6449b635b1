"""A release says where each model of a pooled list ranked the judged images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labeling.candidates.models import CandidateList, PoolRanking
from labeling.queries.models import Query
from releases.making import fixed_lists, services
from releases.snapshot.snapshot import ModelRank, Snapshot
from retrieval.corpus.models import Image
from retrieval.embedding.models import EmbeddingModel
from retrieval.flags.services import image_withdraw
from tests.conftest import api_of
from tests.releases.conftest import Judge
from tests.releases.toy import make_list, make_query


def pool(query: Query, rankings: dict[str, list[int]]) -> None:
    """Make the query's list one that fuses these rankings."""
    models = [
        EmbeddingModel.objects.get_or_create(name=name, defaults={"dimension": 2})[0]
        for name in rankings
    ]
    CandidateList.objects.filter(pk=query.current_list_id).update(pool_models=list(rankings))
    for place, (model, image_ids) in enumerate(zip(models, rankings.values(), strict=True), 1):
        PoolRanking.objects.create(
            list_id=query.current_list_id,
            place=place,
            embedding_model=model,
            text_vector=[0, 1] if place > 1 else [1, 0],
            image_ids=image_ids,
            scores=[1 - rank / 8 for rank in range(len(image_ids))],
            checksum="0" * 64,
        )


def test_a_release_holds_the_ranks_of_judged_images_by_each_model(
    query: Query, judge: Judge, annotator: Any, admin: Any, reviewer: Any, var_dir: Path
) -> None:
    single = make_query(7, "one stork", split="val")
    make_list(single, [4, 3])
    make_list(query, [2, 1, 5, 3])
    pool(query, {"toy": [2, 1, 3], "tiny": [5, 2, 1, 6]})
    for image in (1, 3, 4, 5, 6):
        judge(query, image, annotator, "relevant")
    judge(query, 1, admin, "relevant")
    for image in (3, 6):
        judge(single, image, annotator, "not_relevant")
    image_withdraw(image=Image.objects.get(pk=5), by=reviewer)

    release = services.release_make(release=services.release_claim(name="v1", created_by=None))
    snapshot = Snapshot(release.snapshot_directory)
    # 4 is in no ranking, 6 in one but not in the list; 2 isn't judged, 5 is withdrawn.
    pooled = [
        ModelRank(query.query_id, *row)
        for row in [
            (1, "toy", 2, 0.875),
            (1, "tiny", 3, 0.75),
            (3, "toy", 3, 0.75),
            (6, "tiny", 4, 0.625),
        ]
    ]
    val = [ModelRank(7, 3, "toy", 2, 0.98)]
    assert list(snapshot.model_ranks()) == [*val, *pooled]
    assert {number: one.pool for number, one in snapshot.queries.items()} == {
        7: [],
        query.query_id: ["toy", "tiny"],
    }
    assert [(one.name, one.queries) for one in snapshot.header.models] == [("tiny", 1), ("toy", 2)]
    written = (release.directory / "model_ranks.csv").read_text().splitlines()
    assert written[:2] == ["query_id,image_id,model,rank,score", "7,3,toy,2,0.98"]
    assert len(written) == 6
    assert (release.directory / "model_ranks_val.csv").read_text().splitlines() == written[:2]

    vectors = {(one.query_id, one.model): one.vector for one in fixed_lists.released_vectors(None)}
    assert vectors == {
        (7, "toy"): [1, 0],
        (query.query_id, "toy"): [1, 0],
        (query.query_id, "tiny"): [0, 1],
    }

    # Who reviews sees them.
    judge(query, 2, annotator, "unsure")
    path = f"/api/queries/{query.pk}/review/"
    [item] = api_of(reviewer).get(path).json()["results"]
    assert item["model_ranks"] == [
        {"model": "toy", "rank": 1, "score": 1.0},
        {"model": "tiny", "rank": 2, "score": 0.875},
    ]

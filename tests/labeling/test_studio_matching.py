"""Filters that narrow which candidates are shown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from labeling.queries.models import Query
from labeling.studio.filters import CandidateFilter, facets, matching_ranks
from retrieval.corpus.models import Image, ImageWithdrawal, Species, SpeciesName
from retrieval.flags.models import ImageFlag
from tests.labeling.conftest import FIRST_ID, fields, make_images, make_species
from tests.labeling.judging import judge


def change(number: int, **values: Any) -> None:
    Image.objects.filter(pk=FIRST_ID + number).update(**values)


@pytest.fixture
def query(toy_model, open_query) -> Query:
    """Rank n is toy image n - 1."""
    toad, newt = make_species("Bufo bufo"), make_species("Triturus cristatus")
    SpeciesName.objects.create(species=toad, language="en", name="Toad", search_text="toad")
    make_images(3, species=toad)
    make_images(2, first=3, species=newt)
    make_images(3, first=5)
    Image.objects.update(latitude=None, longitude=None)
    seen = [
        (0, datetime(2020, 5, 1, tzinfo=UTC)),
        (1, datetime(2020, 5, 31, 23, 59, 59, tzinfo=UTC)),
        (2, datetime(2020, 6, 1, tzinfo=UTC)),
        (3, datetime(2021, 5, 10, 12, tzinfo=UTC)),
        (4, datetime(2019, 12, 31, 23, 30, tzinfo=UTC)),
    ]
    for number, moment in seen:
        change(number, observed_at=moment)
    for number, latitude, longitude in [
        (0, 10.0, 20.0),
        (1, -10.0, 179.5),
        (2, -10.0, -179.5),
        (3, 90.0, 0.0),
        (6, 0.0, 0.0),
    ]:
        change(number, latitude=latitude, longitude=longitude)
    for number, license in [(0, "cc-by"), (1, "cc-by"), (2, "cc-by-nc"), (4, "CC-BY")]:
        change(number, license=license)
    return open_query()


def found(api: APIClient, query: Query, **parameters: Any) -> list[int]:
    answer = api.get(f"/api/queries/{query.pk}/matching/", parameters)
    assert answer.status_code == 200, answer.content
    body = answer.json()
    assert body["count"] == len(body["ranks"])
    ranks: list[int] = body["ranks"]
    return ranks


FILTERS: list[tuple[dict[str, Any], list[int]]] = [
    ({}, [1, 2, 3, 4, 5, 6, 7, 8]),
    ({"date_from": "2020-05-01"}, [1, 2, 3, 4]),
    ({"date_to": "2020-05-31"}, [1, 2, 5]),
    ({"date_from": "2020-05-31", "date_to": "2020-05-31"}, [2]),
    ({"date_from": "2019-12-31", "date_to": "2019-12-31"}, [5]),
    ({"date_from": "0001-01-01"}, [1, 2, 3, 4, 5]),
    ({"month": 5}, [1, 2, 4]),
    ({"month": [6, 12]}, [3, 5]),
    ({"month": 5, "date_to": "2020-12-31"}, [1, 2]),
    ({"bbox": "-180,-90,180,90"}, [1, 2, 3, 4, 7]),
    ({"bbox": "20,10,20,10"}, [1]),
    ({"bbox": "170,-20,-170,0"}, [2, 3]),
    ({"bbox": "-179,-20,179,20"}, [1, 7]),
    ({"bbox": "0,0,0,90"}, [4, 7]),
    ({"license": "CC-BY"}, [5]),
    ({"license": ""}, [4, 6, 7, 8]),
    ({"license": ["cc-by-nc", ""]}, [3, 4, 6, 7, 8]),
    ({"judged": "yes"}, [1, 6]),
    ({"judged": "no"}, [2, 3, 4, 5, 7, 8]),
    ({"judged": "unsure"}, [1]),
    ({"judged": "relevant"}, [6]),
    ({"judged": "not_relevant"}, []),
    ({"flagged": "yes"}, [2, 6]),
    ({"flagged": "no"}, [1, 3, 4, 5, 7, 8]),
    ({"judged": "yes", "flagged": "yes"}, [6]),
    ({"judged": "no", "flagged": "no", "license": "", "bbox": "-1,-1,1,90"}, [4, 7]),
]


def test_filters(query, annotator, other_annotator, annotator_api, subtests):
    judge(query, annotator, [0], "unsure")
    judge(query, annotator, [5], "relevant")
    judge(query, other_annotator, [1], "relevant")
    for number in (1, 5):
        ImageFlag.objects.create(
            image_id=FIRST_ID + number, kind="person", raised_by=other_annotator
        )
    ImageFlag.objects.create(
        image_id=FIRST_ID + 2, kind="person", raised_by=annotator, state="cleared",
        decided_at=timezone.now(),
    )  # fmt: skip
    for parameters, ranks in FILTERS:
        with subtests.test(**parameters):
            assert found(annotator_api, query, **parameters) == ranks
    toad, newt = Species.objects.order_by("scientific_name").values_list("pk", flat=True)
    assert found(annotator_api, query, species=[toad, newt]) == [1, 2, 3, 4, 5]
    assert found(annotator_api, query, species=[newt, 999999]) == [4, 5]
    assert found(annotator_api, query, species=[toad, newt], month=5, license="") == [4]


def test_withdrawn_images_match_nothing(query, reviewer, annotator_api):
    for number in (0, 7):
        ImageWithdrawal.objects.create(
            image_id=FIRST_ID + number, withdrawn_by=reviewer, withdrawn_at=timezone.now()
        )
    ImageWithdrawal.objects.create(
        image_id=FIRST_ID + 1, withdrawn_by=reviewer, withdrawn_at=timezone.now(),
        restored_by=reviewer, restored_at=timezone.now(),
    )  # fmt: skip
    assert found(annotator_api, query) == [2, 3, 4, 5, 6, 7]
    assert found(annotator_api, query, license="cc-by") == [2]


BAD_VALUES: list[tuple[dict[str, Any], str]] = [
    ({"date_from": "yesterday"}, "date_from"),
    ({"date_to": "2020-02-30"}, "date_to"),
    ({"date_from": "2020-02-02", "date_to": "2020-02-01"}, "date_to"),
    ({"month": 0}, "month.0"),
    ({"month": [5, 13]}, "month.1"),
    ({"month": [1] * 13}, "month"),
    ({"bbox": "a,b,c,d"}, "bbox"),
    ({"bbox": "0,0,nan,1"}, "bbox"),
    ({"bbox": "-181,0,0,1"}, "bbox"),
    ({"bbox": "0,1,1,0"}, "bbox"),
    ({"bbox": "0,-91,1,0"}, "bbox"),
    ({"license": "\0"}, "license"),
    ({"licence": "cc-by"}, "licence"),
    ({"judged": ""}, "judged"),
    ({"species": 2**63}, "species.0"),
    ({"flagged": "1"}, "flagged"),
]


def test_bad_values_are_named(query, annotator_api, subtests):
    for parameters, field in BAD_VALUES:
        with subtests.test(**parameters):
            answer = annotator_api.get(f"/api/queries/{query.pk}/matching/", parameters)
            assert (answer.status_code, fields(answer)) == (400, [field])


def test_what_a_list_can_be_filtered_by(query, reviewer, annotator_api):
    toad, newt = Species.objects.order_by("scientific_name")
    address = f"/api/queries/{query.pk}/facets/"
    assert annotator_api.get(address).json() == {
        "licenses": [
            {"value": "", "count": 4},
            {"value": "cc-by", "count": 2},
            {"value": "CC-BY", "count": 1},
            {"value": "cc-by-nc", "count": 1},
        ],
        "species": [
            {"id": toad.pk, "scientific_name": "Bufo bufo", "common_name": "Toad", "count": 3},
            {"id": newt.pk, "scientific_name": "Triturus cristatus", "common_name": "", "count": 2},
        ],
        "dates": {"first": "2019-12-31", "last": "2021-05-10"},
        "with_place": 5,
    }
    for number in (0, 1, 3, 4):
        ImageWithdrawal.objects.create(
            image_id=FIRST_ID + number, withdrawn_by=reviewer, withdrawn_at=timezone.now()
        )
    assert annotator_api.get(address).json() == {
        "licenses": [{"value": "", "count": 3}, {"value": "cc-by-nc", "count": 1}],
        "species": [
            {"id": toad.pk, "scientific_name": "Bufo bufo", "common_name": "Toad", "count": 1}
        ],
        "dates": {"first": "2020-06-01", "last": "2020-06-01"},
        "with_place": 2,
    }


def test_the_image_table_is_never_read_whole(toy_model, open_query, annotator, settings):
    settings.CANDIDATE_DEPTH = 900
    make_images(1000)
    make_images(3000, first=1000, embedded=False)
    query = open_query()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        for ask in (
            lambda: matching_ranks(
                query=query, user=annotator, candidate_filter=CandidateFilter(license=("",))
            ),
            lambda: facets(query=query, user=annotator),
        ):
            with CaptureQueriesContext(connection) as captured:
                ask()
            [sql] = [one["sql"] for one in captured if "labeling_candidate" in one["sql"]]
            cursor.execute(f"EXPLAIN {sql}")
            plan = "\n".join(row[0] for row in cursor.fetchall())
            assert "Index Scan using retrieval_image_pkey" in plan
            assert "Seq Scan on retrieval_image " not in plan

"""Screening: queries whose finds are withdrawn."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.core.exceptions import ValidationError

from core.errors import Conflict, Invalid
from labeling.audits.models import ReleaseAudit
from labeling.guidance.selectors import practicable_queries
from labeling.lifecycle.screening import READY, finds, finds_withdraw, screening_create
from labeling.lifecycle.services import query_create, query_transition
from labeling.queries.models import Benchmark, Query
from labeling.review.pace import team_progress
from releases.making.labels import complete_queries
from releases.making.services import release_claim
from retrieval.corpus.models import Image, ImageWithdrawal, Species
from tests.labeling.conftest import FIRST_ID, make_images, run_jobs
from tests.labeling.judging import item, judge, record

pytestmark = pytest.mark.django_db


@pytest.fixture
def screening(toy_model, admin, annotator) -> Query:
    """A screening query; an annotator has found 1 and 3 of six images, and handed it in."""
    make_images(6)
    query = screening_create(by=admin).queries.earliest("query_id")
    query_transition(query=query, to_state="open", by=admin)
    run_jobs()
    judge(query, annotator, [1, 3], "relevant")
    judge(query, annotator, [0, 2, 4, 5], "not_relevant")
    return query_transition(query=query, to_state="submitted", by=annotator)


def test_the_ready_queries_are_a_benchmark_without_releases(screening, admin, clients):
    benchmark = screening.benchmark
    assert set(benchmark.queries.values_list("text", flat=True)) == set(READY)
    first = benchmark.queries.earliest("query_id")
    assert clients["reviewer"].post("/benchmarks/screening/").status_code == 403
    answer = clients["admin"].post("/benchmarks/screening/")
    assert answer["Location"] == f"/?benchmark={benchmark.pk}"
    assert Benchmark.objects.filter(screening=True).count() == 1
    assert benchmark.queries.count() == len(READY)
    assert benchmark.queries.earliest("query_id") == first
    query_transition(query=screening, to_state="complete", by=admin, note="seen")
    assert not complete_queries().exists()
    assert not ReleaseAudit.objects.exists()
    assert not practicable_queries().exists()
    page = clients["admin"].get("/releases/split/")
    assert page.context["complete"] == 0
    assert "benchmark" not in page.context["form"].fields
    assert [count for *_, count in team_progress().states] == [0, 0, 0, 0]
    with pytest.raises(ValidationError, match="for screening"):
        release_claim(name="x", created_by=admin, options={}, benchmark=benchmark)
    # Other queries, and releases that name no benchmark, are of the other one.
    other = query_create(text="a toad", category="Species ID", created_by=admin)
    assert not other.benchmark.screening
    claimed = release_claim(name="x", created_by=admin, options={"rerank_model": ""})
    assert claimed.benchmark == other.benchmark


def test_what_was_found_is_withdrawn_after_review(screening, admin, reviewer, clients):
    with pytest.raises(Conflict):
        finds_withdraw(query=screening, grades=[3], reason="faces", by=reviewer)
    assert "data-finds" not in clients["reviewer"].get(f"/queries/{screening.pk}/").content.decode()
    # A reviewer disagrees on image 3.
    judge(screening, reviewer, [3], "not_relevant")
    query = query_transition(query=screening, to_state="complete", by=reviewer, note="seen")
    assert finds(query) == {3: [FIRST_ID + 1]}
    address = f"/queries/{query.pk}/"
    page = clients["reviewer"].get(address).content.decode()
    assert "Withdraw 1 image<" in page
    assert clients["annotator"].post(f"{address}finds/", {"reason": "x"}).status_code == 403
    with pytest.raises(Invalid):
        finds_withdraw(query=query, grades=[3], reason=" ", by=reviewer)
    form = {"reason": "Screening: faces"}
    clients["reviewer"].post(f"{address}finds/", form)
    assert not ImageWithdrawal.objects.exists()
    for words in ("1 image withdrawn.", "0 images withdrawn."):
        form |= {"grade": "3"}
        page = clients["reviewer"].post(f"{address}finds/", form, follow=True).content.decode()
        assert words in page
        assert "data-finds" not in page
    withdrawal = ImageWithdrawal.objects.get()
    assert (withdrawal.image_id, withdrawal.note) == (FIRST_ID + 1, "Screening: faces")
    assert withdrawal.withdrawn_by == reviewer


def test_finds_of_other_queries_are_no_finds(screening, admin, annotator):
    query = query_create(text="a toad", category="Species ID", created_by=admin)
    query_transition(query=query, to_state="open", by=admin)
    run_jobs()
    judge(query, annotator, [2], "relevant")
    query = query_transition(query=query, to_state="complete", by=admin, note="seen")
    assert finds(query) == {}
    with pytest.raises(Conflict):
        finds_withdraw(query=query, grades=[3], reason="x", by=admin)


def test_what_images_show_is_verified_species_by_species(
    toy_model, admin, annotator, reviewer, clients
):
    make_images(5)
    one = Species.objects.create(scientific_name="Vulpes vulpes")
    other = Species.objects.create(scientific_name="Lepus europaeus")
    Image.objects.filter(pk__lt=FIRST_ID + 4).update(species=one)
    assert clients["reviewer"].get("/benchmarks/screening/").status_code == 403
    assert READY[0].capitalize() in clients["admin"].get("/benchmarks/screening/").content.decode()
    form = {"verify": "1", "species": [one.pk, other.pk]}
    page = clients["admin"].post("/benchmarks/screening/", {"verify": "1"}).content.decode()
    assert "Choose 1 to 500 species." in page
    for _ in range(2):
        assert clients["admin"].post("/benchmarks/screening/", form).status_code == 302
    queries = Query.objects.filter(benchmark__screening=True)
    assert {query.species.get() for query in queries} == {one, other}
    query = queries.get(species=one)
    query_transition(query=query, to_state="open", by=admin)
    run_jobs()
    page = clients["annotator"].get(f"/queries/{query.pk}/label/").content.decode()
    assert '["The organism", "", "A trace", "Habitat only"]' in page
    assert '"label": "Habitat only"' in page
    assert "Reason for partly" not in page
    assert '"name": "grade_1"' not in page
    answers = [(0, 0), (1, 2), (2, 3), (3, 0)]
    for number, grade in answers:
        relevance = "relevant" if grade > 1 else "not_relevant"
        [outcome] = record(query, annotator, replace(item(number, relevance), grade=grade))
        assert outcome.status == "stored"
    for relevance, grade, why in (
        ("relevant", 0, "the organism is not relevant for this query"),
        ("not_relevant", 1, "the query has no grade 1"),
    ):
        [outcome] = record(query, annotator, replace(item(0, relevance), grade=grade))
        assert why in outcome.detail
    query_transition(query=query, to_state="submitted", by=annotator)
    query = query_transition(query=query, to_state="complete", by=reviewer, note="seen")
    assert finds(query) == {3: [FIRST_ID + 2], 2: [FIRST_ID + 1]}
    address = f"/queries/{query.pk}/"
    page = clients["reviewer"].get(address).content.decode()
    assert "Habitat only: 1" in page
    assert "A trace: 1" in page
    clients["reviewer"].post(f"{address}finds/", {"grade": "3", "reason": "habitat"})
    assert ImageWithdrawal.objects.get().image_id == FIRST_ID + 2
    assert finds(query) == {2: [FIRST_ID + 1]}
    # Nothing else asks what is shown: its grades are no relevance.
    with pytest.raises(ValidationError, match="Only screening queries"):
        query_create(text="x", category="Species ID", created_by=admin, grades="evidence")

"""Benchmarks: each with queries, people, a species filter, settings, guidelines and splits."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command

from core.access import Role
from labeling.audits.selectors import audit_aim
from labeling.candidates.selectors import FilterEmpty, models_in_use
from labeling.judging.progress import hand_in_rule, minimum_labels
from labeling.lifecycle.benchmarks import benchmark_save
from labeling.lifecycle.imports import queries_import
from labeling.lifecycle.screening import screening_create
from labeling.lifecycle.services import QueryHasJudgments, query_create, query_update
from labeling.lifecycle.splitting import queries_split
from labeling.queries.models import Benchmark, Query, default_benchmark
from releases.models import Release
from tests.conftest import api_of, client_of, person
from tests.labeling.conftest import FIRST_ID, make_images, make_species, run_jobs
from tests.labeling.judging import current_list, item, judge, ranked


@pytest.fixture(autouse=True)
def first(db) -> Benchmark:
    """The one that an installation starts with, also after a test that emptied all tables."""
    return Benchmark.objects.get(pk=default_benchmark())


def form_of(benchmark: Benchmark, **fields: Any) -> dict[str, Any]:
    return {"name": benchmark.name, "guidelines": benchmark.guidelines} | fields


def test_two_benchmarks_keep_apart(
    clients, annotator, other_annotator, admin, open_query, new_query, settings
):
    frog, newt = make_species("Rana alba"), make_species("Triturus ruber")
    make_images(4, species=frog)
    make_images(4, first=4, species=newt)
    frogs = Benchmark.objects.get()
    chosen = {
        "species": [frog.pk],
        "people": [annotator.pk],
        "HAND_IN_RULE": "exhausted",
        "GOLD_EVERY": "0",
        "POOL_MODELS": "one, two",
    }
    fields = form_of(frogs, name="Frogs", guidelines="Tadpoles count.", **chosen)
    page = clients["admin"].post(f"/benchmarks/{frogs.pk}/", fields | {"CERTIFICATE_RECALL": "2"})
    assert page.status_code == 200
    assert "less than or equal to" in page.content.decode()
    assert clients["admin"].post(f"/benchmarks/{frogs.pk}/", fields).status_code == 302
    frogs.refresh_from_db()
    assert frogs.settings == {
        "HAND_IN_RULE": "exhausted", "GOLD_EVERY": 0, "POOL_MODELS": ["one", "two"],
    }  # fmt: skip
    page = clients["admin"].get("/benchmarks/").content.decode()
    assert '<a href="/models/?model=one">one</a>, <a href="/models/?model=two">two</a>' in page
    fields |= {"POOL_MODELS": "", "species_names": "Rana alba", "species": []}
    clients["admin"].post(f"/benchmarks/{frogs.pk}/", fields)
    frogs.refresh_from_db()
    newts = benchmark_save(
        by=admin,
        name="Newts",
        people=[other_annotator],
        species=[newt],
        settings={"CERTIFICATE_CONFIDENCE": 0.8},
    )

    # Filters: the benchmark's, and what a query's own shares with it.
    settings.MINIMUM_LABELS, settings.CANDIDATE_DEPTH = 9, 3
    short = open_query("a short list", benchmark=newts)
    assert (current_list(short).size, current_list(short).total) == (3, 4)
    short.delete()
    settings.CANDIDATE_DEPTH = 1000
    a = open_query("a frog", guidelines="Whole animals.")
    b = open_query("a newt", benchmark=newts)
    both = open_query("any", benchmark=newts, species=[frog, newt])
    assert (a.benchmark, sorted(ranked(current_list(a)))) == (frogs, [0, 1, 2, 3])
    for one in (b, both):
        assert sorted(ranked(current_list(one))) == [4, 5, 6, 7]
    assert [minimum_labels(one) for one in (a, b)] == [9, 9]
    with pytest.raises(FilterEmpty, match="No species of the filter of query"):
        new_query("a frog again", benchmark=newts, species=[frog])
    answer = clients["admin"].post(
        "/queries/new/",
        {"text": "x", "category": "Species ID", "benchmark": newts.pk, "species": [frog.pk]},
    )
    assert "is in that of its benchmark" in answer.content.decode()
    assert Query.objects.count() == 3

    # Settings.
    assert [str(hand_in_rule(one)) for one in (a, b)] == ["exhausted", settings.HAND_IN_RULE]
    assert [audit_aim(one).confidence for one in (a, b)] == [0.95, 0.8]
    settings.POOL_MODELS = ["one", "two"]
    frogs.settings = {"POOL_MODELS": ["three"]}
    frogs.save()
    assert [models_in_use(Query.objects.get(pk=one.pk)) for one in (a, b)] == [
        ["three"], ["one", "two"],
    ]  # fmt: skip
    settings.POOL_MODELS = []

    # People: what isn't of one's benchmark doesn't exist, in pages and API.
    mine, theirs = client_of(annotator), client_of(other_annotator)
    api = api_of(annotator)
    act = {"image": FIRST_ID + 4, "relevance": "relevant", "seconds": 1}
    act["client_id"] = str(item(0, "relevant").client_id)
    pages = [f"/queries/{b.pk}/", f"/queries/{b.pk}/label/"]
    for address in (*pages, *(f"/api/queries/{b.pk}/{one}" for one in ("", "outline/"))):
        assert mine.get(address).status_code == 404
        assert theirs.get(address).status_code == 200
    judged = api.post(f"/api/queries/{b.pk}/judgments/", [act], format="json")
    assert judged.status_code == 404
    assert [one["id"] for one in api.get("/api/queries/").json()["results"]] == [a.pk]
    page = mine.get("/").content.decode()
    assert (f"/queries/{a.pk}/" in page, f"/queries/{b.pk}/" in page) == (True, False)
    assert "Frogs" not in page
    reviews = clients["reviewer"].get(f"/?benchmark={newts.pk}").content.decode()
    assert (f"/queries/{a.pk}/" in reviews, f"/queries/{b.pk}/" in reviews) == (False, True)
    assert "Newts · " in reviews
    for wrong in ("x", "99999999999999999999"):
        assert "No query matches" in clients["admin"].get(f"/?benchmark={wrong}").content.decode()
    found = api_of(admin).get("/api/queries/", {"benchmark": newts.pk}).json()["results"]
    assert [one["benchmark"] for one in found] == [{"id": newts.pk, "name": "Newts"}] * 2

    # Guidelines.
    reference = mine.get(f"/api/queries/{a.pk}/reference/").json()
    assert reference["guidelines"] == "Tadpoles count.\n\nWhole animals."
    assert "Tadpoles count." in mine.get(f"/queries/{a.pk}/").content.decode()

    # What was judged keeps its filter; what wasn't gets a new list.
    judge(a, annotator, [0], "relevant")
    with pytest.raises(QueryHasJudgments, match="has judgments, and the species filter"):
        query_update(query=a, by=admin, benchmark=newts)
    moved = api_of(admin).patch(f"/api/queries/{a.pk}/", {"benchmark": newts.pk}, format="json")
    assert moved.status_code == 409
    assert api_of(admin).patch(
        f"/api/queries/{both.pk}/", {"benchmark": frogs.pk}, format="json"
    ).json()["benchmark"] == {"id": frogs.pk, "name": "Frogs"}
    run_jobs()
    both.refresh_from_db()
    assert current_list(both).species_ids == [frog.pk]
    twin = benchmark_save(by=admin, name="Twin", species=[frog])
    assert query_update(query=a, by=admin, benchmark=twin).benchmark == twin
    with pytest.raises(QueryHasJudgments):
        benchmark_save(benchmark=Benchmark.objects.get(name="Twin"), by=admin, name="Twin")
    benchmark_save(benchmark=newts, by=admin, name="Newts", people=[other_annotator])
    run_jobs()
    assert sorted(ranked(current_list(b))) == list(range(8))

    # Splits of one, and the command that opens those of one.
    queries_split(
        by=None, val_share=1, seed=1, released={}, redraw=True, unfinished=True, benchmark=newts
    )
    Query.objects.exclude(benchmark=newts).update(split="test")
    queries_split(
        by=None, val_share=0, seed=1, released={}, redraw=True, unfinished=True, benchmark=newts
    )
    assert set(Query.objects.filter(benchmark=newts).values_list("split", flat=True)) == {"test"}
    Query.objects.all().update(split="val", split_settled=False)
    queries_split(val_share=0, seed=1, released={}, unfinished=True, benchmark=newts)
    assert set(Query.objects.exclude(benchmark=newts).values_list("split", flat=True)) == {"val"}
    row = b"query_id,query_text,supercategory,category,iconic_group\n70,a,Species,Species ID,\n"
    queries_import(files=[("q.csv", row)], by=admin, benchmark=newts)
    assert Query.objects.get(query_id=70).benchmark == newts
    call_command("open_queries", by="ada", benchmark="Frogs", stdout=StringIO())
    assert Query.objects.get(query_id=70).state == "draft"
    with pytest.raises(CommandError, match="There is no benchmark 'Birds': there are 'Frogs'"):
        call_command("open_queries", by="ada", benchmark="Birds")

    # Deleted: what nothing belongs to.
    clients["admin"].post(f"/benchmarks/{newts.pk}/delete/")
    empty = benchmark_save(by=admin, name="Empty")
    clients["admin"].post(f"/benchmarks/{empty.pk}/delete/")
    assert set(Benchmark.objects.values_list("name", flat=True)) == {"Frogs", "Newts", "Twin"}


def test_a_wrong_setting_is_named():
    for wrong in (
        {"CERTIFICATE_RECALL": 1},
        {"SECOND_OPINION_POSITIVE": -0.1},
        {"SECOND_OPINION_BOUNDARY": 1.5},
        {"HAND_IN_RULE": "whenever"},
        {"POOL_MODELS": "a" * 301},
        {"MINIMUM_LABELS": 3},
    ):
        with pytest.raises(ValidationError) as refused:
            benchmark_save(by=None, name="B", settings=wrong)
        assert list(refused.value.message_dict) == list(wrong)
    assert Benchmark.objects.count() == 1


def test_nothing_begins_in_screening(first, admin):
    screening = screening_create(by=admin)
    first.delete()
    assert default_benchmark() != screening.pk
    query = query_create(text="a newt", category="Species ID", created_by=admin)
    for new in (Query(), Release(), query):
        assert not new.benchmark.screening


def test_a_name_is_there_once(admin):
    with pytest.raises(ValidationError, match="already exists"):
        benchmark_save(by=admin, name=" Benchmark ")
    page = client_of(admin).post("/benchmarks/new/", {"name": "Benchmark"}).content.decode()
    assert "already exists" in page


def test_a_person_who_is_added_judges_its_open_queries(open_query, admin, annotator):
    make_images(2)
    query = open_query()
    benchmark, nobody = query.benchmark, person("nobody", Role.ANNOTATOR)
    act = {"image": FIRST_ID, "relevance": "relevant", "seconds": 1}
    act["client_id"] = str(item(0, "relevant").client_id)
    for people, answer in (([nobody], 404), ([nobody, annotator], 200), ([], 200)):
        benchmark_save(benchmark=benchmark, by=admin, name="A", people=people)
        address = f"/api/queries/{query.pk}/judgments/"
        assert api_of(annotator).post(address, [act], format="json").status_code == answer
        assert query.judgments.count() == (answer == 200)


def test_pages_speak_of_benchmarks_where_there_are_two(open_query, clients):
    make_images(1)
    query = open_query().pk
    Benchmark.objects.update(name="Zygote")
    pages = [
        ("annotator", "/"),
        ("reviewer", "/"),
        ("reviewer", f"/queries/{query}/"),
        ("admin", "/queries/new/"),
        ("admin", f"/queries/{query}/edit/"),
        ("admin", "/queries/import/"),
        ("admin", "/releases/split/"),
        ("admin", "/releases/"),
    ]

    def named() -> list[tuple[str, str]]:
        marks = ("Zygote", 'name="benchmark"', 'href="/benchmarks/')
        return [
            (role, address)
            for role, address in pages
            if any(mark in clients[role].get(address).content.decode() for mark in marks)
        ]

    assert named() == []
    Benchmark.objects.create(name="Second")
    assert named() == pages

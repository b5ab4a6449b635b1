"""A run's page, its queries and comparisons: figures, roles, hidden labels."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from evaluation.runs.services import run_finish, run_publish, run_score, run_store
from tests.conftest import client_of
from tests.evaluation.runs import rankings, scored_run, stored_run
from tests.evaluation.test_leaderboard_pages import STRONG, WEAK
from tests.releases.conftest import make_images
from tests.releases.snapshots import pair, query
from tests.releases.toy import make_list, make_query
from tests.releases.toy_release import ready_release, toy_release

RELEVANT = ("✓</span> Relevant", "✗</span> Not relevant", "?</span> Unjudged")


pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def weak(world):
    """A published run of the toy release."""
    make_images()
    return run_publish(run=scored_run(toy_release(), WEAK, name="weak"))


@pytest.fixture(scope="module")
def strong(weak, world):
    """A private one of the researcher's."""
    return scored_run(weak.release, STRONG, name="strong", owner=world.person("researcher"))


@pytest.fixture(scope="module")
def admin(world):
    return world.person("admin")


def get(user, path):
    response = client_of(user).get(path)
    assert response.status_code == 200, path
    return response


def texts(response):
    return response.content.decode()


def test_the_run_s_scores_per_subset(weak, admin):
    context = get(admin, f"/runs/{weak.pk}/").context
    parts = dict(context["parts"])
    whole = parts["All queries"][0]
    assert whole.queries == 2
    assert [figure.text for figure in whole.figures] == ["16.7", "23.5", "0.50"]
    assert whole.figures[0].interval == "0.0–33.3"
    assert {row.name: row.figures[0].text for row in parts["By category"]} == {
        "Human Impact": "33.3",
        "Species ID": "0.0",
    }


def test_each_query_with_its_rank_against_the_other_runs(weak, strong, admin):
    context = get(admin, f"/runs/{weak.pk}/").context
    # The best possible re-ranks of both don't compete.
    assert context["competitors"] == 2
    lines = {row.query.query_id: row for row in context["query_page"]}
    assert {number: (row.text, row.rank, row.best) for number, row in lines.items()} == {
        2: ("0.0", 2, "100.0"),
        3: ("33.3", 2, "100.0"),
    }
    assert [row.query.query_id for row in context["worst_rows"]] == [2, 3]
    assert [row.query.query_id for row in context["best_rows"]] == [3, 2]
    for parameters, found in (
        ("sort=value", [2, 3]), ("sort=text", [3, 2]), ("search=FOX", [2]), ("split=val", [1]),
    ):  # fmt: skip
        context = get(admin, f"/runs/{weak.pk}/?{parameters}").context
        assert [row.query.query_id for row in context["query_page"]] == found


def test_the_tables_of_queries_have_pages(weak, strong, admin, monkeypatch):
    views = "evaluation.leaderboard"
    monkeypatch.setattr(f"{views}.run_views.QUERIES_ON_A_PAGE", 1)
    monkeypatch.setattr(f"{views}.compare_views.QUERIES_ON_A_PAGE", 1)
    for path, name in (
        (f"/runs/{weak.pk}/?sort=value", "query_page"),
        (f"/runs/compare/?a={weak.pk}&b={strong.pk}", "pairs"),
    ):
        first, second = (get(admin, f"{path}&page={number}") for number in (1, 2))
        shown = [row.query.query_id for page in (first, second) for row in page.context[name]]
        assert sorted(shown) == [2, 3]
        assert "page=2#queries" in texts(first)
        # What a browser sorts would be one page of them.
        assert "data-board" not in texts(first).replace("data-board-", "")
        assert client_of(admin).get(f"{path}&page=3").status_code == 404


def test_private_runs_exist_for_their_owner_and_admins_only(weak, strong, world):
    expected = {"admin": 200, "reviewer": 404, "researcher": 200, "annotator": 404}
    for role, status in expected.items():
        assert world.client(role).get(f"/runs/{strong.pk}/").status_code == status
    reviewer = world.client("reviewer")
    assert reviewer.get(f"/runs/{strong.pk}/queries/2/").status_code == 404
    assert reviewer.get(f"/runs/compare/?a={strong.pk}&b={strong.pk}").status_code == 404


def test_single_queries_are_shown_to_those_who_may_see_their_labels(world, weak):
    secret = toy_release("Secret", test_labels="hidden")
    first, second = (
        run_publish(run=scored_run(secret, orders, name="a run")) for orders in (WEAK, STRONG)
    )
    seen = {"admin": {1, 2}, "reviewer": {1, 2}, "researcher": {1}, "annotator": set()}
    for role, number in product(seen, (1, 2)):
        path = f"/runs/{first.pk}/queries/{number}/?other={second.pk}"
        response = world.client(role).get(path)
        assert response.status_code == (200 if number in seen[role] else 404), (role, number)
        if response.status_code == 200:
            text = texts(response)
            assert any(mark in text for mark in RELEVANT)
            assert "Relevant, but not among" in text
            assert "What another run found" in text
            assert [one.image_id for one in response.context["images"]] == WEAK[number]
    # The validation split is left to compare.
    for split in ("test", "both", "val"):
        address = f"/runs/compare/?a={second.pk}&b={first.pk}&split={split}"
        context = world.client("researcher").get(address).context
        assert [(one.query.query_id, one.only_first) for one in context["pairs"]] == [(1, 0)]


def test_what_it_returned_missed_and_another_found(weak, strong, admin):
    context = get(admin, f"/runs/{weak.pk}/queries/3/?other={strong.pk}").context
    assert [(one.image_id, one.rank, one.mark) for one in context["images"]] == [
        (3, 1, "relevant"),
        (4, 2, "not_relevant"),
        (1, 3, "unjudged"),
        (2, 4, "unjudged"),
    ]
    assert [(one.image_id, one.rank) for one in context["missed"]] == [(5, None), (6, None)]
    assert [(one.image_id, one.rank) for one in context["only_other"]] == [(5, 2), (6, 3)]
    assert (context["relevant_count"], context["hits"]) == (3, 1)
    figures = {one["title"]: (one["text"], one["rank"]) for one in context["figures"]}
    assert figures["AP@50"] == ("33.3", 2)
    assert (context["previous_query"], context["next_query"]) == (2, None)


def test_images_lead_to_their_rank_in_the_list_of_a_query_that_can_be_labeled(weak, world):
    opened = make_query(3, "a dead bird", state="open")
    make_list(opened, [6, 4, 5])

    def links(role):
        text = texts(get(world.person(role), f"/runs/{weak.pk}/queries/3/"))
        return re.findall(r'href="(/queries/\d+/label/\?rank=\d+)"', text)

    label = f"/queries/{opened.pk}/label/?rank="
    # Of the images returned the second of the list, then what was missed.
    assert links("reviewer") == [f"{label}2", f"{label}3", f"{label}1"]
    assert links("researcher") == []
    opened.state = "complete"
    opened.save()
    assert links("reviewer") == []


def test_a_query_without_relevant_images_or_without_images(weak, admin):
    text = texts(get(admin, f"/runs/{weak.pk}/queries/4/"))
    assert "so it isn’t scored" in text
    lone = scored_run(weak.release, {2: [2]}, name="lone")
    assert "so it scores 0" in texts(get(admin, f"/runs/{lone.pk}/queries/3/"))
    assert client_of(admin).get(f"/runs/{weak.pk}/queries/77/").status_code == 404
    # It has no query of the validation split.
    assert client_of(admin).get(f"/runs/{lone.pk}/queries/1/").status_code == 404


def test_images_of_an_imported_release_that_are_not_here_show_their_id(weak, admin):
    """The corpus's own images of those numbers are other images."""
    release = ready_release(
        "Imported", queries=[query(1)], pairs=[pair(1, 3, True)], origin="imported", corpus_images=0
    )
    run = scored_run(release, {1: [3, *range(10, 160)]})
    response = get(admin, f"/runs/{run.pk}/queries/1/")
    assert response.context["images"][0].image is None
    assert "<img" not in texts(response).partition("<main")[2]
    assert '<div class="found-absent"><span>3</span></div>' in texts(response)
    # A hundred are on a page.
    assert [one.rank for one in response.context["images"]] == list(range(1, 101))
    last = get(admin, f"/runs/{run.pk}/queries/1/?page=2")
    assert [one.rank for one in last.context["images"]] == list(range(101, 152))


def test_how_far_equal_scores_could_move_it(admin, weak):
    release = weak.release
    assert "in another order" not in texts(get(admin, f"/runs/{weak.pk}/"))
    orders = rankings(WEAK)
    tied = {query: replace(one, scores=np.zeros_like(one.scores)) for query, one in orders.items()}
    run = run_store(run=stored_run(release, WEAK, name="tied"), rankings=tied)
    run_finish(run=run)
    page = get(admin, f"/runs/{run.pk}/")
    assert page.context["ties"][0] == ("mAP@50", "4.2–16.7")
    assert "in another order" in texts(page)


def test_scores_on_another_version(weak, admin):
    second = toy_release(version=2, previous=weak.release)
    run_score(run=weak, release=second)
    context = get(admin, f"/runs/{weak.pk}/?release={second.pk}").context
    assert context["release"] == second
    assert context["competitors"] == 1
    assert [row.query.query_id for row in context["query_page"]] == [2, 3]
    assert context["release"] == get(admin, f"/runs/{weak.pk}/?release={second}").context["release"]
    assert get(admin, f"/runs/{weak.pk}/queries/3/?release={second.pk}").status_code == 200


def test_two_runs_query_by_query(weak, strong, admin):
    response = get(admin, f"/runs/compare/?a={strong.pk}&b={weak.pk}")
    context = response.context
    assert context["verdicts"] == {"win": 2, "tie": 0, "loss": 0}
    assert context["means"] == ["100.0", "16.7"]
    assert context["difference"] == "+83.3"
    # Two queries: of the four ways to swap, two are as far apart.
    assert context["p"]["randomization"] == "= 0.500"
    shown = [
        (one.query.query_id, one.text, one.only_first, one.only_second) for one in context["pairs"]
    ]
    assert shown == [(2, "+100.0", 1, 0), (3, "+66.7", 2, 0)]
    back = get(admin, f"/runs/compare/?a={weak.pk}&b={strong.pk}").context
    assert [one.text for one in back["pairs"]] == ["−66.7", "−100.0"]


def test_comparisons_that_make_no_sense_say_so(weak, strong, admin):
    other = scored_run(toy_release(name="Other"), WEAK, name="elsewhere")
    only_val = scored_run(weak.release, {1: [1]}, name="only val")
    only_test = scored_run(weak.release, {2: [2]}, name="only test")

    def problem(a, b):
        return get(admin, f"/runs/compare/?a={a.pk}&b={b.pk}").context["problem"]

    assert "not of the same release" in problem(weak, other)
    assert "two different runs" in problem(weak, weak)
    assert "no split in common" in problem(only_val, only_test)
    assert "pairs" in get(admin, f"/runs/compare/?a={only_val.pk}&b={weak.pk}").context
    assert client_of(admin).get("/runs/compare/").status_code == 404
    # The last is a digit, but none of a number.
    for address in ("?a=²", "?release=" + "9" * 30, "?release=Tory v1"):
        assert client_of(admin).get(f"/runs/compare/{address}").status_code == 404
    assert "Choose one" in texts(get(admin, f"/runs/compare/?release={weak.release}"))

"""Drawing the splits of real queries: by the service, the command, the API and the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from core.access import Role
from labeling.lifecycle.imports import queries_import
from labeling.lifecycle.services import query_create, query_update
from labeling.lifecycle.splitting import SplitChanged, queries_split, split_plan
from labeling.queries.models import Query
from releases.models import Release
from releases.selectors import released_queries_by_id
from tests.conftest import api_of, client_of, person
from tests.releases.snapshots import header, write_snapshot
from tests.releases.snapshots import query as snapshot_query
from tests.releases.toy import make_query

pytestmark = pytest.mark.django_db
SPECIES, IMPACT = "Species ID", "Human Impact"


@pytest.fixture
def queries(db: None) -> list[Query]:
    """Twenty complete queries of two categories, none with a settled split."""
    return [
        make_query(number, f"query {number}", category=SPECIES if number <= 15 else IMPACT)
        for number in range(1, 21)
    ]


def vals() -> set[int]:
    return set(Query.objects.filter(split="val").values_list("query_id", flat=True))


def split(**options: Any) -> Any:
    return queries_split(**{"val_share": 0.2, "seed": 7, "released": {}} | options)


def release_of(query_ids: list[int], directory: Path, settings: Any) -> Release:
    """A made release that has these queries."""
    settings.VAR_DIR = directory
    release = Release.objects.create(
        name="demo", made_at="2026-05-01T00:00:00Z", file_list=[{"name": "x"}]
    )
    release.directory.mkdir(parents=True)
    queries = [snapshot_query(number) for number in sorted(query_ids)]
    write_snapshot(release.snapshot_directory, header=header(), queries=queries)
    return release


def test_a_draw_is_stored_and_settles_all(queries: list[Query]) -> None:
    plan = split(stratify=True)
    assert len(vals()) == plan.sum.val == 4
    assert {row.category: (row.val, row.test) for row in plan.rows} == {
        IMPACT: (1, 4),
        SPECIES: (3, 12),
    }
    assert not Query.objects.filter(split_settled=False).exists()
    assert vals() == {one for one, name in plan.after.items() if name == "val"}


def test_settled_splits_stay_when_queries_are_added(queries: list[Query]) -> None:
    before = split().after
    for number in range(21, 41):
        make_query(number, f"query {number}")
    plan = split(seed=8)
    assert {one: plan.after[one] for one in before} == before
    assert plan.drawn == frozenset(range(21, 41))
    assert plan.sum.val == 8
    assert split(seed=9).moved == []


def test_a_redraw_moves_what_was_settled(queries: list[Query]) -> None:
    first = split().after
    moved = split(seed=8, redraw=True).moved
    assert moved
    assert all(Query.objects.get(query_id=one).split != first[one] for one in moved)
    assert len(vals()) == 4


def test_only_complete_queries_are_drawn_unless_all_are_requested(queries: list[Query]) -> None:
    make_query(30, "open", state="open")
    make_query(31, "rejected", state="rejected", reject_reason="other")
    assert split().after.keys() == set(range(1, 21))
    assert split(unfinished=True).after.keys() == {*range(1, 21), 30}
    assert Query.objects.get(query_id=31).split_settled is False


def test_released_queries_keep_theirs_and_a_redraw_tells_of_them(
    queries: list[Query], tmp_path: Path, settings: Any, admin: Any, capsys: Any
) -> None:
    release_of(list(range(1, 11)), tmp_path, settings)
    released = released_queries_by_id()
    assert released == dict.fromkeys(range(1, 11), "demo v1")
    plan = split_plan(val_share=0.5, seed=1, released=released)
    assert (plan.drawn, plan.released) == (frozenset(range(11, 21)), {})
    assert plan.sum.val == 10
    again = split_plan(val_share=0.5, seed=1, redraw=True, released=released)
    assert set(again.released) == {one for one in again.moved if one <= 10} != set()
    assert vals() == set()
    # The page and the API tell of them, too.
    address, choice = "/releases/split/", {"val_share": "0.5", "seed": "1", "redraw": "on"}
    assert "are in a release" not in client_of(admin).get(address).content.decode()
    page = client_of(admin).get(address, choice).content.decode()
    assert "of the queries that change are in a release." in page
    body = {"val_share": 0.5, "seed": 1, "redraw": True}
    moved = api_of(admin).post("/api/splits/", body).json()["moved"]
    told = {one["query_id"]: one["release"] for one in moved if one["release"]}
    assert told == dict.fromkeys(again.released, "demo v1")


def test_what_was_shown_is_what_is_done(queries: list[Query]) -> None:
    shown = split_plan(val_share=0.2, seed=7, released={})
    make_query(30, "one more")
    with pytest.raises(SplitChanged):
        split(expected=shown.fingerprint)
    assert vals() == set()
    shown = split_plan(val_share=0.2, seed=7, released={})
    assert split(expected=shown.fingerprint).after == shown.after


def test_impossible_draws_name_the_field(admin: Any) -> None:
    for options, field in (({"val_share": 1.5}, "val_share"), ({"seed": -1}, "seed")):
        with pytest.raises(ValidationError) as refused:
            split(**options)
        assert list(refused.value.message_dict) == [field]
        answer = api_of(admin).post("/api/splits/", {"val_share": 0.2} | options)
        assert answer.status_code == 400
        assert {one["field"] for one in answer.json()["errors"]} == {field}
        page = client_of(admin).get("/releases/split/", {"val_share": 0.2, "seed": 7} | options)
        assert set(page.context["form"].errors) == {field}
        assert "Apply this draw" not in page.content.decode()
        answer = api_of(admin).post("/api/splits/", {"val_share": "half"})
        assert answer.status_code == 400
    assert "No complete query" in client_of(admin).get("/releases/split/").content.decode()


class TestSettled:
    """What settles a split without a draw."""

    def test_a_change_settles_it_and_blank_leaves_it_to_be_drawn(self, admin: Any) -> None:
        named = query_create(text="a frog", category=SPECIES, created_by=admin, split="test")
        assert (named.split, named.split_settled) == ("test", True)
        # Without one it is of the test split, and undecided: here, by the form and by the API.
        query = query_create(text="a toad", category=SPECIES, created_by=admin)
        fields = {"text": "a newt", "category": SPECIES, "split": ""}
        assert client_of(admin).post("/queries/new/", fields).status_code == 302
        body = {"text": "an owl", "category": SPECIES}
        assert api_of(admin).post("/api/queries/", body).status_code == 201
        others = Query.objects.exclude(pk=named.pk)
        assert list(others.values_list("split", "split_settled")) == [("test", False)] * 3
        query = query_update(query=query, by=admin, guidelines="x")
        assert query.split_settled is False
        query = query_update(query=query, by=admin, split="val")
        assert (query.split, query.split_settled) == ("val", True)
        query = query_update(query=query, by=admin, split="")
        assert (query.split, query.split_settled) == ("val", False)

    def test_a_file_that_names_the_split_settles_it(self, admin: Any) -> None:
        header = b"query_id,query_text,supercategory,category,iconic_group\n"
        row = header + b"7,a newt,Species,Species ID,Birds\n"
        queries_import(files=[("mine.csv", row)], by=admin)
        assert Query.objects.get().split_settled is False
        report = queries_import(files=[("mine_test.csv", row)], by=admin)
        query = Query.objects.get()
        assert (report.updated, query.split, query.split_settled) == (1, "test", True)
        assert queries_import(files=[("mine_test.csv", row)], by=admin).unchanged == 1


class TestApi:
    ADDRESS = "/api/splits/"

    def test_a_dry_run_and_then_the_draw(self, queries: list[Query], admin: Any) -> None:
        choice = {"val_share": 0.2, "seed": 7, "stratify": True}
        shown = api_of(admin).post(self.ADDRESS, choice | {"dry_run": True}).json()
        assert (shown["val"], shown["test"], shown["drawn"], shown["kept"]) == (4, 16, 20, 0)
        assert vals() == set()
        choice |= {"expected": shown["fingerprint"]}
        done = api_of(admin).post(self.ADDRESS, choice).json()
        assert done == shown
        assert vals() == {one["query_id"] for one in done["moved"]}
        assert api_of(admin).post(self.ADDRESS, choice).status_code == 409

    def test_admins_alone_draw(self, queries: list[Query], annotator: Any, reviewer: Any) -> None:
        people = [annotator, reviewer, person("rosa", Role.RESEARCHER)]
        for user in people:
            answer = api_of(user).post(self.ADDRESS, {"val_share": 0.2})
            assert answer.status_code == 403
            assert client_of(user).get("/releases/split/").status_code == 403
            assert client_of(user).post("/releases/split/", {"seed": 1}).status_code == 403
        assert vals() == set()


class TestPage:
    ADDRESS = "/releases/split/"

    def test_shows_the_draw_and_does_what_it_showed(self, queries: list[Query], admin: Any) -> None:
        client = client_of(admin)
        page = client.get(self.ADDRESS, {"val_share": "0.5", "seed": "3"})
        assert page.context["plan"].sum.val == 10
        assert vals() == set()
        chosen = {name: str(value) for name, value in page.context["chosen"]}
        stale = client.post(self.ADDRESS, chosen | {"expected": "0" * 64})
        assert "Queries were changed meanwhile" in stale.content.decode()
        assert vals() == set()
        expected = page.context["plan"].fingerprint
        assert f'value="{expected}"' in page.content.decode()
        answer = client.post(self.ADDRESS, chosen | {"expected": expected})
        assert answer["Location"] == self.ADDRESS
        assert vals() == {one for one, name in page.context["plan"].after.items() if name == "val"}
        again = client.get(self.ADDRESS).content.decode()
        assert "The splits of these queries are settled" in again

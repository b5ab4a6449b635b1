"""Many drafts become open at once, on a page, by the API and by a command."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from core.jobs.models import Job
from labeling.lifecycle.opening import MOST_AT_ONCE, OpeningRefusal, queries_open
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query, QueryTransition
from labeling.queries.transitions import TransitionForbidden
from retrieval.flags.services import image_restore, image_withdraw
from tests.labeling.conftest import make_images, make_species, run_jobs


def states(*queries: Query) -> list[str]:
    return [Query.objects.get(pk=query.pk).state for query in queries]


@pytest.fixture
def drafts(toy_model, new_query) -> list[Query]:
    make_images(4)
    return [new_query(f"toad number {number}") for number in range(3)]


def test_each_draft_is_open_with_a_list_of_its_own(drafts, admin):
    report = queries_open(pks=[query.pk for query in drafts], by=admin)
    assert (report.opened, report.unchanged, report.refused) == (3, 0, [])
    assert states(*drafts) == ["open"] * 3
    assert QueryTransition.objects.filter(to_state="open", made_by=admin).count() == 3
    assert {job.state for job in run_jobs()} == {"done"}
    for query in drafts:
        query.refresh_from_db()
        assert query.current_list is not None
        assert (query.current_list.ready, query.current_list.size) == (True, 4)


def test_what_is_no_draft_is_told_and_keeps_no_other_from_being_opened(drafts, admin):
    first, second, _ = drafts
    query_transition(query=first, to_state="rejected", by=admin, reason="too_easy")
    query_transition(query=second, to_state="open", by=admin)
    report = queries_open(pks=[0, *(query.pk for query in drafts)], by=admin)
    assert (report.opened, report.unchanged) == (1, 1)
    assert report.refused == [OpeningRefusal(first.query_id, "It is rejected, not a draft.")]
    assert states(*drafts) == ["rejected", "open", "open"]
    assert second.lists.count() == 1


def test_only_admins_open_and_only_so_many(drafts, annotator, admin):
    with pytest.raises(TransitionForbidden, match="needs the role admin"):
        queries_open(pks=[drafts[0].pk], by=annotator)
    with pytest.raises(ValueError, match="At most 1,000"):
        queries_open(pks=range(MOST_AT_ONCE + 1), by=admin)
    assert states(*drafts) == ["draft"] * 3


def test_the_api_opens_and_reports(drafts, annotator_api, admin_api):
    url = reverse("api-query-open-many")
    wanted = {"queries": [drafts[0].pk, drafts[2].pk]}
    assert annotator_api.post(url, wanted, format="json").status_code == 403
    assert admin_api.post(url, {"queries": []}, format="json").status_code == 400
    assert states(*drafts) == ["draft"] * 3
    answer = admin_api.post(url, wanted, format="json")
    assert answer.json() == {"opened": 2, "unchanged": 0, "refused": []}
    assert states(*drafts) == ["open", "draft", "open"]


def test_the_page_lists_the_drafts_and_opens_the_ticked_ones(drafts, clients, admin):
    query_transition(query=drafts[0], to_state="open", by=admin)
    page = clients["admin"].get(reverse("query-open-many")).content.decode()
    assert [f'value="{query.pk}"' in page for query in drafts] == [False, True, True]
    answer = clients["admin"].post(
        reverse("query-open-many"), {"query": [drafts[1].pk]}, follow=True
    )
    assert "1 query is open." in answer.content.decode()
    assert states(*drafts) == ["open", "open", "draft"]


def test_the_page_is_for_admins_and_nothing_ticked_opens_nothing(drafts, clients):
    url = reverse("query-open-many")
    assert clients["reviewer"].get(url).status_code == 403
    assert clients["reviewer"].post(url, {"query": drafts[0].pk}).status_code == 403
    assert "No query was chosen." in clients["admin"].post(url).content.decode()
    assert states(*drafts) == ["draft"] * 3


def test_the_command_opens_all_drafts_or_those_named(drafts, new_query, admin, capsys):
    held_out = new_query("a toad under a stone", split="test")
    call_command("open_queries", str(drafts[1].query_id), by="ada")
    assert states(*drafts, held_out) == ["draft", "open", "draft", "draft"]
    call_command("open_queries", by="ada", split="val")
    assert capsys.readouterr().out.splitlines()[-1] == "2 opened, 0 open already, 0 refused"
    assert states(*drafts, held_out) == ["open", "open", "open", "draft"]


def test_the_command_says_what_it_cannot_do(drafts, admin, annotator, capsys):
    query_transition(query=drafts[0], to_state="rejected", by=admin, reason="too_easy")
    with pytest.raises(CommandError, match="Not all were opened"):
        call_command("open_queries", str(drafts[0].query_id), by="ada")
    assert "It is rejected, not a draft." in capsys.readouterr().err
    with pytest.raises(CommandError, match="There is no query 4711"):
        call_command("open_queries", "4711", by="ada")
    with pytest.raises(CommandError, match="no user 'nobody'"):
        call_command("open_queries", by="nobody")
    with pytest.raises(CommandError, match="needs the role admin"):
        call_command("open_queries", by="ann")


def test_nothing_is_opened_where_there_is_nothing_to_label(
    toy_model, new_query, admin, reviewer, admin_api, clients, capsys
):
    toads, newts = make_species("Bufo bufo"), make_species("Triturus cristatus")
    whole, of_newts = new_query("a toad"), new_query("a newt", species=[newts])
    empty = (
        f"There are no images with embeddings of {toy_model.name} to label: import and embed "
        "images first."
    )

    def refused() -> str:
        [refusal] = queries_open(pks=[whole.pk], by=admin).refused
        return refusal.detail

    assert refused() == empty
    make_images(1, embedded=False)
    assert refused() == empty
    [image] = make_images(1, first=1, species=toads)
    image_withdraw(image=image, by=reviewer)
    assert refused() == empty
    answer = admin_api.patch(f"/api/queries/{whole.pk}/", {"state": "open"})
    assert (answer.status_code, answer.json()["detail"]) == (409, empty)
    new = {"text": "an eft", "category": "Species ID", "split": "val", "state": "open"}
    assert admin_api.post("/api/queries/", new).status_code == 409
    page = clients["admin"].post(f"/queries/{whole.pk}/transition/", {"state": "open"}, follow=True)
    assert empty in page.content.decode()
    assert Query.objects.filter(state="draft").count() == Query.objects.count() == 2
    assert not Job.objects.exists()

    image_restore(image=image, by=reviewer)
    with pytest.raises(CommandError, match="Not all were opened"):
        call_command("open_queries", by="ada")
    assert "no images of the query's species filter to label" in capsys.readouterr().err
    assert states(whole, of_newts) == ["open", "draft"]

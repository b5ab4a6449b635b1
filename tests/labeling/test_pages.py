"""The query pages: what each role may do, and what a form refuses."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from labeling.judging.models import Judgment
from labeling.lifecycle.imports import LARGEST_UPLOAD
from labeling.queries.models import Query
from tests.labeling.conftest import make_images, make_species, run_jobs
from tests.labeling.judging import item, judge, record


@pytest.fixture
def query(toy_model, open_query) -> Query:
    make_images(5)
    return open_query("a toad ")


# page: status by role, in the order annotator, reviewer, admin.
PAGES = {
    "/": (200, 200, 200),
    "/help/": (200, 200, 200),
    "/how-to-label/": (200, 200, 200),
    "/how-to-label/edit/": (403, 403, 200),
    "/practice/": (200, 200, 200),
    "/practice/queries/": (405, 405, 405),
    "/account/": (200, 200, 200),
    "/people/": (403, 403, 200),
    "/queries/{pk}/": (200, 200, 200),
    "/log/": (403, 403, 200),
    "/log.csv": (403, 403, 200),
    "/agreement/": (403, 200, 200),
    "/queries/{pk}/label/": (200, 200, 200),
    "/queries/{pk}/audit/": (200, 200, 200),
    "/queries/{pk}/requested/": (200, 200, 200),
    "/requested/": (302, 302, 302),
    "/queries/{pk}/review/": (403, 200, 200),
    "/queries/{pk}/edit/": (403, 403, 200),
    "/queries/{pk}/delete/": (403, 403, 200),
    "/import/": (403, 403, 200),
    "/queries/new/": (403, 403, 200),
    "/queries/import/": (403, 403, 200),
    "/benchmarks/": (403, 403, 200),
    "/benchmarks/new/": (403, 403, 200),
    "/benchmarks/screening/": (403, 403, 200),
    "/queries/{pk}/finds/": (405, 405, 405),
    "/benchmarks/{benchmark}/": (403, 403, 200),
}


def test_queries_are_pages_of_fifty_with_filters(new_query, clients):
    for number in range(51):
        new_query(f"frog {number}", split="test" if number else "val")
    reviewer = clients["reviewer"]
    page = reviewer.get("/")
    content = page.content.decode()
    assert len(page.context["rows"]) == 50
    assert 'href="?page=2"' in content
    assert [row.query.query_id for row, _ in reviewer.get("/?page=2").context["rows"]] == [51]
    last = reviewer.get("/?sort=-streak&page=2").content.decode()
    assert 'href="?sort=-streak&amp;page=1"' in last
    assert len(reviewer.get("/?split=val").context["rows"]) == 1
    assert reviewer.get("/?page=3").status_code == 404


def test_an_annotator_sees_each_query_once(query, clients):
    annotator = clients["annotator"]
    page = annotator.get("/")
    assert [waiting.row.query for waiting in page.context["mine"]] == [query]
    assert page.context["rows"] == []
    found = annotator.get("/?search=toad")
    assert not found.context["mine"]
    assert [row.query for row, _ in found.context["rows"]] == [query]


def test_each_role_gets_what_it_may(clients, query):
    given = {}
    for path in PAGES:
        address = path.format(pk=query.pk, benchmark=query.benchmark_id)
        roles = ("annotator", "reviewer", "admin")
        given[path] = tuple(clients[role].get(address).status_code for role in roles)
        answer = clients["anonymous"].get(address)
        assert answer.status_code == 302, path
        assert answer["Location"].startswith("/login/")
    assert given == PAGES
    for path in ("/", f"/queries/{query.pk}/", f"/queries/{query.pk}/label/"):
        assert clients["admin"].post(path).status_code == 405
    for path in ("transition", "team", "refresh"):
        assert clients["admin"].get(f"/queries/{query.pk}/{path}/").status_code == 405


def test_a_text_from_right_to_left_is_apart_from_what_stands_beside_it(
    clients, toy_model, open_query
):
    make_images(5)
    text = "غراب (Corvus corax), 2 من 3!"
    query = open_query(text)
    own = f"/queries/{query.pk}/"
    for path in ("/", own, f"{own}images/", f"{own}complete/"):
        assert f"<bdi>{text}</bdi>" in clients["admin"].get(path).content.decode(), path
    assert f'dir="auto">{text}<' in clients["admin"].get(f"{own}label/").content.decode()


def test_a_draft_does_not_exist_for_annotators(clients, new_query):
    draft = new_query("a draft")
    assert clients["annotator"].get(f"/queries/{draft.pk}/").status_code == 404
    assert clients["annotator"].post(f"/queries/{draft.pk}/transition/").status_code == 404
    assert b"a draft" not in clients["annotator"].get("/").content
    assert b"a draft" in clients["admin"].get("/").content


def test_a_post_without_the_token_of_its_form_is_refused(admin, query):
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin)
    answer = client.post(f"/queries/{query.pk}/transition/", {"state": "complete"})
    assert answer.status_code == 403
    query.refresh_from_db()
    assert query.state == "open"


def form_of(query: Query | None = None, **fields: Any) -> dict[str, Any]:
    text = query.text if query else "a newt"
    basics = {"text": text, "category": "Species ID", "split": "val", "iconic_group": ""}
    return basics | fields


def test_an_admin_writes_a_query_with_a_filter_of_species(clients):
    first, second = make_species("Rana alba"), make_species("Bufo ruber")
    answer = clients["admin"].post(
        "/queries/new/", form_of(species=[first.pk, second.pk], query_id="")
    )
    query = Query.objects.get()
    assert answer["Location"] == f"/queries/{query.pk}/"
    assert set(query.species.all()) == {first, second}
    assert (query.text, query.state, query.query_id) == ("a newt", "draft", 1)


def test_a_form_names_what_is_wrong_and_stores_nothing(clients, new_query):
    new_query("the first", query_id=7)
    for fields, field, words in (
        ({"text": "  "}, "text", "cannot be blank"),
        ({"category": "Nonsense"}, "category", "valid choice"),
        ({"rule_choice": "other", "hand_in_rule": " "}, "hand_in_rule", "Write the rule."),
        ({"query_id": "-1"}, "query_id", "greater than or equal to 0"),
        ({"query_id": "7"}, "query_id", ""),
    ):
        answer = clients["admin"].post("/queries/new/", form_of(**fields))
        assert answer.status_code == 200
        assert words in " ".join(answer.context["form"].errors[field])
    assert Query.objects.count() == 1


def test_an_edit_keeps_number_bytes_and_list_where_nothing_changed(clients, query):
    before = (query.query_id, query.current_list_id)
    answer = clients["admin"].post(
        f"/queries/{query.pk}/edit/",
        form_of(query, text=query.text.strip(), query_id="", guidelines="Look twice."),
    )
    assert answer.status_code == 302
    query.refresh_from_db()
    assert (query.query_id, query.current_list_id) == before
    assert (query.text, query.guidelines) == ("a toad ", "Look twice.")


def test_a_submitted_query_leads_to_its_review_and_the_review_to_its_completion(clients, query):
    review, complete = (f'href="/queries/{query.pk}/{name}/"' for name in ("review", "complete"))
    for state, there in (("open", False), ("submitted", True)):
        Query.objects.update(state=state)
        assert (review in clients["reviewer"].get("/").content.decode()) == there
        page = clients["reviewer"].get(f"/queries/{query.pk}/review/").content.decode()
        assert (complete in page) == there
        assert review not in clients["annotator"].get("/").content.decode()


def test_a_query_with_judgments_is_not_deleted(clients, query, annotator):
    def offered() -> bool:
        return b"Delete this query" in clients["admin"].get(f"/queries/{query.pk}/").content

    assert offered()
    Judgment.objects.create(
        query=query, image_id=1001, annotator=annotator, relevance="relevant", rank=1
    )
    assert not offered()
    answer = clients["admin"].post(f"/queries/{query.pk}/delete/", follow=True)
    assert b"reject it instead" in answer.content
    assert Query.objects.filter(pk=query.pk).exists()
    Judgment.objects.all().delete()
    clients["admin"].post(f"/queries/{query.pk}/delete/")
    assert not Query.objects.filter(pk=query.pk).exists()


def test_a_csv_is_imported_by_upload_or_refused_whole_by_line(clients):
    header = "query_id,query_text,supercategory,category,iconic_group\n"
    good = header + "7,a heron,Species,Species ID,Birds\n"
    bad = good + "x,an egret,Species,Species ID,Birds\n"

    def upload(content: str) -> Any:
        file = SimpleUploadedFile("../../queries_val.csv", content.encode())
        return clients["admin"].post("/queries/import/", {"file": file}, follow=True)

    assert b"queries_val.csv is larger than 5 MB." in upload("0" * (LARGEST_UPLOAD + 1)).content
    answer = upload(bad)
    assert [(e.line, e.field) for e in answer.context["row_errors"]] == [(3, "query_id")]
    assert not Query.objects.exists()
    kept = upload(good).context["kept"]
    assert not Query.objects.exists()
    done = clients["admin"].post("/queries/import/", {"kept": kept, "import": ""}, follow=True)
    assert b"1 added, 0 updated, 0 unchanged" in done.content
    assert Query.objects.get().split == "val"


def test_a_new_list_takes_in_new_images_and_keeps_judgments(clients, query, annotator):
    Judgment.objects.create(
        query=query, image_id=1001, annotator=annotator, relevance="relevant", rank=1
    )
    make_images(2, first=5)
    assert clients["reviewer"].post(f"/queries/{query.pk}/refresh/").status_code == 403
    clients["admin"].post(f"/queries/{query.pk}/refresh/")
    run_jobs()
    query.refresh_from_db()
    assert query.current_list is not None
    assert query.current_list.size == 7
    assert query.judgments.count() == 1


def test_names_stay_hidden_from_annotators_on_every_page(clients, query, settings):
    query.species.add(make_species("Rana alba"))
    settings.HIDE_SPECIES_NAMES = True
    for path in (f"/queries/{query.pk}/", f"/queries/{query.pk}/label/"):
        assert b"Rana alba" not in clients["annotator"].get(path).content
    # The labeling page reads them from the API, which hides them by itself.
    assert b"Rana alba" in clients["reviewer"].get(f"/queries/{query.pk}/").content


def test_a_query_page_tells_of_time_minimum_and_agreement(
    clients, query, annotator, other_annotator, settings
):
    settings.STOP_STREAK, settings.MINIMUM_LABELS = 2, 1500
    judge(query, annotator, [0, 1], "not_relevant")
    page = f"/queries/{query.pk}/"
    assert b"data-agreement" not in clients["reviewer"].get(page).content
    record(query, other_annotator, item(0, "not_relevant", seconds=3600), item(1, "relevant"))
    text = clients["reviewer"].get(page).content.decode()
    assert ">ann and otto</td>" in text
    assert '<td class="numeric">50 %</td><td class="numeric">0.00</td>' in text
    assert '<td class="numeric nowrap">2 s</td>' in text
    assert '<td class="numeric nowrap">1 h 00 min</td>' in text
    assert "<dt>Minimum labels</dt><dd>1,500</dd>" in text
    own = clients["annotator"].get(page).content.decode()
    assert "2 of 2 negatives in a row, 2 of 1,500 labels, or 2 of " in own
    assert "<dt>Active time, 1.0 s per image</dt><dd>2 s</dd>" in own
    assert "otto" not in own


def test_the_review_page_tells_who_still_labels_and_of_which_kind_it_is(clients, query, annotator):
    judge(query, annotator, [0], "unsure")
    address = f"/queries/{query.pk}/review/"
    whole, unsure = (
        clients["reviewer"].get(f"{address}{narrowed}").content.decode()
        for narrowed in ("", "?kind=unsure")
    )
    assert '"still_labeling": ["ann"]' in whole
    assert f'"address": "/api/queries/{query.pk}/review/"' in whole
    assert f'"address": "/api/queries/{query.pk}/review/?kind=unsure"' in unsure
    assert ("Show all" in whole, "Show all" in unsure) == (False, True)
    assert clients["reviewer"].get(f"{address}?kind=odd").status_code == 404


def test_no_filter_by_species_where_names_are_hidden(clients, query, settings):
    page = f"/queries/{query.pk}/label/"
    assert b"data-filters-species" in clients["annotator"].get(page).content
    settings.HIDE_SPECIES_NAMES = True
    shown = clients["annotator"].get(page).content
    assert b"data-filters-species" not in shown
    assert b"data-filters-months" in shown
    assert b'data-land="/static/img/world.svg#land"' in shown
    assert b"data-filters-species" in clients["reviewer"].get(page).content

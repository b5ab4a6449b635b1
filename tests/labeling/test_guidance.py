"""Guidelines in Markdown, "How to label", and practice with feedback."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from core.errors import Conflict
from labeling.guidance.models import Introduction
from labeling.guidance.selectors import practice_draw, practice_queries
from labeling.guidance.services import practice_query_set
from labeling.judging.models import Judgment, JudgmentEvent
from labeling.lifecycle.examples import example_pin
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
from labeling.studio.preferences import preferences_save
from retrieval.corpus.models import Image
from retrieval.flags.services import image_withdraw
from tests.conftest import api_of, client_of
from tests.labeling.conftest import FIRST_ID, MakeQuery, make_images
from tests.labeling.judging import judge

pytestmark = pytest.mark.django_db


def test_an_image_in_guidelines_is_its_present_thumbnail_and_none_once_withdrawn(
    open_query, annotator, admin
):
    [image] = make_images(1)
    query = open_query(guidelines=f"**Tails** ![a tail](image:{FIRST_ID})")
    client = client_of(annotator)
    page = client.get(f"/queries/{query.pk}/").content.decode()
    assert "<strong>Tails</strong>" in page
    [address] = re.findall(r'src="(/images/\d+/thumb.jpg)"', page)
    assert client.get(address)["Location"] == image.thumbnail_url
    assert Client().get(address).status_code == 401
    image_withdraw(image=Image(pk=FIRST_ID), by=admin, note="a person")
    assert client.get(address).status_code == 404


def test_whoever_writes_markdown_previews_it_as_pages_show_it(
    clients, new_query, annotator, reviewer, admin
):
    for role, address, field in (
        ("admin", f"/queries/{new_query().pk}/edit/", "id_guidelines"),
        ("admin", "/queries/new/", "id_guidelines"),
        ("admin", "/benchmarks/new/", "id_guidelines"),
        ("admin", "/how-to-label/edit/", "id_text"),
    ):
        page = clients[role].get(address).content.decode()
        assert f'id="{field}"' in page, address
        assert f'data-preview-of="{field}"' in page, address
    text = "# Tails\n\n<b>see</b> [it](http://[a:b])"
    html = "Tails</h3>\n<p>&lt;b&gt;see&lt;/b&gt; [it](http://[a:b])</p>"
    sent: dict[str, Any] = {"text": text}
    assert api_of(annotator).post("/api/markdown/", sent, format="json").status_code == 403
    answer = api_of(reviewer).post("/api/markdown/", sent, format="json")
    assert answer.json() == {"html": "<h3>" + html}
    sent["heading"] = 2
    answer = api_of(admin).post("/api/markdown/", sent, format="json")
    assert answer.json() == {"html": "<h2>" + html.replace("h3", "h2")}


def test_a_new_annotator_reads_how_to_label_until_they_close_it(
    clients, annotator, other_annotator, settings
):
    settings.STOP_STREAK = 30
    preferences_save(user=annotator, keys={"relevant": ["q"]})
    ann, admin = clients["annotator"], clients["admin"]
    for address in ("/", "/how-to-label/"):
        page = ann.get(address).content.decode()
        assert "After 30 images in a row" in page
        assert "<dt><kbd>Q</kbd></dt><dd>Relevant</dd>" in page
    assert "After 30" not in clients["reviewer"].get("/").content.decode()
    text = "# Our way\n\nLook <b>twice</b>."
    assert ann.post("/how-to-label/edit/", {"text": text}).status_code == 403
    assert "After 30 images" in admin.get("/how-to-label/edit/").content.decode()
    admin.post("/how-to-label/edit/", {"text": text})
    page = ann.get("/").content.decode()
    assert "<h2>Our way</h2><p>Look &lt;b&gt;twice&lt;/b&gt;.</p>" in page
    for _ in range(2):
        assert ann.post("/how-to-label/")["Location"] == "/"
    assert "Our way" not in ann.get("/").content.decode()
    assert "Our way" in ann.get("/how-to-label/").content.decode()
    assert "Our way" in client_of(other_annotator).get("/").content.decode()
    admin.post("/how-to-label/edit/", {"text": " "})
    assert "After 30 images" in ann.get("/how-to-label/").content.decode()


def labeled_query(make: MakeQuery, people: list[Any], admin: Any, **fields: Any) -> Query:
    """Images 0..14 are relevant, 15..29 not; 30 is disputed, 31 unsure."""
    query = make("a toad", guidelines="Count tails.", **fields)
    for person in people:
        judge(query, person, range(15), "relevant")
        judge(query, person, range(15, 30), "not_relevant")
    judge(query, people[0], [30], "relevant")
    judge(query, people[1], [30], "not_relevant")
    judge(query, people[0], [31], "unsure")
    return query_transition(query=query, to_state="complete", by=admin, note="enough")


def test_practice_tells_at_once_and_stores_the_score_alone(
    open_query, annotator, other_annotator, admin, reviewer
):
    make_images(40)
    query = labeled_query(open_query, [annotator, other_annotator], admin)
    example_pin(query=query, image_id=FIRST_ID + 2, relevant=True, note="the tail", by=admin)
    example_pin(query=query, image_id=FIRST_ID + 20, relevant=True, note="an odd one", by=admin)
    client, ada = client_of(annotator), client_of(admin)
    assert client.post("/practice/", {"query": query.pk}).status_code == 404
    assert client.post("/practice/queries/", {"query": query.pk}).status_code == 403
    ada.post("/practice/queries/", {"query": query.pk})
    before = (Judgment.objects.count(), JudgmentEvent.objects.count())
    image_withdraw(image=Image(pk=FIRST_ID + 5), by=admin, note="a person")
    assert "a toad" in client.get("/practice/").content.decode()
    client.post("/practice/", {"query": query.pk})
    drawn = client.session["practice"]["images"]
    numbers = [image - FIRST_ID for image in drawn]
    assert len(set(numbers)) == 20
    assert sum(number < 15 for number in numbers) == 10
    assert {2} <= set(numbers) <= set(range(30)) - {5}
    for place, image in enumerate(drawn, start=1):
        page = client.get("/practice/").content.decode()
        assert f"image {place} of 20" in page
        assert "Count tails." in page
        assert "labeled" not in page
        assert "the tail" not in page
        relevant = image < FIRST_ID + 15
        # Two of the answers are wrong.
        answer = "relevant" if relevant != (place <= 2) else "not_relevant"
        assert Introduction.objects.count() == 0
        for _ in range(2):
            told = client.post("/practice/", {"image": image, "answer": answer})
        assert told["Location"] == f"/practice/?image={place}"
        page = client.get(told["Location"]).content.decode()
        assert ("Wrong." if place <= 2 else "Right.") in page
        assert f"labeled {'relevant' if relevant else 'not relevant'}" in page
        assert ("the tail" in page) == (image == FIRST_ID + 2)
        assert "an odd one" not in page
    assert "18 of 20 right" in client.get("/practice/?image=21").content.decode()
    row = Introduction.objects.get()
    assert (row.user, row.images, row.right) == (annotator, 20, 18)
    assert row.closed_at is not None
    assert (Judgment.objects.count(), JudgmentEvent.objects.count()) == before
    assert "data-how-to-label" not in client.get("/").content.decode()
    page = client_of(reviewer).get(f"/people/{annotator.pk}/labeling/").content.decode()
    assert "18 of 20 right" in page
    client.post("/practice/", {"query": query.pk})
    again = client.session["practice"]["images"]
    assert again != drawn
    # A query that isn't usable any more ends the practice with it.
    Query.objects.filter(pk=query.pk).update(split="test")
    page = client.post("/practice/", {"image": again[0], "answer": "relevant"}, follow=True)
    assert "No query to practice with yet" in page.content.decode()


def test_only_completed_queries_of_the_validation_split_are_for_practice(
    open_query, annotator, other_annotator, admin
):
    make_images(40)
    people = [annotator, other_annotator]
    hidden = labeled_query(open_query, people, admin, split="test")
    for query in (hidden, open_query("an open toad")):
        with pytest.raises(Conflict):
            practice_query_set(query=query, use=True)
        client_of(admin).post("/practice/queries/", {"query": query.pk})
    assert not Query.objects.filter(for_practice=True).exists()
    usable = labeled_query(open_query, people, admin)
    for _ in range(2):
        practice_query_set(query=usable, use=True)
    assert list(practice_queries()) == [usable]
    client_of(admin).post("/practice/queries/", {"query": usable.pk, "remove": ""})
    assert not practice_queries().exists()


def test_a_draw_is_the_seeds_and_fills_up_where_a_side_is_short():
    labels = {image: image < 4 for image in range(50)}
    drawn = practice_draw(labels, [(40, False), (1, False)], "ann")
    assert drawn == practice_draw(labels, [(40, False), (1, False)], "ann")
    assert drawn != practice_draw(labels, [(40, False)], "otto")
    assert len(set(drawn)) == 20
    assert {0, 1, 2, 3, 40} <= set(drawn)
    assert len(practice_draw({1: True, 2: True}, [], "ann")) == 2
    assert sum(image < 30 for image in practice_draw({i: i < 30 for i in range(33)}, [], "")) == 17

"""Boxes: what is drawn, who draws a second time, what counts, and files in and out."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command

from core.errors import Conflict, Forbidden, Invalid
from extras.boxes.models import BoxedQuery, BoxSet
from extras.boxes.release_file import ReleasedBox, released_boxes, snapshot_boxes, write
from extras.boxes.selectors import BoxWork, decisive, images_asked
from extras.boxes.services import boxes_ask, boxes_import, boxes_save
from labeling.judging.access import queries_visible_to
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
from releases.snapshot.open_snapshot import OpenSnapshot, write_open_snapshot
from releases.snapshot.snapshot import SnapshotWriter
from retrieval.corpus.models import Image
from retrieval.flags.services import image_withdraw
from tests.conftest import client_of, person
from tests.labeling.conftest import FIRST_ID, make_images, make_species
from tests.labeling.judging import judge
from tests.releases.snapshots import format_files, header, image, pair, query, write_snapshot

pytestmark = pytest.mark.django_db


def box(*bbox: float, group: bool = False) -> Any:
    return {"bbox": list(bbox), "group": group}


A, B = box(0, 0, 10, 10), box(20, 20, 10, 10)


@pytest.fixture
def complete(open_query, annotator, admin, settings) -> Query:
    """Images 0 to 3 of six are relevant, 3 of a fern; every image is to be boxed twice."""
    settings.BOX_SECOND_OPINION = 1.0
    fern = make_species("Asplenium trichomanes", kingdom="Plantae")
    make_images(6)
    Image.objects.update(width=100, height=80)
    Image.objects.filter(pk=FIRST_ID + 3).update(species=fern)
    made = open_query("a toad")
    boxes_ask(query=made, images="animals", by=admin)
    judge(made, annotator, range(4), "relevant")
    judge(made, annotator, (4, 5), "not_relevant")
    return query_transition(query=made, to_state="complete", by=admin, note="done")


def draw(query: Query, number: int, who: Any, *boxes: Any) -> BoxSet:
    stored, new = boxes_save(
        query=query, image_id=FIRST_ID + number, boxes=boxes, annotator=who, client_id=uuid4()
    )
    assert new
    return stored


def test_a_second_person_draws_blindly_and_a_reviewer_decides(complete, annotator, reviewer):
    other = person("olga", "annotator")
    assert {complete} == set(queries_visible_to(other))
    work = BoxWork(complete)
    assert sorted(work.images) == [FIRST_ID, FIRST_ID + 1, FIRST_ID + 2]
    assert sorted(work.waiting(annotator)) == sorted(work.images)
    first = draw(complete, 0, annotator, A)
    draw(complete, 1, annotator, A, B)
    work = BoxWork(complete)
    assert work.waiting(annotator) == [FIRST_ID + 2]
    assert (set(work.waiting(other)), work.second) == (set(work.images), 2)
    count, tasks = work.tasks(other, "waiting", first=2)
    assert (count, [task.others for task in tasks]) == (3, [[], []])

    draw(complete, 0, other, box(30, 30, 10, 10))
    draw(complete, 1, other, B, A)
    work = BoxWork(complete)
    assert work.disputed == [FIRST_ID]
    assert (work.agreement.images, work.agreement.same) == (2, 0.5)
    assert decisive(work.sets[FIRST_ID]) == first
    _, [task] = work.tasks(reviewer, "disputed", first=5)
    assert [one.annotator for one in task.others] == [annotator, other]

    draw(complete, 0, reviewer, B)
    work = BoxWork(complete)
    assert work.disputed == []
    assert decisive(work.sets[FIRST_ID]).boxes == [box(20, 20, 10, 10)]
    assert work.sizes == {"small": 3}
    # What a reviewer drew alone needs no second person.
    draw(complete, 2, reviewer)
    assert BoxWork(complete).waiting(annotator) == []


def test_boxes_on_every_image_of_a_species_group(open_query, annotator, admin):
    toad = make_species("Bufo bufo", kingdom="Animalia")
    make_images(4)
    Image.objects.update(width=100, height=80)
    Image.objects.filter(pk__gte=FIRST_ID + 2).update(species=toad)
    made = open_query("a toad, whatever it does", species=[toad])
    boxes_ask(query=made, images="species", by=admin)
    # Whatever is relevant, and before the query is complete.
    assert BoxWork(made).images == [FIRST_ID + 2, FIRST_ID + 3]
    draw(made, 2, annotator, A)
    with pytest.raises(Conflict):
        draw(made, 1, annotator, A)
    judge(made, annotator, [2, 3], "not_relevant")
    made = query_transition(query=made, to_state="complete", by=admin, note="done")
    draw(made, 3, annotator, A)
    assert [one.image_id for one in released_boxes()] == [FIRST_ID + 2, FIRST_ID + 3]
    made.species.clear()
    boxes_ask(query=made, images="animals", by=admin)
    made.refresh_from_db()
    assert BoxWork(made).images == []


def test_later_boxes_replace_earlier_ones_and_a_repeat_is_stored_once(complete, annotator):
    draw(complete, 0, annotator, A)
    last = draw(complete, 0, annotator, box(-4, 0, 10.126, 10, group=True))
    assert last.boxes == [box(0, 0, 6.13, 10, group=True)]
    again = {"image_id": FIRST_ID, "boxes": [], "client_id": last.client_id}
    assert boxes_save(query=complete, annotator=annotator, **again) == (last, False)
    assert list(BoxSet.objects.values_list("current", flat=True).order_by("pk")) == [False, True]
    count, [task] = BoxWork(complete).tasks(annotator, "own", first=5)
    assert (count, task.own) == (1, last)


def test_what_is_refused(complete, annotator, admin):
    with pytest.raises(Invalid, match="up to 10"):
        draw(complete, 0, annotator, *[A] * 11)
    with pytest.raises(Invalid, match="outside"):
        draw(complete, 0, annotator, box(100, 0, 10, 10))
    image_withdraw(image=Image.objects.get(pk=FIRST_ID + 2), by=admin, note="a face")
    for number in (2, 3, 4):
        with pytest.raises(Conflict, match="gets no boxes"):
            draw(complete, number, annotator, A)
    researcher = client_of(person("rosa", "researcher"))
    assert researcher.get(f"/api/queries/{complete.pk}/boxes/").status_code == 403
    query_transition(query=complete, to_state="open", by=admin)
    with pytest.raises(Forbidden, match="once the query is complete"):
        draw(complete, 0, annotator, A)
    boxes_ask(query=complete, images="", by=admin)
    complete.refresh_from_db()
    with pytest.raises(Forbidden, match="no boxes"):
        draw(complete, 0, annotator, A)
    assert not BoxSet.objects.exists()


def test_the_api_and_the_pages(complete, clients, annotator):
    address = f"/api/queries/{complete.pk}/boxes/"
    given = clients["annotator"].get(address).json()
    assert given["count"] == 3
    assert given["results"][0].keys() == {"image", "url", "width", "height", "own", "others"}
    body = {"image": FIRST_ID, "boxes": [box(1, 2, 30, 40)], "client_id": str(uuid4())}
    for status in (201, 200):
        answer = clients["annotator"].post(address, body, "application/json")
        assert answer.status_code == status
        assert answer.json()["boxes"] == body["boxes"]
    assert clients["annotator"].get(f"{address}?kind=own").json()["count"] == 1
    assert clients["annotator"].get(f"{address}?kind=disputed").status_code == 403
    assert clients["reviewer"].get(f"{address}?kind=disputed").json()["count"] == 0
    wrong = body | {"boxes": [box(1, 2, 3)], "client_id": str(uuid4())}
    assert clients["annotator"].post(address, wrong, "application/json").status_code == 400

    page = f"/queries/{complete.pk}/"
    assert "Draw boxes on 2 images" in clients["annotator"].get(page).content.decode()
    assert "COCO file" not in clients["annotator"].get(page).content.decode()
    assert 'data-kind="waiting"' in clients["annotator"].get(f"{page}boxes/").content.decode()
    for role, status in (("annotator", 403), ("reviewer", 200)):
        assert clients[role].get(f"{page}boxes/?kind=disputed").status_code == status
    dashboard = clients["annotator"].get("/").content.decode()
    assert f'href="{page}boxes/"' in dashboard
    found = json.loads(clients["reviewer"].get(f"{page}boxes.json").content)
    assert [one["bbox"] for one in found["annotations"]] == [[1, 2, 30, 40]]


def test_an_admin_says_on_which_images_boxes_are_drawn(complete, clients):
    page, address = f"/queries/{complete.pk}/", f"/api/queries/{complete.pk}/boxes/"
    form = f"{page}boxes/ask/"
    choice = '<option value="animals" selected>'
    assert choice in clients["admin"].get(page).content.decode()
    for role in ("annotator", "reviewer"):
        assert choice not in clients[role].get(page).content.decode()
        assert clients[role].post(form, {"images": "all"}).status_code == 403
        answer = clients[role].put(address, {"images": "all"}, "application/json")
        assert answer.status_code == 403
    assert clients["admin"].post(form, {"images": ""}).status_code == 302
    assert not BoxedQuery.objects.exists()
    # The admin's panel stays, to ask for them again; nobody else has one.
    assert "data-boxes" in clients["admin"].get(page).content.decode()
    assert "data-boxes" not in clients["reviewer"].get(page).content.decode()
    answer = clients["admin"].put(address, {"images": "all"}, "application/json")
    assert (answer.status_code, answer.json()) == (200, {"images": "all"})
    answer = clients["admin"].put(address, {"images": "plants"}, "application/json")
    assert answer.status_code == 400
    wrong = clients["admin"].post(form, {"images": "plants"}, follow=True).content.decode()
    assert "is none of animals" in wrong
    assert images_asked(Query.objects.get()) == "all"
    changes = [edit.changes for edit in complete.edits.all()]
    assert changes == [[["boxes", *change]] for change in (
        ("", "animals"), ("animals", ""), ("", "all"),
    )]  # fmt: skip
    assert "animals" in clients["reviewer"].get(page).content.decode()


def test_without_boxes_the_pages_lead_back(open_query, clients):
    make_images(5)
    made = open_query("a toad")
    roles = ("annotator", "reviewer", "admin")
    for path, statuses in (
        ("boxes/", (302, 302, 302)), ("boxes.json", (403, 302, 302)),
        ("boxes/ask/", (405, 405, 405)), ("boxes/import/", (405, 405, 405)),
    ):  # fmt: skip
        address = f"/queries/{made.pk}/{path}"
        assert tuple(clients[role].get(address).status_code for role in roles) == statuses
        assert clients["anonymous"].get(address)["Location"].startswith("/login/")


def test_files_of_other_tools_come_in(complete, admin, annotator, clients, tmp_path):
    names = ["0a1b2c3d-0.jpg", "toy/1.jpg", "toy/9.jpg", "2.jpg"]
    content = {
        "images": [
            # Twice as large as ours.
            {"id": 7 + at, "file_name": name, "width": 200, "height": 160}
            for at, name in enumerate(names)
        ],
        "categories": [{"id": 0, "name": "toad"}, {"id": 1, "name": "fly"}],
        "annotations": [
            {"id": 1, "image_id": 7, "category_id": 0, "bbox": [20, 20, 40, 40], "iscrowd": 1},
            {"id": 2, "image_id": 8, "category_id": 0, "bbox": [0, 0, 20, 20], "area": 3},
            {"id": 3, "image_id": 8, "category_id": 1, "bbox": [0, 0, 10, 10]},
            {"id": 4, "image_id": 9, "category_id": 0, "bbox": [0, 0, 10, 10]},
            {"id": 5, "image_id": 10, "category_id": 0, "bbox": [300, 0, 10, 10]},
        ],
    }
    file = tmp_path / "boxes.json"
    file.write_text(json.dumps(content))
    given = {"query": complete.query_id, "annotator": admin.username, "category": "toad"}
    call_command("import_boxes", file, **given)
    drawn = {one.image_id - FIRST_ID: one.boxes for one in BoxSet.objects.all()}
    assert drawn == {0: [box(10, 10, 20, 20, group=True)], 1: [box(0, 0, 10, 10)]}
    report = boxes_import(query=complete, data=file.read_bytes(), by=admin, category="toad")
    assert (report.images, report.unchanged, report.unknown) == (0, 2, ["toy/9.jpg"])
    assert "outside of the image" in report.refused[0]
    # An admin's file doesn't decide: annotators box these too.
    assert len(BoxWork(complete).waiting(annotator)) == 3

    upload = SimpleUploadedFile("boxes.json", file.read_bytes())
    import_page = f"/queries/{complete.pk}/boxes/import/"
    answer = clients["admin"].post(import_page, {"file": upload}, follow=True).content.decode()
    assert "2 boxes on 1 images were stored. 1 images had theirs." in answer
    assert clients["reviewer"].post(import_page).status_code == 403
    broken = SimpleUploadedFile("boxes.json", b'{"images": []}')
    answer = clients["admin"].post(import_page, {"file": broken}, follow=True).content.decode()
    assert "t a COCO file" in answer
    for wrong in ({"query": 99}, {"annotator": "nobody"}, {"category": "newt"}):
        with pytest.raises(CommandError):
            call_command("import_boxes", file, **given | wrong)


def test_boxes_of_an_image_that_the_file_has_unturned_are_refused(complete, admin):
    """Ours are upright, 100 × 80; a tool that passes over EXIF has the photograph as 80 × 100."""

    def load(width, height):
        content = {
            "images": [{"id": 1, "file_name": "toy/0.jpg", "width": width, "height": height}],
            "categories": [{"id": 0, "name": "toad"}],
            "annotations": [{"id": 1, "image_id": 1, "category_id": 0, "bbox": [0, 0, 20, 20]}],
        }
        data = json.dumps(content).encode()
        return boxes_import(query=complete, data=data, by=admin)

    [why] = load(80, 100).refused
    assert (
        "It has 80 × 100 pixels in the file and, upright, 100 × 80 here: turn the boxes first"
        in why
    )
    [why] = load(400, 100).refused
    assert "It has another shape" in why
    assert not BoxSet.objects.exists()
    assert load(201, 160).images == 1


def test_pycocotools_reads_and_scores_a_release(tmp_path, complete, annotator):
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    draw(complete, 0, annotator, box(0, 0, 100, 80), box(10, 10, 30, 30))
    draw(complete, 1, annotator, box(5, 5, 20, 20, group=True))
    draw(complete, 2, annotator)
    boxes = list(released_boxes())
    number = complete.query_id
    assert [one.image_id - FIRST_ID for one in boxes] == [0, 0, 1]
    boxes.append(ReleasedBox(number + 1, FIRST_ID, 1, 1, 8, 8, group=False))
    snapshot = write_snapshot(
        tmp_path / "snapshot",
        header=header(test_labels="hidden"),
        queries=[query(number, "a toad", split="val"), query(number + 1, "a newt", split="test")],
        images=[image(FIRST_ID + at, width=100, height=80) for at in range(3)],
        pairs=[pair(number, FIRST_ID + at, True) for at in range(3)],
    )
    SnapshotWriter(snapshot.directory).table("boxes", boxes)
    files = format_files(write, snapshot, tmp_path)
    assert [(one.name, one.access) for one in files] == [
        ("coco/boxes.json", "labels"), ("coco/boxes_val.json", "open")
    ]  # fmt: skip
    truth = COCO(str(tmp_path / "coco/boxes_val.json"))
    assert truth.dataset["info"]["sizes"] == {"medium": 1, "small": 2}
    assert [one["name"] for one in truth.dataset["categories"]] == ["a toad"]
    found = [
        {"image_id": one["image_id"], "category_id": number, "bbox": one["bbox"], "score": 0.9}
        for one in truth.dataset["annotations"]
    ]
    for results, precision in ((found, 1.0), (found[1:], 0.5)):
        scored = COCOeval(truth, truth.loadRes(results), "bbox")
        scored.evaluate()
        scored.accumulate()
        scored.summarize()
        assert scored.stats[0] == pytest.approx(precision, abs=0.01)
    write_open_snapshot(OpenSnapshot(snapshot))
    assert {one.query_id for one in snapshot_boxes(snapshot.open)} == {number}

"""Near-duplicates and bursts: found, decided on, stated."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from PIL import Image as PillowImage
from rest_framework.test import APIClient

from annotator.log.selectors import LogFilter, log_page
from core.jobs.models import Job
from extras.duplicates.models import DuplicateGroup
from extras.duplicates.services import (
    duplicate_counts,
    duplicates_find,
    duplicates_step,
    group_decide,
)
from releases.formats.datasheet import write as write_datasheet
from retrieval.corpus.models import Image, ImageWithdrawal, Species
from retrieval.embedding.models import EmbeddingModel
from retrieval.flags.services import image_withdraw
from retrieval.images.storage import image_store
from tests.releases.snapshots import format_files, toy_snapshot
from tests.retrieval.making import embed_rows, encoded, image_row, scene

NOON = datetime(2021, 5, 1, 12, tzinfo=UTC)


def stored(number: int, picture: PillowImage.Image, species: Species, **fields: Any) -> Image:
    data = encoded(picture.convert("RGB"), "JPEG", quality=fields.pop("quality", 90))
    kept = image_store(data)
    image = image_row(number, species, sha256=kept.sha256, **fields)
    Image.objects.filter(pk=image.pk).update(width=kept.width, height=kept.height)
    return image


def sets() -> list[tuple[str, set[int]]]:
    return [
        (group.kind, set(group.images.values_list("pk", flat=True)))
        for group in DuplicateGroup.objects.order_by("pk")
    ]


@pytest.fixture
def images(store: Path, animals: dict[str, Species], toy_model: EmbeddingModel) -> list[Image]:
    """1 and 2 are copies of different sizes, 3 another picture of the same moment as 4, 5 alike
    but of another day, 6 a copy of 1 of another species, 7 unlike all.
    """
    one, other = list(animals.values())[:2]
    here = {"latitude": 10.0, "longitude": 20.0, "observer": "17"}
    made = [
        stored(1, scene(1), one),
        stored(2, scene(1).resize((320, 320)), one, quality=60),
        stored(3, scene(3), one, observed_at=NOON, **here),
        stored(4, scene(4), one, observed_at=NOON + timedelta(minutes=9), **here),
        stored(5, scene(5), one, observed_at=NOON + timedelta(days=1), **here),
        stored(6, scene(1), other),
        stored(7, scene(7), one),
    ]
    alike = [1.0, 0.0, 0.0]
    vectors = {image.pk: alike for image in made[:6]} | {made[6].pk: [0.0, 1.0, 0.0]}
    embed_rows(toy_model, vectors)
    return made


def test_copies_and_bursts_of_a_species_are_found(
    images: list[Image], toy_model: EmbeddingModel, reviewer: Any
) -> None:
    seen: list[tuple[int, int]] = []
    found = duplicates_find(model=toy_model, least=0.95, progress=lambda *given: seen.append(given))
    assert found == (2, 4)
    assert sets() == [("copy", {1, 2}), ("burst", {3, 4})]
    assert seen[-1][0] == seen[-1][1]
    # Other observers make no burst; what was withdrawn is in no group.
    Image.objects.filter(pk=4).update(observer="18")
    ImageWithdrawal.objects.create(image_id=1, withdrawn_by=reviewer, withdrawn_at=NOON)
    assert duplicates_find(model=toy_model, least=0.95) == (0, 0)
    assert sets() == []


def test_a_decision_is_taken_once_and_stays(
    images: list[Image], toy_model: EmbeddingModel, reviewer: Any
) -> None:
    duplicates_find(model=toy_model, least=0.95)
    copies, burst = DuplicateGroup.objects.order_by("pk")
    assert group_decide(group=copies, decision="one", by=reviewer)
    assert not group_decide(group=copies, decision="withdrawn", by=reviewer)
    withdrawn = ImageWithdrawal.objects.get()
    assert withdrawn.image_id == 1
    assert withdrawn.note == "Copies: nearly the same as image 2"
    assert group_decide(group=burst, decision="kept", by=reviewer)
    assert ImageWithdrawal.objects.count() == 1
    assert duplicate_counts() == {"found": 2, "kept": 1, "one": 1, "withdrawn": 0}
    logged = [(row.what, row.thing) for row in log_page(LogFilter(kind="duplicates"), size=9)[0]]
    assert logged == [("All kept", f"A burst {burst.pk}"), ("One kept", f"Copies {copies.pk}")]
    # The burst that was kept isn't found again.
    assert duplicates_find(model=toy_model, least=0.95) == (0, 0)
    assert len(sets()) == 2


def test_one_is_kept_of_those_that_are_still_in_the_corpus(
    images: list[Image], toy_model: EmbeddingModel, reviewer: Any
) -> None:
    duplicates_find(model=toy_model, least=0.95)
    copies, burst = DuplicateGroup.objects.order_by("pk")
    for image in (images[1], images[2], images[3]):
        image_withdraw(image=image, by=reviewer, note="a face")
    for group in (copies, burst):
        assert group_decide(group=group, decision="one", by=reviewer)
    left = set(ImageWithdrawal.objects.values_list("image_id", "note"))
    assert left == {(2, "a face"), (3, "a face"), (4, "a face")}


def test_reviewers_decide_on_the_page(
    images: list[Image], toy_model: EmbeddingModel, clients: dict[str, Any], settings: Any
) -> None:
    settings.EMBEDDING_MODEL = toy_model.name
    call_command("find_duplicates", verbosity=0)
    assert clients["annotator"].get("/duplicates/").status_code == 403
    page = clients["reviewer"].get("/duplicates/").content.decode()
    assert page.count('name="group"') == 2
    assert 'aria-current="page">Flags<' in page
    assert images[1].thumbnail_url.split("/")[2] in page
    first = DuplicateGroup.objects.earliest("pk")
    for turn in range(2):
        form = {"group": first.pk, "decision": "withdrawn"}
        page = clients["reviewer"].post("/duplicates/", form, follow=True).content.decode()
        assert page.count('name="group"') == 1
        assert ("Somebody has decided" in page) == bool(turn)
    assert ImageWithdrawal.objects.count() == 2
    for wrong in ("99999", "", "abc", "9" * 30):
        assert clients["reviewer"].post("/duplicates/", {"group": wrong}).status_code == 404
    with pytest.raises(CommandError, match="has embedded no image"):
        call_command("find_duplicates", model="none")


def test_the_datasheet_tells_what_was_decided(tmp_path: Path) -> None:
    texts = []
    for name, more in (
        ("a", {}),
        ("b", {"duplicates": {"found": 9, "kept": 2, "one": 3, "withdrawn": 1}}),
    ):
        snapshot = toy_snapshot(tmp_path / name, **more)
        format_files(write_datasheet, snapshot, tmp_path / f"out-{name}")
        texts.append((tmp_path / f"out-{name}" / "DATASHEET.md").read_text())
    assert "near-duplicate" not in texts[0]
    words = "corpus: 9. Reviewers kept 2 whole, kept one image of 3, and withdrew 1 whole"
    assert words in texts[1].replace("\n", " ")


def test_the_button_begins_a_job_that_goes_on_where_it_stopped(
    images: list[Image], toy_model: EmbeddingModel, clients: dict[str, Any], settings: Any
) -> None:
    assert b"has embedded no image" in _look(clients["reviewer"], follow=True).content
    settings.EMBEDDING_MODEL = toy_model.name
    assert clients["annotator"].post("/duplicates/", {"look": 1}).status_code == 403
    DuplicateGroup.objects.create(kind="copy").images.set(images[5:])
    job = Job.objects.get(pk=int(_look(clients["reviewer"])["Location"].split("/")[-2]))
    assert _look(clients["reviewer"])["Location"] == f"/jobs/{job.pk}/"
    while not duplicates_step(_running(job), deadline=0.0):
        pass  # a slice for each species
    assert sets() == [("copy", {1, 2}), ("burst", {3, 4})]
    job.refresh_from_db()
    assert job.done == job.total == Species.objects.count() + 1


def test_an_admin_begins_the_job_by_the_api(
    images: list[Image],
    toy_model: EmbeddingModel,
    admin_api: APIClient,
    reviewer_api: APIClient,
    settings: Any,
) -> None:
    address = "/api/duplicates/"
    assert admin_api.post(address).status_code == 409
    settings.EMBEDDING_MODEL = toy_model.name
    assert reviewer_api.post(address).status_code == 403
    answer = admin_api.post(address)
    assert (answer.status_code, answer.json()["title"]) == (201, "Look for near-duplicates")
    assert admin_api.post(address).json()["id"] == Job.objects.get().pk


def _look(client: Any, **options: Any) -> Any:
    return client.post("/duplicates/", {"look": 1}, **options)


def _running(job: Job) -> Job:
    Job.objects.filter(pk=job.pk).update(state=Job.State.RUNNING)
    job.refresh_from_db()
    return job

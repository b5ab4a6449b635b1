"""A data set that nothing names leaves whole, with its files and embeddings; others stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from core.errors import Conflict
from core.jobs.kinds import JobFailed
from core.jobs.models import Job
from core.jobs.services import Slice, job_slice_run
from labeling.lifecycle.examples import example_pin
from labeling.lifecycle.services import query_create
from retrieval.corpus.counts import image_counts_check
from retrieval.corpus.models import Image
from retrieval.corpus.selectors import datasets
from retrieval.corpus.shown import cache_folder
from retrieval.embedding.models import Embedding, EmbeddingModel
from retrieval.flags.services import image_flag_raise, image_withdraw
from retrieval.images.storage import image_store
from retrieval.importing.records import ImportRefused
from retrieval.importing.services import import_images
from retrieval.removal.selectors import removal_preview
from retrieval.removal.services import dataset_removal_begin, removal_step
from retrieval.takedown.services import image_take_down
from tests.retrieval.making import embed_rows, image_row, jpeg

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/data-sets/remove/?dataset=wrong"


@pytest.fixture
def wrong(store: Path, animals: Any, toy_model: EmbeddingModel, admin: Any) -> list[Image]:
    """Three images of a data set "wrong", the first with the same file as one of "right"."""
    colors = {1: "red", 2: "green", 3: "blue", 4: "red", 5: "white"}
    kept = {number: image_store(jpeg(color)) for number, color in colors.items()}
    made = [
        image_row(
            number,
            animals["Ursus arctos"],
            dataset="wrong" if number < 4 else "right",
            sha256=kept[number].sha256,
        )
        for number in colors
    ]
    embed_rows(toy_model, {number: [1, number, 0] for number in colors})
    image_flag_raise(image=made[1], kind="person", by=admin)
    image_withdraw(image=made[1], by=admin)
    return made[:3]


def stored(store: Path) -> set[str]:
    return {path.name.split(".")[0] for path in store.rglob("*") if path.is_file()}


def running(job: Job) -> Job:
    Job.objects.filter(pk=job.pk).update(state=Job.State.RUNNING)
    job.refresh_from_db()
    return job


def test_it_goes_whole_and_what_others_have_stays(
    wrong: list[Image], store: Path, clients: dict[str, Client]
) -> None:
    page = clients["admin"].get(PAGE).content.decode()
    assert "Nothing was labeled in it" in page
    preview = removal_preview("wrong")
    assert (preview.images, preview.more) == (3, False)
    assert (preview.files, preview.embeddings, preview.problem) == (2, 3, "")
    assert clients["annotator"].get(wrong[2].url).status_code == 200
    assert len(list(cache_folder().glob("*/*"))) == 1
    answer = clients["admin"].post(PAGE)
    job = Job.objects.get()
    assert answer["Location"] == f"/jobs/{job.pk}/"
    assert job_slice_run(job_id=job.pk) is Slice.FINISHED
    assert datasets() == ["right"]
    left = Image.objects.order_by("pk")
    assert [image.pk for image in left] == [4, 5]
    assert list(cache_folder().glob("*/*")) == []
    assert stored(store) == {image.sha256 for image in left}
    assert sorted(Embedding.objects.values_list("image_id", flat=True)) == [4, 5]
    assert image_counts_check() == []
    assert "Remove the data set wrong" in clients["admin"].get("/log/").content.decode()


def test_it_goes_on_where_it_was_interrupted(
    wrong: list[Image], store: Path, admin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrieval.removal.services.REMOVED_AT_ONCE", 2)
    job = dataset_removal_begin(dataset="wrong", by=admin)
    assert dataset_removal_begin(dataset="wrong", by=admin) == job
    left = []
    while not removal_step(running(job), deadline=0.0):
        left.append((Image.objects.filter(dataset="wrong").count(), len(stored(store))))
    # All are checked before the first goes; files go in the slice after their images.
    assert left == [(3, 4), (3, 4), (1, 4), (0, 3)]
    assert len(stored(store)) == 2
    assert image_counts_check() == []
    job.refresh_from_db()
    assert job.done == job.total == 3


def test_imports_and_removals_wait_for_each_other(
    wrong: list[Image], admin: Any, tmp_path: Path
) -> None:
    bears = tmp_path / "bears"
    (bears / "Ursus arctos").mkdir(parents=True)
    (bears / "Ursus arctos" / "bear.jpg").write_bytes(jpeg("red"))

    def progress(done: int, total: int) -> None:
        with pytest.raises(Conflict, match="Images are being imported"):
            dataset_removal_begin(dataset="wrong", by=admin)

    assert import_images(path=bears, dataset="more", progress=progress).added == 1
    dataset_removal_begin(dataset="wrong", by=admin)
    with pytest.raises(ImportRefused, match="A data set is being removed"):
        import_images(path=bears, dataset="more")
    Job.objects.update(state=Job.State.DONE)
    assert import_images(path=bears, dataset="more").skipped == 1


def test_a_taken_down_image_keeps_its_data_set(wrong: list[Image], admin: Any) -> None:
    image_take_down(image=wrong[0], reason="asked by its owner", by=admin)
    assert removal_preview("wrong").problem == (
        "The data set wrong stays: its images are named by takedowns (their records tell imports "
        "which files never to bring back)."
    )


def test_what_is_named_stays(
    wrong: list[Image], clients: dict[str, Client], admin_api: APIClient, admin: Any
) -> None:
    job = dataset_removal_begin(dataset="wrong", by=admin)
    query = query_create(text="a bear", category="Species ID", split="val", created_by=admin)
    example_pin(query=query, image_id=3, relevant=True, by=admin)
    sentence = "The data set wrong stays: its images are named by pinned examples."
    while not isinstance(error := _slice(job), str):
        pass
    assert error == sentence
    Job.objects.all().delete()
    assert sentence in clients["admin"].get(PAGE).content.decode()
    page = clients["admin"].post(PAGE, follow=True).content.decode()
    assert page.count(sentence) == 2  # the message and the preview
    body = {"dataset": "wrong"}
    assert admin_api.get("/api/data-sets/removal/", body).json()["problem"] == sentence
    answer = admin_api.post("/api/data-sets/removal/", body)
    assert (answer.status_code, answer.json()["detail"]) == (409, sentence)
    assert not Job.objects.exists()
    assert Image.objects.filter(dataset="wrong").count() == 3


def _slice(job: Job) -> bool | str:
    try:
        return removal_step(running(job), deadline=0.0)
    except JobFailed as error:
        return str(error)


def test_admins_alone_remove(
    wrong: list[Image],
    clients: dict[str, Client],
    admin_api: APIClient,
    reviewer_api: APIClient,
    admin: Any,
) -> None:
    for role in ("annotator", "reviewer"):
        assert clients[role].get(PAGE).status_code == 403
        assert clients[role].post(PAGE).status_code == 403
        assert b"data-sets/remove" not in clients[role].get("/corpus/").content
    body = {"dataset": "wrong"}
    assert reviewer_api.get("/api/data-sets/removal/", body).status_code == 403
    assert reviewer_api.post("/api/data-sets/removal/", body).status_code == 403
    assert reviewer_api.get("/api/data-sets/").json() == {"results": ["right", "wrong"]}
    assert clients["admin"].get("/data-sets/remove/?dataset=none").status_code == 404
    assert admin_api.post("/api/data-sets/removal/", {"dataset": "none"}).status_code == 404
    Job.objects.create(kind="import", created_by=admin)
    answer = admin_api.post("/api/data-sets/removal/", body)
    assert (answer.status_code, "being imported" in answer.json()["detail"]) == (409, True)
    Job.objects.all().delete()
    answer = admin_api.post("/api/data-sets/removal/", body)
    assert (answer.status_code, answer.json()["title"]) == (201, "Remove the data set wrong")

"""An image that is taken down leaves with all that was made of it, and stays away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from core.jobs.models import Job
from core.jobs.services import Slice, job_slice_run
from retrieval.corpus.models import Image, ImageTakedown
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import Embedding
from retrieval.embedding.services import embedding_job_create
from retrieval.flags.selectors import images_in_corpus, withdrawn_images
from retrieval.flags.services import FlagRefused, image_restore
from retrieval.images.storage import image_store
from retrieval.importing.services import import_images
from retrieval.ranking.building import pack
from retrieval.ranking.files import open_matrix
from retrieval.ranking.selectors import half_rounded, rank_images
from retrieval.takedown.services import image_take_down
from tests.retrieval.making import coco, coco_image, embed_rows, image_row, jpeg, random_vectors
from tests.retrieval.matrices import embed, images
from tests.retrieval.rooted import folder_root, rooted

pytestmark = pytest.mark.django_db(transaction=True)


def files(store: Path) -> set[str]:
    return {path.name for path in store.rglob("*") if path.is_file()}


def page(client: Client, address: str) -> int:
    return int(client.get(address).status_code)


def work(job: Job) -> Job:
    while job_slice_run(job_id=job.pk) is Slice.MORE:
        pass
    job.refresh_from_db()
    return job


def test_nothing_of_it_is_left_but_a_tombstone(
    store: Path, tmp_path: Path, clients: dict[str, Client], admin: Any
) -> None:
    import_images(path=coco(tmp_path))
    image, *others = Image.objects.order_by("pk")
    model = embedding_model_get_or_create(name="toy", dimension=3)
    embed_rows(model, {one.pk: [1, one.pk, 0] for one in (image, *others)})
    kept = files(store) - {f"{image.sha256}.source", f"{image.sha256}.thumb.jpg"}
    assert page(clients["reviewer"], image.url) == 200
    assert image_take_down(image=image, reason="A face", by=admin) == [image.pk]
    assert files(store) == kept
    for client in (clients["reviewer"], clients["annotator"]):
        gone = Image.objects.get(pk=image.pk)
        assert {page(client, one) for one in (image.url, image.thumbnail_url, gone.url)} == {404}
    assert not Embedding.objects.filter(image=image).exists()
    ranked = rank_images(model=model, text_vector=[1.0, 0, 0], limit=None)
    assert {image_id for image_id, _ in ranked} == {one.pk for one in others}
    assert image.pk not in images_in_corpus().values_list("pk", flat=True)
    assert not withdrawn_images().exists()
    gone = Image.objects.get(pk=image.pk)
    assert (gone.latitude, gone.longitude, gone.observed_at, gone.rights_holder) == (
        None, None, None, "",
    )  # fmt: skip
    takedown = ImageTakedown.objects.get()
    assert (takedown.image_id, takedown.sha256, takedown.reason, takedown.taken_down_by) == (
        image.pk, image.sha256, "A face", admin,
    )  # fmt: skip
    with pytest.raises(FlagRefused, match="taken down"):
        image_restore(image=image, by=admin)
    assert image_take_down(image=image, reason="Again", by=admin) == []


def test_no_import_and_no_embedding_brings_it_back(
    store: Path, tmp_path: Path, admin: Any, demo_encoder: str
) -> None:
    path = coco(tmp_path)
    import_images(path=path)
    image = Image.objects.order_by("pk")[0]
    image_take_down(image=image, reason="A face", by=admin)
    before = Image.objects.filter(pk=image.pk).values().get()
    report = import_images(path=path)
    assert [one.reason for one in report.refused] == ["was taken down, and isn't brought back"]
    # Under another number, and in place.
    other = coco(tmp_path, name="other.json", images=[coco_image(7, file_name="train/1.jpg")],
                 annotations=[])  # fmt: skip
    assert import_images(path=other).refused_count == 1
    root = folder_root(tmp_path, {})
    import_images(path=path, root=root, dataset=image.dataset)
    assert Image.objects.filter(pk=image.pk).values().get() == before
    assert not [name for name in files(store) if name.startswith(image.sha256)]
    job = work(embedding_job_create(model_name=demo_encoder))
    assert (job.state, job.failed, job.done) == (Job.State.DONE, 0, 2)


def test_images_with_the_same_file_go_too(store: Path, admin: Any) -> None:
    stored = image_store(jpeg("red"))
    for number in (1, 2):
        image_row(number, sha256=stored.sha256)
    image_row(3)
    assert image_take_down(image=Image(pk=2), reason="A face", by=admin) == [1, 2]
    assert files(store) == set()


def test_a_file_at_a_root_stays_there_and_is_read_no_more(
    store: Path, tmp_path: Path, clients: dict[str, Client], admin: Any, capsys: Any
) -> None:
    data = tmp_path / "data"
    image = rooted(1, folder_root(data, {"a/1.jpg": jpeg("red", (800, 600))}), "a/1.jpg")
    assert page(clients["reviewer"], image.thumbnail_url) == 200
    call_command("take_down", "1", reason="License withdrawn", by=admin.username)
    assert f"Its file stays at {data}/a/1.jpg" in capsys.readouterr().out
    assert (data / "a/1.jpg").exists()
    gone = Image.objects.get(pk=1)
    assert page(clients["reviewer"], image.thumbnail_url) == 404
    assert page(clients["reviewer"], gone.thumbnail_url) == 404


def test_its_vector_leaves_the_matrix(settings: Any, tmp_path: Path, admin: Any) -> None:
    settings.VAR_DIR = tmp_path
    vectors = random_vectors(40, 16)
    images(range(40))
    model = embedding_model_get_or_create(name="m", dimension=16)
    embed(model, range(40), vectors)
    pack(model)
    packed = open_matrix(model).manifest
    assert packed.rows == 40
    image_take_down(image=Image(pk=7), reason="A face", by=admin)
    query = half_rounded(random_vectors(1, 16, seed=5)[0])
    assert 7 not in dict(rank_images(model=model, text_vector=query, limit=None))
    job = work(Job.objects.get(kind="pack_embeddings"))
    assert job.state == Job.State.DONE, job.error
    mapped = open_matrix(model)
    assert mapped.manifest.rows == 39
    assert 7 not in np.concatenate([part.image_ids for part in mapped.parts])


def test_the_page_asks_admins_alone_and_for_a_reason(
    store: Path, clients: dict[str, Client], admin: Any
) -> None:
    image_row(1, sha256=image_store(jpeg("red")).sha256)
    address = "/take-down/1/"
    assert page(clients["reviewer"], address) == 403
    assert clients["reviewer"].post(address, {"reason": "x"}).status_code == 403
    assert "can’t be undone" in clients["admin"].get(address).content.decode()
    assert "This field is required" in clients["admin"].post(address, {}).content.decode()
    assert not ImageTakedown.objects.exists()
    done = clients["admin"].post(address, {"reason": "A face"}, follow=True)
    assert "Image 1 was taken down." in done.content.decode()
    assert page(clients["admin"], address) == 404


def test_the_command_names_what_it_can_not_do(db: None, reviewer: Any, admin: Any) -> None:
    image_row(1)
    with pytest.raises(CommandError, match="is no admin"):
        call_command("take_down", "1", reason="x", by=reviewer.username)
    with pytest.raises(CommandError, match="There is no image 9"):
        call_command("take_down", "1", "9", reason="x", by=admin.username)
    with pytest.raises(CommandError, match="Give a reason"):
        call_command("take_down", "1", reason=" ", by=admin.username)
    assert not ImageTakedown.objects.exists()

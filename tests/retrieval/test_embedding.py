"""Embedding with real models: a tiny one with random weights, and the demo's."""

import numpy as np
import pytest
import torch
from django.core.management import CommandError, call_command

from core.jobs import services as job_services
from core.jobs.models import Job, JobItemError
from core.jobs.services import Slice, job_retry, job_slice_run
from retrieval.corpus.models import Image
from retrieval.embedding import services as embedding_services
from retrieval.embedding.models import Embedding
from retrieval.embedding.services import embedding_job_create
from retrieval.encoding.encoders import load_encoder
from retrieval.encoding.image_tower import ImageTower, Launched
from retrieval.images.files import ImageRef, source_bytes
from retrieval.importing.services import import_images
from retrieval.ranking.selectors import half_rounded
from tests.retrieval.making import coco, coco_image, decoded, jpeg
from tests.retrieval.rooted import folder_root, rooted
from tests.threads import at_once

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("messages")]


@pytest.fixture
def corpus(store, tmp_path, settings, tiny_model):
    """Seven images and the tiny model, in batches of three; it brings more or other files."""
    settings.EMBEDDING_MODEL = tiny_model
    settings.EMBEDDING_BATCH_SIZE = 3
    folder = tmp_path / "data"
    folder.mkdir()

    def bring(numbers, salt=0):
        images = []
        for n in numbers:
            images.append(coco_image(n, file_name=f"train/{n}.jpg"))
            (folder / "train").mkdir(exist_ok=True)
            (folder / f"train/{n}.jpg").write_bytes(jpeg((30 * n % 256, salt, 90), (60, 40 + n)))
        return import_images(path=coco(folder, images=images, annotations=[]))

    bring(range(1, 8))
    return bring


def run(job):
    """Work the job off; returns it as it ended."""
    for _ in range(50):
        if job_slice_run(job_id=job.pk) not in (Slice.MORE, Slice.LATER):
            break
    job.refresh_from_db()
    return job


def embedded():
    return sorted(Embedding.objects.values_list("image_id", flat=True))


def red(pixels):
    """How red each of the prepared images is; image n has 30 n."""
    return pixels[..., 0].float().mean(dim=(1, 2)).tolist()


def is_image(number, redness):
    return abs(redness - 30 * number) < 5


def lose(store, image_id):
    """Remove an image's source from the store."""
    sha256 = Image.objects.get(pk=image_id).sha256
    (source,) = store.rglob(f"{sha256}.source")
    source.unlink()


def pixels_of(image):
    return decoded(source_bytes(ImageRef.of(image)), max_pixels=10_000).pixels


def test_a_second_job_embeds_only_what_came_since(corpus):
    run(embedding_job_create())
    corpus(range(1, 10))
    job = run(embedding_job_create())
    assert (job.state, job.done, job.total) == ("done", 2, 2)
    assert embedded() == list(range(1, 10))
    nothing = run(embedding_job_create())
    assert (nothing.state, nothing.done, nothing.total, nothing.percent) == ("done", 0, 0, 100)


def test_a_job_cut_after_any_slice_goes_on(corpus, monkeypatch):
    monkeypatch.setattr(job_services, "SLICE_SECONDS", 0)
    job = embedding_job_create()
    seen = []
    while job_slice_run(job_id=job.pk) is Slice.MORE:
        job.refresh_from_db()
        seen.append(job.done)
    assert seen == [3, 6, 7]
    assert embedded() == list(range(1, 8))


def test_a_lost_or_broken_file_is_named_and_the_rest_goes_on(corpus, store):
    lose(store, 2)
    sha256 = Image.objects.get(pk=5).sha256
    (source,) = store.rglob(f"{sha256}.source")
    source.write_bytes(source.read_bytes()[:200])
    job = run(embedding_job_create())
    assert (job.state, job.done, job.failed, job.total) == ("done", 5, 2, 7)
    errors = dict(JobItemError.objects.values_list("image_id", "message"))
    assert errors[2] == "The image's file is gone from the store. Import it again."
    assert "truncated" in errors[5]
    assert embedded() == [1, 3, 4, 6, 7]
    corpus(range(1, 8))
    again = run(embedding_job_create())
    assert (again.done, again.failed) == (1, 1)
    assert embedded() == [1, 2, 3, 4, 6, 7]


def test_an_image_on_which_the_model_fails_is_found_in_its_batch(corpus, monkeypatch):
    whole = ImageTower.launch

    def picky(self, pixels):
        if any(is_image(2, value) or is_image(7, value) for value in red(pixels)):
            raise RuntimeError("odd red")
        return whole(self, pixels)

    monkeypatch.setattr(ImageTower, "launch", picky)
    job = run(embedding_job_create())
    assert (job.state, job.done, job.failed) == ("done", 5, 2)
    # The seventh is alone in its batch.
    assert set(JobItemError.objects.values_list("image_id", "message")) == {
        (2, "The model failed on this image: odd red"),
        (7, "The model failed on this image: odd red"),
    }


def test_a_model_that_fails_on_everything_fails_the_job(corpus, monkeypatch):
    def broken(self, pixels):
        raise RuntimeError("no kernel image")

    monkeypatch.setattr(ImageTower, "launch", broken)
    job = run(embedding_job_create())
    assert (job.state, job.error) == ("failed", "RuntimeError: no kernel image")
    assert JobItemError.objects.count() == 0


def test_a_vector_that_is_not_finite_is_an_error_of_its_image(corpus, monkeypatch):
    launch = ImageTower.launch

    def not_finite(self, pixels):
        found = launch(self, pixels).vectors()
        for row, value in zip(found, red(pixels), strict=True):
            if is_image(3, value):
                row[:] = np.nan
        return Launched(torch.from_numpy(found))

    monkeypatch.setattr(ImageTower, "launch", not_finite)
    job = run(embedding_job_create())
    assert (job.done, job.failed) == (6, 1)
    assert JobItemError.objects.get().image_id == 3


def test_a_file_replaced_while_it_was_embedded_gets_the_new_files_vector(
    corpus, monkeypatch, tiny_model
):
    encode_batches, replaced = embedding_services.encode_batches, []

    def meanwhile(*args, **options):
        for items in encode_batches(*args, **options):
            if not replaced:
                replaced.append(corpus(range(1, 8), salt=200).updated)
            yield items

    monkeypatch.setattr(embedding_services, "encode_batches", meanwhile)
    job = run(embedding_job_create())
    assert (replaced, job.state) == ([7], "done")
    assert embedded() == list(range(1, 8))
    encoder = load_encoder(tiny_model)
    for row in Embedding.objects.select_related("image"):
        (vector,) = encoder.encode_images([pixels_of(row.image)])
        assert np.allclose(row.vector, half_rounded(vector), atol=2e-3)


def test_one_unfinished_job_a_model(corpus, tiny_model, admin):
    job = embedding_job_create(created_by=admin)
    assert embedding_job_create(model_name=tiny_model) == job
    other = embedding_job_create(model_name="ViT-S-32-alt/random")
    assert other != job
    run(job)
    assert embedding_job_create() != job
    assert job.created_by == admin


def test_a_model_that_is_gone_fails_the_job_in_words(corpus, tiny_model):
    job = embedding_job_create()
    Job.objects.filter(pk=job.pk).update(params={"model": "/nowhere/model"})
    run(job)
    assert job.state == "failed"
    assert job.error.startswith("Model '/nowhere/model': there is no directory")


@pytest.mark.django_db(transaction=True)
def test_two_jobs_at_once_neither_double_nor_deadlock(corpus, tiny_model, monkeypatch):
    monkeypatch.setattr(job_services, "SLICE_SECONDS", 0)
    first = embedding_job_create()
    second = Job.objects.create(kind="embed", params={"model": tiny_model})

    at_once(*[lambda job=job: run(job) for job in (first, second)])
    states = set(Job.objects.values_list("state", "failed"))
    assert states == {("done", 0)}
    assert embedded() == list(range(1, 8))


@pytest.mark.django_db(transaction=True)
def test_the_command_says_that_no_worker_is_there(corpus, capsys, monkeypatch):
    from core.commands import waiting

    monkeypatch.setattr(waiting, "PATIENCE_SECONDS", {Job.State.QUEUED: 0})
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0.01)
    slept = []

    def working(seconds):
        slept.append(seconds)
        if len(slept) >= 5:
            run(Job.objects.first())

    monkeypatch.setattr(waiting.time, "sleep", working)
    call_command("embed", "--wait")
    said = capsys.readouterr().out
    assert said.count("No worker is at this job") == 1
    assert said.endswith("7 images embedded, 0 failed\n")
    call_command("embed", "--wait")
    assert capsys.readouterr().out.endswith("every image of the corpus is embedded.\n")


def test_the_command_names_what_failed_and_its_exit_code_tells(corpus, store, capsys, monkeypatch):
    from core.commands import waiting

    lose(store, 3)
    monkeypatch.setattr(waiting.time, "sleep", lambda seconds: run(Job.objects.get()))
    with pytest.raises(CommandError, match="1 images could not be embedded"):
        call_command("embed", "--wait")
    assert "failed image 3: The image's file is gone from the store." in capsys.readouterr().out
    with pytest.raises(CommandError, match="accepted are"):
        call_command("embed", "--model", "nonsense")


def test_images_that_stay_where_they_are_are_embedded_from_there(tmp_path, store, tiny_model):
    root = folder_root(
        tmp_path / "data", {f"a/{n}.jpg": jpeg("teal", (60, 41 + n)) for n in (1, 2)}
    )
    for number in (1, 2):
        rooted(number, root, f"a/{number}.jpg")
    rooted(3, root, "a/3.jpg")
    job = run(embedding_job_create(model_name=tiny_model))
    assert (job.state, job.done, job.failed) == ("done", 2, 1)
    assert embedded() == [1, 2]
    assert "data" not in JobItemError.objects.get(image_id=3).message


def test_a_place_that_does_not_answer_fails_the_job_and_not_its_images(tmp_path, store, tiny_model):
    root = folder_root(tmp_path / "data", {"1.jpg": jpeg("teal")})
    rooted(1, root, "1.jpg")
    (tmp_path / "data").rename(tmp_path / "away")
    job = run(embedding_job_create(model_name=tiny_model))
    assert (job.state, job.failed, JobItemError.objects.count()) == ("failed", 0, 0)
    (tmp_path / "away").rename(tmp_path / "data")
    assert job_retry(job=job)
    assert (run(job).state, embedded()) == ("done", [1])

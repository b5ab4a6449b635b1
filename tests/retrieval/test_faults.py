"""Work that is killed in its middle, by real processes: what is stored stays, the rest follows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from django.db import connection, transaction

from bench.rows import write_coco
from core.jobs.models import Job
from core.jobs.services import job_cancel, job_create
from core.locks import lock_key, transaction_lock
from retrieval.corpus.models import Image, ImageRoot
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import Embedding, EmbeddingCount, EmbeddingModel, EmbeddingRange
from retrieval.embedding.progress import embedding_progress
from retrieval.embedding.selectors import embeddings_after
from retrieval.embedding.services import KIND, PARTICIPANT_KIND, embedding_job_create
from retrieval.encoding.unit_rows import unit_rows
from retrieval.importing.checks import images_check
from retrieval.importing.services import import_images
from retrieval.ranking import matrices
from retrieval.ranking.building import pack, verify_matrix
from retrieval.ranking.files import folder_of
from retrieval.ranking.matrices import pack_request
from retrieval.ranking.selectors import ranking_method
from retrieval.search.indexing import index_build
from retrieval.search.vector_indexes import vector_index
from tests import ROOT
from tests.processes import Worker, database_url, killed, redis_server, wait_for
from tests.retrieval.indexes import writing
from tests.retrieval.layouts import write_part
from tests.retrieval.making import (
    coco,
    coco_image,
    embed_rows,
    jpeg,
    new_image,
    random_vectors,
    repeated_images,
)
from tests.retrieval.matrices import embed, images
from tests.retrieval.rooted import folder_root, rooted

pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True)]

StartWorker = Callable[..., Worker]
COUNT = 400
# More than one worker embeds before the other has loaded its model.
MANY = 30_000


def start(*command: str, output: Any = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """A process of the application on the test's database and state folder."""
    from django.conf import settings

    return subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "annotator.settings",
            "VAR_DIR": str(settings.VAR_DIR),
            "DATABASE_URL": database_url(connection.settings_dict),
        },
        stdout=output,
        stderr=subprocess.DEVNULL,
    )


def kill_when(begun: Callable[[], Any], process: subprocess.Popen[bytes]) -> None:
    wait_for(lambda: begun() or process.poll() is not None, what="its beginning", pause=0.002)
    killed(process)


def ended(job: Job) -> bool:
    job.refresh_from_db()
    return job.state not in Job.UNFINISHED


# Commands.


def test_an_import_of_embeddings(tmp_path: Path) -> None:
    count = 40_000
    Image.objects.bulk_create((new_image(n) for n in range(1, count + 1)), batch_size=5000)
    vectors = unit_rows(random_vectors(count, 128).astype(np.float32), scale=True).vectors
    write_part(tmp_path / "files", 0, vectors, {"image_id": np.arange(1, count + 1)})
    command = ["manage.py", "import_embeddings", "--model", "theirs", str(tmp_path / "files")]
    kill_when(Embedding.objects.exists, start(*command))
    moments = dict(Embedding.objects.values_list("image_id", "created_at"))
    assert 0 < len(moments) < count
    assert start(*command).wait() == 0
    model = EmbeddingModel.objects.get(name="theirs")
    assert np.array_equal(embeddings_after(model, 0, limit=count)[1], vectors)
    kept = Embedding.objects.filter(image_id__in=list(moments))
    assert dict(kept.values_list("image_id", "created_at")) == moments
    assert EmbeddingCount.objects.get().embedded == count


IN_SMALL_BATCHES = """
import sys, django
django.setup()
from retrieval.corpus.models import ImageRoot
from retrieval.importing import services as importing
importing.BATCH_IN_PLACE = 1000
importing.import_images(path=sys.argv[1], dataset="many", root=ImageRoot.objects.get())
"""


def test_an_import_in_place_twice(tmp_path: Path) -> None:
    total = 15_000
    path = tmp_path / "train.json"
    write_coco(path, images=total, species=40)
    root = ImageRoot.objects.create(location="s3://bucket/made-up")
    begun = 0
    for _ in range(2):
        before = begun
        process = start("-c", IN_SMALL_BATCHES, str(path))
        kill_when(lambda before=before: Image.objects.count() > before, process)
        begun = Image.objects.count()
        assert before < begun < total
        assert begun % 1000 == 0
    report = import_images(path=path, dataset="many", root=root)
    assert (report.added, report.updated, report.skipped) == (total - begun, 0, begun)
    ids = Image.objects.order_by("pk").values_list("pk", "source_id")
    assert list(ids) == [(n, str(n)) for n in range(total)]


def test_an_import_that_copies_files(tmp_path: Path, settings: Any) -> None:
    settings.VAR_DIR = tmp_path / "var"
    total = 3000
    (tmp_path / "data").mkdir()
    rows = [coco_image(n, file_name=f"train/{1 + n % 3}.jpg") for n in range(total)]
    path = coco(tmp_path / "data", images=rows)
    kill_when(Image.objects.exists, start("manage.py", "import_images", str(path)))
    begun = Image.objects.count()
    assert 0 < begun < total
    report = import_images(path=path)
    assert (report.added, report.updated, report.skipped) == (total - begun, 0, begun)
    assert len(set(Image.objects.values_list("sha256", flat=True))) == 3


def test_a_check_of_images(store: Path, tmp_path: Path) -> None:
    total = 600
    contents = [jpeg("red", (900, 900 + number)) for number in range(10)]
    files = {f"{number}.jpg": contents[number % 10] for number in range(total)}
    root = folder_root(tmp_path / "data", files)
    for number in range(total):
        rooted(number, root, f"{number}.jpg")
    known = Image.objects.exclude(sha256="")
    kill_when(known.exists, start("manage.py", "check_images", "--quiet"))
    done = known.count()
    assert 0 < done < total
    assert images_check().filled == total - done


KILLED_PACKING = """
import os, signal, django
django.setup()
from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking import building
building.CHUNK_BYTES = 1
def killing(rows, total):
    print(rows, flush=True)
    if rows > 256:
        os.kill(os.getpid(), signal.SIGKILL)
    return True
building.pack(EmbeddingModel.objects.get(), go_on=killing)
"""


def test_a_packed_matrix(tmp_path: Path, settings: Any) -> None:
    settings.VAR_DIR = tmp_path
    images(range(1000))
    model = embedding_model_get_or_create(name="m", dimension=20)
    embed(model, range(1000), random_vectors(1000, 20))
    process = start("-c", KILLED_PACKING, output=subprocess.PIPE)
    assert process.communicate()[0] == b"256\n512\n"
    assert process.returncode == -signal.SIGKILL
    assert pack(model) == 1000
    assert len(list(folder_of(model).iterdir())) == 5
    assert verify_matrix(model, lambda done, rows: None) == []


# Workers.


@pytest.fixture
def corpus(settings: Any, tiny_model: str) -> None:
    """Images of four contents, and the tiny model."""
    settings.EMBEDDING_MODEL = tiny_model
    repeated_images(COUNT, ("red", "green", "blue", "tan"), (64, 48))


def embedded() -> int:
    return Embedding.objects.count()


def assert_each_once(count: int = COUNT) -> None:
    per_image = Counter(Embedding.objects.values_list("image_id", flat=True))
    assert per_image == Counter(range(count))


def test_a_worker_that_embeds(corpus: None, start_worker: StartWorker, tmp_path: Path) -> None:
    with redis_server(tmp_path) as redis:
        options = {"EMBEDDING_BATCH_SIZE": "2", "CELERY_BROKER_URL": redis.url}
        job = embedding_job_create()
        worker = start_worker(**options)
        wait_for(lambda: embedded() >= COUNT // 6, what="part of the work", pause=0.01)
        worker.kill()
        job.refresh_from_db()
        assert 0 < embedded() < COUNT
        assert job.state == "running"
        start_worker(**options)
        wait_for(lambda: ended(job), what="the end of the job")
    assert (job.state, job.error) == ("done", "")
    assert (job.done, job.failed, job.total) == (COUNT, 0, COUNT)
    assert_each_once()


def test_a_worker_that_is_asked_to_end(corpus: None, start_worker: StartWorker) -> None:
    """It gives back what it has in hand."""
    job = embedding_job_create()
    asked = start_worker(EMBEDDING_BATCH_SIZE="2", CUDA_VISIBLE_DEVICES="none-a")
    wait_for(lambda: embedded() >= COUNT // 6, what="part of the work", pause=0.01)
    # As Kubernetes and systemd do, to the first process alone.
    asked.process.terminate()
    assert asked.process.wait(120) == 0
    job.refresh_from_db()
    before = embedded()
    assert (before < COUNT, job.state, job.done) == (True, "running", before)
    [line] = job.result.values()
    assert (line["device"], line["done"], line["ranges"]) == ("CPU none-a", before, [])
    # To all of its processes: it comes to the same, for those of the pool leave it to the first.
    group = start_worker(EMBEDDING_BATCH_SIZE="2", CUDA_VISIBLE_DEVICES="none-b")
    wait_for(lambda: embedded() >= before + COUNT // 20, what="more of the work", pause=0.01)
    pool = psutil.Process(group.process.pid).children()
    for one in pool:
        one.terminate()
    wait_for(lambda: embedded() >= before + COUNT // 10, what="yet more of the work", pause=0.01)
    assert psutil.Process(group.process.pid).children() == pool
    os.killpg(group.process.pid, signal.SIGTERM)
    assert group.process.wait(120) == 0
    assert embedded() < COUNT
    start_worker(EMBEDDING_BATCH_SIZE="2", CUDA_VISIBLE_DEVICES="none-c")
    wait_for(lambda: ended(job), seconds=120, what="the end of the job")
    assert (job.state, job.error, job.done, job.failed) == ("done", "", COUNT, 0)
    assert sum(one["done"] for one in job.result.values()) == COUNT
    assert_each_once()


def test_connections_that_are_cut(corpus: None, start_worker: StartWorker) -> None:
    first = embedding_job_create()
    jobs = [first, Job.objects.create(kind="embed", params=first.params)]
    workers = [start_worker(EMBEDDING_BATCH_SIZE="2", concurrency=1) for _ in range(2)]
    wait_for(lambda: embedded() >= COUNT // 6, what="part of the work", pause=0.01)
    others = (
        "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
        "AND backend_type = 'client backend'"
    )

    def connected() -> int:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT count(*) {others}")
            return int(cursor.fetchone()[0])

    wait_for(lambda: connected() >= 2, what="both workers' connections", pause=0.01)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(pg_terminate_backend(pid)) {others}")
        assert cursor.fetchone()[0] >= 2
    for job in jobs:
        wait_for(lambda job=job: ended(job), what="the end of the jobs")
        assert (job.state, job.failed, job.error) == ("done", 0, "")
    assert_each_once()
    assert all(worker.alive() for worker in workers)


def test_a_message_that_was_lost(messages: Any, start_worker: StartWorker) -> None:
    job = job_create(kind="embed", params={"model": "/nowhere"})
    start_worker()
    wait_for(lambda: ended(job), what="the end of the job")
    assert (job.state, "no directory" in job.error) == ("failed", True)


def both_work() -> Job:
    """A job of which two workers, as on two devices, have each a part."""
    main = embedding_job_create()

    def shared() -> bool:
        main.refresh_from_db()
        invited = Job.objects.filter(kind=PARTICIPANT_KIND).first()
        return invited is not None and 0 < invited.done < main.done

    wait_for(shared, seconds=120, what="a part of each worker")
    return main


def all_ended(kind: str) -> bool:
    jobs = list(Job.objects.filter(kind=kind))
    return bool(jobs) and all(job.state not in Job.UNFINISHED for job in jobs)


def test_one_of_two_workers_of_a_job(
    settings: Any, tiny_model: str, start_worker: StartWorker
) -> None:
    settings.EMBEDDING_MODEL = tiny_model
    repeated_images(MANY, ("red", "green", "blue"), (300, 200))
    two = [
        start_worker(EMBEDDING_BATCH_SIZE="2", CUDA_VISIBLE_DEVICES=device, concurrency=1)
        for device in ("none-a", "none-b")
    ]
    main = both_work()
    assert job_cancel(job=main)
    wait_for(lambda: all_ended(PARTICIPANT_KIND), what="the end of the other's job")
    main.refresh_from_db()
    assert main.done == embedded() < MANY
    assert all(worker.alive() for worker in two)
    Job.objects.all().delete()
    Embedding.objects.all().delete()

    main = both_work()
    two[1].kill()

    def taken_over() -> bool:
        main.refresh_from_db()
        here, gone = embedding_progress(main).devices
        assert (here.device, here.gone) == ("CPU none-a", False)
        return bool(gone.gone and gone.device == "CPU none-b" and gone.taken and not gone.left)

    wait_for(taken_over, what="the range of the worker that was killed")
    # What nobody has claimed needn't be waited for; nobody claims meanwhile.
    with transaction.atomic():
        transaction_lock(lock_key("embedding_ranges", main.pk))
        reached = Job.objects.get(pk=main.pk).cursor["last"]
        Image.objects.filter(pk__gt=reached).delete()
    wait_for(lambda: all_ended(KIND), seconds=120, what="the end of the job")
    main.refresh_from_db()
    assert (main.state, main.error, main.failed) == ("done", "", 0)
    assert main.done == Image.objects.count()
    assert_each_once(main.done)
    assert not EmbeddingRange.objects.exists()


def test_a_worker_that_packs(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start_worker: StartWorker
) -> None:
    settings.VAR_DIR = tmp_path
    monkeypatch.setattr(matrices, "SMALLEST", 1000)
    images(range(1200))
    model = embedding_model_get_or_create(name="m", dimension=16)
    embed(model, range(1200), random_vectors(1200, 16))
    job = pack_request(model=model)
    assert job is not None
    first = start_worker(concurrency=1)
    wait_for(lambda: Job.objects.filter(pk=job.pk, turn__gt=0), what="the job's first slice")
    first.kill()
    start_worker(concurrency=1)
    wait_for(lambda: Job.objects.get(pk=job.pk).state == "done", what="the job's end")
    assert ranking_method(model) == "matrix"


def test_a_command_that_builds_an_index(settings: Any) -> None:
    settings.EMBEDDING_MODEL = "toy-16"
    model = embedding_model_get_or_create(name="toy-16", dimension=16)
    embed_rows(model, dict(enumerate(random_vectors(200, 16))))

    def ready() -> bool | None:
        found = vector_index(model)
        return found and found.ready

    with writing(model):
        process = start("manage.py", "index_embeddings", "--model", "toy-16")
        wait_for(lambda: ready() is False, what="the build")
        process.kill()
        process.wait()
    wait_for(ready, what="the database to finish")
    assert index_build() == vector_index(model)

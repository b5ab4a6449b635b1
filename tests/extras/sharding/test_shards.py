"""Rankings by shards that Celery workers have are those of the database, bit for bit."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from celery import Celery, current_app
from celery.contrib.testing.worker import start_worker
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from annotator.celery import app as application
from annotator.environment import BadSetting, Environment
from core.access import Role
from core.sql import repeatable_read
from extras.sharding import ranking
from extras.sharding.ranking import SHARDS, pack_shard, rank_shard, span_of
from extras.sharding.settings import settings_of
from retrieval.corpus.models import Image, ImageWithdrawal
from retrieval.embedding.embedding_models import (
    embedding_model_freeze,
    embedding_model_get_or_create,
)
from retrieval.embedding.models import Embedding
from retrieval.embedding.store import embeddings_stored
from retrieval.ranking import selectors
from retrieval.ranking.files import Manifest, folder_of
from retrieval.ranking.rankers import RANKERS
from retrieval.ranking.selectors import (
    half_rounded,
    rank_images,
    rank_images_many,
    ranking_method,
)
from retrieval.takedown.services import image_take_down, images_taken_down
from tests.conftest import person
from tests.processes import Process, database_url, redis_server, shard_worker, wait_for
from tests.retrieval.matrices import embed, images, same_as_scan, vectors_like, without_triggers

pytestmark = pytest.mark.django_db(transaction=True)

SIZE = 100


@pytest.fixture(autouse=True)
def four_shards(settings, tmp_path, monkeypatch):
    settings.RANKING_SHARDS = 4
    settings.RANKING_SHARD_IMAGES = SIZE
    settings.RANKING_SHARD_SECONDS = 30
    settings.VAR_DIR = tmp_path / "var"
    monkeypatch.setattr(ranking, "REST_SECONDS", 0.0)
    monkeypatch.setattr(ranking, "_resting", {})
    apps.get_app_config("sharding").ready()
    yield
    RANKERS.remove(SHARDS)
    for signalled in (embeddings_stored, images_taken_down):
        assert signalled.disconnect(dispatch_uid="sharding")


@pytest.fixture
def redis(tmp_path):
    """A Redis through which this test's thread asks."""
    with redis_server(tmp_path) as server:
        asking = Celery("rankings", broker=server.url, backend=server.url)
        asking.conf.result_backend_transport_options = {"retry_policy": {"max_retries": 1}}
        asking.set_current()
        yield server
        application.set_current()
        application.set_default()


@pytest.fixture
def work(redis, tmp_path):
    """Starts the worker of a shard as the systemd unit does, with a state folder of its own."""
    started = []

    def start(shard):
        worker = Process(
            shard_worker(shard),
            tmp_path / f"shard-{shard}.log",
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "annotator.settings",
                "VAR_DIR": str(tmp_path / f"machine-{shard}"),
                "DATABASE_URL": database_url(connection.settings_dict),
                "CELERY_BROKER_URL": redis.url,
                "RANKING_SHARDS": "4",
                "RANKING_SHARD_IMAGES": str(SIZE),
            },
        )
        started.append(worker)
        return worker

    yield start
    for worker in started:
        worker.kill()
        worker.wait()


def model_of(numbers, vectors):
    model = embedding_model_get_or_create(name="m", dimension=vectors.shape[1])
    images(numbers)
    embed(model, numbers, vectors)
    return model


def by_shards(caplog, model, query, **options):
    """A ranking, after a look that it is the database's, and that shards alone gave it."""
    caplog.clear()
    found = same_as_scan(model, query, **options)
    assert warnings_in(caplog) == []
    return found


def warnings_in(caplog):
    return [one.getMessage() for one in caplog.records if one.name == ranking.__name__]


def rank_by(model, query, caplog):
    """Whether the shards rank a query, as the database does."""
    caplog.clear()
    same_as_scan(model, query, limit=30)
    return not warnings_in(caplog)


@pytest.mark.faults
def test_rankings_are_those_of_the_database(work, animals, caplog, tmp_path):
    kinds = [None, *list(animals.values())[:3]]
    numbers = np.random.default_rng(3).permutation(600)[:300]
    vectors = vectors_like("ties", 300, 20)
    model = embedding_model_get_or_create(name="m", dimension=20)
    for place, species in enumerate(kinds):
        images(range(place * 150, place * 150 + 150), species)
    embed(model, numbers[:160], vectors[:160])
    queries = [half_rounded(row) for row in vectors_like("ties", 3, 20, seed=9)]
    for shard in range(4):
        work(shard)
    caplog.clear()
    same_as_scan(model, queries[0], limit=30)
    assert "isn't packed" in caplog.text
    wait_for(lambda: rank_by(model, queries[0], caplog), what="the shards", seconds=180)
    first = embedding_model_freeze(model=model)
    embed(model, numbers[160:], vectors[160:])
    then = datetime.now(UTC)
    Embedding.objects.filter(model=model, image_id__in=numbers[:150:15].tolist()).delete()
    Image.objects.filter(pk__in=numbers[::7].tolist()).update(created_at=then + timedelta(hours=1))
    user = person("rita", Role.REVIEWER)
    for number in numbers[5:200:20].tolist():
        ImageWithdrawal.objects.create(image_id=number, withdrawn_at=then, withdrawn_by=user)
    seen = set()
    for species in ([], [kinds[1].pk, kinds[3].pk]):
        for moments in (
            {},
            {"created_before": first},
            {"created_before": datetime.now(UTC)},
            {"corpus_at": then + timedelta(minutes=1)},
        ):
            options = {"species_ids": species, "limit": 60, **moments}
            found = by_shards(caplog, model, queries[0], **options)
            seen.add(tuple(found))
            after = (found[3][1], found[3][0])
            by_shards(caplog, model, queries[0], after=after, **options)
            many = rank_images_many(model=model, text_vectors=queries, **options)
            assert many == [same_as_scan(model, query, **options) for query in queries]
    assert len(seen) > 3
    for limit in (1, 7, 400):
        by_shards(caplog, model, queries[1], limit=limit)
    with repeatable_read():
        before = by_shards(caplog, model, queries[1], limit=20)
        with ThreadPoolExecutor(1) as other:
            other.submit(delete_embeddings, [before[0][0]]).result()
        assert by_shards(caplog, model, queries[1], limit=20) == before
    assert by_shards(caplog, model, queries[1], limit=20) != before

    # A damaged file isn't used, and is packed anew.
    folder = tmp_path / "machine-1/matrices" / str(model.identity) / "100-199"
    [name] = {run.vectors.name for run in Manifest.load(folder).runs[:1]}
    path = folder / name
    data = bytearray(path.read_bytes())
    data[:40] = bytes(40)
    path.write_bytes(data)
    assert Manifest.load(folder).touched(folder) == [name]
    caplog.clear()
    same_as_scan(model, queries[0], limit=30)
    assert "for shard 1 of m" in caplog.text
    wait_for(lambda: not Manifest.load(folder).touched(folder), what="the files packed anew")
    wait_for(lambda: rank_by(model, queries[0], caplog), what="the shard to be used again")

    # Vectors that were removed leave the files.
    gone = min(pk for pk, _ in same_as_scan(model, queries[0], limit=400) if pk >= SIZE)
    held = [*tmp_path.glob("machine-*/matrices/*/*/*.ids")]
    assert any(gone in np.fromfile(path, np.int64) for path in held)
    image_take_down(
        image=Image.objects.get(pk=gone), reason="asked for", by=person("ada", Role.ADMIN)
    )
    wait_for(
        lambda: all(
            gone not in np.fromfile(path, np.int64)
            for path in tmp_path.glob("machine-*/matrices/*/*/*.ids")
        ),
        what="files without the vector",
    )
    wait_for(lambda: rank_by(model, queries[0], caplog), what="the shard to be used again")


def delete_embeddings(numbers):
    Embedding.objects.filter(image_id__in=numbers).delete()
    connection.close()


@pytest.mark.faults
def test_the_database_ranks_for_a_worker_that_is_killed_meanwhile(work, caplog, settings):
    vectors = vectors_like("any", 400, 8)
    model = model_of(list(range(400)), vectors)
    workers = [work(shard) for shard in range(4)]
    same_as_scan(model, vectors[0], limit=50)
    wait_for(lambda: rank_by(model, vectors[0], caplog), what="the shards", seconds=180)
    wanted = by_shards(caplog, model, vectors[0], limit=50)
    settings.RANKING_SHARD_SECONDS = 5
    app = current_app._get_current_object()
    caplog.clear()
    workers[2].send_signal(signal.SIGSTOP)
    with ThreadPoolExecutor(1) as other:
        ranking_meanwhile = other.submit(ranked_elsewhere, app, model, vectors[0])
        with pytest.raises(TimeoutError):
            ranking_meanwhile.result(2)
        workers[2].kill()
        workers[2].wait()
        assert ranking_meanwhile.result() == wanted
    [warning] = warnings_in(caplog)
    assert warning.startswith("The database ranks for shard 2 of m: ")
    settings.RANKING_SHARD_SECONDS = 30
    work(2)
    assert by_shards(caplog, model, vectors[0], limit=50) == wanted


def ranked_elsewhere(app, model, query):
    app.set_current()
    try:
        return rank_images(model=model, text_vector=query, limit=50)
    finally:
        connection.close()


def test_a_shard_answers_from_the_snapshot_of_who_asks():
    vectors = vectors_like("any", 150, 8)
    query = half_rounded(vectors[0])
    model = model_of(list(range(150)), vectors)
    for shard in (0, 1):
        pack_shard(shard=shard, model=model.pk, compare=False)
    images([150])

    def change():
        embed(model, [150], vectors[:1])
        Embedding.objects.filter(model=model, image_id__in=[0, 120]).delete()
        user = person("rita", Role.REVIEWER)
        ImageWithdrawal.objects.create(
            image_id=121, withdrawn_at=datetime.now(UTC), withdrawn_by=user
        )
        connection.close()

    def asked(moment, shard):
        question = {
            "shard": shard,
            "model": model.pk,
            "moment": moment,
            "queries": np.array([query], np.float16).tobytes(),
            "limit": 200,
            "species_ids": [],
            "created_before": None,
            "corpus_at": None,
            "images": None,
            "behind": None,
        }
        try:
            return json.loads(json.dumps(rank_shard(**question)))
        finally:
            connection.close()

    def merged(*answers):
        places = [(pk, score) for _, _, [own] in answers for pk, score in own]
        return sorted(places, key=lambda place: (-place[1], place[0]))

    with ThreadPoolExecutor(1) as other:
        with repeatable_read():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_export_snapshot()")
                [moment] = cursor.fetchone()
            wanted = rank_images(model=model, text_vector=query, limit=200, scan=True)
            first = other.submit(asked, moment, 0).result()
            other.submit(change).result()
            second = other.submit(asked, moment, 1).result()
        assert (first[0], second[0]) == (100, 50)
        assert merged(first, second) == wanted
        with repeatable_read():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_export_snapshot()")
                [moment] = cursor.fetchone()
            answers = [other.submit(asked, moment, shard).result() for shard in (0, 1)]
        assert [one[0] for one in answers] == [99, 50]
        now = rank_images(model=model, text_vector=query, limit=200, scan=True)
        assert merged(*answers) == now != wanted


@contextmanager
def answering():
    """A worker of all shards in a thread of this process."""
    app = current_app._get_current_object()
    queues = [f"ranking.{shard}" for shard in range(4)]
    with start_worker(app, pool="threads", perform_ping_check=False, queues=queues):
        yield


def test_what_shards_hold_together_is_compared_with_the_database(redis, monkeypatch):
    """A shard that has an embedding too many, whatever the reason, is found out and packed anew."""
    vectors = vectors_like("any", 150, 8)
    model = model_of(list(range(150)), vectors)
    rank = {"model": model, "text_vector": vectors[0], "limit": 20}
    scans, by_scan = [], selectors._by_scan

    def scanned(*arguments):
        scans.append(arguments[3].images)
        return by_scan(*arguments)

    def scans_of(wanted):
        """The images that a ranking scans, None for all, after a look that it is this one."""
        scans.clear()
        assert rank_images(**rank) == wanted
        return scans

    monkeypatch.setattr(selectors, "_by_scan", scanned)
    wanted = rank_images(**rank, scan=True)
    with answering():
        embeddings_stored.send(sender=None, model=model, created_by=None)
        wait_for(lambda: scans_of(wanted) == [], what="the shards")
        # It is as if an embedding had been stored before its moment without anybody's notice.
        without_triggers(
            "UPDATE retrieval_embeddingcount SET embedded = embedded - 1,"
            " fingerprint = fingerprint - (SELECT retrieval_embedding_mark(130, created_at)"
            " FROM retrieval_embedding WHERE image_id = 130)",
            "DELETE FROM retrieval_embedding WHERE image_id = 130",
        )
        with pytest.raises(CommandError, match="Wrong: m"):
            call_command("pack_embeddings", check=True, verbosity=0)
        wanted = rank_images(**rank, scan=True)
        assert scans_of(wanted) == [None]
        wait_for(lambda: scans_of(wanted) == [], what="the shard packed anew")
    packed = [Manifest.load(folder_of(model, span_of(shard))) for shard in range(4)]
    assert [one.next_run for one in packed] == [2, 3, 2, 2]
    call_command("pack_embeddings", verbosity=0)
    call_command("pack_embeddings", check=True, verbosity=0)
    # The matrix of all images, which is there beside the shards, is compared too.
    [run] = Manifest.load(folder_of(model)).runs
    (folder_of(model) / run.vectors.name).write_bytes(b"")
    with pytest.raises(CommandError, match="Wrong: m"):
        call_command("pack_embeddings", check=True, verbosity=0)


def test_a_shard_that_failed_is_left_alone_for_a_while(redis, caplog, monkeypatch, settings):
    monkeypatch.setattr(ranking, "REST_SECONDS", 600.0)
    settings.RANKING_SHARD_SECONDS = 1
    vectors = vectors_like("any", 30, 8)
    model = model_of(list(range(30)), vectors)
    assert ranking_method(model) == "matrix"
    same_as_scan(model, vectors[0], limit=5)
    assert len(warnings_in(caplog)) == 4
    assert ranking_method(model) == "scan"
    by_shards(caplog, model, vectors[0], limit=5)


@pytest.mark.faults
def test_without_workers_the_database_ranks(redis, caplog, settings):
    vectors = vectors_like("any", 30, 8)
    model = model_of(list(range(30)), vectors)
    redis.kill()
    same_as_scan(model, vectors[0], limit=5)
    assert "The database ranks" in caplog.text
    redis.start()
    settings.RANKING_SHARD_SECONDS = 1
    caplog.clear()
    same_as_scan(model, vectors[0], limit=5)
    assert "timed out" in caplog.text
    same_as_scan(model, vectors[0])
    assert "so many places" in caplog.text
    with transaction.atomic(), transaction.atomic():
        assert "savepoint" not in caplog.text
        same_as_scan(model, vectors[0], limit=5)
        assert "savepoint" in caplog.text
    with transaction.atomic():
        same_as_scan(model, vectors[0], limit=5)
        assert "no single snapshot" in caplog.text


def test_the_setting_needs_a_redis():
    read = {"RANKING_SHARDS": "4", "RANKING_SHARD_IMAGES": "1000"}
    with pytest.raises(BadSetting, match="RANKING_SHARDS needs a Redis"):
        settings_of(Environment(read))
    url = "redis://host:6379/0"
    assert settings_of(Environment(read | {"CELERY_BROKER_URL": url})) == {
        "RANKING_SHARDS": 4,
        "RANKING_SHARD_IMAGES": 1000,
        "RANKING_SHARD_SECONDS": 20,
        "CELERY_RESULT_BACKEND": url,
        "CELERY_RESULT_EXPIRES": 60,
        "CELERY_REDIS_SOCKET_CONNECT_TIMEOUT": 3,
        "CELERY_REDIS_SOCKET_TIMEOUT": 3,
        "CELERY_RESULT_BACKEND_TRANSPORT_OPTIONS": {"retry_policy": {"max_retries": 1}},
    }


def test_a_model_with_shards_of_the_version_before_can_be_deleted():
    model = embedding_model_get_or_create(name="m", dimension=4)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO sharding_rankingshard"
            " (model_id, first_image, last_image, worker, place, rows, rebuild_requests)"
            " VALUES (%s, 0, 99, '', '', 0, 0)",
            [model.pk],
        )
    model.delete()

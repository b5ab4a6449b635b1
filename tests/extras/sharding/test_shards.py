"""Rankings by shards that other processes hold are those of the database, bit for bit."""

import json
import logging
import os
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from celery import Celery, current_app
from celery.contrib.testing.worker import start_worker
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from annotator.celery import app as application
from annotator.environment import BadSetting, Environment
from core.access import Role
from core.locks import lock_key, lock_owners, try_session_lock
from core.sql import repeatable_read
from extras.sharding import holding
from extras.sharding.holding import MOST, Holder, rank_shard, shards_open, share
from extras.sharding.models import RankingShard
from extras.sharding.ranking import SHARDS, Answer, merged, shards_ready, text_of
from extras.sharding.settings import settings_of
from retrieval.corpus.models import Image, ImageWithdrawal
from retrieval.embedding.embedding_models import (
    embedding_model_freeze,
    embedding_model_get_or_create,
)
from retrieval.embedding.models import Embedding
from retrieval.ranking import selectors
from retrieval.ranking.building import pack
from retrieval.ranking.files import Manifest, MatrixUnusable, folder_of
from retrieval.ranking.rankers import RANKERS
from retrieval.ranking.reading import Span
from retrieval.ranking.selectors import (
    half_rounded,
    rank_images,
    rank_images_many,
    ranking_method,
)
from retrieval.takedown.services import image_take_down
from tests import ROOT
from tests.conftest import person
from tests.processes import database_url, redis_server, wait_for
from tests.retrieval.matrices import embed, images, same_as_scan, vectors_like, without_triggers

pytestmark = pytest.mark.django_db(transaction=True)

SIZE = 100


@pytest.fixture(autouse=True)
def shards_of_a_hundred(settings, tmp_path):
    RANKERS.append(SHARDS)
    settings.RANKING_SHARD_IMAGES = SIZE
    settings.RANKING_SHARD_SECONDS = 30
    settings.VAR_DIR = tmp_path / "var"
    holding._suspect_shards.clear()
    yield
    RANKERS.remove(SHARDS)


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
def hold(redis, settings, tmp_path):
    """Starts `hold_shards` as processes, each with a state folder of its own."""
    started = []

    def start(*options, folder=None):
        number = len(started)
        log = tmp_path / f"shards-{number}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "manage.py", "hold_shards", *options],
                cwd=ROOT,
                env={
                    **os.environ,
                    "DJANGO_SETTINGS_MODULE": "annotator.settings",
                    "VAR_DIR": str(folder or tmp_path / f"machine-{number}"),
                    "DATABASE_URL": database_url(connection.settings_dict),
                    "CELERY_BROKER_URL": redis.url,
                    "RANKING_SHARD_IMAGES": str(SIZE),
                },
                stdout=output,
                stderr=output,
            )
        process.log = log
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()


def held(process):
    """The shards that a process ranks and holds."""
    owners = lock_owners("shard")
    known = RankingShard.objects.filter(worker__endswith=f":{process.pid}", pk__in=owners)
    return {shard.first_image for shard in known}


def model_of(numbers, vectors):
    model = embedding_model_get_or_create(name="m", dimension=vectors.shape[1])
    images(numbers)
    embed(model, numbers, vectors)
    return model


def by_shards(caplog, model, query, **options):
    """A ranking, after a look that it is the database's, and that shards alone gave it."""
    caplog.clear()
    found = same_as_scan(model, query, **options)
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == []
    return found


@pytest.mark.faults
def test_rankings_are_those_of_the_database(hold, animals, caplog, tmp_path):
    kinds = [None, *list(animals.values())[:3]]
    numbers = np.random.default_rng(3).permutation(400)[:240]
    vectors = vectors_like("ties", 240, 20)
    model = embedding_model_get_or_create(name="m", dimension=20)
    for place, species in enumerate(kinds):
        images(range(place * 100, place * 100 + 100), species)
    embed(model, numbers[:160], vectors[:160])
    assert ranking_method(model) == "scan"
    processes = [hold(), hold()]
    wait_for(
        lambda: all(len(held(one)) == 2 for one in processes), what="two shards each", seconds=180
    )
    assert ranking_method(model) == "matrix"
    first = embedding_model_freeze(model=model)
    embed(model, numbers[160:], vectors[160:])
    then = datetime.now(UTC)
    Embedding.objects.filter(model=model, image_id__in=numbers[:150:15].tolist()).delete()
    Image.objects.filter(pk__in=numbers[::7].tolist()).update(created_at=then + timedelta(hours=1))
    user = person("rita", Role.REVIEWER)
    for number in numbers[5:200:20].tolist():
        ImageWithdrawal.objects.create(image_id=number, withdrawn_at=then, withdrawn_by=user)
    queries = [half_rounded(row) for row in vectors_like("ties", 3, 20, seed=9)]
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

    # A new image far behind opens a shard, which the database ranks until somebody has it.
    images([5_000])
    embed(model, [5_000], vectors[:1])
    assert 5_000 in dict(same_as_scan(model, vectors[0], limit=99))
    wait_for(lambda: shards_ready(model) and shards_as(model) == 5, what="the new shard")
    by_shards(caplog, model, queries[0], limit=20)

    # A damaged file isn't used, and is packed anew.
    damaged = next(one for one in processes if held(one))
    machine = tmp_path / f"machine-{processes.index(damaged)}"
    folder = machine / "matrices" / str(model.identity) / span_text(min(held(damaged)))
    [name] = {run.vectors.name for run in Manifest.load(folder).runs[:1]}
    path = folder / name
    data = bytearray(path.read_bytes())
    data[:40] = bytes(40)
    path.write_bytes(data)
    assert Manifest.load(folder).touched(folder) == [name]
    caplog.clear()
    same_as_scan(model, queries[0], limit=30)
    assert "doesn't rank" in caplog.text
    wait_for(lambda: not Manifest.load(folder).touched(folder), what="the files packed anew")
    wait_for(lambda: rank_by(model, queries[0], caplog), what="the shard to be used again")

    # Vectors that were removed leave the files.
    gone = min(
        pk for pk, _ in same_as_scan(model, queries[0], limit=400) if pk >= min(held(damaged))
    )
    image_take_down(
        image=Image.objects.get(pk=gone), reason="asked for", by=person("ada", Role.ADMIN)
    )
    wait_for(
        lambda: not RankingShard.objects.filter(rebuild_requests__gt=0).exists(),
        what="the takedown",
    )
    wait_for(
        lambda: all(
            gone not in np.fromfile(path, np.int64)
            for path in tmp_path.glob(
                f"machine-*/matrices/*/{span_text(gone // SIZE * SIZE)}/*.ids"
            )
        ),
        what="files without the vector",
    )
    wait_for(lambda: rank_by(model, queries[0], caplog), what="the shard to be used again")


def delete_embeddings(numbers):
    Embedding.objects.filter(image_id__in=numbers).delete()
    connection.close()


def shards_as(model):
    return RankingShard.objects.filter(model=model).count()


def span_text(first):
    return f"{first}-{first + SIZE - 1}"


def rank_by(model, query, caplog):
    """Whether the shards rank a query, as the database does."""
    caplog.clear()
    same_as_scan(model, query, limit=30)
    return not [one for one in caplog.records if one.levelno >= logging.WARNING]


@pytest.mark.faults
def test_a_shard_moves_from_a_killed_process_while_a_ranking_waits(hold, caplog, settings):
    settings.RANKING_SHARD_SECONDS = 60
    vectors = vectors_like("any", 300, 8)
    model = model_of(list(range(300)), vectors)
    first, second = hold(), hold("--most", "3")
    wait_for(lambda: held(first) and held(second) and shards_ready(model), what="all", seconds=180)
    wait_for(lambda: len(held(first) | held(second)) == 3, what="each shard at one of them")
    wanted = same_as_scan(model, vectors[0], limit=50)
    app = current_app._get_current_object()
    with ThreadPoolExecutor(1) as other:

        def waiting():
            """A ranking that has sent a message to the first process, which doesn't answer; None
            where the second has still answered for the shard that it gave back.
            """
            first.send_signal(signal.SIGSTOP)
            ranking = other.submit(ranked_elsewhere, app, model, vectors[0])
            try:
                assert ranking.result(2) == wanted
            except TimeoutError:
                return ranking
            first.send_signal(signal.SIGCONT)
            return None

        caplog.clear()
        ranking = wait_for(waiting, what="a ranking that waits", pause=1)
        first.kill()
        first.wait()
        assert ranking.result() == wanted
    assert caplog.text == ""
    assert len(held(second)) == 3


def ranked_elsewhere(app, model, query):
    app.set_current()
    try:
        return rank_images(model=model, text_vector=query, limit=50)
    finally:
        connection.close()


def test_each_holder_takes_no_more_than_its_share():
    assert share(8, [MOST]) == 8
    assert share(8, [MOST, MOST]) == 4
    assert share(9, [MOST, MOST]) == 5
    assert share(8, [2, MOST, MOST]) == 3
    assert share(8, [1, 1]) == 8  # nobody can take all
    assert share(8, []) == 8
    assert share(0, [MOST]) == 0


@contextmanager
def holders(count):
    """Holders in threads of their own, which have each their connection, and what they consume."""
    threads = [ThreadPoolExecutor(1) for _ in range(count)]
    queues = [set() for _ in range(count)]
    made = [
        Holder(f"holder {n}", MOST, consume=queues[n].add, leave=queues[n].remove)
        for n in range(count)
    ]

    def turn(number):
        return threads[number].submit(made[number].turn).result()

    yield turn, queues
    for thread in threads:
        thread.submit(lambda: connection.close()).result()
        thread.shutdown()


def test_shards_are_shared_and_given_back_without_a_gap(settings):
    models = [embedding_model_get_or_create(name=name, dimension=4) for name in ("one", "another")]
    numbers = [5, 105, 199, 1_205, 3_000]
    images(numbers)
    for model in models:
        embed(model, numbers, vectors_like("any", 5, 4))
    with holders(2) as (turn, queues):
        while turn(0):
            pass
        assert len(queues[0]) == 8
        cuts = RankingShard.objects.filter(model=models[0]).values_list("first_image", "last_image")
        assert list(cuts) == [(0, 99), (100, 199), (1_200, 1_299), (3_000, 3_099)]
        assert all(map(shards_ready, models))
        turn(1)
        assert queues[1] == set()
        turn(0)
        assert len(queues[0]) == 8, "it answers until somebody else does"
        assert all(not shards_ready(model) for model in models)
        while turn(1):
            pass
        assert len(queues[1]) == 4
        turn(0)
        assert (len(queues[0]), queues[0] & queues[1]) == (4, set())
        assert all(map(shards_ready, models))
        workers = RankingShard.objects.values_list("model", "worker")
        assert set(Counter(workers).values()) == {2}, "both work for a ranking of either model"
        # The connection ends, as with its process.
        with connection.cursor() as cursor:
            [pid] = {pid for pids in lock_owners("shard").values() for pid in pids} - {
                pids[0]
                for pk, pids in lock_owners("shard").items()
                if RankingShard.objects.get(pk=pk).worker == "holder 1"
            }
            cursor.execute("SELECT pg_terminate_backend(%s)", [pid])
        wait_for(lambda: len(lock_owners("shard")) == 4, what="the locks to end")
        while turn(1):
            pass
        assert len(queues[1]) == 8
        settings.RANKING_SHARD_IMAGES = 10_000
        while turn(1):
            pass
        assert RankingShard.objects.count() == len(queues[1]) == 2


def test_a_shard_answers_from_the_snapshot_of_who_asks():
    vectors = vectors_like("any", 150, 8)
    query = half_rounded(vectors[0])
    model = model_of(list(range(150)), vectors)
    pack(model, images=Span(0, 99))
    pack(model, images=Span(100, 199))
    images([150])

    def change():
        embed(model, [150], vectors[:1])
        Embedding.objects.filter(model=model, image_id__in=[0, 120]).delete()
        user = person("rita", Role.REVIEWER)
        ImageWithdrawal.objects.create(
            image_id=121, withdrawn_at=datetime.now(UTC), withdrawn_by=user
        )
        connection.close()

    def asked(moment, first):
        question = {
            "shard": 1,
            "model": model.pk,
            "images": [first, first + 99],
            "moment": moment,
            "queries": text_of(np.array([query], np.float16)),
            "limit": 200,
            "species_ids": [],
            "created_before": None,
            "corpus_at": None,
            "behind": None,
        }
        answer = Answer.read(json.loads(json.dumps(rank_shard(**question))))
        connection.close()
        return answer

    with ThreadPoolExecutor(1) as other:
        with repeatable_read():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_export_snapshot()")
                [moment] = cursor.fetchone()
            wanted = rank_images(model=model, text_vector=query, limit=200, scan=True)
            first = other.submit(asked, moment, 0).result()
            other.submit(change).result()
            second = other.submit(asked, moment, 100).result()
        assert (first.embedded, second.embedded) == (100, 50)
        assert merged([first, second], 200) == [wanted]
        with repeatable_read():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_export_snapshot()")
                [moment] = cursor.fetchone()
            answers = [other.submit(asked, moment, first).result() for first in (0, 100)]
        assert [one.embedded for one in answers] == [99, 50]
        now = rank_images(model=model, text_vector=query, limit=200, scan=True)
        assert merged(answers, 200) == [now] != [wanted]
        with pytest.raises(MatrixUnusable, match="no longer waits"):
            other.submit(asked, "0-0-0", 0).result()


def test_what_shards_hold_together_is_compared_with_the_database(redis, monkeypatch, settings):
    """A shard that lacks an embedding, whatever the reason, is found out and packed anew."""
    vectors = vectors_like("any", 150, 8)
    model = model_of(list(range(150)), vectors)
    scans, by_scan = [], selectors._by_scan

    def scanned(*arguments):
        scans.append(arguments)
        return by_scan(*arguments)

    with holders(1) as (turn, queues), ExitStack() as answers:
        while turn(0):
            pass
        answers.enter_context(answering(queues[0]))
        rank = {"model": model, "text_vector": vectors[0], "limit": 20}
        wanted = rank_images(**rank, scan=True)
        monkeypatch.setattr(selectors, "_by_scan", scanned)
        assert (rank_images(**rank), scans) == (wanted, [])
        # It is as if an embedding had been stored before its moment without anybody's notice.
        without_triggers(
            "UPDATE retrieval_embeddingcount SET embedded = embedded - 1,"
            " fingerprint = fingerprint - (SELECT retrieval_embedding_mark(130, created_at)"
            " FROM retrieval_embedding WHERE image_id = 130)",
            "DELETE FROM retrieval_embedding WHERE image_id = 130",
        )
        rank_images(**rank)
        assert len(scans) == 1
        wait_for(lambda: len(holding._suspect_shards) == 2, what="the messages to the holder")
        while turn(0):
            pass
        packed = [Manifest.load(folder_of(model, Span(first, first + 99))) for first in (0, 100)]
        assert [one.next_run for one in packed] == [2, 3]
        scans.clear()
        wanted = rank_images(**rank, scan=True)
        assert (rank_images(**rank), len(scans)) == (wanted, 1)


@contextmanager
def answering(queues):
    """A worker in a thread of this process that answers the messages of some queues."""
    consumers = [*queues, "nothing"]
    app = current_app._get_current_object()
    with start_worker(app, pool="threads", perform_ping_check=False, queues=consumers):
        yield


@pytest.mark.faults
def test_without_holders_the_database_ranks(redis, caplog, settings):
    vectors = vectors_like("any", 30, 8)
    model = model_of(list(range(30)), vectors)
    same_as_scan(model, vectors[0], limit=5)
    assert "no process holds one" in caplog.text
    shards_open()
    [shard] = RankingShard.objects.all()
    RankingShard.objects.update(worker="somebody")
    with ThreadPoolExecutor(1) as other, hold_lock(other, shard):
        redis.kill()
        caplog.clear()
        same_as_scan(model, vectors[0], limit=5)
        assert "The database ranks" in caplog.text
        redis.start()
        settings.RANKING_SHARD_SECONDS = 1
        same_as_scan(model, vectors[0], limit=5)
        assert "doesn't answer in time" in caplog.text
        with transaction.atomic(), transaction.atomic():
            assert "savepoint" not in caplog.text
            same_as_scan(model, vectors[0], limit=5)
            assert "savepoint" in caplog.text
        with transaction.atomic():
            same_as_scan(model, vectors[0], limit=5)
            assert "no single snapshot" in caplog.text


@contextmanager
def hold_lock(other, shard):
    lock = try_session_lock(lock_key("shard", shard.pk))
    assert other.submit(lock.__enter__).result()
    yield
    other.submit(lock.__exit__, None, None, None).result()
    other.submit(lambda: connection.close()).result()


def test_the_setting_needs_a_redis():
    read = {"RANKING_SHARD_IMAGES": "1000"}
    with pytest.raises(BadSetting, match="RANKING_SHARD_IMAGES needs a Redis"):
        settings_of(Environment(read))
    url = "redis://host:6379/0"
    assert settings_of(Environment(read | {"CELERY_BROKER_URL": url})) == {
        "RANKING_SHARD_IMAGES": 1000,
        "RANKING_SHARD_SECONDS": 20,
        "CELERY_RESULT_BACKEND": url,
        "CELERY_RESULT_EXPIRES": 60,
        "CELERY_RESULT_BACKEND_TRANSPORT_OPTIONS": {"retry_policy": {"max_retries": 1}},
    }


def test_commands_say_what_is_missing(settings):
    settings.RANKING_SHARD_IMAGES = 0
    with pytest.raises(CommandError, match="RANKING_SHARD_IMAGES"):
        call_command("hold_shards")

"""Rankings by shards that other processes hold are those of the database, bit for bit."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from celery import Celery
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from annotator.celery import app as application
from core.access import Role
from core.locks import lock_key, lock_owners, try_session_lock
from core.moments import snapshot
from retrieval.corpus.models import Image, ImageWithdrawal
from retrieval.embedding.embedding_models import (
    embedding_model_freeze,
    embedding_model_get_or_create,
)
from retrieval.embedding.models import Embedding
from retrieval.ranking import holding, matrices, sharded
from retrieval.ranking.building import pack
from retrieval.ranking.files import Manifest, MatrixUnusable, folder_of
from retrieval.ranking.holding import Holder, share, shards_open
from retrieval.ranking.models import RankingShard
from retrieval.ranking.reading import Span
from retrieval.ranking.selectors import (
    half_rounded,
    rank_images,
    rank_images_many,
    ranking_method,
)
from retrieval.ranking.sharded import Question, shards_ready, span_of
from retrieval.takedown.services import image_take_down
from tests.conftest import person
from tests.processes import ROOT, database_url, redis_server, wait_for
from tests.retrieval.matrices import embed, images, same_as_scan, vectors_like, without_triggers

pytestmark = pytest.mark.django_db(transaction=True)

SIZE = 100


@pytest.fixture(autouse=True)
def shards_of_a_hundred(settings, tmp_path):
    settings.RANKING_SHARD_IMAGES = SIZE
    settings.RANKING_SHARD_SECONDS = 30
    settings.VAR_DIR = tmp_path / "var"
    holding._doubted.clear()


@pytest.fixture
def redis(tmp_path):
    """A Redis through which this test's thread asks."""
    with redis_server(tmp_path) as server:
        Celery("rankings", broker=server.url, backend=server.url).set_current()
        yield server
        application.set_current()


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
    wait_for(lambda: all(len(held(one)) == 2 for one in processes), what="two shards each", seconds=150)
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
    with snapshot():
        before = by_shards(caplog, model, queries[1], limit=20)
        with ThreadPoolExecutor(1) as other:
            other.submit(delete_embeddings, [before[0][0]]).result()
        assert by_shards(caplog, model, queries[1], limit=20) == before
    assert by_shards(caplog, model, queries[1], limit=20) != before

    # A new image far behind opens a shard, which the database ranks until somebody has it.
    images([5_000])
    embed(model, [5_000], vectors[:1])
    assert (5_000, 1) in [(pk, round(score)) for pk, score in same_as_scan(model, vectors[0], limit=99)]
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
    assert not Manifest.load(folder).runs[0].vectors.whole(folder)
    caplog.clear()
    same_as_scan(model, queries[0], limit=30)
    assert "doesn't rank" in caplog.text
    wait_for(lambda: not Manifest.load(folder).touched(folder), what="the files packed anew")
    wait_for(lambda: rank_by(model, queries[0], caplog), what="the shard to be used again")

    # Vectors that were removed leave the files.
    gone = min(pk for pk, _ in same_as_scan(model, queries[0], limit=400) if pk >= min(held(damaged)))
    image_take_down(image=Image.objects.get(pk=gone), reason="asked for", by=person("ada", Role.ADMIN))
    wait_for(lambda: not RankingShard.objects.filter(anew__gt=0).exists(), what="the takedown")
    wait_for(
        lambda: all(
            gone not in np.fromfile(path, np.int64)
            for path in tmp_path.glob(f"machine-*/matrices/*/{span_text(gone // SIZE * SIZE)}/*.ids")
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


def test_a_shard_moves_from_a_killed_process_while_a_ranking_waits(hold, caplog, settings):
    settings.RANKING_SHARD_SECONDS = 60
    vectors = vectors_like("any", 300, 8)
    model = model_of(list(range(300)), vectors)
    first = hold()
    wait_for(lambda: len(held(first)) == 3, what="all shards at the first process")
    second = hold("--most", "2")
    wait_for(lambda: (len(held(first)), len(held(second))) == (2, 1), what="a shard that moved")
    wanted = same_as_scan(model, vectors[0], limit=50)
    assert (len(held(first)), len(held(second))) == (2, 1)
    # It has messages, and doesn't answer.
    first.send_signal(signal.SIGSTOP)
    caplog.clear()
    with ThreadPoolExecutor(1) as other:
        app = Celery("other", broker=settings_url(), backend=settings_url(), set_as_current=False)
        ranking = other.submit(ranked_elsewhere, app, model, vectors[0])
        time.sleep(1.5)
        assert not ranking.done()
        third = hold()
        first.kill()
        first.wait()
        assert ranking.result() == wanted
    assert "doesn't answer" not in caplog.text
    assert len(held(second)) + len(held(third)) == 3
    assert len(held(second)) <= 2


def settings_url():
    from celery import current_app

    return current_app.conf.broker_url


def ranked_elsewhere(app, model, query):
    app.set_current()
    try:
        return rank_images(model=model, text_vector=query, limit=50)
    finally:
        connection.close()

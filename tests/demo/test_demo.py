"""`manage.py demo`, also cut short and killed into, ends with the same demo."""

import json
import shutil
import signal
import stat
import urllib.request

import psycopg2
import pytest

from annotator.postgres.embedded import DATABASE
from annotator.postgres.guardian import Layout
from demo.steps import CAST
from tests.processes import wait_for
from tests.worlds import kept_static

pytestmark = pytest.mark.e2e
IMAGES = 60
OPEN = tuple(f"24 queries can be labeled, among {count} images" for count in (IMAGES // 2, IMAGES))
COMPLETE = "All images are there"
RELEASED = "The release and its runs are there:"
# Of the queries that are there to be labeled.
LISTS = (
    "FROM labeling_candidatelist l JOIN labeling_query q ON q.id = l.query_id"
    " WHERE l.frozen_at IS NOT NULL AND q.query_id <= 24"
)
EMBEDDED = "SELECT count(*) FROM retrieval_embedding"
TO_LABEL = "SELECT count(*) FROM labeling_query WHERE state = 'open' AND query_id <= 24"
RELEASE_JOB = "SELECT state FROM core_job WHERE kind = 'demo_release'"
RUNS = (
    "SELECT task, kind, name FROM evaluation_run WHERE published_at IS NOT NULL AND task = 'full'"
    " AND kind <> 'best' ORDER BY task, kind, name"
)


def rows(served, statement):
    connection = psycopg2.connect(
        host=str(Layout(served.var_dir).socket_dir), user="postgres", dbname=DATABASE
    )
    with connection, connection.cursor() as cursor:
        cursor.execute(statement)
        found = cursor.fetchall()
    connection.close()
    return found


def wait_said(served, words, times=1):
    """Wait until the demo has said these words so often, as long as it goes on saying something."""
    said = served.output.read_text()

    def more():
        assert served.process.poll() is None, said
        return served.output.read_text() != said

    while said.count(words) < times:
        wait_for(more, seconds=120, what=f"more than {said[-500:]}")
        said = served.output.read_text()


@pytest.fixture
def start(serve, tmp_path):
    """Starts the demo."""
    shutil.copytree(kept_static(), tmp_path / "var")

    def start(**options):
        return serve("demo", f"--images={IMAGES}", wait=False, EMBEDDING_BATCH_SIZE="4", **options)

    return start


def test_the_demo_has_a_release_and_queries_to_label(start):
    demo = start()
    wait_said(demo, COMPLETE)
    text = demo.output.read_text()
    # How to log in, then the queries among the first images, then all images.
    said = (f"Inquire Annotator is at {demo.url}", "password", "Drawing", *OPEN)
    assert [text.index(words) for words in said] == sorted(text.index(words) for words in said)
    assert rows(demo, EMBEDDED) == [(IMAGES,)]
    assert rows(demo, TO_LABEL) == [(24,)]
    assert rows(demo, f"SELECT count(DISTINCT l.query_id), count(*) {LISTS}") == [(24, 48)]

    secrets = demo.var_dir / "demo_passwords.json"
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    people = json.loads(secrets.read_text())
    assert [person["role"] for person in people] == list(CAST.values())
    assert (demo.var_dir / "embedding_model").read_text() == "demo\n"
    for person in people:
        assert f"{person['name']:<10} password {person['password']}" in text
        request = urllib.request.Request(
            f"{demo.url}/api/token/",
            json.dumps({"username": person["name"], "password": person["password"]}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            assert len(json.load(answer)["token"]) == 64

    wait_said(demo, RELEASED)
    assert rows(demo, RELEASE_JOB) == [("done",)]
    # The last lines say where to look.
    [(release,)] = rows(demo, "SELECT id FROM releases_release")
    paths = (f"/releases/{release}/", f"/releases/{release}/leaderboard/")
    ending = "".join(f"\n  {demo.url}{path}" for path in paths)
    wait_said(demo, ending)
    assert demo.output.read_text().endswith(f"{RELEASED}{ending}\n")
    assert rows(demo, RUNS) == [
        ("full", "model", "demo"),
        ("full", "random", "Random order"),
        ("full", "rerank_embedding", "Damaged scores, top 50 by the demo model"),
        ("full", "upload", "Demo model, damaged scores"),
    ]
    complete = "SELECT count(*) FROM labeling_query WHERE state = 'complete' AND query_id > 24"
    assert rows(demo, complete) == [(15,)]
    assert rows(demo, TO_LABEL) == [(24,)]


@pytest.mark.faults
def test_the_demo_survives_interruptions_and_the_death_of_each_part(start):
    first = start()
    wait_said(first, "Embedding")
    wait_for(lambda: rows(first, EMBEDDED)[0][0] > 8, seconds=120, what="the first vectors")
    for words in (("celery", "worker"), ("gunicorn",), ("pginstall/bin/postgres", "-D")):
        wait_for(first.healthy, what="all parts")
        for process in first.find(*words):
            process.kill()
    wait_said(first, COMPLETE)
    assert rows(first, EMBEDDED) == [(IMAGES,)]
    assert rows(first, "SELECT count(DISTINCT image_id) FROM retrieval_embedding") == [(IMAGES,)]
    lists = rows(first, f"SELECT l.id, l.checksum {LISTS} ORDER BY l.id")
    assert first.stop(signal.SIGTERM) == 0
    assert first.processes() == []

    again = start(var_dir=first.var_dir)
    wait_said(again, COMPLETE, times=2)
    assert rows(again, f"SELECT l.id, l.checksum {LISTS} ORDER BY l.id") == lists
    assert rows(again, EMBEDDED) == [(IMAGES,)]
    assert rows(again, TO_LABEL) == [(24,)]
    wait_said(again, RELEASED)

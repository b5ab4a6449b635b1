"""The world that each served site of the tests begins with: people, a drawn corpus, embeddings."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from itertools import count
from pathlib import Path

from annotator.postgres.embedded import DATABASE, embedded_postgres
from annotator.postgres.guardian import DATABASE_USER, Layout, locked, program_folder
from demo.corpus import write_corpus
from tests import ROOT
from tests.databases import copy_data, copy_database, kept_data, server_url, start_server
from tests.keeping import files_below, kept
from tests.processes import Served
from tests.settings import PROCESS, SESSION_DIR
from tests.site import Site

IMAGES = 260
DEPTH = 150
ROLES = {
    "ann": "annotator",
    "otto": "annotator",
    "rita": "reviewer",
    "ada": "admin",
    "rosa": "researcher",
    "rolf": "researcher",
}
WORLD = "world"
WORLDS = count(1)
#: What stays in a site's state folder: files that are there for the processes, or are the same
#: whatever a test does.
LASTING = {"broker", "log", "run", "secret_key", "static", "thumbnails", "vega"}

COLLECT = "from annotator.web import static; static.collect()"
MAKE_WORLD = """
import json
from django.core.management import call_command
from core.jobs.models import Job
from core.jobs.services import job_slice_run
from retrieval.embedding.services import embedding_job_create
from tests.people import make_people

call_command("import_images", {images!r}, quiet=True)
embedding_job_create(model_name="")
while job := Job.objects.filter(state__in=Job.UNFINISHED).first():
    job_slice_run(job_id=job.pk)
assert set(Job.objects.values_list("state", flat=True)) == {{"done"}}
with open({people!r}, "w") as file:
    json.dump(make_people({roles}), file)
"""


def world() -> Path:
    """What each site begins with, made by one process of the session for all: the database WORLD
    and, in this folder, the state folder `var` with a corpus and its embeddings, and `people.json`.
    """
    start_server()
    folder = SESSION_DIR / "world"
    ready = folder / "people.json"
    with locked(SESSION_DIR / "run" / "world.lock"):
        if not ready.exists():
            copy_database(WORLD)
            shutil.copytree(kept_static(), folder / "var")
            images = kept_corpus() / "train.json"
            script = MAKE_WORLD.format(images=str(images), roles=ROLES, people=str(ready))
            made = Served(
                folder / "var", "shell", "-v0", "-c", script, DATABASE_URL=server_url(WORLD)
            )
            assert made.process.wait() == 0, made.output.read_text()
    return folder


def kept_static() -> Path:
    """A state folder with nothing but static files: what starts over a copy needn't collect them,
    which takes seconds.
    """

    def make(draft: Path) -> Path:
        subprocess.run(
            [sys.executable, "manage.py", "shell", "-v0", "-c", COLLECT],
            cwd=ROOT,
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "annotator.settings",
                "VAR_DIR": str(draft / "var"),
            },
            check=True,
        )
        state = draft / "state"
        state.mkdir()
        for name in ("static", "vega"):
            (draft / "var" / name).rename(state / name)
        return state

    packages = ("Django", "whitenoise", "vl-convert-python")
    sources = [ROOT / "annotator/web/static.py", *files_below(ROOT / "static")]
    return kept("static", " ".join(map(version, packages)), sources, make)


def kept_corpus() -> Path:
    """The drawn corpus of the world, in iNat24's layout."""
    return kept(
        "corpus",
        f"{IMAGES} {version('Pillow')}",
        files_below(ROOT / "demo"),
        lambda draft: write_corpus(draft / "corpus", count=IMAGES),
    )


def people(made: Path) -> dict[str, dict[str, str]]:
    """The role, token and session of each person of the world."""
    return dict(json.loads((made / "people.json").read_text()))


def start_site(var_dir: Path, **environment: str) -> Site:
    """A site with a PostgreSQL server of its own, over a copy of the world."""
    made = world()
    shutil.copytree(made / "var", var_dir, symlinks=True)
    data = Layout(var_dir).data
    copy_data(kept_data(), data)
    # What this one has acknowledged survives it.
    (data / "postgresql.auto.conf").unlink()
    server = embedded_postgres(var_dir)
    server.ensure()
    program = str(program_folder() / "pg_dump")
    where = ("-h", str(Layout(SESSION_DIR).socket_dir), "-U", DATABASE_USER)
    dumped = subprocess.run([program, *where, WORLD], capture_output=True, check=True).stdout
    subprocess.run(
        [
            *(str(program_folder() / "psql"), "-q", "-v", "ON_ERROR_STOP=1", "-U", DATABASE_USER),
            *("-h", str(Layout(var_dir).socket_dir), DATABASE),
        ],
        input=dumped,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    server.leave(wait=True)
    return Site(Served(var_dir, **environment), people(made))


def start_lasting_site() -> Site:
    """A site on the session's database server, for all files of this process in turn."""
    made = world()
    name = f"site_{PROCESS}"
    copy_database(name, WORLD)
    var_dir = SESSION_DIR / name / "var"
    shutil.copytree(made / "var", var_dir)
    served = Served(var_dir, DATABASE_URL=server_url(name), CANDIDATE_DEPTH=str(DEPTH))
    return Site(served, people(made))


def renew(site: Site) -> None:
    """Give the lasting site the world as it is in the beginning, while its processes go on."""
    made, served = world(), site.served
    if served.process.poll() is not None:
        served.start()
    served.wait_healthy()
    with served.database() as cursor:
        cursor.execute(
            "SELECT worker FROM annotator_workerheartbeat WHERE seen_at > now() - '1m'::interval"
        )
        workers = cursor.fetchall()
    for message in (served.var_dir / "broker").glob("*.msg"):
        message.unlink(missing_ok=True)
    copy_database(f"site_{PROCESS}", WORLD)
    with served.database() as cursor:
        cursor.executemany(
            # A worker may have told of itself since.
            "INSERT INTO annotator_workerheartbeat (worker, seen_at) VALUES (%s, now())"
            " ON CONFLICT DO NOTHING",
            workers,
        )
        # The processes may remember what had an id in the world before.
        cursor.execute(
            "SELECT setval(format('%%I.%%I', schemaname, sequencename)::regclass,"
            " coalesce(last_value, 0) + %s) FROM pg_sequences WHERE schemaname = 'public'",
            [100_000 * next(WORLDS)],
        )
    for path in served.var_dir.iterdir():
        if path.name not in LASTING:
            shutil.rmtree(path)
    for path in (made / "var").iterdir():
        if path.name not in LASTING:
            shutil.copytree(path, served.var_dir / path.name)
    served.wait_healthy()
    site.people = people(made)

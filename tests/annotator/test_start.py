"""What a process imports before it answers."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from django.conf import settings as django_settings
from django.db import connection

from retrieval.embedding.models import EmbeddingModel
from retrieval.embedding.text_vectors import text_vector
from tests.annotator.world import make_world
from tests.processes import ROOT, database_url

SLOW = ("altair", "open_clip", "openai", "pandas", "scipy", "torch", "vl_convert")


def test_the_pages_and_the_api_are_there_without_what_takes_long_to_import() -> None:
    code = (
        "import sys, django; django.setup(); import annotator.urls\n"
        f"print([name for name in {SLOW!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "annotator.settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


ANSWERS = """
import json, os, sys
from annotator.wsgi import application
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client

settings.ALLOWED_HOSTS = ["testserver"]
client = Client(HTTP_X_FORWARDED_FOR="127.0.0.1")
client.force_login(get_user_model().objects.get(pk=int(sys.argv[1])))
statuses = {one: client.get(one, follow=True).status_code for one in json.loads(sys.argv[2])}
embed = client.post("/corpus/", {"model": "ViT-B-32/openai"})
print(json.dumps([statuses, embed.status_code, sorted({"torch", "open_clip"} & set(sys.modules))]))
"""


def test_pages_are_answered_without_any_model(
    transactional_db: None, settings: Any, tmp_path: Path
) -> None:
    world = make_world(settings, tmp_path)
    text_vector(EmbeddingModel.objects.get(name=settings.EMBEDDING_MODEL), "a bear")
    query = world.queries["open"].pk
    addresses = [
        "/",
        f"/queries/{query}/label/",
        "/search/?text=a+bear",
        "/corpus/",
        "/leaderboard/",
    ]
    done = subprocess.run(
        [sys.executable, "-c", ANSWERS, str(world.people["admin"].pk), json.dumps(addresses)],
        cwd=ROOT,
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "annotator.settings",
            "DATABASE_URL": database_url(connection.settings_dict),
            "VAR_DIR": str(django_settings.VAR_DIR),
            "EMBEDDING_MODEL": settings.EMBEDDING_MODEL,
            "TEXT_PROCESS": "true",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout.splitlines()[-1])
    assert answers == [dict.fromkeys(addresses, 200), 302, []]


def test_a_command_says_that_the_database_is_not_set_up(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "verify_lists"],
        cwd=ROOT,
        env=os.environ | {"VAR_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "annotator.settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        "The database is not set up, or is older than this program. Run "
    )

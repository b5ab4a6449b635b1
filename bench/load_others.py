"""Label Studio and doccano as their own documentation starts them, on their default databases."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from tests.people import PASSWORD
from tests.processes import free_port, wait_for

ITEMS: Final = 300
LABELS: Final = (
    '<View><Image name="image" value="$image"/><Choices name="choice" toName="image">'
    '<Choice value="relevant"/><Choice value="not relevant"/></Choices></View>'
)
#: In doccano's own Python: people with tokens, and texts, which it takes one by one otherwise.
DOCCANO_PEOPLE: Final = """
import sys
import django
django.setup()
from django.contrib.auth.models import User
from rest_framework.authtoken.models import Token
from examples.models import Example
from projects.models import Member, Project
from roles.models import Role
project, role = Project.objects.get(), Role.objects.get(name="annotator")
people = User.objects.bulk_create(User(username=f"ann{n}") for n in range(int(sys.argv[1])))
Member.objects.bulk_create(Member(project=project, user=user, role=role) for user in people)
for n in range(int(sys.argv[2])):
    Example.objects.create(project=project, text=f"image {n}")
print(" ".join(Token.objects.create(user=user).key for user in people))
"""


@contextmanager
def label_studio(program: Path, folder: Path, people: int) -> Iterator[dict[str, Any]]:
    """A plan's `url` and `saves` for a project of ITEMS images; one account does it all."""
    token, port = os.urandom(20).hex(), str(free_port())
    environment = {
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder),
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "LATEST_VERSION_CHECK": "false",
        "COLLECT_ANALYTICS": "false",
    }
    account = ("--username", "ada@example.org", "--password", PASSWORD, "--user-token", token)
    command = [program, "start", "--no-browser", "--port", port, *account]
    with _running(folder, environment, command, port) as url:
        headers = {"Authorization": f"Token {token}"}
        settings = {"title": "images", "label_config": LABELS}
        project = _api(f"{url}/api/projects/", headers, settings)["id"]
        tasks = [{"image": f"{url}/static/{number}.jpg"} for number in range(ITEMS)]
        _api(f"{url}/api/projects/{project}/import", headers, tasks)
        listed = _api(f"{url}/api/tasks/?project={project}&page_size={ITEMS}", headers)
        result: Any = {"from_name": "choice", "to_name": "image", "type": "choices"}
        result["value"] = {"choices": ["not relevant"]}
        body = {"result": [result], "lead_time": 1.0}
        items, path = [item["id"] for item in listed["tasks"]], "/api/tasks/{}/annotations/"
        saves = {"headers": [headers] * people, "path": path, "items": items, "body": body}
        yield {"url": url, "saves": saves}


@contextmanager
def doccano(program: Path, folder: Path, people: int) -> Iterator[dict[str, Any]]:
    """A plan's `url` and `saves` for a project of ITEMS texts, which it classifies as it does
    images; an account for each person.
    """
    environment, port = {"DOCCANO_HOME": str(folder)}, str(free_port())
    for arguments in (["init"], ["createuser", "--username", "ada", "--password", PASSWORD]):
        _run(folder, [program, *arguments], environment)
    with _running(folder, environment, [program, "webserver", "--port", port], port) as url:
        sent = {"username": "ada", "password": PASSWORD}
        headers = {"Authorization": f"Token {_api(f'{url}/v1/auth/login/', {}, sent)['key']}"}
        project = {"name": "images", "description": "images", "tags": []}
        kind = {"project_type": "DocumentClassification"}
        kind["resourcetype"] = "TextClassificationProject"
        base = f"/v1/projects/{_api(f'{url}/v1/projects', headers, project | kind)['id']}"
        label = _api(f"{url}{base}/category-types", headers, {"text": "not relevant"})["id"]
        [backend] = program.parent.parent.glob("lib/python*/site-packages/backend")
        environment |= {
            "PYTHONPATH": str(backend),
            "DJANGO_SETTINGS_MODULE": "config.settings.production",
            "DATABASE_URL": f"sqlite:///{folder}/db.sqlite3",
        }
        script = [program.with_name("python"), "-c", DOCCANO_PEOPLE, str(people), str(ITEMS)]
        tokens = _run(folder, script, environment).splitlines()[-1].split()
        listed = _api(f"{url}{base}/examples?limit={ITEMS}", headers)
        saves = {
            "headers": [{"Authorization": f"Token {token}"} for token in tokens],
            "path": f"{base}/examples/{{}}/categories",
            "items": [item["id"] for item in listed["results"]],
            "body": {"label": label},
        }
        yield {"url": url, "saves": saves}


def version(program: Path) -> str:
    """The version of the package that a program belongs to."""
    script = f"from importlib.metadata import version; print(version({program.name!r}))"
    return subprocess.check_output([program.with_name("python"), "-c", script], text=True).strip()


@contextmanager
def _running(
    folder: Path, environment: dict[str, str], command: list[Any], port: str
) -> Iterator[str]:
    """A server's address, once it answers there."""
    url = f"http://127.0.0.1:{port}"
    environment = _environment(folder) | environment
    with (folder / "output.txt").open("ab") as output:
        streams: Any = {"stdout": output, "stderr": output, "start_new_session": True}
        server = subprocess.Popen(command, env=environment, cwd=folder, **streams)

    def answers() -> bool:
        with suppress(OSError), urllib.request.urlopen(url, timeout=10):
            return True
        return False

    try:
        wait_for(answers, seconds=900, what=f"{command[0]} ({output.name})", pause=1)
        yield url
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _environment(folder: Path) -> dict[str, str]:
    """An environment without this application's Django settings."""
    folder.mkdir(exist_ok=True)
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}


def _run(folder: Path, command: list[Any], environment: dict[str, str]) -> str:
    environment = _environment(folder) | environment
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def _api(address: str, headers: dict[str, str], body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    sent = {"Content-Type": "application/json", **headers}
    with urllib.request.urlopen(urllib.request.Request(address, data, sent), timeout=120) as answer:
        return json.loads(answer.read())

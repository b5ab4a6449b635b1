"""The files of `deploy/` speak of what the application really has."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.urls import get_resolver
from prometheus_client.parser import text_string_to_metric_families

from annotator.models import Backup, User
from core.jobs.models import Job
from retrieval.corpus.shown import cache_folder
from tests import ROOT
from tests.annotator.test_docker import COMPOSE, OTHERS, variables_read
from tests.conftest import token_of
from tests.processes import Process, database_url, free_port, listens, wait_for

DEPLOY = ROOT / "deploy"
RULES = yaml.safe_load((DEPLOY / "prometheus-rules.yaml").read_text())["groups"][0]["rules"]
DASHBOARD = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
UNITS = sorted([*DEPLOY.glob("systemd/inquire-*"), *ROOT.glob("extras/*/inquire-*")])
PROMTOOL = shutil.which("promtool")
SYSTEMD = shutil.which("systemd-analyze")


def expressions() -> dict[str, str]:
    """Each expression in PromQL by where it stands."""
    found = {rule["alert"]: rule["expr"] for rule in RULES}
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            found[f"{panel['title']} {target['refId']}"] = target["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            found[variable["name"]] = variable["query"]["query"]
    return found


@pytest.mark.django_db(transaction=True)
def test_every_metric_that_is_named_is_one_that_metrics_gives(clients: dict[str, Client]) -> None:
    Job.objects.create(kind="embed", state=Job.State.FAILED)
    Backup.objects.create(file="a.tar", finished_at=Now())
    clients["admin"].get("/")
    answer = clients["admin"].get("/metrics").content.decode()
    given: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(answer):
        for sample in family.samples:
            given.setdefault(sample.name, set()).update(sample.labels)
    for place, expression in expressions().items():
        named = re.findall(r"\b(inquire_\w+|up)\b(?:\{([^}]*)\})?", expression)
        assert named, place
        for metric, labels in named:
            if metric == "up":
                continue
            assert metric in given, f"{place}: /metrics gives no {metric}"
            used = set(re.findall(r"(\w+)(?:=~|!~|!=|=)", labels)) - {"instance"}
            assert used <= given[metric], f"{place}: {metric} has only {given[metric]}"


def test_every_view_and_state_that_is_named_is_one() -> None:
    text = "".join(expressions().values())
    views = set(re.findall(r'view!?="([^"]*)"', text))
    assert views
    known = get_resolver().reverse_dict
    assert {view for view in views if view not in known} == set()
    assert set(re.findall(r'state!?="([^"]*)"', text)) <= set(Job.State.values)


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (package prometheus)")
def test_promtool_is_content() -> None:
    for arguments in (
        ("check", "rules", "prometheus-rules.yaml"),
        ("test", "rules", "prometheus-rules-test.yaml"),
    ):
        done = subprocess.run(
            [str(PROMTOOL), *arguments], cwd=DEPLOY, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_variable_of_the_example_is_read() -> None:
    text = (DEPLOY / "systemd/inquire.env.example").read_text()
    names = set(re.findall(r"^(\w+)=", text, re.MULTILINE))
    assert {"DATABASE_URL", "CELERY_BROKER_URL", "SECRET_KEY", "VAR_DIR"} <= names
    assert names - variables_read() - OTHERS == set()


@pytest.mark.skipif(SYSTEMD is None, reason="systemd-analyze is not installed (package systemd)")
def test_systemd_is_content(tmp_path: Path) -> None:
    for unit in UNITS:
        # Programs that are there.
        text = re.sub(r"/opt/inquire/bin/[\w-]+", "/bin/true", unit.read_text())
        (tmp_path / unit.name).write_text(text)
    assert len(UNITS) == 5
    done = subprocess.run(
        [str(SYSTEMD), "verify", *(str(tmp_path / unit.name) for unit in UNITS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def web_environment(folder: Path, port: int) -> dict[str, str]:
    """The variables of a web server on the tests' database."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "annotator.settings",
        "VAR_DIR": str(folder / "var"),
        "PORT": str(port),
        "DATABASE_URL": database_url(connection.settings_dict),
    }


def kubernetes_probes() -> set[str]:
    """The paths that Kubernetes asks of web servers, by a pod's IP address."""
    paths = set()
    for resource in yaml.safe_load_all((DEPLOY / "kubernetes/base/web.yaml").read_text()):
        if resource["kind"] == "Deployment":
            for container in resource["spec"]["template"]["spec"]["containers"]:
                for name in ("startupProbe", "readinessProbe", "livenessProbe"):
                    asked = container[name]["httpGet"]
                    assert asked.keys() == {"path", "port"}
                    paths.add(asked["path"])
    return paths


@pytest.mark.e2e
@pytest.mark.django_db(transaction=True)
def test_probes_are_answered_whatever_hosts_are_named(tmp_path: Path, admin: User) -> None:
    port = free_port()
    environment = web_environment(tmp_path, port) | {
        "ALLOWED_HOSTS": "labels.example.org",
        "HTTPS_ONLY": "true",
        "TRUST_PROXY": "true",
    }
    log = tmp_path / "web.log"
    gunicorn = Process(
        [sys.executable, "-m", "gunicorn", "-c", "python:annotator.processes.gunicorn_conf"],
        log,
        env=environment,
    )
    token = token_of(admin)

    def status(path: str, host: str, **headers: str) -> int:
        asked = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        asked.request("GET", path, headers={"Host": host, **headers})
        return asked.getresponse().status

    try:
        wait_for(lambda: listens(port) and status("/healthz/web", "10.1.2.3:8000"), what="gunicorn")
        for path in kubernetes_probes():
            assert status(path, "10.1.2.3:8000") == 200
        # Nobody works here.
        assert status("/healthz", "10.1.2.3:8000") == 503
        assert status("/metrics", "10.1.2.3:8000") == 401
        assert status("/metrics", "10.1.2.3:8000", Authorization=f"Token {token}") == 200
        kind, program, *arguments = COMPOSE["services"]["web"]["healthcheck"]["test"]
        assert (kind, program) == ("CMD", "python")
        probe = [sys.executable, *(one.replace(":8000", f":{port}") for one in arguments)]
        assert subprocess.run(probe, check=False).returncode == 0
        # All else is asked by its name and HTTPS alone.
        assert status("/login/", "10.1.2.3:8000") == 400
        assert status("/healthz/none", "127.0.0.1") == 400
        assert status("/login/", "labels.example.org") == 301
        forwarded = {"X-Forwarded-Proto": "https"}
        assert status("/login/", "labels.example.org", **forwarded) == 200, log.read_text()
    finally:
        gunicorn.terminate()
        gunicorn.wait(30)


def test_one_version_of_pgvector_is_named() -> None:
    files = ("docker/compose.yaml", "deploy/kubernetes/small/database.yaml", "docs/operations.md")
    tags = [re.findall(r"pgvector/pgvector:([\w.-]+)", (ROOT / one).read_text()) for one in files]
    assert tags == [tags[0]] * 3
    assert len(tags[0]) == 1


@pytest.mark.faults
@pytest.mark.e2e
@pytest.mark.django_db(transaction=True)
def test_a_restart_of_gunicorn_loses_no_request(tmp_path: Path) -> None:
    """As inquire-web.socket has it: the port is held by another process than gunicorn."""
    port = free_port()
    listening = socket.create_server(("127.0.0.1", port), backlog=1024)
    environment = web_environment(tmp_path, port) | {"LISTEN_FDS": "1"}
    # systemd's protocol: the socket is number 3, and its new owner's process number is told.
    script = f"""exec 3<&{listening.fileno()}; export LISTEN_PID=$$
        exec {sys.executable} -m gunicorn -c python:annotator.processes.gunicorn_conf"""

    def start() -> subprocess.Popen[bytes]:
        with (tmp_path / "web.log").open("ab") as log:
            return subprocess.Popen(
                ["bash", "-c", script],
                cwd=ROOT,
                env=environment,
                pass_fds=[listening.fileno()],
                stdout=log,
                stderr=log,
            )

    ended = threading.Event()
    answers: list[int] = []

    def ask() -> None:
        while not ended.is_set():
            asked = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            asked.request("GET", "/api/queries/")
            answers.append(asked.getresponse().status)
            asked.close()

    def some_more() -> None:
        before = len(answers)
        wait_for(lambda: len(answers) > before + 50, what="answers")

    gunicorn = start()
    try:
        with ThreadPoolExecutor(4) as people:
            asking = [people.submit(ask) for _ in range(4)]
            try:
                for _ in range(2):
                    some_more()
                    gunicorn.terminate()
                    assert gunicorn.wait(30) == 0
                    gunicorn = start()
                some_more()
            finally:
                ended.set()
        for person in asking:
            person.result()
        assert set(answers) == {401}, (tmp_path / "web.log").read_text()
    finally:
        listening.close()
        gunicorn.terminate()
        gunicorn.wait(30)


@pytest.mark.parametrize("name", ["nginx.conf", "Caddyfile"])
def test_the_web_server_in_front_sends_the_files_that_the_application_names(name: str) -> None:
    text = (DEPLOY / name).read_text()
    [address] = set(re.findall(r"IMAGE_REDIRECT=(\S+)", text))
    assert address == "/kept-images/"
    assert len(re.findall(re.escape(address.rstrip("/")), text)) == 2
    assert f"/srv/inquire/{cache_folder().name}" in text
    assert {"IMAGE_REDIRECT", "TRUST_PROXY"} <= variables_read()

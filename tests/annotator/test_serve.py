"""`manage.py serve` as a person meets it: real processes, killed and ended."""

import json
import posixpath
import re
import signal
import urllib.request

import pytest

from tests.processes import Served, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.faults]


def kill(processes):
    assert processes
    for process in processes:
        process.send_signal(signal.SIGKILL)


def nothing_left(served):
    return lambda: served.processes() == []


def postgres(served):
    return served.find("pginstall/bin/postgres", "-D")


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    application = Served(tmp_path_factory.mktemp("serve") / "var", WEB_PROCESSES="3")
    yield application
    application.end()


@pytest.fixture
def served(application):
    """A served application which a test may end, and whose parts it may kill."""
    if application.process.poll() is not None:
        application.start()
    return application.wait_healthy()


def test_what_is_killed_comes_back(served):
    for words, name in (
        (("celery", "worker"), "worker"),
        (("gunicorn",), "web"),
        (("encode_texts",), "encoder of texts"),
    ):
        before = wait_for(lambda words=words: served.find(*words), what=f"the {name}")
        kill(before)

        def replaced(before=before, words=words):
            now = served.find(*words)
            return now and not {process.pid for process in before} & {p.pid for p in now}

        wait_for(replaced, what=f"a new {words[0]}")
        served.wait_healthy()
        assert f"The {name} ended (SIGKILL); starting it again." in served.output.read_text()
    kill(postgres(served))
    served.wait_healthy()


def test_the_workers_count_their_requests_together(served):
    password = "a-long-one-9"
    arguments = ("metra", "--role", "admin", "--password", password, "--token")
    token = served.manage("create_user", *arguments).stdout.strip()
    assert len(served.find("gunicorn")) == 1 + 3
    for _ in range(8):
        urllib.request.urlopen(f"{served.url}/login/").close()
    request = urllib.request.Request(
        f"{served.url}/metrics", headers={"Authorization": f"Token {token}"}
    )
    with urllib.request.urlopen(request) as answer:
        text = answer.read().decode()
    (line,) = (
        line
        for line in text.splitlines()
        if line.startswith("inquire_request_seconds_count") and 'view="login"' in line
    )
    assert float(line.rpartition(" ")[2]) >= 8
    # One that another test has killed counts for a minute.
    assert re.search(r"^inquire_workers [1-9]", text, re.M)


def test_statics_and_what_they_import_are_served_under_lasting_names(served):
    with urllib.request.urlopen(f"{served.url}/login/") as answer:
        page = answer.read().decode()
    names = [part.split('"')[0] for part in page.split('"/static/')[1:]]
    assert names
    manifest = json.loads((served.var_dir / "static" / "staticfiles.json").read_text())
    names.append(manifest["paths"]["js/studio/page.js"])
    for name in names:
        with urllib.request.urlopen(f"{served.url}/static/{name}") as answer:
            assert "immutable" in answer.headers["Cache-Control"], name
            imports = re.findall(r'^import [^;]* from "([^"]+)"', answer.read().decode(), re.M)
        found = [posixpath.normpath(f"{posixpath.dirname(name)}/{one}") for one in imports]
        names += [one for one in found if one not in names]
    assert len(names) > 20


def test_ended_it_goes_on_with_the_same_state_and_killed_it_leaves_nothing(served, serve):
    key = (served.var_dir / "secret_key").read_text()
    token = served.manage(
        "create_user", "mia", "--role", "reviewer", "--password", "tawny-owl-at-dusk-7", "--token"
    ).stdout.strip()
    assert len(token) == 64
    assert served.stop(signal.SIGINT) == 0
    assert served.processes() == []
    text = served.output.read_text()
    assert f"Inquire Annotator is at {served.url} (Ctrl-C ends it)" in text
    assert text.endswith("Stopped.\n")

    # A command needs no `serve`: the database comes and goes with it.
    alone = served.manage("create_user", "mia", "--password", "tawny-owl-at-dusk-7", check=False)
    assert "There is a user named 'mia' already" in alone.stderr
    wait_for(nothing_left(served), seconds=15, what="the command's database to stop")

    starts = text.count("Preparing")
    early = serve(var_dir=served.var_dir, wait=False)
    wait_for(lambda: early.output.read_text().count("Preparing") > starts, what="the start")
    assert early.stop(signal.SIGTERM) == 0
    wait_for(nothing_left(early), seconds=15, what="all to end that had begun")

    again = serve(var_dir=served.var_dir)
    assert (again.var_dir / "secret_key").read_text() == key
    assert len(again.processes()) > 5
    again.process.send_signal(signal.SIGKILL)
    again.process.wait()
    wait_for(nothing_left(again), seconds=40, what="the children to end")

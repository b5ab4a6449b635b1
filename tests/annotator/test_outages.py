"""A database, a broker or a disk that fails, and is well again."""

import http.cookiejar
import json
import random
import re
import string
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from annotator.postgres.embedded import DATABASE, EmbeddedPostgres
from annotator.postgres.guardian import DATABASE_USER
from tests.people import PASSWORD
from tests.processes import Served, database_url, fill, mounted_disk, redis_server

pytestmark = [pytest.mark.e2e, pytest.mark.faults]
PROBLEM = "application/problem+json"


class Browser:
    """Somebody's requests to a served application, by session or by token."""

    def __init__(self, url):
        self.url = url
        self.jar = http.cookiejar.CookieJar()
        cookies = urllib.request.HTTPCookieProcessor(self.jar)
        self.opener = urllib.request.build_opener(cookies)

    def ask(self, path, data=None, **headers):
        """Status, headers and text of an answer; `data` is posted."""
        request = urllib.request.Request(self.url + path, data, headers)
        try:
            answer = self.opener.open(request, timeout=30)
        except urllib.error.HTTPError as error:
            answer = error
        return answer.status, answer.headers, answer.read().decode()

    def log_in(self, name):
        page = self.ask("/login/")[2]
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)[1]
        form = {"csrfmiddlewaretoken": token, "username": name, "password": PASSWORD}
        return self.ask("/login/", urllib.parse.urlencode(form).encode())[0]


class Application:
    """A served application with an admin, on a database, a broker and a small disk of its own."""

    def __init__(self, served, database, redis, disk):
        self.served, self.database, self.redis, self.disk = served, database, redis, disk
        user = ("ada", "--role", "admin", "--password", PASSWORD, "--token")
        token = served.manage("create_user", *user)
        self.script = {"Authorization": f"Token {token.stdout.strip()}"}

    def browser(self):
        """Somebody who is not logged in."""
        return Browser(self.served.url)


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    """The application, which each test leaves healthy."""
    folder = tmp_path_factory.mktemp("outages")
    with mounted_disk(folder / "disk") as disk, redis_server(folder) as redis:
        # A PostgreSQL that the application doesn't start by itself.
        database = EmbeddedPostgres(disk / "database")
        database.ensure()
        place = {"USER": DATABASE_USER, "HOST": database.layout.socket_dir, "NAME": DATABASE}
        served = Served(
            folder / "var",
            DATABASE_URL=database_url(place),
            CELERY_BROKER_URL=redis.url,
            TMPDIR=str(disk),
        )
        try:
            yield Application(served.wait_healthy(), database, redis, disk)
        finally:
            served.end()
            database.leave(wait=True)


def test_pages_and_api_wait_for_a_database_that_stops_and_go_on_when_it_is_back(application):
    served, database, script = application.served, application.database, application.script
    browser = application.browser()
    assert browser.log_in("ada") == 200
    pages = ["/", "/search/", "/admin/", "/nowhere/"]
    addresses = ["/api/queries/", "/api/nowhere/"]
    before = [browser.ask(path)[0] for path in (*pages, *addresses)]
    assert before == [200, 200, 200, 404, 200, 404]

    database.leave(wait=True)
    for path in pages[:-1]:
        status, headers, text = browser.ask(path)
        assert (path, status, headers["Retry-After"]) == (path, 503, "5")
        assert "The server&#x27;s database doesn&#x27;t answer now." in text
    for asker, headers in ((browser, {}), (application.browser(), script)):
        status, answered, text = asker.ask(addresses[0], **headers)
        assert (status, answered["Retry-After"]) == (503, "5")
        assert answered["Content-Type"] == PROBLEM
        assert json.loads(text)["detail"] == "The server's database doesn't answer now."
    assert application.browser().log_in("ada") == 503
    assert browser.ask("/nowhere/")[0] == 503
    assert browser.ask("/api/nowhere/")[0] == 404
    assert served.health()["database"] == "unreachable"

    database.ensure()
    assert [browser.ask(path)[0] for path in (*pages, *addresses)] == before
    served.wait_healthy()


def test_a_disk_that_stands_still_loses_nothing_and_is_said_so(application):
    served, script = application.served, application.script
    query = {"text": "an owl that waits", "category": "Species ID", "split": "val"}
    headers = script | {"Content-Type": "application/json"}

    def write():
        return application.browser().ask("/api/queries/", json.dumps(query).encode(), **headers)

    record = application.database.layout.data / "postmaster.pid"
    server = psutil.Process(int(record.read_text().split()[0]))
    # Nothing that PostgreSQL reads or writes comes to an end.
    frozen = [server, *server.children(recursive=True)]
    with ThreadPoolExecutor(1) as pool:
        for one in frozen:
            one.suspend()
        try:
            answer = pool.submit(write)
            assert served.health()["database"] == "no answer"
            assert not answer.done()
        finally:
            for one in frozen:
                one.resume()
        assert answer.result()[0] == 201
    served.wait_healthy()
    found = application.browser().ask("/api/queries/?search=owl", **script)[2]
    assert [one["text"] for one in json.loads(found)["results"]].count(query["text"]) == 1


def test_what_has_no_room_in_the_database_or_for_uploads_is_refused_until_there_is(application):
    script = application.script
    guidelines = "".join(random.Random(0).choices(string.ascii_letters, k=6000))

    def write(number):
        query = {"text": f"a newt {number}", "category": "Species ID", "guidelines": guidelines}
        body = json.dumps({**query, "split": "val"}).encode()
        headers = script | {"Content-Type": "application/json"}
        return application.browser().ask("/api/queries/", body, **headers)

    def upload():
        part = 'Content-Disposition: form-data; name="file"; filename="queries.csv"'
        body = f"--edge\r\n{part}\r\n\r\n{'text,' * 700_000}\r\n--edge--\r\n".encode()
        headers = script | {"Content-Type": "multipart/form-data; boundary=edge"}
        return application.browser().ask("/api/queries/import/", body, **headers)

    assert write(0)[0] == 201
    assert upload()[0] == 400
    filler = fill(application.disk)
    statuses = {}
    for number in range(1, 300):
        status, answered, text = write(number)
        statuses[status] = (answered, text)
        if status != 201:
            break
    assert set(statuses) <= {201, 507}
    answered, text = statuses[507]
    assert (answered["Content-Type"], answered["Retry-After"]) == (PROBLEM, "30")
    assert json.loads(text)["detail"] == "The server's disk is full."

    status, answered, _ = upload()
    assert (status, answered["Content-Type"], answered["Retry-After"]) == (507, PROBLEM, "30")

    filler.unlink()
    assert write(300)[0] == 201
    assert upload()[0] == 400
    application.served.wait_healthy()

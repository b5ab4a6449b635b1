"""A database that stops and comes back."""

import http.cookiejar
import json
import re
import urllib.error
import urllib.parse
import urllib.request

import pytest

from annotator.embedded_postgres import DATABASE, EmbeddedPostgres
from annotator.postgres_guardian import DATABASE_USER
from tests.conftest import PASSWORD
from tests.processes import database_url

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


@pytest.fixture
def database(tmp_path):
    """A PostgreSQL of its own, which the application under test doesn't start by itself."""
    server = EmbeddedPostgres(tmp_path / "database")
    server.ensure()
    yield server
    server.leave(wait=True)


def url_of(database):
    place = {"USER": DATABASE_USER, "HOST": database.layout.socket_dir, "NAME": DATABASE}
    return database_url(place)


def test_pages_and_api_wait_for_a_database_that_stops_and_go_on_when_it_is_back(database, serve):
    served = serve(DATABASE_URL=url_of(database))
    token = served.manage("create_user", "ada", "--role", "admin", "--password", PASSWORD)
    browser, script = Browser(served.url), {"Authorization": f"Token {token.stdout.strip()}"}
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
    for asker, headers in ((browser, {}), (Browser(served.url), script)):
        status, answered, text = asker.ask(addresses[0], **headers)
        assert (status, answered["Retry-After"]) == (503, "5")
        assert answered["Content-Type"] == PROBLEM
        assert json.loads(text)["detail"] == "The server's database doesn't answer now."
    assert Browser(served.url).log_in("ada") == 503
    assert browser.ask("/nowhere/")[0] == 503
    assert browser.ask("/api/nowhere/")[0] == 404
    assert served.health()["database"] == "unreachable"

    database.ensure()
    assert [browser.ask(path)[0] for path in (*pages, *addresses)] == before
    served.wait_healthy()

"""Log-in by OpenID Connect, with a provider of its own that listens on this machine."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import runpy
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import jwt
import pytest
import requests
from axes.models import AccessAttempt
from cryptography.hazmat.primitives.asymmetric import rsa
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import AnonymousUser
from django.contrib.messages.storage.fallback import FallbackStorage
from django.test import Client, RequestFactory

from annotator.environment import BadSetting
from annotator.models import User
from annotator.people.oidc import CallbackView
from annotator.people.services import person_deactivate, person_leave, role_set
from core.access import Role
from core.errors import Conflict
from tests import ROOT
from tests.conftest import client_of, person
from tests.pages import Browser
from tests.people import PASSWORD
from tests.processes import free_port

pytestmark = pytest.mark.django_db

KEY, OTHER_KEY = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in "ab")
ROLES = {"labelers": "annotator", "staff": "reviewer", "chiefs": "admin", "science": "researcher"}
FAILED = "The log-in by 127.0.0.1 failed. Try it again."
UNFINISHED = "127.0.0.1 didn't log you in. Try it again."


class Provider(ThreadingHTTPServer):
    """A provider in which `person` is logged in, and who agrees to everything."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.person: dict[str, Any] = {}
        self.said: dict[str, Any] = {}
        """What ID tokens say instead."""
        self.key = KEY
        self.ways = ["client_secret_basic", "client_secret_post"]
        self.codes: dict[str, dict[str, str]] = {}
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def is_now(self, name: str, *groups: str, sub: str | None = None) -> None:
        """Have somebody else be logged in."""
        self.person = {"sub": sub or f"number of {name}", "preferred_username": name}
        self.person["groups"] = list(groups)

    def id_token(self, asked: dict[str, str]) -> str:
        claims = {
            "iss": self.url, "aud": "annotator", "sub": self.person["sub"],
            "exp": time.time() + 300, "nonce": asked["nonce"], **self.said,
        }  # fmt: skip
        return jwt.encode(claims, self.key, algorithm="RS256", headers={"kid": "first"})


class Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        path, query = urlsplit(self.path).path, dict(parse_qsl(urlsplit(self.path).query))
        if path == "/.well-known/openid-configuration":
            names = {"authorization_endpoint": "ask", "token_endpoint": "token",
                     "userinfo_endpoint": "about", "jwks_uri": "keys"}  # fmt: skip
            told = {name: f"{self.server.url}/{end}" for name, end in names.items()}
            ways = {"token_endpoint_auth_methods_supported": self.server.ways}
            self.send({"issuer": self.server.url, **told, **ways})
        elif path == "/ask":
            assert query["response_type"] == "code"
            assert query["scope"].split() == ["openid", "profile"]
            assert query["code_challenge_method"] == "S256"
            code = secrets.token_urlsafe()
            self.server.codes[code] = query
            back = urlencode({"code": code, "state": query["state"]})
            self.send_response(302)
            self.send_header("Location", f"{query['redirect_uri']}?{back}")
            self.end_headers()
        elif path == "/keys":
            key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
            self.send({"keys": [{**key, "kid": "first", "alg": "RS256", "use": "sig"}]})
        elif path == "/about" and self.headers["Authorization"] == "Bearer opens":
            self.send(self.server.person)
        else:
            self.send({}, 404)

    def do_POST(self) -> None:
        sent = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        asked = self.server.codes.pop(sent["code"], None)
        basic = base64.b64encode(b"annotator:hush").decode()
        known = self.headers["Authorization"] == f"Basic {basic}"
        if "client_secret_post" in self.server.ways:
            known = (sent["client_id"], sent["client_secret"]) == ("annotator", "hush")
        digest = hashlib.sha256(sent["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if (
            asked is None
            or not known
            or sent["redirect_uri"] != asked["redirect_uri"]
            or challenge != asked["code_challenge"]
        ):
            self.send({"error": "invalid_grant"}, 400)
        else:
            self.send({"access_token": "opens", "id_token": self.server.id_token(asked)})

    def send(self, told: dict[str, Any], status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(told).encode())

    def log_message(self, *_arguments: Any) -> None:
        """Nothing."""


def use(settings: Any, issuer: str) -> None:
    """The settings as variables would make them."""
    settings.OIDC_ISSUER = issuer
    settings.OIDC_RP_CLIENT_ID, settings.OIDC_RP_CLIENT_SECRET = "annotator", "hush"
    settings.OIDC_ROLES = ROLES
    backends = [one for one in settings.AUTHENTICATION_BACKENDS if "oidc" not in one]
    settings.AUTHENTICATION_BACKENDS = ["annotator.people.oidc.Backend", *backends]


@pytest.fixture
def start(settings: Any) -> Iterator[Callable[[], Provider]]:
    """Starts a provider and has the application use it."""
    started: list[Provider] = []

    def begin() -> Provider:
        started.append(Provider())
        use(settings, started[-1].url)
        return started[-1]

    yield begin
    for one in started:
        one.shutdown()
        one.server_close()


@pytest.fixture
def provider(start: Callable[[], Provider]) -> Provider:
    return start()


def to_provider(browser: Client, **query: str) -> str:
    """The address to which the button leads in the end."""
    answer = browser.get("/oidc/", query)
    assert answer.status_code == 302
    return str(answer["Location"])


def back(address: str) -> str:
    """Where the provider sends who goes there."""
    answer = requests.get(address, allow_redirects=False, timeout=10)
    assert answer.headers["Location"].startswith("http://testserver/oidc/callback/?")
    return answer.headers["Location"].removeprefix("http://testserver")


def log_in(browser: Client, **query: str) -> Any:
    """What the application answers at last to who presses the button."""
    return browser.get(back(to_provider(browser, **query)))


def who(browser: Client) -> User | None:
    """The person who is logged in."""
    pk = browser.session.get("_auth_user_id")
    return User.objects.get(pk=pk) if pk else None


def refusal(answer: Any, browser: Client) -> str:
    """What the log-in page says to somebody who isn't logged in."""
    assert (answer.status_code, answer["Location"][:7]) == (302, "/login/")
    assert who(browser) is None
    page = browser.get(answer["Location"])
    assert page.status_code == 200
    (message,) = page.context["messages"]
    assert AccessAttempt.objects.count() == 0
    return str(message)


def test_a_first_log_in_makes_the_person_with_the_role(provider: Provider, client: Client) -> None:
    provider.is_now("mira", "staff", "choir")
    page = Browser().get("/login/?next=/search/?text=owl").content.decode()
    assert 'href="/oidc/?next=%2Fsearch%2F%3Ftext%3Dowl">Log in with 127.0.0.1</a>' in page
    address = to_provider(client, next="/search/?text=owl")
    asked = parse_qs(urlsplit(address).query)
    assert {"state", "nonce", "code_challenge"} <= asked.keys()
    before = client.session.session_key
    answer = client.get(back(address))
    assert (answer.status_code, answer["Location"]) == (302, "/search/?text=owl")
    assert client.session.session_key not in (None, before)
    mira = who(client)
    assert mira is not None
    assert (mira.username, mira.role, mira.is_staff) == ("mira", Role.REVIEWER, False)
    assert (mira.invited, mira.has_usable_password()) == (False, False)
    assert client.get("/").status_code == 200
    assert "Change password" not in client.get("/account/").content.decode()


def test_nobody_is_led_off_the_site(provider: Provider, client: Client) -> None:
    # Which may want its secret in a header.
    provider.ways = ["client_secret_basic"]
    provider.is_now("mira", "staff")
    assert log_in(client, next="https://elsewhere.example/")["Location"] == "/"


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        (["science", "labelers"], Role.ANNOTATOR),
        (["labelers", "chiefs", "staff"], Role.ADMIN),
    ],
)
def test_the_role_follows_the_groups(
    provider: Provider, client: Client, admin: Any, groups: list[str], role: Role
) -> None:
    provider.is_now("mira", "staff")
    log_in(client)
    provider.is_now("mira", *groups)
    other = Client()
    log_in(other)
    mira = who(other)
    assert mira == who(client)
    assert mira is not None
    assert (mira.role, mira.is_staff, mira.is_superuser) == (role, *[role == Role.ADMIN] * 2)
    (entry,) = LogEntry.objects.all()
    assert (entry.user, entry.change_message) == (mira, f"Role of their groups: {role}")


def test_groups_may_be_in_another_claim_and_in_the_id_token(
    provider: Provider, client: Client, settings: Any
) -> None:
    settings.OIDC_GROUPS_CLAIM, settings.OIDC_USERNAME_CLAIM = "teams", "nickname"
    provider.is_now("mira", "staff")
    provider.said = {"teams": "science", "nickname": "mi"}
    log_in(client)
    assert User.objects.values_list("username", "role").get() == ("mi", "researcher")


def test_who_has_no_group_with_a_role_or_no_name_is_refused(
    provider: Provider, client: Client
) -> None:
    for groups in ((), ("choir",)):
        provider.is_now("mira", *groups)
        said = refusal(log_in(client), client)
        assert said == "None of your groups at 127.0.0.1 may log in. Ask an admin."
    for name in ("", "a b"):
        provider.is_now(name, "staff")
        assert refusal(log_in(client), client).startswith(f"The name “{name}” can't be used here: ")
    assert not User.objects.exists()


@pytest.mark.parametrize("groups", [7, True, {"staff": True}, ["staff", 3]])
def test_groups_that_are_no_names_are_refused_in_words(
    provider: Provider, client: Client, groups: Any
) -> None:
    provider.is_now("mira")
    provider.person["groups"] = groups
    said = refusal(log_in(client), client)
    assert said == "127.0.0.1 names no groups in “groups”. Ask an admin."


def test_an_answer_that_names_nobody_is_refused_in_words(
    provider: Provider, client: Client
) -> None:
    for person_sub, token_sub in (("", ""), (None, "1"), ("", "1")):
        provider.is_now("mira", "staff", sub="1")
        provider.said = {"sub": token_sub}
        provider.person["sub"] = person_sub
        said = refusal(log_in(client), client)
        assert said == "127.0.0.1 doesn't say who you are: its answer has no “sub”."
    assert not User.objects.exists()


def test_a_log_in_for_another_application_is_refused(provider: Provider, client: Client) -> None:
    provider.is_now("mira", "staff")
    for said in ({"azp": "other"}, {"aud": ["annotator", "other"]}, {"azp": ""}):
        provider.said = said
        told = refusal(log_in(client), client)
        assert told == "127.0.0.1 made this log-in for another application."
    provider.said = {"aud": ["annotator", "other"], "azp": "annotator"}
    log_in(client)
    assert str(who(client)) == "mira"


@pytest.mark.parametrize("name", ["Ann", "ANN", "аnn", "ａｎｎ", "аnп"])
def test_a_name_that_looks_like_somebodys_is_refused(
    provider: Provider, client: Client, annotator: Any, name: str
) -> None:
    provider.is_now(name, "staff")
    if name == "аnп":
        log_in(client)
        assert str(who(client)) == name
    else:
        said = refusal(log_in(client), client)
        assert "looks the same as “ann”" in said or "already exists" in said


def test_an_account_is_nobody_elses_who_has_its_name(
    provider: Provider, client: Client, annotator: Any
) -> None:
    for name in ("ann", "mira"):
        provider.is_now(name, "chiefs", sub="1")
        if name == "mira":
            log_in(client)
            client.logout()
            provider.is_now(name, "chiefs", sub="2")
        said = refusal(log_in(client), client)
        assert said.startswith(f"The name “{name}” can't be used here: A user with that username")
    annotator.refresh_from_db()
    assert (annotator.role, annotator.subject) == (Role.ANNOTATOR, None)
    assert annotator.check_password(PASSWORD)


def test_a_new_name_at_the_provider_is_the_same_person(provider: Provider, client: Client) -> None:
    for name in ("mira", "mira.new"):
        provider.is_now(name, "staff", sub="1")
        log_in(client)
        client.logout()
    assert User.objects.get().username == "mira"


def test_a_number_at_another_provider_is_another_person(
    start: Callable[[], Provider], client: Client
) -> None:
    for name in ("mira", "moritz"):
        start().is_now(name, "staff", sub="1")
        log_in(client)
        assert str(who(client)) == name
        client.logout()


def test_who_is_deactivated_is_kept_out(provider: Provider, client: Client, admin: Any) -> None:
    provider.is_now("mira", "staff")
    log_in(client)
    mira = User.objects.get(username="mira")
    person_deactivate(user=mira, by=admin)
    assert client.get("/").status_code == 302
    browser = Client()
    assert refusal(log_in(browser), browser) == "You are deactivated here. Ask an admin."
    person_leave(user=mira, by=admin)
    mira.refresh_from_db()
    assert mira.subject is None


def test_the_last_admin_stays_one(provider: Provider, client: Client) -> None:
    provider.is_now("mira", "chiefs")
    log_in(client)
    provider.is_now("mira", "labelers")
    browser = Client()
    log_in(browser)
    mira = User.objects.get()
    assert (who(browser), mira.role) == (mira, Role.ADMIN)
    provider.is_now("moritz", "chiefs")
    log_in(Client())
    provider.is_now("mira", "labelers")
    log_in(Client())
    assert User.objects.get(username="mira").role == Role.ANNOTATOR


def test_who_only_a_former_provider_knows_is_no_other_admin(
    provider: Provider, client: Client, settings: Any
) -> None:
    provider.is_now("mira", "chiefs")
    log_in(client)
    settings.OIDC_ISSUER = ""
    ada = person("ada", Role.ADMIN)
    with pytest.raises(Conflict):
        role_set(user=ada, role=Role.ANNOTATOR, by=None)
    assert User.objects.get(username="mira").invited


@pytest.mark.parametrize(
    "said",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another"},
        {"iss": "https://id.example.org"},
        {"exp": 1_700_000_000},
        {"sub": "somebody else's"},
        {},
    ],
    ids=str,
)
def test_a_token_that_says_something_else_or_has_another_key_is_refused(
    provider: Provider, client: Client, said: dict[str, Any]
) -> None:
    provider.is_now("mira", "chiefs")
    provider.said = said
    if not said:
        provider.key = OTHER_KEY
    assert refusal(log_in(client), client) == FAILED
    assert not User.objects.exists()
    provider.said, provider.key = {}, KEY
    log_in(client)
    assert str(who(client)) == "mira"


def test_an_answer_counts_once_and_for_who_asked(provider: Provider, client: Client) -> None:
    provider.is_now("mira", "chiefs")
    answer = back(to_provider(client))
    stranger = Client()
    assert refusal(stranger.get(answer), stranger) == UNFINISHED
    to_provider(stranger)
    assert refusal(stranger.get(answer), stranger) == FAILED
    assert refusal(client.get(answer.replace("state=", "state=x")), client) == FAILED
    client.get(answer)
    assert str(who(client)) == "mira"
    client.logout()
    to_provider(client)
    assert refusal(client.get(answer), client) == FAILED


def test_a_state_is_taken_once_by_requests_at_the_same_moment(
    provider: Provider, client: Client
) -> None:
    """Both have read their session before one goes on; the provider takes the code twice."""
    provider.is_now("mira", "chiefs")
    answer = back(to_provider(client))
    request = RequestFactory().get(answer)
    request.session = client.session
    assert request.session["oidc_states"]
    request.user = AnonymousUser()
    request._messages = FallbackStorage(request)  # type: ignore[attr-defined]
    codes = dict(provider.codes)
    provider.codes.clear()
    assert refusal(client.get(answer), client) == FAILED
    provider.codes |= codes
    assert CallbackView.as_view()(request)["Location"] == "/login/"
    assert [str(one) for one in request._messages] == [FAILED]  # type: ignore[attr-defined]
    assert provider.codes == codes


@pytest.mark.parametrize("name", ["code_verifier", "secret"])
def test_the_provider_is_told_the_secrets(
    provider: Provider, client: Client, settings: Any, caplog: Any, name: str
) -> None:
    provider.is_now("mira", "chiefs")
    answer = back(to_provider(client))
    if name == "secret":
        settings.OIDC_RP_CLIENT_SECRET = "wrong"
    else:
        session = client.session
        (state,) = session["oidc_states"].values()
        state["code_verifier"] = "x" * 64
        session.save()
    assert refusal(client.get(answer), client) == FAILED
    assert "invalid_grant" in caplog.text


def test_a_provider_that_refuses(provider: Provider, client: Client) -> None:
    to_provider(client, next="/search/")
    answer = client.get("/oidc/callback/?error=access_denied")
    assert answer["Location"] == "/login/?next=%2Fsearch%2F"
    assert refusal(answer, client) == UNFINISHED


def test_no_address_ends_a_log_in(provider: Provider, annotator: Any) -> None:
    browser = client_of(annotator)
    for address in ("/oidc/callback/?error=x", "/oidc/callback/?code=a&state=b", "/oidc/"):
        assert browser.get(address)["Location"] == "/"
    assert who(browser) == annotator


def test_a_provider_that_is_away(client: Client, settings: Any, annotator: Any) -> None:
    use(settings, f"http://127.0.0.1:{free_port()}")
    assert "Log in with 127.0.0.1" in client.get("/login/").content.decode()
    answer = client.get("/oidc/?next=/search/")
    assert answer["Location"] == "/login/?next=%2Fsearch%2F"
    assert refusal(answer, client) == "127.0.0.1 doesn't answer now. Try again later."
    sent = {"username": "ann", "password": PASSWORD, "next": "/search/"}
    assert client.post("/login/", sent)["Location"] == "/search/"


def test_a_provider_that_goes_away(provider: Provider, client: Client) -> None:
    provider.is_now("mira", "staff")
    answer = back(to_provider(client))
    provider.shutdown()
    provider.server_close()
    assert refusal(client.get(answer), client) == "127.0.0.1 doesn't answer now. Try again later."


def test_a_provider_of_another_name(provider: Provider, client: Client, settings: Any) -> None:
    settings.OIDC_ISSUER = provider.url.replace("127.0.0.1", "localhost")
    answer = client.get("/oidc/")
    assert refusal(answer, client) == "The log-in by localhost failed. Try it again."


def test_without_a_provider_nothing_is_there(client: Client) -> None:
    for address in ("/oidc/", "/oidc/callback/", "/oidc/callback/?code=a&state=b"):
        assert client.get(address).status_code == 404
    assert "Log in with" not in client.get("/login/").content.decode()


COMPLETE = {
    "OIDC_ISSUER": "https://id.example.org/",
    "OIDC_CLIENT_ID": "annotator",
    "OIDC_CLIENT_SECRET": "hush",
    "OIDC_ROLES": "cn=staff=reviewer, chiefs=admin",
}


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Reads the settings from variables."""

    def run(**variables: str) -> dict[str, Any]:
        for name, value in {"VAR_DIR": str(tmp_path), **COMPLETE, **variables}.items():
            monkeypatch.setenv(name, value)
        return runpy.run_path(str(ROOT / "annotator/settings.py"))

    return run


def test_the_settings_are_read(read: Callable[..., dict[str, Any]]) -> None:
    found = read(OIDC_SCOPES="profile groups")
    assert found["OIDC_ISSUER"] == "https://id.example.org"
    assert found["OIDC_ROLES"] == {"cn=staff": "reviewer", "chiefs": "admin"}
    assert found["OIDC_RP_SCOPES"] == "openid profile groups"
    assert found["AUTHENTICATION_BACKENDS"][0] == "annotator.people.oidc.Backend"
    assert "annotator.people.oidc.Backend" not in read(OIDC_ISSUER="")["AUTHENTICATION_BACKENDS"]
    assert read(OIDC_ISSUER="http://localhost:9000")["OIDC_ISSUER"] == "http://localhost:9000"


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("OIDC_ROLES", "staff=boss", "'staff=boss' is not a group of its own"),
        ("OIDC_ROLES", "a=admin,a=reviewer", "'a=reviewer' is not a group of its own"),
        ("OIDC_ROLES", "", "OIDC_ROLES is missing, which OIDC_ISSUER needs."),
        ("OIDC_CLIENT_SECRET", "", "OIDC_CLIENT_SECRET is missing"),
        ("OIDC_ISSUER", "id.example.org", "write an address such as https://id.example.org."),
        ("OIDC_ISSUER", "http://id.example.org", "only on this machine"),
    ],
)
def test_a_wrong_setting_is_named(
    read: Callable[..., dict[str, Any]], name: str, value: str, says: str
) -> None:
    with pytest.raises(BadSetting, match=re.escape(says)):
        read(**{name: value})

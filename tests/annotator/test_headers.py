import runpy

import pytest
from django.core.management import CommandError, call_command

from annotator.web.middleware import is_loopback
from tests import ROOT
from tests.people import PASSWORD

pytestmark = pytest.mark.django_db

CSP = {
    "default-src 'self'",
    "img-src 'self' data: blob:",
    "object-src 'none'",
    "base-uri 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
}


@pytest.fixture
def https_only(settings):
    settings.HTTPS_ONLY = True
    settings.SECURE_SSL_REDIRECT = True
    settings.SESSION_COOKIE_SECURE = True
    settings.CSRF_COOKIE_SECURE = True
    settings.SECURE_HSTS_SECONDS = 31_536_000
    settings.ALLOWED_HOSTS = ["127.0.0.1", "labels.example.org"]


def log_in(client, host, **extra):
    page = client.get("/login/", HTTP_HOST=host, **extra)
    assert page.status_code == 200
    answer = client.post(
        "/login/", {"username": "ann", "password": PASSWORD}, HTTP_HOST=host, **extra
    )
    assert answer.status_code == 302
    return page, answer


def test_every_page_forbids_foreign_and_inline_content(client):
    answer = client.get("/login/")
    policy = set(answer.headers["Content-Security-Policy"].split("; "))
    assert policy == CSP
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "same-origin"
    assert answer.headers["X-Frame-Options"] == "DENY"


def test_a_foreign_host_is_refused(client):
    assert client.get("/login/", HTTP_HOST="evil.example.org").status_code == 400


def test_plain_http_is_sent_to_https_except_for_monitors(client, https_only):
    answer = client.get("/login/?next=/", HTTP_HOST="labels.example.org")
    assert answer.status_code == 301
    assert answer.headers["Location"] == "https://labels.example.org/login/?next=/"
    assert client.get("/healthz", HTTP_HOST="labels.example.org").status_code in (200, 503)
    assert client.get("/healthz/web", HTTP_HOST="labels.example.org").status_code == 200


def test_over_https_cookies_are_secure_and_the_browser_is_bound_to_it(
    client, https_only, annotator
):
    page, answer = log_in(client, "labels.example.org", secure=True)
    assert page.cookies["csrftoken"]["secure"] is True
    assert answer.cookies["sessionid"]["secure"] is True
    assert answer.cookies["sessionid"]["httponly"] is True
    assert answer.cookies["sessionid"]["samesite"] == "Lax"
    assert page.headers["Strict-Transport-Security"].startswith("max-age=31536000")


def test_the_machines_own_address_works_by_plain_http(client, https_only, annotator):
    page, answer = log_in(client, "127.0.0.1:8000")
    assert page.cookies["csrftoken"]["secure"] == ""
    assert answer.cookies["sessionid"]["secure"] == ""
    assert answer.cookies["sessionid"]["httponly"] is True
    assert "Strict-Transport-Security" not in page.headers


def test_which_hosts_are_the_machine_itself():
    for host in ("localhost:8000", "127.0.0.1", "127.1.2.3:80", "[::1]:8000"):
        assert is_loopback(host)
    for host in ("128.0.0.1", "localhost.example.org", ""):
        assert not is_loopback(host)


def test_check_deploy_is_clean_in_production_settings(tmp_path, monkeypatch, settings):
    for variable in ("HTTPS_ONLY", "DJANGO_ALLOW_ASYNC_UNSAFE"):
        monkeypatch.delenv(variable)
    monkeypatch.setenv("VAR_DIR", str(tmp_path))
    production = runpy.run_path(str(ROOT / "annotator/settings.py"))
    named = ("ALLOWED_HOSTS", "CSRF_", "DEBUG", "SECRET_KEY", "SECURE_", "SESSION_", "SILENCED_")
    for name, value in production.items():
        if name.startswith(named):
            setattr(settings, name, value)
    call_command("check", deploy=True, fail_level="WARNING")
    settings.SESSION_COOKIE_SECURE = False
    with pytest.raises(CommandError, match="SESSION_COOKIE_SECURE"):
        call_command("check", deploy=True, fail_level="WARNING")

"""Accounts and people: passwords, invitations, roles, leaving."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import transaction
from django.test import Client
from django.utils import timezone

from annotator.models import PasswordLink, User
from annotator.people.services import (
    person_deactivate,
    person_invite,
    person_leave,
    person_log_in,
    role_set,
)
from core.access import Role
from core.errors import Conflict
from core.locks import lock_key, transaction_lock
from labeling.judging.models import Judgment
from labeling.lifecycle.services import query_create, query_transition
from labeling.queries.models import Query
from labeling.studio.preferences import preferences_save
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from tests.annotator.test_tokens import everything_stored, opens
from tests.conftest import client_of, person, token_of
from tests.labeling.conftest import make_images, run_jobs
from tests.labeling.judging import judge
from tests.people import PASSWORD
from tests.threads import at_once
from tests.toy_model import toy_model

pytestmark = pytest.mark.django_db
NEW = "a-brown-owl-at-dawn-8"


@pytest.fixture
def query(admin: Any, settings: Any) -> Query:
    """An open query with five candidates."""
    settings.EMBEDDING_MODEL = toy_model()
    embedding_model_get_or_create(name=settings.EMBEDDING_MODEL)
    make_images(5)
    query = query_create(text="a toad", category="Species ID", split="val", created_by=admin)
    query = query_transition(query=query, to_state="open", by=admin)
    run_jobs()
    query.refresh_from_db()
    return query


def invite(browser: Client, name: str, role: str = "annotator") -> str:
    """The path of the link that an admin is shown."""
    page = browser.post("/people/", {"username": name, "role": role}).content.decode()
    return re.search(r"data-copied>http://testserver(/[^\s<]+)<", page)[1]  # type: ignore[index]


def set_password(browser: Client, link: str) -> Any:
    """What a link answers at last, once a password is typed on its page."""
    form = browser.get(link, follow=True)
    if form.status_code != 200:
        return form
    sent = {"new_password1": NEW, "new_password2": NEW}
    return browser.post(form.redirect_chain[-1][0], sent, follow=True)


@pytest.mark.parametrize("role", Role.values)
def test_an_invited_person_sets_a_password_once(admin: Any, role: str) -> None:
    office, browser = client_of(admin), Client()
    link = invite(office, "nina", role)
    assert "Invited" in office.get("/people/").content.decode()
    assert browser.post("/login/", {"username": "nina", "password": ""}).status_code == 200
    arrived = set_password(browser, link)
    assert arrived.status_code == 200
    assert arrived.context["user"].username == "nina"
    assert arrived.context["user"].is_staff == (role == "admin")
    assert browser.get("/account/").status_code == 200
    for client in (browser, Client()):
        dead = set_password(client, link)
        assert dead.status_code == 404
        assert "This link doesn’t work" in dead.content.decode()
    assert Client().login(request=arrived.wsgi_request, username="nina", password=NEW)
    assert "Invited" not in office.get("/people/").content.decode()


def test_an_invitation_names_what_is_wrong_and_makes_nobody(admin: Any) -> None:
    office = client_of(admin)
    for name, role, says in (
        ("ada", "annotator", "A user with that username already exists."),
        ("two words", "annotator", "Enter a valid username."),
        ("", "annotator", "This field is required."),
        ("nina", "owner", "Select a valid choice."),
    ):
        page = office.post("/people/", {"username": name, "role": role}).content.decode()
        assert says in page, name
    assert User.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_names_alike_that_come_at_once_one_is_taken() -> None:
    names = ("nina", "Nina", "nіna", "ｎｉｎａ")  # the third has a letter of Cyrillic
    calls = [partial(person_invite, username=one, role=Role.ANNOTATOR) for one in names]
    made = [one for one in at_once(*calls) if isinstance(one, User)]
    assert made == [User.objects.get()]
    first = partial(person_log_in, subject="of a provider", username="otto", role=Role.ANNOTATOR)
    assert set(at_once(*[first] * 4)) == {User.objects.get(username="otto")}


@pytest.mark.django_db(transaction=True)
def test_a_log_in_does_not_wait_for_people_who_are_being_made() -> None:
    log_in = partial(person_log_in, subject="of a provider", username="otto", role=Role.ANNOTATOR)
    otto = log_in()
    with transaction.atomic():
        transaction_lock(lock_key("people"))
        assert at_once(log_in) == [otto]


def test_a_link_for_a_forgotten_password_ends_the_old_log_ins(admin: Any, annotator: Any) -> None:
    browser, token = client_of(annotator), token_of(annotator)
    page = client_of(admin).post(f"/people/{annotator.pk}/link/").content.decode()
    link = re.search(r"data-copied>http://testserver(/[^\s<]+)<", page)[1]  # type: ignore[index]
    assert browser.get("/account/").status_code == opens(token) == 200
    rows = PasswordLink.objects.filter(user=annotator)
    assert rows.filter(expires_at__gt=timezone.now() + timedelta(days=6.9)).update(
        expires_at=timezone.now()
    )
    assert Client().get(link).status_code == 404
    rows.update(expires_at=timezone.now() + timedelta(days=1))
    assert set_password(Client(), link).status_code == 200
    assert browser.get("/account/").status_code == 302
    assert opens(token) == 401


def test_a_link_is_the_newest_and_ends_with_a_log_in(admin: Any, annotator: Any) -> None:
    office = client_of(admin)

    def link() -> str:
        page = office.post(f"/people/{annotator.pk}/link/").content.decode()
        return re.search(r"data-copied>http://testserver(/[^\s<]+)<", page)[1]  # type: ignore[index]

    first, begun = link(), Client()
    form = begun.get(first, follow=True).redirect_chain[-1][0]
    second = link()
    assert Client().get(first).status_code == 404
    sent = {"new_password1": NEW, "new_password2": NEW}
    assert begun.post(form, sent).status_code == 404
    assert Client().get(second, follow=True).status_code == 200
    assert Client().post("/login/", {"username": "ann", "password": PASSWORD}).status_code == 302
    assert Client().get(second).status_code == 404


@pytest.mark.django_db(transaction=True)
def test_a_link_that_comes_several_times_at_once_sets_one_password(admin: Any) -> None:
    link, browsers = invite(client_of(admin), "nina"), [Client() for _ in range(8)]
    [form] = {one.get(link, follow=True).redirect_chain[-1][0] for one in browsers}

    def post(number: int) -> int:
        sent = dict.fromkeys(("new_password1", "new_password2"), f"{NEW} {number}")
        return browsers[number].post(form, sent).status_code

    answers = at_once(*(partial(post, number) for number in range(8)))
    assert sorted(answers) == [302] + [404] * 7
    taken = f"{NEW} {answers.index(302)}"
    assert User.objects.get(username="nina").check_password(taken)


def test_a_new_password_ends_other_log_ins_and_tokens_and_not_the_present_one(
    annotator: Any,
) -> None:
    here, elsewhere, token = client_of(annotator), client_of(annotator), token_of(annotator)
    sent = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}
    for wrong, says in (
        ({"old_password": "no"}, "Your old password was entered incorrectly."),
        ({"new_password2": "no"}, "The two password fields didn’t match."),
        (dict.fromkeys(("new_password1", "new_password2"), "12345678"), "too common"),
    ):
        assert says in here.post("/account/password/", sent | wrong).content.decode()
    assert elsewhere.get("/account/").status_code == opens(token) == 200
    done = here.post("/account/password/", sent, follow=True)
    assert done.redirect_chain == [("/account/", 302)]
    assert "have ended" in done.content.decode()
    assert here.get("/account/").status_code == 200
    assert elsewhere.get("/account/").status_code == 302
    assert opens(token) == 401


def test_djangos_own_ways_to_a_new_password_end_tokens_too(
    admin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = token_of(admin)
    sent = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}
    assert client_of(admin).post("/admin/password_change/", sent).status_code == 302
    assert opens(token) == 401
    token = token_of(admin)
    monkeypatch.setattr("getpass.getpass", lambda prompt: PASSWORD)
    call_command("changepassword", "ada", verbosity=0)
    assert opens(token) == 401


def test_log_in_returns_to_the_page_that_asked_for_it(annotator: Any) -> None:
    browser = Client()
    asked = browser.get("/account/")["Location"]
    assert asked == "/login/?next=/account/"
    assert "Ask an admin for a link" in browser.get(asked).content.decode()
    sent = {"username": "ann", "password": PASSWORD, "next": "/account/"}
    assert browser.post("/login/", sent)["Location"] == "/account/"


def test_colors_and_time_zone_hold_on_every_page(annotator: Any) -> None:
    browser = client_of(annotator)
    assert '<html lang="en" data-theme="system" data-time-zone="UTC">' in (
        browser.get("/help/").content.decode()
    )
    sent = {"theme": "dark", "time_zone": "Asia/Kathmandu"}
    assert browser.post("/account/", sent).status_code == 302
    assert '<html lang="en" data-theme="dark" data-time-zone="Asia/Kathmandu">' in (
        browser.get("/help/").content.decode()
    )
    for wrong in ({"theme": "pink"}, {"time_zone": "Mars/Olympus"}, {"time_zone": ""}):
        page = browser.post("/account/", sent | wrong)
        assert page.status_code == 200
        assert 'class="errorlist"' in page.content.decode()
    annotator.refresh_from_db()
    assert (annotator.theme, annotator.time_zone) == ("dark", "Asia/Kathmandu")


def test_times_are_shown_in_the_persons_time_zone_and_given_in_utc(
    admin: Any, annotator: Any, annotator_api: Any
) -> None:
    evening = datetime(2026, 11, 3, 20, 0, tzinfo=UTC)
    User.objects.update(last_login=evening)
    for zone, shown in (("UTC", "3 Nov 2026, 20:00"), ("Asia/Kathmandu", "4 Nov 2026, 01:45")):
        User.objects.filter(pk=admin.pk).update(time_zone=zone)
        assert shown in client_of(admin).get(f"/people/{annotator.pk}/").content.decode()
    User.objects.update(time_zone="Asia/Kathmandu")
    made = annotator_api.post("/api/token/", {"username": "ann", "password": PASSWORD}).json()
    assert made["expires_at"].endswith("Z")


def test_researchers_have_no_labeling_keys(annotator: Any, researcher: Any) -> None:
    assert "data-keys-open" in client_of(annotator).get("/account/").content.decode()
    assert "data-keys-open" not in client_of(researcher).get("/account/").content.decode()


def test_an_admin_changes_roles(admin: Any, annotator: Any) -> None:
    office = client_of(admin)
    assert office.post(f"/people/{annotator.pk}/", {"role": "owner"}).status_code == 200
    office.post(f"/people/{annotator.pk}/", {"role": "admin"})
    annotator.refresh_from_db()
    assert (annotator.role, annotator.is_staff, annotator.is_superuser) == ("admin", True, True)
    page = office.post(f"/people/{admin.pk}/", {"role": "reviewer"}, follow=True)
    assert "You can’t do this to your own account" in page.content.decode()
    client_of(annotator).post(f"/people/{admin.pk}/", {"role": "reviewer"})
    assert office.get("/people/").status_code == 403
    assert office.get("/admin/").status_code == 302


def test_the_last_admin_stays(admin: Any, annotator: Any) -> None:
    office = client_of(admin)
    invite(office, "nina", "admin")  # who can't log in yet
    with pytest.raises(Conflict, match="ada is the only admin who can log in"):
        role_set(user=admin, role=Role.REVIEWER, by=annotator)
    other = person("olga", Role.ADMIN)
    role_set(user=admin, role=Role.REVIEWER, by=other)
    for refused in (person_deactivate, person_leave):
        with pytest.raises(Conflict, match="olga is the only admin"):
            refused(user=other, by=annotator)
        with pytest.raises(Conflict, match="You can’t do this to your own account"):
            refused(user=other, by=other)
    other.refresh_from_db()
    assert (other.role, other.is_active, other.username) == ("admin", True, "olga")


def test_who_is_deactivated_is_out_at_once_and_what_they_judged_stays(
    admin: Any, annotator: Any, query: Query
) -> None:
    judge(query, annotator, range(3), "relevant")
    office, browser, token = client_of(admin), client_of(annotator), token_of(annotator)
    pending = office.post(f"/people/{annotator.pk}/link/").content.decode()
    link = re.search(r"data-copied>http://testserver(/[^\s<]+)<", pending)[1]  # type: ignore[index]
    office.post(f"/people/{annotator.pk}/deactivate/")
    assert "Deactivated" in office.get(f"/people/{annotator.pk}/").content.decode()
    assert browser.get("/account/").status_code == 302
    assert opens(token) == 401
    assert Client().get(link).status_code == 404
    assert Client().post("/login/", {"username": "ann", "password": PASSWORD}).status_code == 200
    assert Judgment.objects.filter(annotator=annotator).count() == 3
    assert office.post(f"/people/{annotator.pk}/link/").status_code == 302
    # The old log-in, token and link don't come back with the person.
    again = office.post(f"/people/{annotator.pk}/reactivate/").content.decode()
    assert browser.get("/account/").status_code == 302
    assert opens(token) == 401
    assert Client().get(link).status_code == 404
    link = re.search(r"data-copied>http://testserver(/[^\s<]+)<", again)[1]  # type: ignore[index]
    assert set_password(Client(), link).status_code == 200


def test_who_leaves_is_a_pseudonym_wherever_the_name_was(
    admin: Any, annotator: Any, reviewer: Any, query: Query
) -> None:
    name = "Wilhelmina"
    User.objects.filter(pk=annotator.pk).update(
        username=name, first_name="W.", last_name="Quist", email="w@quist.example"
    )
    annotator.refresh_from_db()
    judge(query, annotator, range(3), "relevant")
    preferences_save(user=annotator, keys={"flag": ["q"]}, view={"side_tab": "chart"})
    token_of(annotator)
    Client().post("/login/", {"username": name.lower(), "password": "wrong"})
    LogEntry.objects.create(
        user=admin, action_flag=2, object_id=str(annotator.pk), object_repr=name,
        content_type=ContentType.objects.get_for_model(User),
    )  # fmt: skip
    assert AccessAttempt.objects.count() == 1
    office = client_of(admin)
    assert name in office.get(f"/people/{annotator.pk}/leave/").content.decode()
    assert name in everything_stored()
    assert office.post(f"/people/{annotator.pk}/leave/").status_code == 302
    annotator.refresh_from_db()
    assert re.fullmatch(r"person-[a-z0-9]{6}", annotator.username)
    stored = everything_stored().lower()
    assert [one for one in (name.lower(), "quist") if one in stored] == []
    assert not annotator.api_tokens.exists()
    assert not hasattr(annotator, "labeling_preferences")
    assert (annotator.is_active, annotator.has_usable_password()) == (False, False)
    assert Judgment.objects.filter(annotator=annotator).count() == 3
    assert annotator.username in client_of(reviewer).get("/").content.decode()

from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.db.models import F

from annotator.environment import BadSetting, Environment
from annotator.people.services import person_leave
from core.access import Role
from tests.conftest import person
from tests.people import PASSWORD

pytestmark = pytest.mark.django_db
TYPE = "application/problem+json"


@pytest.fixture(autouse=True)
def limits(settings):
    settings.LOGIN_LIMITS = [*settings.LOGIN_LIMITS[:2], (("ip_address",), 50, 5)]


def try_page(client, password, name="ann", address="10.0.0.1", page="/login/"):
    data = {"username": name, "password": password}
    return client.post(page, data, REMOTE_ADDR=address)


def try_token(api, password, name="ann", address="10.0.0.1"):
    data = {"username": name, "password": password}
    return api.post("/api/token/", data, REMOTE_ADDR=address)


def pass_time(minutes):
    """Make every recorded failure older, as if the clock had gone on."""
    AccessAttempt.objects.update(attempt_time=F("attempt_time") - timedelta(minutes=minutes))


def test_ten_wrong_passwords_on_the_page_lock_the_name_for_that_address(client, annotator):
    for _ in range(9):
        assert try_page(client, "wrong").status_code == 200
    locked = try_page(client, "wrong")
    assert locked.status_code == 429
    assert locked.headers["Retry-After"] == "900"
    assert "Too many wrong passwords. Try again in 15 minutes." in locked.content.decode()
    assert try_page(client, PASSWORD).status_code == 429
    assert try_page(client, PASSWORD, address="10.0.0.2").status_code == 302


def test_nine_wrong_passwords_do_not_lock_and_success_forgets_them(client, annotator):
    for _ in range(2):
        for _ in range(9):
            try_page(client, "wrong")
        assert try_page(client, PASSWORD).status_code == 302
        client.logout()


def test_other_names_go_on_from_a_locked_address(client, annotator, other_annotator):
    for _ in range(10):
        try_page(client, "wrong")
    assert try_page(client, PASSWORD, name="otto").status_code == 302


def test_sixty_names_from_one_address_are_stopped_and_the_address_is_free_soon(client, annotator):
    statuses = [try_page(client, "wrong", name=f"name{number}") for number in range(60)]
    assert [answer.status_code for answer in statuses] == [200] * 49 + [429] * 11
    locked = try_page(client, PASSWORD)
    assert (locked.status_code, locked.headers["Retry-After"]) == (429, "300")
    assert "Try again in 5 minutes." in locked.content.decode()
    assert try_page(client, PASSWORD, address="10.0.0.2").status_code == 302
    client.logout()
    pass_time(minutes=5)
    assert try_page(client, PASSWORD).status_code == 302


def test_a_class_behind_one_address_mistypes_and_nobody_waits(client, reviewer):
    """Its people have logged in from there before, and the reviewer is one of them."""
    names = [person(f"pupil{number}", Role.ANNOTATOR).username for number in range(30)]
    for name in (*names, "rita"):
        assert try_page(client, PASSWORD, name=name).status_code == 302
        client.logout()
    for _ in range(2):
        for name in names:
            assert try_page(client, "wrong", name=name).status_code == 200
    for name in (*names, "rita"):
        assert try_page(client, PASSWORD, name=name).status_code == 302
        client.logout()
    # Who guesses names there is stopped, and those people aren't.
    statuses = [try_page(client, "wrong", name=f"name{number}") for number in range(50)]
    assert statuses[-1].status_code == 429
    assert try_page(client, PASSWORD, name="rita").status_code == 302
    client.logout()
    assert (
        try_page(client, PASSWORD, name=person("new", Role.ANNOTATOR).username).status_code == 429
    )


def test_an_address_is_ones_own_for_ninety_days_and_until_one_leaves(client, annotator, admin):
    try_page(client, PASSWORD)
    assert annotator.login_addresses.get().address == "10.0.0.1"
    client.logout()
    annotator.login_addresses.update(last_at=F("last_at") - timedelta(days=91))
    try_page(client, PASSWORD, address="10.0.0.2")
    assert annotator.login_addresses.get().address == "10.0.0.2"
    person_leave(user=annotator, by=admin)
    assert not annotator.login_addresses.exists()


@pytest.mark.parametrize(
    "value", ["10/15", "10/15, 30/15, 0/5", "10/15, 30/15, 50", "a/b, c/d, e/f"]
)
def test_limits_that_are_none_are_told(value):
    with pytest.raises(BadSetting, match="write 3 limits such as 10/15"):
        Environment({"LOGIN_LIMITS": value}).limits("LOGIN_LIMITS", "10/15, 30/15, 100/5", 3)


def test_an_account_of_ones_own_does_not_lift_the_limit_of_the_address(client, annotator):
    for number in range(60):
        if number % 5 == 0:
            try_page(client, PASSWORD)
            client.logout()
        last = try_page(client, "wrong", name=f"name{number}")
    assert last.status_code == 429


def test_one_name_from_sixty_addresses_is_stopped(client, annotator, other_annotator):
    statuses = [
        try_page(client, "wrong", address=f"10.0.1.{number}").status_code for number in range(60)
    ]
    assert statuses == [200] * 29 + [429] * 31
    assert try_page(client, PASSWORD).status_code == 429
    assert try_page(client, PASSWORD, name="otto", address="10.0.1.7").status_code == 302
    client.logout()
    pass_time(minutes=15)
    assert try_page(client, PASSWORD).status_code == 302


def test_the_admins_log_in_shares_the_limits(client, admin):
    statuses = [
        try_page(client, "wrong", name=f"name{number}", page="/admin/login/").status_code
        for number in range(50)
    ]
    assert statuses == [200] * 49 + [429]
    assert try_page(client, PASSWORD, name="ada", page="/admin/login/").status_code == 429
    assert try_page(client, PASSWORD, name="ada").status_code == 429


def test_the_token_endpoint_shares_the_limits_and_answers_with_a_problem(
    anonymous_api, client, annotator
):
    for number in range(49):
        assert try_token(anonymous_api, "wrong", name=f"name{number}").status_code == 401
    locked = try_token(anonymous_api, "wrong", name="name49")
    assert (locked.status_code, locked.headers["Content-Type"]) == (429, TYPE)
    assert locked.json()["title"] == "Too Many Requests"
    assert locked.headers["Retry-After"] == "300"
    right = try_token(anonymous_api, PASSWORD)
    assert (right.status_code, right.headers["Content-Type"]) == (429, TYPE)
    assert try_page(client, PASSWORD).status_code == 429


def test_behind_a_proxy_the_address_is_the_one_that_the_proxy_saw(client, settings, annotator):
    settings.TRUST_PROXY = True

    def attempt(forwarded):
        data = {"username": "ann", "password": "wrong"}
        return client.post("/login/", data, HTTP_X_FORWARDED_FOR=forwarded).status_code

    statuses = [attempt(f"10.9.9.{number}, 203.0.113.7") for number in range(10)]
    assert statuses == [200] * 9 + [429]
    assert attempt("203.0.113.7, 203.0.113.8") == 200


def test_what_a_proxy_writes_that_is_no_address_leaves_the_proxys_own(client, settings, annotator):
    settings.TRUST_PROXY = True
    data = {"username": "ann", "password": "wrong"}
    for forwarded in ("unknown", "203.0.113.7:4711", ""):
        client.post("/login/", data, HTTP_X_FORWARDED_FOR=forwarded, REMOTE_ADDR="10.0.0.9")
    assert AccessAttempt.objects.get().ip_address == "10.0.0.9"


def test_without_a_proxy_a_made_up_address_counts_for_nothing(client, annotator):
    def attempt(number):
        data = {"username": "ann", "password": "wrong"}
        return client.post("/login/", data, HTTP_X_FORWARDED_FOR=f"10.9.9.{number}").status_code

    assert [attempt(number) for number in range(10)] == [200] * 9 + [429]


def test_the_addresses_of_one_client_count_as_one_also_without_any(client, annotator):
    for network in ("2001:db8::{:x}", "::ffff:10.0.0.1", ""):
        statuses = [
            try_page(client, "wrong", address=network.format(number)).status_code
            for number in range(1, 11)
        ]
        assert statuses == [200] * 9 + [429], network
        AccessAttempt.objects.all().delete()

import pytest

from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db
TYPE = "application/problem+json"


def try_page(client, password, name="ann", address="10.0.0.1"):
    data = {"username": name, "password": password}
    return client.post("/login/", data, REMOTE_ADDR=address)


def try_token(api, password, name="ann", address="10.0.0.1"):
    data = {"username": name, "password": password}
    return api.post("/api/token/", data, REMOTE_ADDR=address)


def test_ten_wrong_passwords_on_the_page_lock_the_name_for_that_address(client, annotator):
    for _ in range(9):
        assert try_page(client, "wrong").status_code == 200
    locked = try_page(client, "wrong")
    assert locked.status_code == 429
    assert locked.headers["Retry-After"] == "900"
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


def test_the_token_endpoint_shares_the_limit_and_answers_with_a_problem(
    anonymous_api, client, annotator
):
    for _ in range(9):
        assert try_token(anonymous_api, "wrong").status_code == 401
    locked = try_token(anonymous_api, "wrong")
    assert (locked.status_code, locked.headers["Content-Type"]) == (429, TYPE)
    assert locked.json()["title"] == "Too Many Requests"
    assert locked.headers["Retry-After"] == "900"
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


def test_without_a_proxy_a_made_up_address_counts_for_nothing(client, annotator):
    def attempt(number):
        data = {"username": "ann", "password": "wrong"}
        return client.post("/login/", data, HTTP_X_FORWARDED_FOR=f"10.9.9.{number}").status_code

    assert [attempt(number) for number in range(10)] == [200] * 9 + [429]

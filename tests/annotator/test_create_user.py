import pytest
from django.core.management import CommandError, call_command

from annotator.models import ApiToken, User
from annotator.people.tokens import digest_of
from tests.conftest import client_of

pytestmark = pytest.mark.django_db
PASSWORD = "tawny-owl-at-dusk-7"


def create(capsys, *arguments):
    call_command("create_user", *arguments)
    return capsys.readouterr().out


def test_prints_only_the_token_that_was_asked_for(capsys):
    assert create(capsys, "mia", "--role", "reviewer", "--password", PASSWORD) == ""
    user = User.objects.get(username="mia")
    assert not user.api_tokens.exists()
    out = create(capsys, "rob", "--password", PASSWORD, "--token")
    assert ApiToken.objects.get(user__username="rob").digest == digest_of(out.removesuffix("\n"))
    assert (user.role, user.is_staff, user.is_superuser) == ("reviewer", False, False)
    assert user.check_password(PASSWORD)


def test_admins_may_enter_djangos_admin(capsys, client):
    create(capsys, "ada", "--role", "admin", "--password", PASSWORD)
    client.force_login(User.objects.get(username="ada"))
    assert client.get("/admin/").status_code == 200


def test_refuses_a_name_that_is_taken_and_says_what_to_do(capsys, annotator):
    with pytest.raises(CommandError, match=r"named 'ann' already.*--update"):
        create(capsys, "ann", "--password", PASSWORD)


def test_update_changes_role_and_password_and_ends_tokens_and_log_ins(
    capsys, annotator, annotator_api
):
    browser = client_of(annotator)
    assert browser.get("/account/").status_code == 200
    User.objects.update(is_active=False)
    create(capsys, "ann", "--role", "admin", "--password", "a-new-one-for-ann", "--update")
    annotator = User.objects.get(username="ann")
    assert (annotator.role, annotator.is_staff, annotator.is_active) == ("admin", True, True)
    assert annotator.check_password("a-new-one-for-ann")
    assert annotator_api.get("/api/queries/").status_code == 401
    assert browser.get("/account/").status_code == 302


def test_update_leaves_the_last_admin_one(capsys, admin):
    with pytest.raises(CommandError, match="ada is the only admin"):
        create(capsys, "ada", "--role", "reviewer", "--password", "a-new-one-for-ada", "--update")
    assert User.objects.get().check_password(PASSWORD)


@pytest.mark.parametrize(
    ("name", "password", "field"),
    [("mia", "123", "password"), ("mia mia", PASSWORD, "username")],
)
def test_bad_input_names_the_field_and_makes_nobody(capsys, name, password, field):
    with pytest.raises(CommandError, match=f"^{field}: "):
        create(capsys, name, "--password", password)
    assert not User.objects.exists()

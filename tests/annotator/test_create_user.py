import pytest
from django.core.management import CommandError, call_command
from rest_framework.authtoken.models import Token

from annotator.models import User

pytestmark = pytest.mark.django_db
PASSWORD = "tawny-owl-at-dusk-7"


def create(capsys, *arguments):
    call_command("create_user", *arguments)
    return capsys.readouterr().out


def test_prints_only_the_token_of_a_user_who_can_log_in(capsys, client):
    out = create(capsys, "mia", "--role", "reviewer", "--password", PASSWORD)
    user = User.objects.get(username="mia")
    assert out == f"{Token.objects.get(user=user).key}\n"
    assert (user.role, user.is_staff, user.is_superuser) == ("reviewer", False, False)
    assert user.check_password(PASSWORD)


def test_admins_may_enter_djangos_admin(capsys, client):
    create(capsys, "ada", "--role", "admin", "--password", PASSWORD)
    client.force_login(User.objects.get(username="ada"))
    assert client.get("/admin/").status_code == 200


def test_refuses_a_name_that_is_taken_and_says_what_to_do(capsys, annotator):
    with pytest.raises(CommandError, match=r"named 'ann' already.*--update"):
        create(capsys, "ann", "--password", PASSWORD)


def test_update_changes_role_password_and_token(capsys, annotator):
    before = annotator.auth_token.key
    out = create(capsys, "ann", "--role", "admin", "--password", "a-new-one-for-ann", "--update")
    annotator = User.objects.get(username="ann")
    assert annotator.role == "admin"
    assert annotator.check_password("a-new-one-for-ann")
    assert out.strip() != before
    assert list(Token.objects.values_list("key", flat=True)) == [out.strip()]


@pytest.mark.parametrize(
    ("name", "password", "field"),
    [("mia", "123", "password"), ("mia mia", PASSWORD, "username")],
)
def test_bad_input_names_the_field_and_makes_nobody(capsys, name, password, field):
    with pytest.raises(CommandError, match=f"^{field}: "):
        create(capsys, name, "--password", password)
    assert not User.objects.exists()

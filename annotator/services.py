"""Creation and update of users."""

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from rest_framework.authtoken.models import Token

from annotator.models import User
from core.access import Role


class UserExists(ValueError):
    """The name is taken, and no update was requested."""


def user_create(
    *, username: str, role: Role, password: str, update: bool = False
) -> tuple[User, Token]:
    """Create a person and their API token; admins may also enter Django's admin.

    With `update`, a person of that name gets the role, the password and a new token instead, so
    that an old token is worth nothing after a change of password.

    Raises UserExists when the name is taken, ValidationError for a bad name or weak password.
    """
    with transaction.atomic():
        user = User.objects.select_for_update().filter(username=username).first()
        if user is not None and not update:
            raise UserExists(f"There is a user named {username!r} already.")
        user = user or User(username=username)
        user.role = role
        user.is_staff = user.is_superuser = role == Role.ADMIN
        user.is_active = True
        try:
            validate_password(password, user)
        except ValidationError as error:
            raise ValidationError({"password": error.messages}) from error
        user.set_password(password)
        user.full_clean()
        user.save()
        Token.objects.filter(user=user).delete()
        return user, Token.objects.create(user=user)

"""Every change of a person: invitations, passwords, roles, preferences, leaving."""

from __future__ import annotations

import unicodedata
from contextlib import suppress

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.password_validation import validate_password
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q
from django.utils.crypto import get_random_string

from annotator.models import LoginAddress, Theme, User
from core.access import Role
from core.errors import Conflict, Forbidden
from core.jobs.services import job_create
from core.locks import lock_key, transaction_lock
from labeling.comments.services import mentions_rename
from labeling.guidance.models import Introduction
from labeling.studio.models import LabelingPreferences
from releases.models import Release

#: Lower-case letters and digits without those that look alike.
_WORD = "abcdefghjkmnpqrstuvwxyz23456789"


class UserExists(ValueError):
    """The name is taken, and no update was requested."""


@transaction.atomic
def user_create(*, username: str, role: Role, password: str, update: bool = False) -> User:
    """Create a person with a password; admins may also enter Django's admin.

    With `update`, a person of that name gets the role and the password instead, which ends their
    log-ins and API tokens, and may log in again if they were deactivated.

    Raises UserExists when the name is taken, ValidationError for a bad name or weak password,
    Conflict where this would take the last admin's role.
    """
    user = User.objects.filter(username=username).first()
    if user is None:
        user = person_invite(username=username, role=role)
    elif update:
        person_reactivate(user=user)
        user = role_set(user=user, role=role, by=None)
    else:
        raise UserExists(f"There is a user named {username!r} already.")
    password_set(user=user, password=password)
    return user


@transaction.atomic
def person_invite(*, username: str, role: Role, subject: str | None = None) -> User:
    """Create a person without a password, who sets one by a link, or whom the provider of log-ins
    knows as `subject`. ValidationError: a bad name, or one that is taken or looks like one.
    """
    user = User(username=username, role=role, subject=subject)
    user.is_staff = user.is_superuser = role == Role.ADMIN
    user.set_unusable_password()
    # Two at once would each see that nobody has a name like theirs.
    transaction_lock(lock_key("people"))
    user.full_clean()
    key = _looks(username)
    names = User.objects.values_list("username", flat=True)
    if alike := next((one for one in names.iterator() if _looks(one) == key), None):
        raise ValidationError({"username": f"It looks the same as “{alike}”, which is taken."})
    user.save()
    return user


def _looks(name: str) -> str:
    """What a name looks like: in one case and width (RFC 8265, UsernameCaseMapped), its letters
    those of the Latin script that they are confused with (Unicode Technical Standard 39)."""
    # Its tables are read when it is imported.
    from confusable_homoglyphs import categories, confusables

    folded = unicodedata.normalize("NFKC", name).casefold()
    latin = ""
    for letter in folded:
        found = None
        if categories.alias(letter) not in ("LATIN", "COMMON"):
            found = confusables.is_confusable(letter, preferred_aliases=["latin"])
        latin += found[0]["homoglyphs"][0]["c"] if found else letter
    return latin.casefold()


@transaction.atomic
def person_log_in(*, subject: str, username: str, role: Role) -> User:
    """The person whom the provider of log-ins knows as `subject`, made at their first log-in, with
    `role`; the last admin who can log in stays one. Names tell nobody apart, so one that changes at
    the provider stays here.

    Raises ValidationError for a first log-in under a bad name, or somebody else's; Forbidden for
    who is deactivated.
    """
    known = User.objects.filter(subject=subject)
    person = known.first()
    if person is None:
        # Another first log-in of theirs at the same moment may have made them meanwhile.
        transaction_lock(lock_key("people"))
        person = known.first()
    if person is None:
        return person_invite(username=username, role=role, subject=subject)
    if not person.is_active:
        raise Forbidden("You are deactivated here. Ask an admin.")
    if person.role != role:
        with suppress(Conflict):
            person = role_set(user=person, role=role, by=None)
            what = f"Role of their groups: {role.label.lower()}"
            change_logged(user=person, by=person, what=what)
    return person


@transaction.atomic
def password_set(*, user: User, password: str) -> None:
    """Change a password. That ends the person's log-ins, since Django's sessions hold a hash of
    it, and their API tokens (`tokens.TokensEndWithPassword`). ValidationError: it is too weak.
    """
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise ValidationError({"password": error.messages}) from error
    user.set_password(password)
    user.save(update_fields=["password"])


def preferences_set(*, user: User, theme: str, time_zone: str) -> None:
    """Change the colors of a person's pages and the time zone of their times. ValidationError: an
    unknown one.
    """
    user.theme, user.time_zone = theme, time_zone
    user.clean_fields(exclude={"username", "password"})
    user.save(update_fields=["theme", "time_zone"])


@transaction.atomic
def mails_set(*, user: User, email: str, mails: bool) -> None:
    """Change a person's e-mail address, empty for none, and whether they get e-mails."""
    user.email = email
    user.save(update_fields=["email"])
    LabelingPreferences.objects.update_or_create(user=user, defaults={"mails": mails})


@transaction.atomic
def role_set(*, user: User, role: Role, by: User | None) -> User:
    """Change a person's role. Conflict: they are the last admin, or the one who does this; `by` is
    None for a command.
    """
    person = _locked(user, by=by, remains=role == Role.ADMIN)
    person.role = role
    person.is_staff = person.is_superuser = role == Role.ADMIN
    person.save(update_fields=["role", "is_staff", "is_superuser"])
    return person


@transaction.atomic
def person_deactivate(*, user: User, by: User) -> None:
    """Keep a person out: their log-ins, tokens, password and unused links end. What they judged
    stays. Conflict: they are the last admin, or the one who does this.
    """
    person = _locked(user, by=by, remains=False)
    person.is_active = False
    person.set_unusable_password()
    person.save(update_fields=["is_active", "password"])
    person.api_tokens.all().delete()


def person_reactivate(*, user: User) -> None:
    """Let a person in again, who then sets a new password by a link."""
    User.objects.filter(pk=user.pk).update(is_active=True)


@transaction.atomic
def person_leave(*, user: User, by: User) -> str:
    """Deactivate a person and replace their name by a pseudonym, wherever the database holds it;
    returns the pseudonym.

    What they judged, decided and submitted stays under it, with its weight, since their role stays.
    A job replaces the name in the files of releases that they made. Raises as `person_deactivate`.
    """
    person_deactivate(user=user, by=by)
    name, pseudonym = user.username, _pseudonym()
    User.objects.filter(pk=user.pk).update(
        username=pseudonym, first_name="", last_name="", email="", last_login=None,
        theme=Theme.SYSTEM, time_zone="UTC", subject=None,
    )  # fmt: skip
    for personal in (LabelingPreferences, Introduction, LoginAddress):
        personal.objects.filter(user=user.pk).delete()
    mentions_rename(name=name, pseudonym=pseudonym)
    for record in (AccessAttempt, AccessLog, AccessFailureLog):
        record.objects.filter(username__iexact=name).delete()
    LogEntry.objects.filter(
        content_type=ContentType.objects.get_for_model(User), object_id=str(user.pk)
    ).update(object_repr=pseudonym, change_message="")
    if Release.objects.made().filter(created_by=user.pk).exists():
        title = f"Releases name {pseudonym}"
        job_create(kind="take_down", params={"images": []}, created_by=by, title=title)
    return pseudonym


def change_logged(*, user: User, by: User, what: str) -> None:
    """Have the log say what an admin did about a person, under the name that they have now."""
    LogEntry.objects.create(
        user=by,
        content_type=ContentType.objects.get_for_model(User),
        object_id=str(user.pk),
        object_repr=User.objects.get(pk=user.pk).username,
        action_flag=CHANGE,
        change_message=what,
    )


def _pseudonym() -> str:
    """A name that nobody has: "person-" and six characters."""
    while True:
        name = f"person-{get_random_string(6, _WORD)}"
        if not User.objects.filter(username=name).exists():
            return name


def _locked(user: User, *, by: User | None, remains: bool) -> User:
    """The person as stored now, locked with all admins. Raises Conflict where they are the one who
    does this and, unless they remain an admin, where no other admin can log in.
    """
    if by is not None and user.pk == by.pk:
        raise Conflict("You can’t do this to your own account: ask another admin.")
    admins = Q(role=Role.ADMIN, is_active=True)
    rows = User.objects.select_for_update(no_key=True).filter(Q(pk=user.pk) | admins)
    people = {one.pk: one for one in rows.order_by("pk")}
    person = people.pop(user.pk)
    is_admin = person.is_active and person.role == Role.ADMIN
    if is_admin and not remains and not any(one.has_log_in for one in people.values()):
        raise Conflict(f"{person} is the only admin who can log in: make another one first.")
    return person

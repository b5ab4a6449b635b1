"""Users, their API tokens, workers' heartbeats and backups."""

from __future__ import annotations

from functools import cache
from zoneinfo import available_timezones

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Now

from core.access import Role


class Theme(models.TextChoices):
    """The colors of the pages."""

    SYSTEM = "system", "As the system"
    LIGHT = "light", "Light"
    DARK = "dark", "Dark"


#: Finding them reads hundreds of files.
_time_zones = cache(available_timezones)


def validate_time_zone(name: str) -> None:
    """Raise ValidationError unless this is the name of a time zone, such as Europe/Berlin."""
    if name not in _time_zones():
        raise ValidationError(f"There is no time zone “{name}”.")


class User(AbstractUser):
    """A person with one role: researchers evaluate runs, annotators label, reviewers judge labels,
    admins do the rest.
    """

    role = models.CharField(max_length=16, choices=Role.choices, default=Role.ANNOTATOR)
    theme = models.CharField(max_length=6, choices=Theme.choices, default=Theme.SYSTEM)
    time_zone = models.CharField(
        max_length=64,
        default="UTC",
        validators=[validate_time_zone],
        help_text="in which pages show times",
    )
    subject = models.CharField(
        max_length=800,
        null=True,
        blank=True,
        unique=True,
        editable=False,
        help_text="the address of a provider of log-ins, a blank, and its name for them",
    )

    class Meta(AbstractUser.Meta):
        constraints = [
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="user_role_known"
            ),
            models.CheckConstraint(
                condition=models.Q(theme__in=Theme.values), name="user_theme_known"
            ),
        ]

    @property
    def has_log_in(self) -> bool:
        """Whether they have a password, or the provider of log-ins (OIDC_ISSUER) knows them."""
        issuer = settings.OIDC_ISSUER
        known = bool(issuer) and (self.subject or "").startswith(f"{issuer} ")
        return known or self.has_usable_password()

    @property
    def invited(self) -> bool:
        """Whether they are yet to set a password, by a link that an admin hands over."""
        return self.is_active and not self.has_log_in


class ApiToken(models.Model):
    """What a script sends in place of a name and a password. It is shown once, and only its digest
    is stored.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(
        max_length=60,
        blank=True,
        help_text="empty where a script exchanged a name and a password for it",
    )
    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256, hexadecimal")
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "name"], condition=~models.Q(name=""), name="api_token_name_once"
            ),
        ]

    def __str__(self) -> str:
        return f"token {self.pk} of {self.user_id}"


class PasswordLink(models.Model):
    """The link by which a person may set a password, once; a newer one takes its place."""

    user = models.OneToOneField(User, on_delete=models.CASCADE, primary_key=True, related_name="+")
    digest = models.CharField(max_length=64, help_text="as annotator.people.links makes it")
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"link of {self.user_id}"


class LoginAddress(models.Model):
    """An address from which a person has logged in, whose limit they aren't held to there."""

    user = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="login_addresses", db_index=False
    )
    address = models.GenericIPAddressField(help_text="as annotator.web.lockout counts it")
    last_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "address"], name="login_address_once"),
        ]
        indexes = [models.Index(fields=["address"], name="login_address")]

    def __str__(self) -> str:
        return f"{self.address} of {self.user_id}"


class TokenRequests(models.Model):
    """How many requests a token was sent with in the present period of API_RATE. The table is
    unlogged: a crash of the database empties it, and counting waits for no disk.
    """

    token = models.OneToOneField(ApiToken, on_delete=models.CASCADE, primary_key=True)
    period = models.BigIntegerField(help_text="number of the period since 1970")
    requests = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.requests} requests by token {self.token_id}"


class WorkerHeartbeat(models.Model):
    """When a Celery worker process was last alive, by the database's clock."""

    worker = models.CharField(max_length=255, unique=True)
    seen_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.worker} seen {self.seen_at:%Y-%m-%d %H:%M:%S}"


class Backup(models.Model):
    """A backup that was begun, with what became of it."""

    file = models.CharField(max_length=1000, help_text="where it was written")
    daily = models.BooleanField(default=False)
    images = models.BooleanField(default=True, help_text="whether it holds the images' files")
    started_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True, blank=True, help_text="empty: not whole")
    size_bytes = models.PositiveBigIntegerField(default=0)
    problem = models.TextField(blank=True, help_text="why it failed, or which files were missing")

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.file

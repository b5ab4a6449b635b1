"""Parts shared by all apps, independent of any domain."""

from django.apps import AppConfig


class CoreConfig(AppConfig):
    """Django's configuration of this app."""

    name = "core"
    default_auto_field = "django.db.models.BigAutoField"

"""The drawn corpus to try the application with."""

from django.apps import AppConfig


class DemoConfig(AppConfig):
    """Django's configuration of the demo."""

    name = "demo"

    def ready(self) -> None:
        """Register the job that makes the demo's release."""
        from demo import job_handlers  # noqa: F401

"""The application that scores runs on releases."""

from django.apps import AppConfig


class EvaluationConfig(AppConfig):
    """Django's configuration of runs and the leaderboard."""

    name = "evaluation"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the kinds of long work that this app does, and its first step."""
        from core.registries import LATER_STEPS
        from evaluation import job_handlers  # noqa: F401
        from evaluation.first_steps import LEADERBOARD

        LATER_STEPS.append(LEADERBOARD)

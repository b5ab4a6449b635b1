"""Look-alikes: which species are taken for which, and how to tell them apart."""

from __future__ import annotations

from django.apps import AppConfig
from django.urls import reverse

from core.registries import CONFUSIONS, LINKS, Confusions, Link, LinkPlace


class LookalikesConfig(AppConfig):
    """Registers the link on the images' page and what the labeling page's reference shows."""

    name = "extras.lookalikes"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Append to the registries."""
        from extras.lookalikes.selectors import times_confused

        LINKS.append((LinkPlace.CORPUS, _link))
        CONFUSIONS.append(Confusions(times_confused, "lookalikes/_compare_dialog.html"))


def _link() -> Link:
    return Link("Look-alikes", reverse("lookalikes"))

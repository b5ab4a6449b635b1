"""The species task: how often a model names an image's species."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig
from django.urls import reverse

from core.access import Role, at_least
from core.jobs.kinds import job_handler
from core.registries import BACKUP_FOLDERS, LINKS, BackupFolder, Link, LinkPlace

if TYPE_CHECKING:
    from core.jobs.models import Job
    from releases.models import Release


class SpeciesTaskConfig(AppConfig):
    """Registers the job, the link among the leaderboard's analyses and what a backup takes."""

    name = "extras.species_task"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Append to the registries."""
        job_handler("species_task")(_species_task)
        LINKS.append((LinkPlace.ANALYSIS, _link))
        BACKUP_FOLDERS.append(BackupFolder("species_runs", _files))


def _species_task(job: Job, deadline: float) -> bool:
    """Have a model name the species of the corpus' images, in one slice."""
    from extras.species_task.services import species_step

    return species_step(job, deadline)


def _link(user: Any, release: Release, choice: dict[str, str]) -> Link | None:
    from extras.species_task.models import SpeciesRun
    from retrieval.embedding.counts import embedded_models

    may_begin = at_least(user, Role.ADMIN) and bool(embedded_models())
    if not may_begin and not SpeciesRun.objects.filter(images__gt=0).exists():
        return None
    return Link("Does a model name the species?", reverse("species-board"))


def _files() -> Iterator[Path]:
    from extras.species_task.models import SpeciesRun

    return (run.path for run in SpeciesRun.objects.order_by("pk") if run.done)

"""The species task: how often a model names an image's species."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from django.apps import AppConfig
from django.urls import reverse

from core.jobs.kinds import job_handler
from core.registries import BACKUP_FOLDERS, LINKS, BackupFolder, Link, LinkPlace

if TYPE_CHECKING:
    from core.jobs.models import Job


class SpeciesTaskConfig(AppConfig):
    """Registers the job, the leaderboard's tab and what a backup takes."""

    name = "extras.species_task"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Append to the registries."""
        job_handler("species_task")(_species_task)
        LINKS.append((LinkPlace.LEADERBOARD_TABS, _tab))
        BACKUP_FOLDERS.append(BackupFolder("species_runs", _files))


def _species_task(job: Job, deadline: float) -> bool:
    """Have a model name the species of the corpus' images, in one slice."""
    from extras.species_task.services import species_step

    return species_step(job, deadline)


def _tab() -> Link:
    return Link("Species", reverse("species-board"))


def _files() -> Iterator[Path]:
    from extras.species_task.models import SpeciesRun

    return (run.path for run in SpeciesRun.objects.order_by("pk") if run.done)

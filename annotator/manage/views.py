"""The pages from which admins look after the installation."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from annotator.backup.job import BACKUP_JOB, backup_begin
from annotator.backup.selectors import last_backups
from annotator.backup.services import backup_folder
from annotator.manage.settings_in_force import misspelled_variables, settings_in_force
from annotator.processes.worker import live_workers
from core.access import Role, require_role
from core.address_choices import chosen, chosen_page
from core.jobs.models import Job
from core.jobs.selectors import jobs_visible_to

JOBS_ON_A_PAGE: Final = 50
LATEST_JOBS: Final = 5


@login_required
@require_safe
def manage(request: HttpRequest) -> HttpResponse:
    """Links to all that admins look after, with the last jobs and the age of the last backup."""
    require_role(request.user, Role.ADMIN)
    jobs = jobs_visible_to(request.user)
    backups = last_backups()
    context = {
        "workers": live_workers(),
        "misspelled": misspelled_variables(),
        "jobs": jobs[:LATEST_JOBS],
        "backup": backups["finished"],
        "failed_backup": backups["failed"],
        "backup_job": jobs.filter(kind=BACKUP_JOB, state__in=Job.UNFINISHED).first(),
        "backup_folder": backup_folder(),
    }
    return render(request, "manage/manage.html", context)


@login_required
@require_POST
def backup_now(request: HttpRequest) -> HttpResponse:
    """Have a job write a backup."""
    require_role(request.user, Role.ADMIN)
    backup_begin(created_by=request.user)
    messages.success(request, "A backup is being made.")
    return redirect("manage")


@login_required
@require_safe
def jobs(request: HttpRequest) -> HttpResponse:
    """All jobs, the latest first, by state."""
    require_role(request.user, Role.ADMIN)
    state = chosen(request.GET, "state", Job.State.values)
    listed = jobs_visible_to(request.user)
    if state:
        listed = listed.filter(state=state)
    page = chosen_page(Paginator(listed, JOBS_ON_A_PAGE), request.GET)
    context: dict[str, Any] = {"page": page, "state": state, "states": Job.State.choices}
    return render(request, "manage/jobs.html", context)


@login_required
@require_safe
def settings_page(request: HttpRequest) -> HttpResponse:
    """The settings in force, to read only."""
    require_role(request.user, Role.ADMIN)
    context = {"settings": settings_in_force(), "misspelled": misspelled_variables()}
    return render(request, "manage/settings.html", context)

"""The leaderboard's page, its exports and the page of analyses."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.access import Role, at_least, require_evaluator, require_role
from core.jobs.models import Job
from core.jobs.selectors import jobs_visible_to
from core.pages import refusal_in_message
from core.registries import Link, LinkPlace, links
from evaluation.leaderboard.board import GROUPINGS, VAL
from evaluation.leaderboard.board_charts import board_charts
from evaluation.leaderboard.choice import (
    MEASURES,
    TASKS,
    VIEWS,
    Choice,
    VisibleMeasure,
    filters,
    measure_options,
    read_choice,
    visible_choice,
)
from evaluation.leaderboard.export import CONTENT_TYPES, export, file_name
from evaluation.leaderboard.selectors import BoardRuns, board_runs, releases_with_runs
from evaluation.leaderboard.table import leaderboard_table, usual_columns
from evaluation.runs.baselines import baselines_begin, baselines_job
from evaluation.runs.corpus import withdrawn_since
from evaluation.runs.models import Run
from evaluation.runs.selectors import NoSnapshot
from evaluation.scoring.fusion import METHODS, NORMALIZATIONS
from evaluation.scoring.hidden_labels import HALVES, TOO_FEW_SENTENCE
from evaluation.scoring.measures import HEADLINES, mean_title
from labeling.queries.benchmarks import benchmarks_shown
from releases.access import other_versions
from releases.making.services import board_close
from releases.models import Release

ANALYSIS_TAB: Final = "Analysis"
#: Releases that the page of one without runs names.
OTHERS: Final = 10


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def leaderboard_page(request: HttpRequest, pk: int) -> HttpResponse:
    """A release's leaderboard; admins have its baselines made here."""
    require_evaluator(request.user)
    release = get_object_or_404(Release.objects.made(), pk=pk)
    if request.method == "POST":
        return _baselines(request, release)
    choice = read_choice(request.GET)
    job = baselines_job(release)
    context: dict[str, Any] = {
        "release": release,
        "benchmarks": benchmarks_shown(request.user),
        "choice": choice,
        "tabs": board_tabs(request.user, release, choice, TASKS[choice.task]),
        "may_compute": at_least(request.user, Role.ADMIN),
        "may_evaluate": at_least(request.user, Role.REVIEWER),
        "baselines_job": jobs_visible_to(request.user).filter(pk=job.pk).first() if job else None,
        "baselines_made": job is not None and job.state in Job.UNFINISHED,
        "withdrawn": withdrawn_since(release),
    }
    try:
        runs = board_runs(release, choice.task, request.user)
    except NoSnapshot as error:
        context["no_board"] = str(error)
    else:
        choice, seen = visible_choice(choice, runs)
        context |= _board(choice, seen, runs, request.user)
        if not runs.runs:
            others = releases_with_runs(request.user).exclude(pk=release.pk)
            context["others"] = others.only("name", "version")[:OTHERS]
    return render(request, "evaluation/leaderboard.html", context)


@login_required
@require_safe
def analysis_page(request: HttpRequest, pk: int) -> HttpResponse:
    """What else can be looked at in the runs of a release: as much as there are data for."""
    require_evaluator(request.user)
    release = get_object_or_404(Release.objects.made(), pk=pk)
    choice = read_choice(request.GET)
    tabs = board_tabs(request.user, release, choice, ANALYSIS_TAB)
    context: dict[str, Any] = {"release": release, "tabs": tabs}
    try:
        runs = board_runs(release, choice.task, request.user)
    except NoSnapshot as error:
        return render(request, "evaluation/analysis.html", context | {"no_board": str(error)})
    choice, seen = visible_choice(choice, runs)
    parameters = {"task": choice.task}
    if not seen.labels_hidden:
        parameters["split"] = choice.split
    competing = [runs.runs[pk] for pk in runs.board(choice.split).competitors]
    ranked = [run for run in competing if run.kind != Run.Kind.RANDOM]
    context |= {
        "choice": choice,
        "labels_hidden": seen.labels_hidden,
        "measures_address": choice.address(view=MEASURES, columns=(), sort=""),
        "competing": len(competing),
        "links": links(LinkPlace.ANALYSIS, request.user, release, parameters),
        "fusible": sorted(ranked, key=lambda run: run.name.casefold()) if len(ranked) > 1 else [],
        "fusions": METHODS.items(),
        "normalizations": NORMALIZATIONS.items(),
    }
    return render(request, "evaluation/analysis.html", context)


@login_required
@require_POST
def close_board(request: HttpRequest, pk: int) -> HttpResponse:
    """End submissions with test queries, and show the private half to everybody (admins)."""
    require_role(request.user, Role.ADMIN)
    with refusal_in_message(request):
        board_close(release=get_object_or_404(Release.objects.made(), pk=pk))
    return redirect("leaderboard", pk=pk)


@login_required
@require_safe
def leaderboard_latest(request: HttpRequest) -> HttpResponse:
    """The leaderboard of the newest release that has runs, or of the newest at all; the releases
    where none is made."""
    require_evaluator(request.user)
    newest = Release.objects.made().order_by("-made_at").first
    release = releases_with_runs(request.user).first() or newest()
    if release is None:
        return redirect("releases")
    return redirect("leaderboard", pk=release.pk)


def _baselines(request: HttpRequest, release: Release) -> HttpResponse:
    require_role(request.user, Role.ADMIN)
    with refusal_in_message(request):
        baselines_begin(release=release, created_by=request.user)
    return redirect("leaderboard", pk=release.pk)


def board_tabs(user: Any, release: Release, choice: Choice, current: str) -> list[dict[str, Any]]:
    """The tasks, what extras add, and the analyses of the chosen task; `current` is the title of
    the tab that is shown.
    """
    board = reverse("leaderboard", args=[release.pk])
    tabs = [
        Link(
            title,
            board
            + Choice(
                task=task, split=choice.split, measure=HEADLINES[task][0], view=choice.view
            ).address(),
        )
        for task, title in TASKS.items()
    ]
    usual = Choice(task=choice.task, split=choice.split, measure=HEADLINES[choice.task][0])
    address = reverse("leaderboard-analysis", args=[release.pk]) + usual.address()
    tabs += [*links(LinkPlace.LEADERBOARD, user, release), Link(ANALYSIS_TAB, address)]
    return [{**tab._asdict(), "current": tab.title == current} for tab in tabs]


def _board(choice: Choice, seen: VisibleMeasure, runs: BoardRuns, user: Any) -> dict[str, Any]:
    alone = seen.labels_hidden or choice.split in HALVES
    versions = [] if alone else other_versions(user, runs.release, choice.split)
    beside = next((version for version in versions if version.pk == choice.beside), None)
    table = leaderboard_table(choice, runs, beside)
    columns = choice.columns or tuple(usual_columns(runs, choice.split))
    views = GROUPINGS if choice.view in GROUPINGS else VIEWS
    return {
        **seen.context,
        **board_charts(choice, runs, table),
        "choice": choice,
        "table": table,
        "beside": beside,
        "versions": versions,
        "views": views.items(),
        "columns": columns,
        "column_options": measure_options(seen.measures, choice.task),
        "measures": [
            (key, mean_title(key, choice.task)) for key in dict.fromkeys((*columns, choice.measure))
        ],
        "usual_columns_address": choice.address(columns=(), sort="", descending=True),
        "filters": filters(choice, runs.runs.values()),
        "two_stages": any(row.run.first_stage_id for row in table.rows),
        "no_test": list(runs.splits) == [VAL],
        "too_few": TOO_FEW_SENTENCE,
    }


@login_required
@require_safe
def leaderboard_export(request: HttpRequest, pk: int, extension: str) -> HttpResponse:
    """The published runs as CSV, JSON, LaTeX, one web page or the archive of a website."""
    require_evaluator(request.user)
    return export_response(pk, extension)


def export_response(pk: int, extension: str) -> HttpResponse:
    """The published runs of a release as a file; Http404 where there is none."""
    release = get_object_or_404(Release.objects.made(), pk=pk)
    if extension not in CONTENT_TYPES:
        raise Http404("There is no such export.")
    try:
        content = export(release, extension)
    except NoSnapshot as error:
        raise Http404(str(error)) from error
    return HttpResponse(
        content,
        content_type=CONTENT_TYPES[extension],
        headers={"Content-Disposition": f'attachment; filename="{file_name(release, extension)}"'},
    )

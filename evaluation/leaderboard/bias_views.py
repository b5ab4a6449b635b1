"""The page on whether a release favors the models that chose its images, and its exports."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from core.access import require_evaluator
from core.address_choices import chosen
from evaluation.leaderboard.bias_report import (
    DEFAULT_DEPTH,
    DEPTHS,
    BiasReport,
    bias_report,
    model_rows,
    report_csv,
    report_json,
    run_rows,
)
from evaluation.leaderboard.board import SPLITS
from evaluation.leaderboard.choice import VisibleMeasure, read_measure, visible_measure
from evaluation.leaderboard.selectors import board_runs
from evaluation.runs.models import Run
from evaluation.runs.selectors import NoSnapshot
from evaluation.runs.store import RunDamaged
from releases.models import Release

#: Extension -> its writer and its media type.
_FILES: Final = {
    "csv": (report_csv, "text/csv; charset=utf-8"),
    "json": (report_json, "application/json"),
}


@login_required
@require_safe
def bias_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Each model's finds, every ranking without them, and the sources of judged images; nothing of
    a test split whose labels are hidden from the reader."""
    require_evaluator(request.user)
    release = get_object_or_404(Release.objects.made(), pk=pk)
    context: dict[str, Any] = {"release": release}
    try:
        seen, report = _report(request, release)
    except (NoSnapshot, RunDamaged) as error:
        return render(request, "evaluation/bias.html", context | {"trouble": str(error)})
    names = [part.model for part in (*report.bias.models, *report.others)]
    context |= {
        **seen.context,
        "report": report,
        "firsts": DEPTHS,
        "model_rows": model_rows(report),
        "run_headings": ["Run", "All labels", *(f"Without {name}" for name in names)],
        "run_rows": run_rows(report),
        "test_hidden": "test" not in seen.splits,
    }
    return render(request, "evaluation/bias.html", context)


@login_required
@require_safe
def bias_file(request: HttpRequest, pk: int, extension: str) -> HttpResponse:
    """The report as CSV or JSON."""
    require_evaluator(request.user)
    release = get_object_or_404(Release.objects.made(), pk=pk)
    if extension not in _FILES:
        raise Http404("There is no such file.")
    write, content_type = _FILES[extension]
    try:
        _, report = _report(request, release)
    except (NoSnapshot, RunDamaged) as error:
        raise Http404(str(error)) from error
    name = f"{release.slug}-bias-{report.split}.{extension}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(write(report), content_type=content_type, headers=headers)


def _report(request: HttpRequest, release: Release) -> tuple[VisibleMeasure, BiasReport]:
    runs = board_runs(release, Run.Task.FULL, request.user)
    splits = {key: title for key, title in runs.splits.items() if not runs.labels_hidden(key)}
    measure = read_measure(request.GET, Run.Task.FULL)
    seen = visible_measure(runs, chosen(request.GET, "split", SPLITS), measure, splits)
    first = chosen(request.GET, "first", list(map(str, DEPTHS)), str(DEFAULT_DEPTH))
    return seen, bias_report(runs, seen.split, seen.measure, int(first))

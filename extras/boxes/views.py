"""The panel on a query's page, the page on which boxes are drawn, files in and out, and the
leaderboard's tab "Detection".
"""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.access import Role, at_least, require_evaluator, require_role
from core.address_choices import chosen
from core.pages import refusal_in_form, refusal_in_message
from core.registries import Link
from evaluation.leaderboard.choice import Choice
from evaluation.leaderboard.views import board_tabs
from evaluation.runs.selectors import require_allowed
from extras.boxes.coco import detections
from extras.boxes.detection import FIGURES
from extras.boxes.detection_runs import detection_delete, detection_submit, truth_name
from extras.boxes.matching import MOST_BOXES
from extras.boxes.models import BoxedQuery, DetectionRun
from extras.boxes.selectors import (
    KINDS,
    BoxWork,
    box_problem,
    box_sets_of_image,
    decisive,
    images_asked,
)
from extras.boxes.services import LARGEST_UPLOAD, BoxImport, boxes_ask, boxes_import
from labeling.judging.access import get_query_for
from labeling.queries.models import Query
from releases.models import Release
from releases.selectors import release_file_path
from retrieval.corpus.models import Image

TAB: Final = "Detection"
#: File names that a message has.
NAMED: Final = 5


def panel(request: HttpRequest, query: Query) -> SafeString | None:
    """What the query's page says of boxes, to those who may draw them or ask for them."""
    admin = at_least(request.user, Role.ADMIN)
    context: dict[str, Any] = {"query": query}
    if not box_problem(request.user, query):
        work = BoxWork(query)
        context |= {"boxes": work, "waiting": len(work.waiting(request.user))}
    elif not admin:
        return None
    if admin:
        choices = [("", "None"), *BoxedQuery.Images.choices]
        context |= {"choices": choices, "asked": images_asked(query)}
    return render_to_string("boxes/_panel.html", context, request)


def image_panel(request: HttpRequest, image: Image) -> SafeString | None:
    """The boxes of an image that the user may know of."""
    sets = box_sets_of_image(request.user, image)
    return render_to_string("boxes/_image_panel.html", {"sets": sets}, request) if sets else None


@login_required
@require_POST
def query_boxes_ask(request: HttpRequest, pk: int) -> HttpResponse:
    """Say on which images people draw boxes (admins)."""
    require_role(request.user, Role.ADMIN)
    query = get_query_for(request.user, pk)
    with refusal_in_message(request):
        boxes_ask(query=query, images=request.POST.get("images", ""), by=request.user)
        messages.success(request, "Saved.")
    return redirect("query-detail", pk=pk)


@login_required
@require_safe
def query_boxes(request: HttpRequest, pk: int) -> HttpResponse:
    """The page on which boxes are drawn; it works through the API."""
    query = get_query_for(request.user, pk)
    if box_problem(request.user, query):
        return redirect("query-detail", pk=pk)
    kind = chosen(request.GET, "kind", KINDS, usual="waiting")
    if kind == "disputed":
        require_role(request.user, Role.REVIEWER)
    return render(request, "boxes/boxes.html", {"query": query, "kind": kind, "most": MOST_BOXES})


@login_required
@require_safe
def query_boxes_file(request: HttpRequest, pk: int) -> HttpResponse:
    """The boxes that count as COCO's file of detections (reviewers)."""
    require_role(request.user, Role.REVIEWER)
    query = get_query_for(request.user, pk)
    if box_problem(request.user, query):
        return redirect("query-detail", pk=pk)
    work = BoxWork(query)
    drawn = {pk: decisive(sets).boxes for pk, sets in sorted(work.sets.items())}
    images = Image.objects.filter(pk__in=[pk for pk, boxes in drawn.items() if boxes])
    category = {"id": query.query_id, "name": query.text, "supercategory": query.category}
    content: dict[str, Any] = detections(
        query.text,
        [category],
        [
            {"id": one.pk, "file_name": one.file_name, "width": one.width, "height": one.height}
            for one in images.order_by("pk")
        ],
        [
            (image_id, query.query_id, box["bbox"], box["group"])
            for image_id, boxes in drawn.items()
            for box in boxes
        ],
    )
    answer = JsonResponse(content, json_dumps_params={"ensure_ascii": False})
    answer["Content-Disposition"] = f'attachment; filename="boxes-{query.query_id}.json"'
    return answer


@login_required
@require_POST
def query_boxes_import(request: HttpRequest, pk: int) -> HttpResponse:
    """Take in a COCO file (admins)."""
    require_role(request.user, Role.ADMIN)
    query = get_query_for(request.user, pk)
    if problem := box_problem(request.user, query):
        messages.error(request, problem)
        return redirect("query-detail", pk=pk)
    upload = request.FILES.get("file")
    if upload is None or (upload.size or 0) > LARGEST_UPLOAD:
        limit = LARGEST_UPLOAD // 2**20
        messages.error(request, f"A file of up to {limit} MiB is needed; import_boxes takes more.")
        return redirect("query-detail", pk=pk)
    with refusal_in_message(request):
        report = boxes_import(query=query, data=upload.read(), by=request.user)
        messages.success(request, " ".join(said_of(report)))
    return redirect("query-detail", pk=pk)


def said_of(report: BoxImport) -> list[str]:
    """What came of a file, in sentences."""
    said = [f"{report.boxes:,} boxes on {report.images:,} images were stored."]
    if report.unchanged:
        said.append(f"{report.unchanged:,} images had theirs.")
    if report.unknown:
        names = ", ".join(report.unknown[:NAMED])
        said.append(f"{len(report.unknown):,} files get no boxes for this query: {names}.")
    if report.refused:
        names = " ".join(report.refused[:NAMED])
        said.append(f"{len(report.refused):,} images were refused: {names}")
    return said


class DetectionForm(forms.Form):
    """A results file and the method's name."""

    name = forms.CharField(max_length=150, label="Method")
    file = forms.FileField(
        label="COCO results",
        help_text="A JSON list of image_id, category_id, bbox and score. "
        f"At most {LARGEST_UPLOAD // 2**20} MiB.",
    )


def tab(_user: Any, release: Release) -> Link | None:
    """The link of a release with boxes that runs are scored on."""
    there = release_file_path(release=release, name=truth_name(release))
    return Link(TAB, reverse("detection", args=[release.pk])) if there else None


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def detection_page(request: HttpRequest, pk: int) -> HttpResponse:
    """A release's runs of detectors, the highest AP first, and the form that takes in another."""
    require_evaluator(request.user)
    release = get_object_or_404(Release.objects.made(), pk=pk)
    form = DetectionForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        with refusal_in_form(form):
            detection_submit(release=release, owner=request.user, **form.cleaned_data)
            return redirect("detection", pk=pk)
    runs = release.detection_runs.select_related("owner", "job").defer("results")
    context = {
        "section": "leaderboard",
        "release": release,
        "tabs": board_tabs(request.user, release, Choice(), TAB),
        "boxes": truth_name(release) if tab(request.user, release) else "",
        "form": form,
        "figures": FIGURES,
        "lines": [
            (run, [(run.figures or {}).get(name) for name in FIGURES], _may_delete(request, run))
            for run in sorted(runs, key=lambda run: -((run.figures or {}).get("AP") or 0))
            if run.figures or _may_delete(request, run)
        ],
    }
    return render(request, "boxes/detection.html", context)


def _may_delete(request: HttpRequest, run: DetectionRun) -> bool:
    return run.owner == request.user or at_least(request.user, Role.ADMIN)


@login_required
@require_POST
def detection_run(request: HttpRequest, pk: int, run_id: int) -> HttpResponse:
    """Delete a run (its owner and admins)."""
    require_evaluator(request.user)
    run = get_object_or_404(DetectionRun, pk=run_id, release=pk)
    require_allowed(_may_delete(request, run))
    detection_delete(run=run)
    return redirect("detection", pk=pk)

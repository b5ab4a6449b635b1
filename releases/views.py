"""The pages of releases, and their files."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.access import Role, at_least, require_evaluator, require_role
from core.pages import refusal_in_form, refusal_in_message
from labeling.queries.benchmarks import benchmarks_shown
from releases import selectors
from releases.access import labels_visible_to
from releases.difference.text import RUNS_RULE, runs_rows, runs_title, sentences
from releases.downloads import archive_response, file_response
from releases.forms import ReleaseForm
from releases.making import labels, services
from retrieval.corpus.models import Image


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def releases_page(request: HttpRequest) -> HttpResponse:
    """All releases; admins make new ones here."""
    require_evaluator(request.user)
    name = request.GET.get("name", "")[:100]
    latest = selectors.release_find(name=name) if name else None
    of_name = latest.benchmark_id if latest else None
    form = ReleaseForm(initial={"name": name, "benchmark": of_name})
    if request.method == "POST":
        require_role(request.user, Role.ADMIN)
        form = ReleaseForm(request.POST)
        if form.is_valid():
            with refusal_in_form(form):
                release = services.release_create(
                    name=form.cleaned_data["name"],
                    created_by=request.user,
                    options=form.options,
                    benchmark=form.cleaned_data.get("benchmark"),
                )
                return redirect("release", release.pk)
    context = {
        "releases": [
            (release, labels_visible_to(request.user, release, "test"))
            for release in selectors.releases().defer(*selectors.LONG_FIELDS)
        ],
        "complete": labels.complete_queries().count(),
        "to_audit": labels.to_audit_by_benchmark() if at_least(request.user, Role.ADMIN) else (),
        "benchmarks": benchmarks_shown(request.user),
        "names": selectors.release_names(),
        "form": form,
    }
    return render(request, "releases/releases.html", context)


@login_required
@require_safe
def release_page(request: HttpRequest, pk: int) -> HttpResponse:
    """One release: what is in it, its files, what changed; how far it is while it is made."""
    require_evaluator(request.user)
    release = get_object_or_404(selectors.releases(), pk=pk)
    difference = selectors.difference_for(request.user, release)
    labels_hidden = not labels_visible_to(request.user, release, "test")
    context = {
        "release": release,
        "benchmarks": benchmarks_shown(request.user),
        "versions": selectors.release_versions(release),
        "groups": selectors.file_groups_for(request.user, release),
        "archive": selectors.archive_for(request.user, release),
        "certificate": selectors.release_certificate_for(request.user, release),
        "refused": selectors.refused_images_for(request.user, release),
        "difference": difference,
        "changes": sentences(difference) if difference else [],
        "changed_runs": [
            (runs_title(table), headings, rows)
            for table in difference.get("runs", ())
            for headings, *rows in [runs_rows(table)]
        ],
        "runs_rule": RUNS_RULE,
        "steps": selectors.release_steps(release),
        "error": selectors.release_error(release),
        "labels_hidden": labels_hidden,
        "takedowns": release.takedowns_shown(hidden=labels_hidden),
    }
    return render(request, "releases/release.html", context)


@login_required
@require_POST
def release_retry(request: HttpRequest, pk: int) -> HttpResponse:
    """Continue a release whose making failed."""
    require_role(request.user, Role.ADMIN)
    release = get_object_or_404(selectors.releases(), pk=pk)
    with refusal_in_message(request):
        services.release_retry(release=release, by=request.user)
    return redirect("release", pk)


@login_required
@require_safe
def release_file(request: HttpRequest, pk: int, name: str) -> HttpResponseBase:
    """One file of a release, as it was made."""
    require_evaluator(request.user)
    return file_response(request, get_object_or_404(selectors.releases(), pk=pk), name)


@login_required
@require_safe
def release_archive(request: HttpRequest, pk: int) -> HttpResponseBase:
    """All files of a release that the person may have, in one archive."""
    require_evaluator(request.user)
    return archive_response(request, get_object_or_404(selectors.releases(), pk=pk))


def image_panel(request: HttpRequest, image: Image) -> SafeString | None:
    """The releases that have an image, for reviewers: others would learn which images of the test
    split were judged.
    """
    if not at_least(request.user, Role.REVIEWER):
        return None
    context = {"releases": selectors.releases_of_image(image)}
    return render_to_string("releases/_image_panel.html", context, request)


def dataset_panel(request: HttpRequest, dataset: str) -> SafeString | None:
    """The releases that have images of a data set, for reviewers, as `image_panel`."""
    if not at_least(request.user, Role.REVIEWER):
        return None
    context = {"releases": selectors.releases_of_dataset(dataset)}
    return render_to_string("releases/_dataset_panel.html", context, request)

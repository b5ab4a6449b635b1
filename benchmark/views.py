"""The page of releases, and their files."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from benchmark import selectors, services
from retrieval.access import Role, require_evaluator, require_role


@login_required
@require_http_methods(["GET", "POST"])
def releases_page(request: HttpRequest) -> HttpResponse:
    """All releases with their files; admins make new ones here."""
    require_evaluator(request.user)
    if request.method != "GET":
        require_role(request.user, Role.ADMIN)
    form_error = ""
    name = request.POST.get("name", "").strip()
    if request.method == "POST":
        try:
            services.release_create(name=name, created_by=request.user)
            return redirect("releases")
        except ValidationError as error:
            form_error = " ".join(error.messages)
    context = {
        "releases": selectors.releases(),
        "complete": selectors.complete_query_count(),
        "name": name,
        "form_error": form_error,
    }
    return render(request, "benchmark/releases.html", context)


@login_required
@require_safe
def release_file(request: HttpRequest, pk: int, name: str) -> FileResponse:
    """One file of a release, as it was made."""
    require_role(request.user, Role.REVIEWER)
    release = get_object_or_404(selectors.releases(), pk=pk)
    path = selectors.release_file_path(release=release, name=name)
    if path is None:
        raise Http404
    return FileResponse(
        path.open("rb"), as_attachment=True, filename=name, content_type="text/csv; charset=utf-8"
    )

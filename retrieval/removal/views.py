"""The page on which an admin removes a data set."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from core.access import Role, require_role
from core.errors import Missing
from core.pages import refusal_in_message
from retrieval.removal.selectors import removal_preview
from retrieval.removal.services import dataset_removal_begin


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def dataset_remove(request: HttpRequest) -> HttpResponse:
    """Show what goes with a data set, then begin to remove it (admins)."""
    require_role(request.user, Role.ADMIN)
    dataset = request.GET.get("dataset", "")
    if not dataset:
        return redirect("corpus")
    if request.method == "POST":
        with refusal_in_message(request):
            return redirect("job", dataset_removal_begin(dataset=dataset, by=request.user).pk)
        return redirect(request.get_full_path())
    try:
        preview = removal_preview(dataset)
    except Missing as error:
        raise Http404(str(error)) from error
    context = {"section": "corpus", "preview": preview}
    return render(request, "retrieval/dataset_removal.html", context)

"""The pages of custom fields, for admins."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from core.access import Role, require_role
from core.pages import refusal_in_message
from retrieval.corpus.models import CustomField
from retrieval.custom_fields.selectors import custom_fields_used
from retrieval.custom_fields.services import custom_field_change, custom_field_delete

_STATES: Final = {"on": True, "off": False}


@login_required
@require_safe
def custom_fields(request: HttpRequest) -> HttpResponse:
    """Show all custom fields, and who sees them."""
    require_role(request.user, Role.ADMIN)
    context = {"section": "corpus", "uses": custom_fields_used()}
    return render(request, "retrieval/custom_fields.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def custom_field(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for a field's new name; change its name or one of its switches."""
    require_role(request.user, Role.ADMIN)
    field = get_object_or_404(CustomField, pk=pk)
    if request.method == "POST":
        sent = request.POST
        with refusal_in_message(request):
            custom_field_change(
                field=field,
                by=request.user,
                name=sent.get("name"),
                shown_to_annotators=_STATES.get(sent.get("shown_to_annotators", "")),
                in_releases=_STATES.get(sent.get("in_releases", "")),
            )
            messages.success(request, "Saved.")
            return redirect("custom-fields")
        return redirect("custom-field", pk)
    return render(request, "retrieval/custom_field.html", {"section": "corpus", "field": field})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def custom_field_remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Say how many values go with a field, then delete it."""
    require_role(request.user, Role.ADMIN)
    use = next((one for one in custom_fields_used() if one.field.pk == pk), None)
    if use is None:
        raise Http404("There is no such field.")
    if request.method == "POST":
        with refusal_in_message(request):
            images = custom_field_delete(field=use.field, by=request.user)
            messages.success(request, f"“{use.field.name}” is deleted, with {images:,} values.")
        return redirect("custom-fields")
    context = {"section": "corpus", "use": use}
    return render(request, "retrieval/custom_field_delete.html", context)

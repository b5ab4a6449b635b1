"""The page of a job, with the devices of one that embeds."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from core.access import Role, at_least, require_role
from core.address_choices import chosen
from core.jobs.models import Job
from core.jobs.selectors import jobs_visible_to
from retrieval.embedding.progress import PRICE, embedding_progress
from retrieval.embedding.services import KIND, embedding_price_set


class PriceForm(forms.Form):
    """What a device costs."""

    price = forms.DecimalField(
        label="Price of a device per hour",
        required=False,
        min_value=Decimal(0),
        max_digits=8,
        decimal_places=3,
    )


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def job(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a job with its progress and failed items; `part=devices` is only the devices of one that
    embeds, for which admins enter a price.
    """
    found: Job = get_object_or_404(jobs_visible_to(request.user), pk=pk)
    form = PriceForm(request.POST or None, initial={"price": found.params.get(PRICE)})
    if request.method == "POST":
        require_role(request.user, Role.ADMIN)
        if found.kind == KIND and form.is_valid():
            embedding_price_set(job=found, price=form.cleaned_data["price"])
            return redirect("job", pk=pk)
    context: dict[str, Any] = {"job": found, "errors": found.item_errors.order_by("pk")[:200]}
    if found.kind == KIND:
        context["progress"] = embedding_progress(found)
        if found.state in Job.UNFINISHED and at_least(request.user, Role.ADMIN):
            context["form"] = form
    part = chosen(request.GET, "part", ("devices",)) == "devices" and found.kind == KIND
    return render(request, "retrieval/_devices.html" if part else "core/job.html", context)

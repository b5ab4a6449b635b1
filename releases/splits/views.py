"""The page on which an admin draws which queries are for validation."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from core.access import Role, require_role
from core.pages import refusal_in_message
from core.terms import TERMS
from labeling.lifecycle.splitting import LARGEST_SEED, queries_split, split_plan
from labeling.queries.models import Benchmark
from releases.making.labels import complete_queries
from releases.selectors import released_queries_by_id

#: INQUIRE's split: 50 of 250 for validation.
DEFAULTS = {"val_share": 0.2, "seed": 0, "stratify": True}
SHOWN_QUERIES = 50


class SplitForm(forms.Form):
    """How to draw the splits."""

    benchmark = forms.ModelChoiceField(
        Benchmark.objects.filter(screening=False),
        required=False,
        empty_label=None,
        to_field_name="name",
    )
    val_share = forms.FloatField(
        min_value=0,
        max_value=1,
        label="Share for validation",
        help_text="From 0 to 1. INQUIRE has 50 of 250: 0.2.",
        widget=forms.NumberInput(attrs={"step": "any"}),
    )
    seed = forms.IntegerField(
        min_value=0,
        max_value=LARGEST_SEED,
        label="Seed",
        help_text=TERMS["seed of a draw"],
    )
    stratify = forms.BooleanField(required=False, label="Meet the share in each category")
    redraw = forms.BooleanField(required=False, label="Draw all again, also those that are settled")
    unfinished = forms.BooleanField(required=False, label="Also queries that aren’t complete yet")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if Benchmark.objects.filter(screening=False).count() < 2:
            del self.fields["benchmark"]

    @property
    def choices(self) -> list[forms.BoundField]:
        """The check boxes."""
        return [self[name] for name in ("stratify", "redraw", "unfinished")]

    @property
    def chosen(self) -> dict[str, Any]:
        """The fields of a valid form, or the defaults before any were sent."""
        return self.cleaned_data if self.is_bound else DEFAULTS


@login_required
@require_http_methods(["GET", "POST"])
def split_queries(request: HttpRequest) -> HttpResponse:
    """Show what a draw would change, and do the draw that was shown."""
    require_role(request.user, Role.ADMIN)
    sent = request.POST if request.method == "POST" else request.GET
    form = SplitForm(sent if "seed" in sent else None, initial=DEFAULTS, auto_id="split-%s")
    released = released_queries_by_id()
    if request.method == "POST" and form.is_valid():
        with refusal_in_message(request):
            plan = queries_split(
                by=request.user,
                **form.cleaned_data,
                released=released,
                expected=request.POST.get("expected", ""),
            )
            moved = len(plan.moved)
            messages.success(
                request,
                f"The splits are drawn: {plan.sum.val} for validation and {plan.sum.test} for "
                f"testing. {moved} {'query has' if moved == 1 else 'queries have'} changed splits.",
            )
            return redirect("split-queries")
    context: dict[str, Any] = {
        "form": form,
        "complete": complete_queries().count(),
    }
    # A form's draw, or the usual one before any was sent; none of a form with errors.
    if form.is_valid() or not form.is_bound:
        plan = split_plan(**form.chosen, released=released)
        context |= {
            "plan": plan,
            "chosen": form.chosen.items(),
            "moved": [
                (
                    query_id,
                    plan.before[query_id],
                    plan.after[query_id],
                    plan.released.get(query_id, ""),
                )
                for query_id in plan.moved[:SHOWN_QUERIES]
            ],
            "more_moved": max(len(plan.moved) - SHOWN_QUERIES, 0),
        }
    return render(request, "releases/split.html", context)

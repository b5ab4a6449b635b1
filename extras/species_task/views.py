"""The species tab of the leaderboard."""

from __future__ import annotations

import csv
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from core.access import Role, at_least, require_evaluator, require_role
from core.pages import refusal_in_form
from extras.species_task.measures import average_over_sets, half_interval, mcnemar
from extras.species_task.models import SpeciesRun
from extras.species_task.services import answers, species_run_begin
from retrieval.embedding.counts import embedded_models

COLUMNS = (
    "model", "scope", "naming", "language", "prompt", "set", "species", "images", "correct",
    "accuracy", "half_interval",
)  # fmt: skip


class SpeciesForm(forms.Form):
    """What an admin chooses for a run."""

    model = forms.ChoiceField(label="Model")
    scope = forms.ChoiceField(choices=SpeciesRun.Scope, label="Choose among")
    naming = forms.ChoiceField(choices=SpeciesRun.Naming, label="Names")
    language = forms.CharField(max_length=20, initial="en", label="Language of vernacular names")
    prompt = forms.CharField(max_length=200, initial="a photo of {}.", label="Prompt")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.models = {model.name: model for model in embedded_models()}
        field = self.fields["model"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(name, name) for name in self.models]


@login_required
@require_http_methods(["GET", "POST"])
def species_board(request: HttpRequest) -> HttpResponse:
    """All runs of the species task, the most accurate first; admins start others."""
    require_evaluator(request.user)
    form = SpeciesForm(request.POST or None)
    if request.method == "POST":
        require_role(request.user, Role.ADMIN)
        if form.is_valid():
            given = form.cleaned_data
            with refusal_in_form(form):
                species_run_begin(
                    **{**given, "model": form.models[given["model"]]}, created_by=request.user
                )
                messages.success(request, "The run is being computed.")
                return redirect("species-board")
    runs = SpeciesRun.objects.select_related("embedding_model", "job")
    admin = at_least(request.user, Role.ADMIN)
    context = {
        "section": "leaderboard",
        "form": form if admin and form.models else None,
        "boards": [
            (scope.label, _board([run for run in runs if run.scope == scope and run.done]))
            for scope in SpeciesRun.Scope
        ],
        "jobs": [run.job for run in runs if admin and run.job and run.job.state != "done"],
    }
    return render(request, "species_task/species.html", context)


def _board(runs: list[SpeciesRun]) -> list[dict[str, Any]]:
    """The lines of one scope's table."""
    runs = sorted(runs, key=lambda run: (-run.correct / run.images, run.pk))
    best = answers(runs[0]) if len(runs) > 1 else None
    return [
        {
            "run": run,
            "accuracy": 100 * run.correct / run.images,
            "half": 100 * half_interval(run.correct, run.images),
            "average": 100 * average_over_sets([tuple(row[1:]) for row in run.sets]),
            "p": mcnemar(best, answers(run)) if best and run is not runs[0] else None,
            "sets": [
                (name, images, 100 * correct / images, 100 * half_interval(correct, images))
                for name, _, images, correct in run.sets
            ],
        }
        for run in runs
    ]


@login_required
@require_safe
def species_file(request: HttpRequest) -> HttpResponse:
    """The figures of all runs by set, as CSV."""
    require_evaluator(request.user)
    answer = HttpResponse(
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="species.csv"'},
    )
    writer = csv.writer(answer)
    writer.writerow(COLUMNS)
    for run in SpeciesRun.objects.select_related("embedding_model").order_by("pk"):
        about = (run.embedding_model.name, run.scope, run.naming, run.language, run.prompt)
        for name, species, images, correct in run.sets:
            share = correct / images
            half = half_interval(correct, images)
            writer.writerow(
                [*about, name, species, images, correct, round(share, 6), round(half, 6)]
            )
    return answer

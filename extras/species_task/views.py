"""The species task: all runs, and one by taxon and by training images."""

from __future__ import annotations

import csv
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from core.access import Role, at_least, require_evaluator, require_role
from core.pages import refusal_in_form
from extras.species_task.drawing import training_chart
from extras.species_task.measures import average_over_sets, half_interval, mcnemar
from extras.species_task.models import SpeciesRun
from extras.species_task.services import answers, groups_of, species_counts, species_run_begin
from retrieval.embedding.counts import embedded_models

COLUMNS = (
    "model", "scope", "naming", "language", "prompt", "set", "species", "images", "correct",
    "accuracy", "half_interval", "correct_5", "accuracy_5", "half_interval_5",
)  # fmt: skip
#: What the species of a run are grouped by.
RANKS: Final = {
    "iconic_group": "Super-class", "class_name": "Class", "order": "Order", "family": "Family",
    "genus": "Genus",
}  # fmt: skip
#: So many taxa are listed; the files have all.
MOST_LISTED: Final = 100


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
    runs = SpeciesRun.objects.select_related("embedding_model", "job").defer("training_images")
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
            "five": run.correct_5 is not None and _percent(run.correct_5, run.images),
            "average": 100 * average_over_sets([tuple(row[1:4]) for row in run.sets]),
            "p": mcnemar(best, answers(run)) if best and run is not runs[0] else None,
            "sets": [
                (name, images, *([_percent(n, images) for n in right] + [None])[:2])
                for name, _, images, *right in run.sets
            ],
        }
        for run in runs
    ]


def _percent(correct: int, images: int) -> tuple[float, float]:
    return 100 * correct / images, 100 * half_interval(correct, images)


def _get_run(request: HttpRequest, pk: int) -> SpeciesRun:
    """A run whose species are counted, for those who may see it."""
    require_evaluator(request.user)
    runs = SpeciesRun.objects.select_related("embedding_model").filter(correct_5__isnull=False)
    return get_object_or_404(runs, pk=pk)


@login_required
@require_safe
def species_run(request: HttpRequest, pk: int) -> HttpResponse:
    """One run by the taxa of a rank, `?by=order`, and by the number of training images."""
    run = _get_run(request, pk)
    by = request.GET.get("by", "")
    by = by if by in RANKS else next(iter(RANKS))
    counted = species_counts(run)
    taxa, bins = groups_of(counted, by), groups_of(counted, "training_images")
    context = {
        "section": "leaderboard",
        "run": run,
        "five": _percent(run.correct_5 or 0, run.images),
        "one": _percent(run.correct, run.images),
        "ranks": [(key, title, key == by) for key, title in RANKS.items()],
        "tables": [
            (RANKS[by], [*map(_in_percent, taxa[:MOST_LISTED])], None),
            ("Training images", [*map(_in_percent, bins)], bins and training_chart(bins)),
        ],
        "more": max(0, len(taxa) - MOST_LISTED),
    }
    return render(request, "species_task/run.html", context)


@login_required
@require_safe
def species_run_file(request: HttpRequest, pk: int) -> HttpResponse:
    """A run's figures by each rank, by species and by training images, as CSV or JSON."""
    run = _get_run(request, pk)
    counted = species_counts(run)
    rows = [
        {"by": by, **group}
        for by in (*RANKS, "scientific_name", "training_images")
        for group in groups_of(counted, by)
    ]
    if request.path.endswith(".json"):
        return JsonResponse(rows, safe=False, json_dumps_params={"ensure_ascii": False})
    answer = _csv_answer(f"species-{run.pk}.csv")
    writer = csv.DictWriter(answer, rows[0] if rows else ())
    writer.writeheader()
    writer.writerows(rows)
    return answer


def _in_percent(row: dict[str, Any]) -> dict[str, Any]:
    """A line of `figures` for the page."""
    whole = {"training_images": row["training_images"]}
    return {name: n * 100 if isinstance(n, float) else n for name, n in row.items()} | whole


@login_required
@require_safe
def species_file(request: HttpRequest) -> HttpResponse:
    """The figures of all runs by set, as CSV."""
    require_evaluator(request.user)
    answer = _csv_answer("species.csv")
    writer = csv.writer(answer)
    writer.writerow(COLUMNS)
    for run in SpeciesRun.objects.select_related("embedding_model").order_by("pk"):
        about = (run.embedding_model.name, run.scope, run.naming, run.language, run.prompt)
        for name, species, images, *right in run.sets:
            row = [*about, name, species, images]
            for correct in right:
                half = half_interval(correct, images)
                row += [correct, round(correct / images, 6), round(half, 6)]
            writer.writerow(row)
    return answer


def _csv_answer(name: str) -> HttpResponse:
    return HttpResponse(
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )

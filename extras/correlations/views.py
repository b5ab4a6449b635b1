"""Whether measures, or versions of a release, rank the runs alike, or the models of a table that
somebody sends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_http_methods

from core.access import require_evaluator
from core.address_choices import chosen
from evaluation.leaderboard.board import SPLITS
from evaluation.leaderboard.choice import read_measure, visible_measure
from evaluation.leaderboard.selectors import board_runs
from evaluation.runs.models import Run
from evaluation.runs.selectors import NoSnapshot
from extras.correlations.matrix import FEWEST, Correlations, correlations, read_scores
from extras.correlations.selectors import (
    between_measures,
    between_versions,
    columns_of,
    labeled_splits,
)
from releases.models import Release

#: The paper marks what is above it.
HIGH: Final = 0.8
#: Steps of the heat, from 0 to 1.
STEPS: Final = 5
#: Bytes of a table of scores.
LARGEST_TABLE: Final = 1_000_000
SHOWN_ERRORS: Final = 5


class ScoresForm(forms.Form):
    """A table of scores, which is not stored."""

    scores = forms.FileField()

    def clean_scores(self) -> Correlations:
        """Between the measures of the table; each error by line and column."""
        file = self.cleaned_data["scores"]
        if file.size > LARGEST_TABLE:
            raise forms.ValidationError(f"The file has more than {LARGEST_TABLE:,} bytes.")
        columns, errors = read_scores(file.read().splitlines(keepends=True), name=file.name)
        if errors:
            raise forms.ValidationError(list(map(str, errors[:SHOWN_ERRORS])))
        return correlations(columns)


@dataclass(frozen=True, slots=True)
class Cell:
    """A correlation as printed."""

    text: str
    heat: int
    """0 for none, 1 to STEPS for a positive tau; negative ones -1 to -STEPS."""
    high: bool
    runs: int


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def correlations_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Kendall's tau-b between measures over the runs, and between versions for one measure; and
    between the measures of a table that is posted."""
    require_evaluator(request.user)
    release = get_object_or_404(Release.objects.made(), pk=pk)
    task = chosen(request.GET, "task", Run.Task.values, Run.Task.FULL)
    form = ScoresForm(request.POST or None, request.FILES or None)
    context: dict[str, Any] = {"release": release, "task": task, "scores_form": form}
    context["section"] = "leaderboard"
    if form.is_valid():
        context["between_scores"] = _printed(form.cleaned_data["scores"])
    try:
        runs = board_runs(release, task, request.user)
    except NoSnapshot as error:
        return render(request, "correlations/correlations.html", context | {"trouble": str(error)})
    split, measure = chosen(request.GET, "split", SPLITS), read_measure(request.GET, task)
    seen = visible_measure(runs, split, measure, labeled_splits(runs))
    split = seen.split
    named = list(filter(None, request.GET.getlist("columns")))
    if not set(named) <= set(seen.measures):
        raise Http404("There is no such measure.")
    columns = columns_of(runs, named)
    context |= {
        **seen.context,
        "tasks": Run.Task.choices,
        "chosen": columns,
        "fewest": FEWEST,
        "high": HIGH,
        "runs": len(runs.board(split).competitors),
        "between_measures": _printed(between_measures(runs, split, columns)),
        "between_versions": _printed(between_versions(runs, split, measure, request.user)),
    }
    return render(request, "correlations/correlations.html", context)


def _printed(found: Correlations) -> dict[str, Any]:
    """Rows of cells as the paper prints them, and the fewest and most runs behind a cell."""
    counts = [
        count
        for place, row in enumerate(found.counts)
        for other, count in enumerate(row)
        if place != other
    ]
    rows = [
        (
            name,
            [
                _cell(found.taus[place][other], found.counts[place][other], place == other)
                for other in range(len(found.names))
            ],
        )
        for place, name in enumerate(found.names)
    ]
    return {
        "names": found.names,
        "rows": rows,
        "fewest": min(counts, default=0),
        "most": max(counts, default=0),
    }


def _cell(tau: float | None, runs: int, diagonal: bool) -> Cell:
    if diagonal:
        return Cell("-", 0, False, runs)
    if tau is None or runs < FEWEST:
        return Cell("–", 0, False, runs)
    heat = round(abs(tau) * STEPS)
    return Cell(f"{tau:.2f}".replace("-", "−"), heat if tau > 0 else -heat, tau > HIGH, runs)

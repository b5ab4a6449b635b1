"""A run's page, and that of a query of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlencode

import numpy as np
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from core.access import Role, at_least
from core.address_choices import chosen, chosen_id, chosen_page
from evaluation.leaderboard import certified
from evaluation.leaderboard import run_page as page
from evaluation.leaderboard.board import (
    BOTH,
    GROUPINGS,
    SPLITS,
    Board,
    printed,
    ranks_among,
    whole_splits,
)
from evaluation.leaderboard.choice import read_measure, visible_measure
from evaluation.leaderboard.marks import marks_of
from evaluation.leaderboard.selectors import BoardRuns, splits_of
from evaluation.runs.forms import JudgeForm
from evaluation.runs.models import Run
from evaluation.runs.selectors import (
    NoSnapshot,
    can_edit,
    get_run_for,
    release_data,
    scores_visible_to,
)
from evaluation.runs.store import RunDamaged
from evaluation.scoring.hidden_labels import BEST_HIDDEN_SENTENCE, TOO_FEW_SENTENCE
from evaluation.scoring.measures import HEADLINES, mean_title
from labeling.queries.models import Query
from releases.access import labels_visible_to
from releases.models import Release
from releases.selectors import get_release

#: How many of the best and of the worst queries are shown apart.
EXTREMES: Final = 5
QUERIES_ON_A_PAGE: Final = 100
SORTS: Final[dict[str, Callable[[page.QueryRow], Any]]] = {
    "id": lambda row: row.query.query_id,
    "text": lambda row: row.query.text.casefold(),
    "category": lambda row: (row.query.category, row.query.query_id),
    "value": lambda row: row.value,
    "rank": lambda row: (row.rank, -row.value),
}


@login_required
@require_safe
def run_page(request: HttpRequest, pk: int) -> HttpResponse:
    """A run: its card, its scores per subset and its queries."""
    run = get_run_for(request.user, pk)
    context: dict[str, Any] = {"run": run, "may_edit": can_edit(request.user, run)}
    if run.ready and run.published and at_least(request.user, Role.REVIEWER):
        context["judge_form"] = JudgeForm()
    try:
        release, releases = _release(request, run)
        if run.ready:
            context |= _scores(request, run, release) | {"releases": releases}
            context["marks"] = marks_of(release, [run])[run.pk]
            context["versions"] = page.version_rows(request.user, run)
            measures = HEADLINES[run.task]
            context["version_columns"] = [mean_title(key, run.task) for key in measures]
    except NoSnapshot as error:
        context["trouble"] = str(error)
    return render(request, "evaluation/run.html", context)


@login_required
@require_safe
def run_query_page(request: HttpRequest, pk: int, query_id: int) -> HttpResponse:
    """What a run returned for a query, what it missed, and what another run found instead."""
    run = get_run_for(request.user, pk)
    try:
        release, _ = _release(request, run)
        queries = release_data(release).queries
        if query_id not in queries or queries[query_id].split not in splits_of(run):
            raise Http404("The run has no such query.")
        if not labels_visible_to(request.user, release, queries[query_id].split):
            raise Http404("Single queries of a test split with hidden labels have no page.")
        context = _query(request, run, release, query_id)
    except (NoSnapshot, RunDamaged) as error:
        context = {"run": run, "release": run.release, "trouble": str(error)}
    return render(request, "evaluation/run_query.html", context)


def _release(request: HttpRequest, run: Run) -> tuple[Release, list[Release]]:
    """The release whose labels count, of those on which the reader may see the run's scores."""
    releases = [score.release for score in scores_visible_to(request.user, run)]
    name = request.GET.get("release")
    release = get_release(name) if name else run.release
    if name and release not in releases:
        raise Http404("The run is not scored on this release.")
    return release, releases


def _scores(request: HttpRequest, run: Run, release: Release) -> dict[str, Any]:
    runs = page.runs_with(release, run, request.user)
    best = run.kind == Run.Kind.BEST
    splits = {
        split: title
        for split, title in runs.splits.items()
        if split != BOTH and whole_splits(split) <= splits_of(run)
        if not (best and runs.labels_hidden(split))
    }
    if not splits:
        return {"trouble": BEST_HIDDEN_SENTENCE if best else TOO_FEW_SENTENCE}
    split, measure = chosen(request.GET, "split", SPLITS), read_measure(request.GET, run.task)
    seen = visible_measure(runs, split, measure, splits)
    measure = seen.measure
    board = runs.board(seen.split)
    if run.pk not in board.runs:
        return {"trouble": "The run holds no query that is scored."}
    measures = list(dict.fromkeys([*seen.main_measures, measure]))
    rows = page.query_rows(board, run, measure)
    by_value = sorted(rows, key=lambda row: (-row.value, row.query.query_id))
    return {
        **seen.context,
        "release": release,
        "columns": [mean_title(key, run.task) for key in measures],
        "parts": [
            (GROUPINGS[grouping], parts)
            for grouping, parts in page.part_rows(runs, board, run, measures).items()
        ],
        "ties": page.tie_ranges(board, run, release, measures),
        "missing_ranges": page.missing_rows(board, runs, run, measures),
        "unknown": certified.missing_on(board, runs, measures[0]),
        "competitors": len(board.competitors),
        "best_rows": by_value[:EXTREMES],
        "worst_rows": by_value[::-1][:EXTREMES],
        "query_count": len(rows),
        "others": _others(runs, run),
        **_query_table(request, rows, measure),
    }


def _query_table(request: HttpRequest, rows: list[page.QueryRow], measure: str) -> dict[str, Any]:
    """A page of the queries that the filters leave, sorted, and the headers that sort them."""
    search = request.GET.get("search", "").strip()[:200]
    category = request.GET.get("category", "")
    sort = chosen(request.GET, "sort", SORTS, "value")
    falling = chosen(request.GET, "order", ("asc", "desc")) == "desc"
    shown = [
        row
        for row in rows
        if search.casefold() in row.query.text.casefold()
        and (not category or row.query.category == category)
    ]
    shown.sort(key=SORTS[sort], reverse=falling)
    parameters: dict[str, str] = {
        name: request.GET[name]
        for name in ("release", "split", "measure", "search", "category")
        if request.GET.get(name)
    }
    titles = {
        "id": "No.",
        "text": "Query",
        "category": "Category",
        "value": measure,
        "rank": "Rank",
    }
    headers = [
        {
            "key": key,
            "title": title,
            "sorted": ("descending" if falling else "ascending") if key == sort else "",
            "address": "?"
            + urlencode(
                {**parameters, "sort": key}
                | ({"order": "desc"} if key == sort and not falling else {})
            ),
        }
        for key, title in titles.items()
    ]
    return {
        "query_page": chosen_page(Paginator(shown, QUERIES_ON_A_PAGE), request.GET),
        "headers": headers,
        "search": search,
        "category": category,
        "categories": sorted({row.query.category for row in rows}),
        "filtered": bool(search or category),
        "sort": sort,
        "parameters": urlencode(
            {"release": parameters["release"]} if "release" in parameters else {}
        ),
    }


def _others(runs: BoardRuns, run: Run) -> list[Run]:
    """Runs with an order of their own to compare with."""
    return [
        other for pk, other in runs.runs.items() if pk != run.pk and other.kind != Run.Kind.RANDOM
    ]


def _query(request: HttpRequest, run: Run, release: Release, query_id: int) -> dict[str, Any]:
    user = request.user
    query = release_data(release).queries[query_id]
    runs = page.runs_with(release, run, user)
    board = runs.board(query.split)
    others = _others(runs, run)
    other_id = chosen_id(request.GET, "other")
    other = next((other for other in others if other.pk == other_id), None)
    if other_id is not None and other is None:
        raise Http404("There is no such run to compare with.")
    parameters = {name: request.GET[name] for name in ("release", "other") if request.GET.get(name)}
    context: dict[str, Any] = {
        "run": run,
        "release": release,
        "query": query,
        "others": others,
        "other": other,
        "within": page.FOUND_WITHIN,
        "parameters": urlencode(parameters),
        **_neighbors(board.query_ids.tolist(), query_id),
    }
    if run.pk in board.runs and query_id in board.query_ids:
        context["figures"] = _figures(board, run, query_id)
        if run.pk in board.competitors:
            context |= page.query_ranges(run, release, query_id)
        context["competitors"] = len(board.competitors)
    context["to_label"] = to_label = page.query_to_label(release, query, user)
    ranking = page.ranking_of(run, release, query_id)
    return context | _images(request, run, release, query_id, ranking, other, to_label)


def _figures(board: Board, run: Run, query_id: int) -> list[dict[str, Any]]:
    """The run's scores at a query, and its ranks there, of the measures that it has."""
    position = board.query_ids.tolist().index(query_id)
    scores = {
        measure: float(board.scores_of(run.pk, measure)[position])
        for measure in HEADLINES[run.task]
    }
    return [
        {
            "title": measure,
            "text": printed(measure, score),
            "rank": int(ranks_among(board, run.pk, measure)[position]),
        }
        for measure, score in scores.items()
        if not np.isnan(score)
    ]


def _neighbors(query_ids: list[int], query_id: int) -> dict[str, int | None]:
    return {
        "previous_query": max((other for other in query_ids if other < query_id), default=None),
        "next_query": min((other for other in query_ids if other > query_id), default=None),
    }


def _images(
    request: HttpRequest,
    run: Run,
    release: Release,
    query_id: int,
    ranking: Any,
    other: Run | None,
    to_label: Query | None,
) -> dict[str, Any]:
    user = request.user
    pages = Paginator(range(1, len(ranking) + 1), page.PAGE)
    shown = chosen_page(pages, request.GET)
    ranks = list(shown.object_list)
    ids = ranking[ranks[0] - 1 : ranks[-1]] if ranks else ranking[:0]
    marks = page.marks_of(release, query_id, ids)
    context: dict[str, Any] = {
        "page": shown,
        "returned": len(ranking),
        "images": page.shown_images(
            release, user, ids, ranks=ranks, marks=marks, to_label=to_label
        ),
    }
    relevant = page.relevant_ids(release, run.task, query_id)
    lost, lost_ranks = page.missed(relevant, ranking)
    context |= {
        "relevant_count": len(relevant),
        "hits": len(relevant) - len(lost),
        "missed_count": len(lost),
        "missed": _relevant_images(release, user, lost, lost_ranks, to_label),
    }
    if other is not None:
        theirs = page.ranking_of(other, release, query_id)
        only = page.only_by(theirs, ranking, relevant)
        their_ranks = {image_id: rank for rank, image_id in enumerate(theirs.tolist(), start=1)}
        context |= {
            "only_other_count": len(only),
            "only_other": _relevant_images(
                release, user, only, [their_ranks[image_id] for image_id in only.tolist()], to_label
            ),
        }
    return context


def _relevant_images(
    release: Release,
    user: Any,
    image_ids: Any,
    ranks: list[int | None],
    to_label: Query | None,
) -> list[page.ShownImage]:
    ids = image_ids[: page.MOST_MISSED]
    marks = ["relevant"] * len(ids)
    return page.shown_images(
        release, user, ids, ranks=ranks[: len(ids)], marks=marks, to_label=to_label
    )

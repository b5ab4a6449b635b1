"""The dashboard, the pages on which people judge, and those of how they do it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from core.access import Role, at_least, names_hidden_from, require_role, role_of
from core.address_choices import chosen, chosen_page
from core.jobs.models import Job
from core.jobs.selectors import jobs_visible_to
from core.registries import CONFUSIONS, QUERY_TASKS, Link
from core.terms import TERMS
from labeling.audits.selectors import audit_aim
from labeling.blind.selectors import queries_waiting
from labeling.comments.selectors import mentions_waiting
from labeling.guidance.selectors import introduction_of, needs_introduction
from labeling.guidance.views import how_to_label_context
from labeling.judging.access import get_query_for, why_not
from labeling.judging.agreement import (
    agreement_by_query,
    agreement_rows,
    diagnoses,
    patterns,
    standing_of,
)
from labeling.judging.blind import BLIND_KINDS, BlindKind
from labeling.judging.grades import HIGHEST, LEAST_RELEVANT, REASONS, grade_names
from labeling.learning.revisions import orders_open_to
from labeling.lifecycle.assignments import still_labeling
from labeling.lifecycle.batches import parts_failing_checks
from labeling.queries.benchmarks import benchmarks_shown
from labeling.queries.categories import CATEGORIES
from labeling.queries.models import Query
from labeling.review.first_steps import all_steps, first_steps, first_steps_shown
from labeling.review.my_queries import my_queries
from labeling.review.overview import (
    SORT_KEYS,
    QueryOverview,
    annotator_activity,
    overview_of_keys,
    query_keys_sorted,
)
from labeling.review.pace import team_progress
from labeling.review.people import fast_pages_of, months_of, pace_of
from labeling.review.selectors import KINDS
from labeling.studio import keymap
from labeling.studio.preferences import keys_shown, preferences_of

# Column of the dashboard: sort key, heading, CSS class of its cells.
COLUMNS = [
    ("query_id", "No.", "numeric"),
    ("text", "Query", ""),
    ("state", "State", ""),
    ("split", "Split", ""),
    ("labeled", "Labeled", "numeric"),
    ("relevant", "Relevant", "numeric"),
    ("streak", "Streak", "numeric"),
    ("last_activity", "Last active", ""),
]
SORTS = [f"{sign}{key}" for key in SORT_KEYS for sign in ("", "-")]
FILTERS = ("search", "state", "split", "category", "benchmark")
QUERIES_ON_A_PAGE = 50
# The actions whose keys the help page lists; the labeling page lists all.
HELP_ACTIONS = (
    *("relevant", "not_relevant", "unsure", "undo", "back", "skip", "next_unlabeled"),
    *("toggle_view", "grid_toggle", "grid_submit", "zoom_in", "similar", "reference", "flag"),
    *("stop_panel", "keys_help"),
)


def _columns(filters: dict[str, str]) -> list[dict[str, str]]:
    """Headings that sort by their column, and by the other direction when they already do."""
    current = filters.get("sort", "")
    columns = []
    for key, label, css in COLUMNS:
        descending = current == f"-{key}"
        ascending = current == key or (not current and key == "query_id")
        next_sort = f"-{key}" if ascending else key
        query = {name: value for name, value in filters.items() if value} | {"sort": next_sort}
        direction = "descending" if descending else "ascending" if ascending else ""
        columns.append(
            {"label": label, "css": css, "sorted": direction, "link": f"?{urlencode(query)}"}
        )
    return columns


@login_required
@require_safe
def dashboard(request: HttpRequest) -> HttpResponse:
    """Queries with their progress, the annotators' activity, and unfinished jobs.

    Logging in leads here, so researchers are redirected to the leaderboard.
    """
    if not at_least(request.user, Role.ANNOTATOR):
        return redirect("leaderboard-latest")
    filters = {name: request.GET.get(name, "").strip() for name in FILTERS}
    filters["sort"] = chosen(request.GET, "sort", SORTS)
    reviewer = at_least(request.user, Role.REVIEWER)
    states = Query.State.choices
    filtered = any(filters[name] for name in FILTERS)
    mine = []
    if not reviewer and not filtered:
        mine = my_queries(request.user)
    keys = query_keys_sorted(
        user=request.user,
        filters={name: filters[name] for name in FILTERS},
        sort=filters["sort"] or "query_id",
        without={waiting.row.query.pk for waiting in mine},
    )
    page = chosen_page(Paginator(keys, QUERIES_ON_A_PAGE), request.GET)
    rows = overview_of_keys(page.object_list, user=request.user)
    tasks = _tasks(rows)
    context: dict[str, Any] = {
        "rows": [(row, tasks.get(row.query.pk)) for row in rows],
        "page": page,
        "mine": mine,
        "columns": _columns(filters),
        "filters": filters,
        "reviewer": reviewer,
        "filtered": filtered,
        "states": states if reviewer else [s for s in states if s[0] not in ("draft", "rejected")],
        "splits": Query.Split.choices,
        "categories": list(CATEGORIES),
        "benchmarks": benchmarks_shown(request.user),
        "activity": annotator_activity() if reviewer else [],
        "team": team_progress() if reviewer else None,
        "first_steps": first_steps(request.user),
        "mentions": mentions_waiting(request.user),
        "blind": _blind_waiting(request.user),
        "jobs": jobs_visible_to(request.user).filter(state__in=Job.UNFINISHED)[:10],
    }
    if needs_introduction(request.user):
        context |= how_to_label_context(request.user)
    return render(request, "labeling/dashboard.html", context)


def _tasks(rows: list[QueryOverview]) -> dict[int, Link]:
    """By query, the page of what people do with it besides labeling it."""
    pks = [row.query.pk for row in rows]
    return {
        pk: Link(task.title, reverse(task.page, args=[pk]))
        for task in QUERY_TASKS
        for pk in Query.objects.filter(task.queries(), pk__in=pks).values_list("pk", flat=True)
    }


def _blind_waiting(user: Any) -> Iterator[dict[str, Any]]:
    """What waits for a person in each blind queue."""
    for kind in BLIND_KINDS:
        if waiting := queries_waiting(kind, user):
            images = sum(count for _, count in waiting)
            yield {"kind": kind, "images": images, "queries": len(waiting)}


@login_required
@require_safe
def label(request: HttpRequest, pk: int) -> HttpResponse:
    """The page on which candidates are judged; it works through the API."""
    query = get_query_for(request.user, pk)
    if why_not(request.user, query):
        return redirect("query-detail", pk=pk)
    orders = orders_open_to(request.user, query)
    remembered = f"order of query {query.pk}"
    if wanted := chosen(request.GET, "order", orders):
        request.session[remembered] = wanted
    else:
        wanted = request.session.get(remembered, "")
    order = Query.Order(wanted if wanted in orders else orders[0])
    others = [Query.Order(other) for other in orders if other != order]
    source = {"kind": "learned" if order == Query.Order.LEARNED else "list"}
    return _studio(request, query, source, order=order, other_orders=others)


@login_required
@require_safe
def audit(request: HttpRequest, pk: int) -> HttpResponse:
    """The labeling page over images of the query's list that are drawn at random."""
    query = get_query_for(request.user, pk)
    if why_not(request.user, query):
        return redirect("query-detail", pk=pk)
    source = {
        "kind": "audit",
        "address": reverse("api-query-audit", args=[pk]),
        "judged_as": "audit",
        "ranking": reverse("query-label", args=[pk]),
    }
    target = round(100 * audit_aim(query).target, 2)
    return _studio(request, query, source, audit=True, target=target)


@login_required
@require_safe
def blind_next(request: HttpRequest, kind: BlindKind) -> HttpResponse:
    """To the first query in which images of a blind queue wait for the person, else to the
    dashboard.
    """
    require_role(request.user, Role.ANNOTATOR)
    waiting = queries_waiting(kind, request.user)
    return redirect(f"query-{kind.name}", waiting[0][0].pk) if waiting else redirect("dashboard")


@login_required
@require_safe
def blind(request: HttpRequest, pk: int, kind: BlindKind) -> HttpResponse:
    """The labeling page over a query's images that are shown without what is known of them."""
    query = get_query_for(request.user, pk)
    if why_not(request.user, query, kind):
        return redirect("query-detail", pk=pk)
    end_title, end_text = kind.end
    source = {
        "kind": "blind",
        "address": reverse(f"api-query-{kind.name}", args=[pk]),
        "judged_as": kind.source,
        "offered_in": kind.offered_in,
        "next": reverse(kind.name),
        "end_title": end_title,
        "end_text": end_text,
    }
    return _studio(request, query, source, audit=True, blind=kind)


@login_required
@require_safe
def agreement(request: HttpRequest) -> HttpResponse:
    """How far people agree, by category and query, and what that says of each (reviewers)."""
    require_role(request.user, Role.REVIEWER)
    shared = patterns()
    by_person = diagnoses(shared)
    people = get_user_model().objects.filter(
        pk__in={person for pattern in shared for person in pattern.says}
    )
    queries = Query.objects.filter(pk__in={pattern.query for pattern in shared})
    page = chosen_page(Paginator(queries.order_by("query_id"), QUERIES_ON_A_PAGE), request.GET)
    rows = agreement_rows(shared) if page.number == 1 else []
    context = {
        "rows": [*rows, *agreement_by_query(shared, list(page))],
        "page": page,
        "people": [
            (person, standing_of(shared, person.pk), by_person.get(person.pk))
            for person in people.order_by("username")
        ],
    }
    return render(request, "labeling/agreement.html", context)


@login_required
@require_safe
def person_labeling(request: HttpRequest, pk: int) -> HttpResponse:
    """One person's pace, checks, and agreement with others: for themselves and for reviewers.

    What tells what others said or which images were checks is of decided queries alone, unless a
    reviewer asks.
    """
    require_role(request.user, Role.ANNOTATOR)
    reviewer = at_least(request.user, Role.REVIEWER)
    if pk != request.user.pk:
        require_role(request.user, Role.REVIEWER)
    person = get_object_or_404(get_user_model(), pk=pk)
    shared = patterns(person=person, decided=not reviewer)
    context = {
        "person": person,
        "reviewer": reviewer,
        "pace": pace_of(person),
        "standing": standing_of(shared, pk),
        "diagnosis": diagnoses(shared).get(pk) if reviewer else None,
        "months": months_of(person, decided=not reviewer),
        "fast_pages": fast_pages_of(person) if reviewer else [],
        "introduction": introduction_of(person),
    }
    return render(request, "labeling/person_labeling.html", context)


@login_required
@require_safe
def review(request: HttpRequest, pk: int) -> HttpResponse:
    """The labeling page over the unsure and disputed images, for a reviewer to decide."""
    require_role(request.user, Role.REVIEWER)
    query = get_query_for(request.user, pk)
    kind = chosen(request.GET, "kind", KINDS)
    address = reverse("api-query-review", args=[pk])
    source = {
        "kind": "review",
        "address": f"{address}?kind={kind}" if kind else address,
        "only": kind,
        "still_labeling": still_labeling(query),
    }
    failing = parts_failing_checks(query)
    return _studio(request, query, source, review=True, kind=kind, failing_parts=failing)


def _studio(
    request: HttpRequest, query: Query, source: dict[str, Any], **context: Any
) -> HttpResponse:
    """The labeling page; `source` tells its script where the images come from."""
    preferences = preferences_of(request.user)
    names = grade_names(query.grades)
    least = LEAST_RELEVANT.get(query.grades)
    context |= {
        "query": query,
        # From the lowest, as the buttons stand.
        "grades": [(f"grade_{grade}", names[grade], grade >= least) for grade in sorted(names)]
        if least
        else [],
        "grade_names": [names.get(grade, "") for grade in range(HIGHEST + 1)],
        "unsure_at": len(names) // 2 + 1,
        "reasons": REASONS if least and query.grades != Query.Grades.EVIDENCE else [],
        "stop_streak": settings.STOP_STREAK,
        "studio_page": {
            "query": query.pk,
            "api": reverse("api-query-detail", args=[query.pk]),
            "source": source,
            "user": {
                "id": request.user.pk,
                "name": request.user.get_username(),
                "role": role_of(request.user),
            },
            "names_hidden": names_hidden_from(request.user),
            "least_relevant_grade": least,
            "keymap": keymap.as_json(names),
            "preferences": {"keys": preferences.keys, "view": preferences.view},
            "login": reverse("login"),
            "complete": reverse("query-complete", args=[query.pk]),
            # Until the first release the query's page names an admin's next step.
            "handed_in": reverse("query-detail", args=[query.pk])
            if first_steps_shown(request.user)
            else reverse("dashboard"),
        },
        "confusions": CONFUSIONS,
    }
    return render(request, "labeling/label.html", context)


@login_required
@require_safe
def help_page(request: HttpRequest) -> HttpResponse:
    """What to do as an annotator, with the keys that the user has."""
    context = {
        "stop_streak": settings.STOP_STREAK,
        "minimum_labels": settings.MINIMUM_LABELS,
        "keys": keys_shown(request.user, HELP_ACTIONS),
        "terms": sorted(TERMS.items(), key=lambda term: term[0].casefold()),
        "steps": list(all_steps()) if role_of(request.user) == Role.ADMIN else [],
    }
    return render(request, "labeling/help.html", context)

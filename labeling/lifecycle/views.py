"""Pages for writing, importing, opening and deciding queries."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.db.models import Count, Prefetch, prefetch_related_objects
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.access import Role, at_least, names_hidden_from, require_role, role_of
from core.address_choices import chosen_ids
from core.ids import ids_of
from core.pages import refusal_in_form, refusal_in_message
from core.registries import QUERY_PANELS, LinkPlace, cards, links
from labeling.audits.hand_in import hand_in_state
from labeling.candidates.selectors import filter_species_ids
from labeling.candidates.services import list_refresh
from labeling.comments.selectors import image_threads
from labeling.judging.access import (
    counted_for,
    get_query_for,
    own_assignment,
    why_not,
)
from labeling.judging.grades import grade_names
from labeling.judging.parts import people_labeling
from labeling.judging.progress import annotators_of, progress
from labeling.lifecycle.assignments import still_labeling, transitions_open_to, what_comes_next
from labeling.lifecycle.batches import (
    missed_checks,
    part_send_back_for_checks,
    parts_failing_checks,
)
from labeling.lifecycle.examples import pinned_examples
from labeling.lifecycle.forms import (
    GiveUpForm,
    PartForm,
    QueryForm,
    QueryImportForm,
    RejectForm,
    TeamForm,
)
from labeling.lifecycle.history import history
from labeling.lifecycle.imports import (
    QueryImportRefused,
    queries_import_uploads,
)
from labeling.lifecycle.opening import OpeningReport, queries_open
from labeling.lifecycle.screening import finds, finds_withdraw
from labeling.lifecycle.services import (
    QUERY_FIELDS,
    query_create,
    query_deletable,
    query_update,
)
from labeling.lifecycle.services import query_delete as delete_query
from labeling.lifecycle.services import query_from_search as create_from_search
from labeling.lifecycle.services import query_transition as change_state
from labeling.lifecycle.team import (
    assignable,
    part_hand_over,
    part_pause,
    part_resume,
    part_send_back,
    team_set,
)
from labeling.lifecycle.text_limits import cut_texts
from labeling.queries.benchmarks import benchmarks_shown
from labeling.queries.categories import CATEGORIES
from labeling.queries.models import Assignment, Query
from labeling.queries.transitions import TransitionIncomplete, transitions_for
from labeling.review.my_queries import next_query
from labeling.review.overview import queries_filtered
from labeling.review.selectors import given_up, left_open, query_agreement
from retrieval.species.selectors import species_by_ids

#: Drafts on a page.
DRAFTS_SHOWN: Final = 500
DRAFT_FILTERS: Final = ("search", "split", "category", "benchmark")
#: What the forms on who labels a query ask for.
TEAM_ACTIONS: Final[dict[str, Callable[..., object]]] = {
    "": team_set,
    "pause": part_pause,
    "resume": part_resume,
    "hand over": part_hand_over,
    "send back": part_send_back,
    "send back for checks": part_send_back_for_checks,
}
#: Refused queries that a message names.
REFUSALS_NAMED: Final = 5


@login_required
@require_safe
def query_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One query: progress, agreement, history, list, and what the user may do with it."""
    query = get_query_for(request.user, pk)
    reviewer = at_least(request.user, Role.REVIEWER)
    if reviewer:
        # For the table of annotators and for the team.
        parts = Assignment.objects.select_related("annotator").order_by("annotator__username")
        prefetch_related_objects([query], Prefetch("assignments", parts))
    part = own_assignment(request.user, query)
    problem = why_not(request.user, query, part=part)
    allowed = transitions_open_to(request.user, query, part)
    counted = counted_for(request.user)
    shown_progress = progress(query, annotator=counted)
    rejection_request = given_up(query, request.user)
    hand_in = hand_in_state(query, shown_progress.stop, counted)
    early = "submitted" in allowed and not hand_in.met
    labeling = list(people_labeling(query))
    names = {
        "open": "Resume" if part else "Open it" if query.state == "draft" else "Reopen",
        "submitted": "Hand in",
        "complete": "Complete",
        "draft": "Back to draft",
    }
    context = {
        "query": query,
        "species": query.species.filter(pk__in=filter_species_ids(query)).prefetch_related("names"),
        "benchmarks": benchmarks_shown(request.user),
        "examples": pinned_examples(query),
        "progress": shown_progress,
        "annotators": annotators_of(query) if reviewer else [],
        "finds": [
            (grade, grade_names(query.grades)[grade].lower(), len(images))
            for grade, images in finds(query).items()
        ]
        if reviewer
        else [],
        "history": history(query) if reviewer else [],
        "transitions_open": sorted(
            (
                (state, names[state])
                for state in allowed
                if state in names and not (early and state == "submitted")
            ),
            key=lambda item: ["complete", "open", "submitted", "draft"].index(item[0]),
        ),
        "main_transition": not rejection_request
        and (query.state in ("draft", "submitted") or (query.state == "open" and hand_in.met)),
        "hand_in": hand_in,
        "hand_in_note": early,
        "give_up_form": GiveUpForm(auto_id="give-up-%s") if "submitted" in allowed else None,
        "given_up": rejection_request,
        "may_reject": "rejected" in allowed,
        "agreement": query_agreement(query) if reviewer else None,
        "names_hidden": names_hidden_from(request.user),
        "may_delete": at_least(request.user, Role.ADMIN) and query_deletable(query),
        "reject_form": RejectForm(auto_id="reject-%s") if "rejected" in allowed else None,
        "list_job": query.current_list.job if query.current_list else None,
        "links": links(LinkPlace.QUERY, request.user, query),
        "panels": cards(QUERY_PANELS, request, query),
        "can_label": not problem,
        "closed": problem if query.state == "open" else "",
        "part": part,
        "missed_checks": missed_checks(query, request.user) if part else [],
        "image_threads": image_threads(request.user, query),
        "still_labeling": [
            person.get_username()
            for person in labeling
            if query.state == Query.State.OPEN and person != request.user
        ],
    }
    if reviewer and query.state in ("draft", "open", "submitted"):
        context |= _team(query, labeling)
    elif part and part.handed_in and query.state in ("open", "submitted"):
        context |= {
            "comes_next": what_comes_next(query),
            "next_query": next_query(request.user),
        }
    return render(request, "labeling/query_detail.html", context)


def _team(query: Query, labeling: list[Any]) -> dict[str, Any]:
    """What the section on who labels a query needs: its assignments are prefetched, by name, and
    `labeling` is `people_labeling`.
    """
    parts = list(query.assignments.all())
    # Those who labeled for it without a row, too.
    known = {part.annotator_id for part in parts}
    begun = [person for person in labeling if person.pk not in known]
    people = list(assignable(query))
    asks = {"wanted": query.annotators_wanted, "assigned_only": query.assigned_only}
    form: Any = TeamForm(parts=parts, initial=asks)
    form.fields["people"].choices = [(person.pk, person.get_username()) for person in people]
    return {
        "team_form": form if query.state != Query.State.SUBMITTED else None,
        "parts": [*parts, *(Assignment(query=query, annotator=person) for person in begun)],
        "assignable": people,
        "failing_parts": parts_failing_checks(query) if any(p.handed_in for p in parts) else [],
    }


def _write(form: QueryForm, write: Callable[..., Query]) -> Query | None:
    """The query that the service writes from a form; None, with the refusal in the form, where it
    refuses.
    """
    if not form.is_valid():
        return None
    fields = [name for name in QUERY_FIELDS if name in form.fields]
    with refusal_in_form(form):
        return write(**{name: form.cleaned_data[name] for name in fields})
    return None


@login_required
@require_http_methods(["GET", "POST"])
def query_edit(request: HttpRequest, pk: int | None = None) -> HttpResponse:
    """Write a query, which starts as a draft, or change one; a new text or filter of an open one
    makes a new candidate list.
    """
    require_role(request.user, Role.ADMIN)
    query = get_query_for(request.user, pk) if pk is not None else None
    write: Callable[..., Query] = (
        partial(query_update, query=query, by=request.user)
        if query
        else partial(query_create, created_by=request.user)
    )
    # A form writes what was typed into its instance.
    form = QueryForm(request.POST or None, instance=copy(query))
    saved = _write(form, write)
    if saved is None:
        return render(request, "labeling/query_form.html", {"form": form, "query": query})
    draft = "The query is a draft. Open it to have its candidates ranked."
    messages.success(request, "Saved." if query else draft)
    for cut in cut_texts([saved.text], saved.benchmark):
        messages.warning(request, str(cut))
    return redirect("query-detail", pk=saved.pk)


@login_required
@require_http_methods(["GET", "POST"])
def query_delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a query that nobody has judged for."""
    require_role(request.user, Role.ADMIN)
    query = get_query_for(request.user, pk)
    if request.method == "POST":
        with refusal_in_message(request):
            delete_query(query=query)
            messages.success(request, f"Query {query.query_id} is deleted.")
            return redirect("dashboard")
        return redirect("query-detail", pk=pk)
    return render(request, "labeling/query_delete.html", {"query": query})


@login_required
@require_http_methods(["GET", "POST"])
def query_import(request: HttpRequest) -> HttpResponse:
    """Import queries from an uploaded CSV, all or none; first shows what that would do."""
    require_role(request.user, Role.ADMIN)
    form = QueryImportForm(request.POST or None, request.FILES or None)
    context: dict[str, Any] = {"form": form}
    if request.method == "POST" and form.is_valid():
        name, content = form.cleaned_data["upload"]
        dry_run = "import" not in request.POST
        try:
            report = queries_import_uploads(
                files=[(name, content)],
                split=form.cleaned_data["split"],
                benchmark=form.cleaned_data.get("benchmark"),
                by=request.user,
                named=ids_of(request.POST.getlist("update")),
                dry_run=dry_run,
            )
            if not dry_run:
                messages.success(request, f"{report.counts}.")
                return redirect("dashboard")
            context |= {"report": report, "name": name, "kept": form.keep(name, content)}
        except ValidationError as error:
            form.add_error(None, error)
        except QueryImportRefused as error:
            context["row_errors"] = list(error.errors)
    return render(request, "labeling/query_import.html", context)


@login_required
@require_POST
def query_from_search(request: HttpRequest) -> HttpResponse:
    """Turn a search into a draft query, then show its form for the rest."""
    require_role(request.user, Role.ADMIN)
    with refusal_in_message(request):
        query = create_from_search(
            text=request.POST.get("text", ""),
            species=species_by_ids(chosen_ids(request.POST, "species")),
            created_by=request.user,
        )
        messages.success(request, "The search is now a draft query. Set its category and split.")
        return redirect("query-edit", pk=query.pk)
    return redirect("corpus")


@login_required
@require_POST
def query_transition(request: HttpRequest, pk: int) -> HttpResponse:
    """Open, hand in, give up, complete, reopen or reject."""
    query = get_query_for(request.user, pk)
    before, state = query.state, request.POST.get("state", "")
    with refusal_in_message(request):
        try:
            query = change_state(
                query=query,
                to_state=state,
                by=request.user,
                reason=request.POST.get("reason", ""),
                note=request.POST.get("note", ""),
                give_up=request.POST.get("give_up", ""),
            )
        except TransitionIncomplete:
            if state == Query.State.COMPLETE:
                return redirect("query-complete", pk=pk)
            raise
        messages.success(request, _transition_message(before, query, state))
    return redirect("query-detail", pk=pk)


def _transition_message(before: str, query: Query, requested: str) -> str:
    """The message for a change to the `requested` state."""
    if query.state != before:
        return f"The query is {query.get_state_display().lower()} now."
    if requested == Query.State.SUBMITTED:
        return "Your part is handed in."
    return "Nothing has changed." if requested != Query.State.OPEN else "Your part is open again."


@login_required
@require_POST
def query_finds(request: HttpRequest, pk: int) -> HttpResponse:
    """Withdraw what a complete screening query has found, by the grades that were chosen."""
    require_role(request.user, Role.REVIEWER)
    query = get_query_for(request.user, pk)
    with refusal_in_message(request):
        count = finds_withdraw(
            query=query,
            grades=ids_of(request.POST.getlist("grade")),
            reason=request.POST.get("reason", ""),
            by=request.user,
        )
        messages.success(request, f"{count:,} image{'' if count == 1 else 's'} withdrawn.")
    return redirect("query-detail", pk=pk)


@login_required
@require_POST
def query_team(request: HttpRequest, pk: int) -> HttpResponse:
    """Say who labels a query, or pause, resume, hand over or send back one person's part."""
    require_role(request.user, Role.REVIEWER)
    query = get_query_for(request.user, pk)
    form: Any = PartForm(request.POST) if "action" in request.POST else TeamForm(request.POST)
    if not form.is_valid():
        messages.error(
            request, " ".join(str(error) for errors in form.errors.values() for error in errors)
        )
        return redirect("query-detail", pk=pk)
    given = form.cleaned_data
    act = TEAM_ACTIONS[given.pop("action", "")]
    with refusal_in_message(request):
        act(query=query, by=request.user, **given)
        messages.success(request, "Saved.")
    return redirect("query-detail", pk=pk)


@login_required
@require_safe
def query_complete(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask a reviewer why a query is complete, with what it leaves open."""
    require_role(request.user, Role.REVIEWER)
    query = get_query_for(request.user, pk)
    if "complete" not in transitions_for(role_of(request.user), query.state):
        return redirect("query-detail", pk=pk)
    context = {
        "query": query,
        "left_open": left_open(query),
        "still_labeling": still_labeling(query),
        "can_label": not why_not(request.user, query),
    }
    return render(request, "labeling/query_complete.html", context)


@login_required
@require_POST
def query_refresh(request: HttpRequest, pk: int) -> HttpResponse:
    """Make a new candidate list that takes in what was embedded since."""
    require_role(request.user, Role.ADMIN)
    with refusal_in_message(request):
        list_refresh(query=get_query_for(request.user, pk), by=request.user)
        messages.success(request, "A new candidate list is being made. The judgments are kept.")
    return redirect("query-detail", pk=pk)


@login_required
@require_http_methods(["GET", "POST"])
def queries_open_page(request: HttpRequest) -> HttpResponse:
    """Choose among the drafts and open what was chosen."""
    require_role(request.user, Role.ADMIN)
    if request.method == "POST":
        chosen = chosen_ids(request.POST, "query")[:DRAFTS_SHOWN]
        if chosen:
            _report_opening(request, queries_open(pks=chosen, by=request.user))
            return redirect("dashboard")
        messages.error(request, "No query was chosen.")
    filters = {name: request.GET.get(name, "").strip() for name in DRAFT_FILTERS}
    drafts = queries_filtered(Query.objects.filter(state=Query.State.DRAFT), filters)
    count = drafts.count()
    context: dict[str, Any] = {
        "drafts": drafts.select_related("benchmark")
        .annotate(species_count=Count("species"))
        .order_by("query_id")[:DRAFTS_SHOWN],
        "count": count,
        "more": max(count - DRAFTS_SHOWN, 0),
        "filters": filters,
        "filtered": any(filters.values()),
        "splits": Query.Split.choices,
        "categories": list(CATEGORIES),
        "benchmarks": benchmarks_shown(request.user),
    }
    return render(request, "labeling/queries_open.html", context)


def _report_opening(request: HttpRequest, report: OpeningReport) -> None:
    if report.opened == 1:
        messages.success(request, "1 query is open. The worker ranks its candidates.")
    elif report.opened:
        messages.success(
            request, f"{report.opened:,} queries are open. The worker ranks their candidates."
        )
    if report.unchanged:
        messages.info(request, f"{report.unchanged:,} of them were open already.")
    if report.refused:
        named = "; ".join(
            f"query {refusal.query_id}: {refusal.detail}"
            for refusal in report.refused[:REFUSALS_NAMED]
        )
        more = len(report.refused) - REFUSALS_NAMED
        messages.error(
            request, f"Not opened: {named}" + (f" And {more:,} more." if more > 0 else "")
        )

"""The admin site's read-only view of labeling: every write goes through the services."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from core.ids import id_of
from labeling.candidates.models import CandidateList
from labeling.judging.models import Judgment, JudgmentEvent
from labeling.queries.files import MAX_QUERY_ID
from labeling.queries.models import Assignment, Benchmark, Query, QueryEdit, QueryTransition
from retrieval.admin_lists import LargeTableAdmin


class ReadOnlyAdmin(ModelAdmin[Any]):
    """Read-only: changes go through the services, which keep lists and history consistent."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Benchmark)
class BenchmarkAdmin(ReadOnlyAdmin):
    """Leads to the page of benchmarks."""

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Redirect to it."""
        return redirect("benchmarks")


@admin.register(Query)
class QueryAdmin(ReadOnlyAdmin):
    """Queries by state, split and category."""

    list_display = ("query_id", "text", "category", "split", "state", "updated_at")
    list_filter = ("state", "split", "category")
    search_fields = ("text", "=query_id")


@admin.register(QueryTransition)
class QueryTransitionAdmin(ReadOnlyAdmin):
    """Changes of queries' states."""

    list_display = ("query", "from_state", "to_state", "reason", "made_by", "made_at")
    list_select_related = ("query", "made_by")


@admin.register(QueryEdit)
class QueryEditAdmin(ReadOnlyAdmin):
    """Changes of queries' fields."""

    list_display = ("query", "changes", "made_by", "made_at")
    list_select_related = ("query", "made_by")


@admin.register(Assignment)
class AssignmentAdmin(ReadOnlyAdmin):
    """Parts in queries."""

    list_display = (
        "query",
        "annotator",
        "state",
        "assigned_at",
        "handed_in_at",
        "rule",
        "reason",
        "note",
    )
    list_select_related = ("query", "annotator")


@admin.register(CandidateList)
class CandidateListAdmin(ReadOnlyAdmin):
    """Candidate lists, without their vectors."""

    list_display = ("id", "query", "model_name", "size", "total", "unembedded", "frozen_at")
    list_select_related = ("query",)
    exclude = ("text_vector",)


class LargeReadOnlyAdmin(ReadOnlyAdmin, LargeTableAdmin):
    """Judgments, searched by their query."""

    search_help_text = "A query's number."

    def searched(self, rows: QuerySet[Any], text: str) -> QuerySet[Any]:
        """The rows of the query with this number."""
        number = id_of(text)
        if number is None or number > MAX_QUERY_ID:
            return rows.none()
        return rows.filter(query=Query.objects.filter(query_id=number).values("pk")[:1])


@admin.register(Judgment)
class JudgmentAdmin(LargeReadOnlyAdmin):
    """Current judgments."""

    list_display = ("query", "image_id", "annotator", "relevance", "source", "rank", "updated_at")
    list_select_related = ("query", "annotator")


@admin.register(JudgmentEvent)
class JudgmentEventAdmin(LargeReadOnlyAdmin):
    """The history of judgments."""

    list_display = (
        "query",
        "image_id",
        "annotator",
        "previous",
        "relevance",
        "source",
        "acted_at",
        "made_at",
    )
    list_select_related = ("query", "annotator")

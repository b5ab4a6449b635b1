"""The admin site's read-only view of labelling: every write goes through the services."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from labeling.models import CandidateList, Judgment, JudgmentEvent, Query, QueryTransition


class ReadOnlyAdmin(admin.ModelAdmin):
    """Shows and changes nothing: writes past the services would leave lists and history behind."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Query)
class QueryAdmin(ReadOnlyAdmin):
    list_display = ("query_id", "text", "category", "split", "state", "updated_at")
    list_filter = ("state", "split", "category")
    search_fields = ("text", "=query_id")


@admin.register(QueryTransition)
class QueryTransitionAdmin(ReadOnlyAdmin):
    list_display = ("query", "from_state", "to_state", "reason", "made_by", "made_at")
    list_select_related = ("query", "made_by")


@admin.register(CandidateList)
class CandidateListAdmin(ReadOnlyAdmin):
    list_display = ("id", "query", "model_name", "size", "total", "unembedded", "frozen_at")
    list_select_related = ("query",)
    exclude = ("text_vector",)


@admin.register(Judgment)
class JudgmentAdmin(ReadOnlyAdmin):
    list_display = ("query", "image_id", "annotator", "relevance", "rank", "updated_at")
    list_select_related = ("query", "annotator")
    list_filter = ("relevance", "source")


@admin.register(JudgmentEvent)
class JudgmentEventAdmin(ReadOnlyAdmin):
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
    list_filter = ("source",)

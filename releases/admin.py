"""Releases in Django's admin: to be looked at, never changed."""

from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest

from releases.models import Release


@admin.register(Release)
class ReleaseAdmin(ModelAdmin[Release]):
    """The list of releases, read-only."""

    list_display = (
        "name",
        "version",
        "origin",
        "created_at",
        "created_by",
        "made_at",
        "positives",
        "judgments",
    )
    list_filter = ("origin",)
    search_fields = ("name",)
    exclude = ("halves_secret",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Release | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Release | None = None) -> bool:
        return False

"""Workers in Django's admin; people have pages of their own."""

from django.contrib import admin
from django.contrib.admin import ModelAdmin

from annotator.models import WorkerHeartbeat


@admin.register(WorkerHeartbeat)
class WorkerHeartbeatAdmin(ModelAdmin[WorkerHeartbeat]):
    """Workers' signs of life, to read only."""

    list_display = ("worker", "seen_at")

    def has_add_permission(self, request: object) -> bool:
        """Workers write these themselves."""
        return False

    def has_change_permission(self, request: object, obj: object = None) -> bool:
        """Workers write these themselves."""
        return False

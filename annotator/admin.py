"""People and workers in Django's admin."""

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as BaseUserAdmin

from annotator.models import User, WorkerHeartbeat


@admin.register(User)
class UserAdmin(BaseUserAdmin):
    """Django's page for people, with the role."""

    list_display = ("username", "role", "is_active", "is_superuser", "last_login")
    list_filter = ("role", "is_active", "is_superuser")
    fieldsets = (*(BaseUserAdmin.fieldsets or ()), ("Inquire Annotator", {"fields": ("role",)}))
    add_fieldsets = (*BaseUserAdmin.add_fieldsets, ("Inquire Annotator", {"fields": ("role",)}))


@admin.register(WorkerHeartbeat)
class WorkerHeartbeatAdmin(admin.ModelAdmin):
    """Workers' signs of life, to read only."""

    list_display = ("worker", "seen_at")

    def has_add_permission(self, request: object) -> bool:
        """Workers write these themselves."""
        return False

    def has_change_permission(self, request: object, obj: object = None) -> bool:
        """Workers write these themselves."""
        return False

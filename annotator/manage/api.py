"""API of backups and of the settings in force, for admins."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.backup.job import backup_begin
from annotator.manage.settings_in_force import settings_in_force
from annotator.models import Backup
from core.access import Role, require_role
from core.jobs.serializers import JobSerializer


class BackupSerializer(serializers.ModelSerializer[Backup]):
    """A backup that was begun."""

    class Meta:
        model = Backup
        fields = ("id", "file", "daily", "images", "started_at", "finished_at", "size_bytes",
                  "problem")  # fmt: skip
        read_only_fields = fields


class SettingSerializer(serializers.Serializer[Any]):
    """A variable of the environment; the value of a hidden one is empty."""

    name = serializers.CharField()
    value = serializers.CharField(allow_blank=True)
    is_set = serializers.BooleanField()
    hidden = serializers.BooleanField()


class BackupsView(ListAPIView[Backup]):
    """Backups, the latest first."""

    queryset = Backup.objects.none()
    serializer_class = BackupSerializer

    def get_queryset(self) -> QuerySet[Backup]:
        require_role(self.request.user, Role.ADMIN)
        return Backup.objects.order_by("-pk")

    @extend_schema(operation_id="backups_create", request=None, responses={202: JobSerializer})
    def post(self, request: Request) -> Response:
        """Have a job write a backup; answers the unfinished one where there is one."""
        require_role(request.user, Role.ADMIN)
        job = backup_begin(created_by=request.user)
        return Response(JobSerializer(job).data, status=202)


class SettingsView(APIView):
    """The settings in force, without secrets."""

    @extend_schema(operation_id="settings_list", responses=SettingSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Every variable that the settings read, by name."""
        require_role(request.user, Role.ADMIN)
        return Response(SettingSerializer(settings_in_force(), many=True).data)

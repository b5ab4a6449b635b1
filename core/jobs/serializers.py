"""Jobs in answers of the API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.jobs.models import Job, JobItemError

ITEM_ERRORS_SHOWN = 100


class JobItemErrorSerializer(serializers.ModelSerializer[JobItemError]):
    """An item that a job could not process."""

    image = serializers.IntegerField(source="image_id", allow_null=True)

    class Meta:
        model = JobItemError
        fields = ("item", "image", "message")
        read_only_fields = fields


class JobSerializer(serializers.ModelSerializer[Job]):
    """A job with its progress; `rate` in items per second of working time, without waits."""

    created_by = serializers.CharField(
        source="created_by.username", default=None, read_only=True, allow_null=True
    )
    rate = serializers.FloatField(read_only=True, allow_null=True)
    working_seconds = serializers.FloatField(read_only=True)
    percent = serializers.IntegerField(read_only=True, allow_null=True)

    class Meta:
        model = Job
        fields: tuple[str, ...] = (
            "id",
            "kind",
            "title",
            "state",
            "done",
            "failed",
            "total",
            "percent",
            "rate",
            "working_seconds",
            "error",
            "result",
            "created_by",
            "created_at",
            "started_at",
            "updated_at",
            "finished_at",
        )
        read_only_fields: tuple[str, ...] = fields


class JobDetailSerializer(JobSerializer):
    """A job with the first hundred items that it could not process."""

    item_errors = serializers.SerializerMethodField()

    class Meta(JobSerializer.Meta):
        fields = (*JobSerializer.Meta.fields, "item_errors")
        read_only_fields = fields

    @extend_schema_field(JobItemErrorSerializer(many=True))
    def get_item_errors(self, job: Job) -> Any:
        errors = job.item_errors.order_by("pk")[:ITEM_ERRORS_SHOWN]
        return JobItemErrorSerializer(errors, many=True).data

"""API of custom fields."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from core.access import Role, require_role
from core.api.fields import TextField, TruthField
from retrieval.corpus.models import CustomField
from retrieval.custom_fields.selectors import custom_fields_used
from retrieval.custom_fields.services import (
    LONGEST_NAME,
    custom_field_change,
    custom_field_delete,
)


class CustomFieldSerializer(serializers.ModelSerializer[CustomField]):
    """A custom field."""

    class Meta:
        model = CustomField
        fields = ("id", "name", "kind", "shown_to_annotators", "in_releases")
        read_only_fields = fields


class FieldUseSerializer(serializers.Serializer[Any]):
    """A custom field with what images have in it."""

    id = serializers.IntegerField(source="field.pk")
    name = serializers.CharField(source="field.name")
    kind = serializers.ChoiceField(CustomField.Kind.choices, source="field.kind")
    shown_to_annotators = serializers.BooleanField(source="field.shown_to_annotators")
    in_releases = serializers.BooleanField(source="field.in_releases")
    images = serializers.IntegerField(help_text="with a value, withdrawn ones among them")
    values = serializers.ListField(child=serializers.CharField(), help_text="frequent ones")


@extend_schema_serializer(many=False)
class FieldUsesSerializer(serializers.Serializer[Any]):
    """All custom fields, by name."""

    results = FieldUseSerializer(many=True)


class FieldChangeSerializer(serializers.Serializer[Any]):
    """What to change of a field."""

    name = TextField(required=False, max_length=LONGEST_NAME)
    shown_to_annotators = TruthField(required=False)
    in_releases = TruthField(required=False, help_text="in those that are made from now on")


class FieldDeletedSerializer(serializers.Serializer[Any]):
    """What went."""

    images = serializers.IntegerField(help_text="how many had a value")


class CustomFieldViewSet(GenericViewSet[CustomField]):
    """Columns of tables of images that were kept (admins)."""

    queryset = CustomField.objects.none()
    serializer_class = CustomFieldSerializer
    lookup_value_converter = "id"

    def get_queryset(self) -> QuerySet[CustomField]:
        require_role(self.request.user, Role.ADMIN)
        return CustomField.objects.all()

    @extend_schema(operation_id="custom_fields_list", responses=FieldUsesSerializer)
    def list(self, request: Request) -> Response:
        """List all fields with the number of images that have each, and frequent values."""
        require_role(request.user, Role.ADMIN)
        return Response(FieldUsesSerializer({"results": custom_fields_used()}).data)

    @extend_schema(
        operation_id="custom_fields_update",
        request=FieldChangeSerializer,
        responses=CustomFieldSerializer,
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        """Rename a field, show it to annotators or hide it, put it into releases or leave it out.

        Releases that were made stay as they are.
        """
        field = get_object_or_404(self.get_queryset(), pk=pk)
        given = FieldChangeSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        changed = custom_field_change(field=field, by=request.user, **given.validated_data)
        return Response(CustomFieldSerializer(changed).data)

    @extend_schema(operation_id="custom_fields_destroy", responses={200: FieldDeletedSerializer})
    def destroy(self, request: Request, pk: int) -> Response:
        """Delete a field with its values. Releases that have it keep it."""
        field = get_object_or_404(self.get_queryset(), pk=pk)
        images = custom_field_delete(field=field, by=request.user)
        return Response(FieldDeletedSerializer({"images": images}).data)

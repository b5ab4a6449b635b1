"""Markdown as it will be shown, for those who write it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access import Role, require_role
from core.api.parameters import validated
from core.markdown import markdown_html


class MarkdownText(serializers.Serializer[Any]):
    """A text in Markdown."""

    text = serializers.CharField(max_length=20_000, allow_blank=True, trim_whitespace=False)
    heading = serializers.IntegerField(
        default=3, min_value=2, max_value=6, help_text="the level of its highest headings"
    )


class MarkdownHtml(serializers.Serializer[Any]):
    """The text in HTML."""

    html = serializers.CharField()


class MarkdownView(APIView):
    """Shows Markdown before it is saved."""

    @extend_schema(operation_id="markdown_preview", request=MarkdownText, responses=MarkdownHtml)
    def post(self, request: Request) -> Response:
        """Answer {html}: a text as pages show it, for reviewers and admins. Nothing is stored."""
        require_role(request.user, Role.REVIEWER)
        return Response({"html": markdown_html(**validated(request, MarkdownText))})

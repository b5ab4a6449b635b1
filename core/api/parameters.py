"""Query parameters of the API, checked as a body is."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request


def parameters(
    request: Request, kind: type[serializers.Serializer[Any]], **context: Any
) -> dict[str, Any]:
    """The request's query parameters as `kind` describes them.

    Raises ValidationError (400) naming the parameter. Empty ones are checked too: a form's would be
    passed over. Names that `kind` doesn't have are refused before (`annotator.middleware`).
    """
    asked = kind(context=context)
    given = request.query_params
    asked.initial_data = {
        name: given.getlist(name) if isinstance(field, serializers.ListField) else given[name]
        for name, field in asked.fields.items()
        if name in given
    }
    asked.is_valid(raise_exception=True)
    return dict(asked.validated_data)

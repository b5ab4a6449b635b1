"""Query parameters and bodies of API requests, validated by serializers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request


def parameters(
    request: Request, kind: type[serializers.Serializer[Any]], **context: Any
) -> dict[str, Any]:
    """Return the request's query parameters, validated by the serializer `kind`.

    Raises ValidationError (400) naming the parameter. Empty ones are validated too, where a form's
    would be ignored. `annotator.web.middleware` refuses names that `kind` doesn't have.
    """
    serializer = kind(context=context)
    given = request.query_params
    serializer.initial_data = {
        name: given.getlist(name) if isinstance(field, serializers.ListField) else given[name]
        for name, field in serializer.fields.items()
        if name in given
    }
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


def validated(request: Request, kind: type[serializers.Serializer[Any]]) -> dict[str, Any]:
    """Return the request's body, validated by the serializer `kind`.

    Raises ValidationError (400) naming the field.
    """
    serializer = kind(data=request.data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)

"""The API's default permission."""

from __future__ import annotations

from typing import Any

from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request

from core.access import Role, require_role


class TakesPartInLabeling(IsAuthenticated):
    """Annotators and above; researchers get 403, anonymous users 401."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not super().has_permission(request, view):
            return False
        require_role(request.user, Role.ANNOTATOR)
        return True

"""How lists of the API are cut into pages."""

from typing import Any

from rest_framework import serializers
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request

from core.ids import LARGEST_ID


class Pagination(LimitOffsetPagination):
    """`limit` (by default 50, at most 500) and `offset`; the answer has count, next, previous.

    What isn't one of these numbers is refused (400).
    """

    default_limit = 50
    max_limit = 500

    def get_limit(self, request: Request) -> int:
        return self._number(request, "limit", self.default_limit, 1, self.max_limit)

    def get_offset(self, request: Request) -> int:
        return self._number(request, "offset", 0, 0, LARGEST_ID)

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        parameters = super().get_schema_operation_parameters(view)
        limit, offset = (one["schema"] for one in parameters)
        limit |= {"minimum": 1, "maximum": self.max_limit, "default": self.default_limit}
        offset |= {"minimum": 0, "maximum": LARGEST_ID, "default": 0}
        return parameters

    @staticmethod
    def _number(request: Request, name: str, usual: int, least: int, most: int) -> int:
        field = serializers.IntegerField(min_value=least, max_value=most)
        try:
            return int(field.run_validation(request.query_params.get(name, usual)))
        except serializers.ValidationError as error:
            raise serializers.ValidationError({name: error.detail}) from None

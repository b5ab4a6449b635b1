"""How lists of the API are cut into pages."""

from rest_framework.pagination import LimitOffsetPagination


class Pagination(LimitOffsetPagination):
    """`limit` (50 unless told, at most 500) and `offset`; the answer has count, next, previous."""

    default_limit = 50
    max_limit = 500

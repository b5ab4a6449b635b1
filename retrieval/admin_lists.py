"""Lists of Django's admin for tables of millions of rows, which are never counted or sorted whole.

Django's own would count all rows, search by `LIKE '%…%'` and sort by any column.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

from core.ids import id_of
from retrieval.corpus.selectors import datasets

MOST_LISTED: Final = 10_000


class FirstRows(Paginator[Any]):
    """Pages of the first MOST_LISTED rows; the count stops there."""

    @cached_property
    def count(self) -> int:
        """How many rows are listed: their number, at most MOST_LISTED."""
        rows: Any = self.object_list[:MOST_LISTED]
        return int(rows.count())


class FirstRowsList(ChangeList):
    """A list that says in its title where it ends early."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        if self.result_count >= MOST_LISTED:
            self.title = f"{self.title}: the first {MOST_LISTED:,}. Search for others."


class LargeTableAdmin(ModelAdmin[Any]):
    """A list of the first rows by primary key. A search is `searched`.

    It may hold filters whose column has an index together with the order.
    """

    paginator = FirstRows
    show_full_result_count = False
    list_max_show_all = 0
    sortable_by = ()

    def searched(self, rows: QuerySet[Any], text: str) -> QuerySet[Any]:
        """Filter the list by a stripped text, using an index."""
        number = id_of(text)
        return rows.none() if number is None else rows.filter(pk=number)

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return FirstRowsList

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        # The box is shown where there is a field.
        return ("pk",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        text = search_term.replace("\0", "").strip()
        return (self.searched(queryset, text) if text else queryset), False


class DatasetFilter(admin.SimpleListFilter):
    """A filter by data set, whose names are found without reading all images."""

    title = "data set"
    parameter_name = "dataset"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in datasets()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(dataset=self.value()) if self.value() else queryset

"""The corpus in Django's admin, read-only: imports and jobs write it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin import ModelAdmin, TabularInline
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from core.ids import id_of
from core.jobs.models import Job, JobItemError
from retrieval.admin_lists import DatasetFilter, LargeTableAdmin
from retrieval.corpus.models import (
    Image,
    ImageRoot,
    ImageTakedown,
    ImageWithdrawal,
    Species,
    SpeciesName,
)
from retrieval.corpus.selectors import datasets
from retrieval.embedding.models import EmbeddingModel
from retrieval.flags.models import ImageFlag
from retrieval.species.search import species_search


class ReadOnly:
    """An admin in which nothing can be added, changed or deleted."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class SpeciesNameInline(ReadOnly, TabularInline[SpeciesName, Species]):
    """Names of a species."""

    model = SpeciesName
    fields = ("language", "name")


@admin.register(Species)
class SpeciesAdmin(ReadOnly, ModelAdmin[Species]):
    """Species."""

    list_display = ("scientific_name", "common_name", "family", "iconic_group")
    list_filter = ("iconic_group",)
    search_fields = ("scientific_name", "names__name")
    inlines = (SpeciesNameInline,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Species]:
        return super().get_queryset(request).prefetch_related("names")


@admin.register(Image)
class ImageAdmin(ReadOnly, LargeTableAdmin):
    """Images."""

    list_display = ("id", "dataset", "place", "file_name", "species", "width", "height")
    list_select_related = ("species", "root")
    list_filter = (DatasetFilter,)
    search_help_text = "An image's id, its id in its data set, or a name of a species."

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        # Each the order of an index; by their keys the images of a few species would be looked for
        # among all.
        if request.GET.get("dataset"):
            return ("dataset", "source_id")
        return ("species_id", "pk") if request.GET.get("q") else ("pk",)

    def searched(self, rows: QuerySet[Image], text: str) -> QuerySet[Image]:
        number = id_of(text)
        named = Q(dataset__in=datasets(), source_id=text)
        if number is None:
            named |= Q(species__in=[species.pk for species in species_search(text)])
        return rows.filter(named if number is None else named | Q(pk=number))

    @admin.display(description="file at")
    def place(self, image: Image) -> str:
        """Where the file is: below its root, or in the store."""
        return image.root.location if image.root else "the store"


@admin.register(ImageRoot)
class ImageRootAdmin(ReadOnly, ModelAdmin[ImageRoot]):
    """Roots of images left in place."""

    list_display = ("id", "location", "created_at")


@admin.register(EmbeddingModel)
class EmbeddingModelAdmin(ReadOnly, ModelAdmin[EmbeddingModel]):
    """Embedding models."""

    list_display = ("name", "dimension", "precision", "created_at")


@admin.register(ImageFlag)
class ImageFlagAdmin(ReadOnly, ModelAdmin[ImageFlag]):
    """Flags on images."""

    list_display = ("id", "image_id", "kind", "state", "raised_by", "raised_at", "decided_by")
    list_select_related = ("raised_by", "decided_by")
    list_filter = ("state", "kind")
    search_fields = ("=image__id", "note")


@admin.register(ImageTakedown)
class ImageTakedownAdmin(ReadOnly, ModelAdmin[ImageTakedown]):
    """Images that were taken down."""

    list_display = ("image_id", "taken_down_at", "taken_down_by", "reason")
    list_select_related = ("taken_down_by",)
    search_fields = ("=image__id", "reason")


@admin.register(ImageWithdrawal)
class ImageWithdrawalAdmin(ReadOnly, ModelAdmin[ImageWithdrawal]):
    """Withdrawals of images."""

    list_display = (
        "id",
        "image_id",
        "withdrawn_at",
        "withdrawn_by",
        "restored_at",
        "restored_by",
        "note",
    )
    list_select_related = ("withdrawn_by", "restored_by")
    search_fields = ("=image__id", "note")


@admin.register(JobItemError)
class JobItemErrorAdmin(ReadOnly, LargeTableAdmin):
    """Failed items of jobs."""

    list_display = ("id", "job_id", "item", "message")
    search_help_text = "A job's number."

    def searched(self, rows: QuerySet[JobItemError], text: str) -> QuerySet[JobItemError]:
        number = id_of(text)
        return rows.none() if number is None else rows.filter(job=number)


@admin.register(Job)
class JobAdmin(ReadOnly, ModelAdmin[Job]):
    """Jobs."""

    list_display = ("id", "kind", "title", "state", "done", "failed", "total", "created_by")
    list_select_related = ("created_by",)
    list_filter = ("state", "kind")

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from retrieval.access import names_hidden_from
from retrieval.api.fields import TextField
from retrieval.api.species import SpeciesBriefSerializer
from retrieval.models import Image, Job, JobItemError
from retrieval.selectors.search import Hit, SearchMethod

ITEM_ERRORS_SHOWN = 100


class _SpeciesOfImage(serializers.Serializer[Any]):
    """Adds `species`, null where it is unknown or hidden from the user."""

    species = serializers.SerializerMethodField()

    @extend_schema_field(SpeciesBriefSerializer(allow_null=True))
    def get_species(self, shown: Image | Hit) -> Any:
        image = shown.image if isinstance(shown, Hit) else shown
        if image.species is None or names_hidden_from(self.context["request"].user):
            return None
        return SpeciesBriefSerializer(image.species).data


class ImageSerializer(_SpeciesOfImage, serializers.ModelSerializer[Image]):
    """An image; sizes in pixels, upright. `file_name` is empty where names are hidden."""

    url = serializers.CharField(read_only=True)
    thumbnail_url = serializers.CharField(read_only=True)
    file_name = serializers.SerializerMethodField()

    class Meta:
        model = Image
        fields = (
            "id",
            "url",
            "thumbnail_url",
            "dataset",
            "file_name",
            "width",
            "height",
            "species",
            "observed_at",
            "latitude",
            "longitude",
            "location_uncertainty",
            "license",
            "license_url",
            "rights_holder",
        )
        read_only_fields = fields

    def get_file_name(self, image: Image) -> str:
        # In iNaturalist's data sets the path names the species.
        return "" if names_hidden_from(self.context["request"].user) else image.file_name


class HitSerializer(_SpeciesOfImage):
    """One search result; ranks start at 1, the score is the cosine similarity."""

    rank = serializers.IntegerField()
    score = serializers.FloatField()
    image = serializers.IntegerField(source="image.pk")
    url = serializers.CharField(source="image.url")
    thumbnail_url = serializers.CharField(source="image.thumbnail_url")


class SearchResultsSerializer(serializers.Serializer[Any]):
    """The best images for a text; `total` counts those in the filter.

    `method` is what put them in order: the packed "matrix" or the database's "scan", both exact, or
    an approximate "index", which may miss some of the best; `how` says the same in words.
    """

    model = serializers.CharField()
    total = serializers.IntegerField()
    method = serializers.ChoiceField(choices=[method.value for method in SearchMethod])
    how = serializers.CharField(source="method.words")
    exact = serializers.BooleanField(source="method.exact")
    seconds = serializers.FloatField()
    results = HitSerializer(source="hits", many=True)


class SearchQuerySerializer(serializers.Serializer[Any]):
    """What a search asks for."""

    text = serializers.CharField(max_length=500)
    species = serializers.ListField(
        child=serializers.CharField(max_length=4000, allow_blank=True),
        default=list,
        max_length=500,
        help_text="ids or names, repeated or separated by commas; a genus, family or look-alike "
        "group stands for its species",
    )
    limit = serializers.IntegerField(min_value=1, max_value=500, default=50)


class JobItemErrorSerializer(serializers.ModelSerializer[JobItemError]):
    class Meta:
        model = JobItemError
        fields = ("item", "image", "message")
        read_only_fields = fields


class JobSerializer(serializers.ModelSerializer[Job]):
    """Long work and how far it is; `rate` in items a second of working time."""

    created_by = serializers.CharField(source="created_by.username", default=None, read_only=True)
    rate = serializers.FloatField(read_only=True, allow_null=True)
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
    """A job with the first hundred items that it could not do."""

    item_errors = serializers.SerializerMethodField()

    class Meta(JobSerializer.Meta):
        fields = (*JobSerializer.Meta.fields, "item_errors")
        read_only_fields = fields

    @extend_schema_field(JobItemErrorSerializer(many=True))
    def get_item_errors(self, job: Job) -> Any:
        errors = job.item_errors.order_by("pk")[:ITEM_ERRORS_SHOWN]
        return JobItemErrorSerializer(errors, many=True).data


class JobCreateSerializer(serializers.Serializer[Any]):
    """Work that an admin may ask for: embedding the corpus, by default with EMBEDDING_MODEL."""

    kind = serializers.ChoiceField(choices=["embed"])
    model = TextField(max_length=300, default="", allow_blank=True)

"""Species through the API: by name, by group, and for a pasted list of names."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.access import names_hidden_from
from core.api.fields import IdField, TextField
from core.api.parameters import parameters, validated
from retrieval.corpus.counts import image_counts
from retrieval.corpus.models import Species
from retrieval.corpus.serializers import SpeciesBriefSerializer
from retrieval.species.groups import (
    GroupKind,
    group_species,
    groups_of,
    groups_search,
    groups_with_counts,
)
from retrieval.species.search import species_search
from retrieval.species.selectors import names_resolve, with_picker_fields

MATCHES = 500
LONGEST_SEARCH = 200
GROUPS_SHOWN = 8
NAMES_AT_ONCE = 2000
# Each suggestion takes a search; a list with more typos than this is the wrong list.
SUGGESTED_FOR = 30
SUGGESTIONS = 3


class SpeciesGroupSerializer(serializers.Serializer[Any]):
    """Two or more species that are chosen together: a genus, a family or look-alikes."""

    kind = serializers.ChoiceField(choices=GroupKind.choices)
    name = serializers.CharField()
    species_count = serializers.IntegerField()


class CountedGroupSerializer(SpeciesGroupSerializer):
    """A group with the number of its images in the corpus."""

    image_count = serializers.IntegerField()


class SpeciesSerializer(serializers.ModelSerializer[Species]):
    """A species; `matched_name` is the name by which a search found it."""

    common_name = serializers.CharField(read_only=True)
    names = serializers.SerializerMethodField(
        help_text="every name by its language; scientific: ''"
    )
    matched_name = serializers.CharField(read_only=True, default="")
    matched_language = serializers.CharField(
        read_only=True, default="", help_text="BCP 47 code; empty for the scientific name"
    )
    class_name = serializers.CharField(read_only=True, help_text="the taxonomic class")
    lineage = serializers.ListField(
        child=serializers.CharField(),
        read_only=True,
        help_text="the known ranks from kingdom to genus",
    )
    image_count = serializers.IntegerField(read_only=True, help_text="without withdrawn images")
    thumbnail_url = serializers.SerializerMethodField(
        help_text="its first image; null without one or where names are hidden"
    )
    groups = SpeciesGroupSerializer(many=True, read_only=True)

    class Meta:
        model = Species
        fields = (
            "id",
            "scientific_name",
            "common_name",
            "matched_name",
            "matched_language",
            "names",
            "kingdom",
            "phylum",
            "class_name",
            "order",
            "family",
            "genus",
            "specific_epithet",
            "iconic_group",
            "lookalike_group",
            "lineage",
            "image_count",
            "thumbnail_url",
            "groups",
        )
        read_only_fields = fields

    def get_names(self, species: Species) -> list[dict[str, str]]:
        return [{"language": n.language, "name": n.name} for n in species.names.all()]

    def get_thumbnail_url(self, species: Any) -> str | None:
        # An image's address holds its id, so this would reveal which species an image shows.
        if species.first_image is None or names_hidden_from(self.context["request"].user):
            return None
        return str(species.first_image.thumbnail_url)


class GroupsParameters(serializers.Serializer[Any]):
    """Parameters of `groups`: a text to search for, or a species."""

    search = serializers.CharField(max_length=LONGEST_SEARCH, default="", allow_blank=True)
    species = IdField(required=False)


class GroupNameSerializer(serializers.Serializer[Any]):
    """A group, by kind and name."""

    kind = serializers.ChoiceField(choices=GroupKind.choices)
    name = TextField(max_length=200)


class ResolveSerializer(serializers.Serializer[Any]):
    """Names to look up, and groups by kind and name."""

    names = serializers.ListField(
        child=TextField(allow_blank=True),
        max_length=NAMES_AT_ONCE,
        default=list,
        help_text="scientific or vernacular names, ids, or a genus, family or look-alike group",
    )
    groups = GroupNameSerializer(  # type: ignore[call-arg]
        many=True,
        max_length=100,
        default=list,
        help_text="groups whose species are all included",
    )

    def validate_groups(self, groups: list[dict[str, str]]) -> list[tuple[GroupKind, str]]:
        return [(GroupKind(group["kind"]), group["name"]) for group in groups]


class SuggestionSerializer(serializers.Serializer[Any]):
    """Species whose names are similar to one that was not found."""

    name = serializers.CharField()
    species = SpeciesBriefSerializer(many=True)


class ResolvedSerializer(serializers.Serializer[Any]):
    """The species found, the names not found, and the groups among the names."""

    found = SpeciesSerializer(many=True)
    missing = serializers.ListField(child=serializers.CharField())
    groups = SpeciesGroupSerializer(many=True)
    suggestions = SuggestionSerializer(
        many=True, help_text=f"similar species for the first {SUGGESTED_FOR} missing names"
    )


class SpeciesParameters(serializers.Serializer[Any]):
    """Parameters of the list of species."""

    search = serializers.CharField(
        max_length=LONGEST_SEARCH,
        default="",
        allow_blank=True,
        help_text="a name or its beginning in any language, words in any order, typos allowed",
    )
    with_images = serializers.BooleanField(
        default=False, help_text="of those that `search` finds, only the ones with images"
    )


@extend_schema_view(list=extend_schema(parameters=[SpeciesParameters]))
class SpeciesViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Species]
):
    """The species of the corpus, by name, or by similarity to `search`."""

    queryset = Species.objects.prefetch_related("names").order_by("scientific_name")
    serializer_class = SpeciesSerializer
    lookup_value_converter = "id"

    def filter_queryset(self, queryset: QuerySet[Species, Any]) -> Any:
        """Return the matches of `search`, best first, or all species."""
        if self.action != "list":
            return queryset
        given = parameters(self.request, SpeciesParameters)
        if not given["search"]:
            return queryset
        found = species_search(given["search"], limit=MATCHES)
        counts = image_counts([each.pk for each in found]) if given["with_images"] else None
        return found if counts is None else [each for each in found if each.pk in counts]

    def paginate_queryset(self, queryset: Any) -> Any:
        """Add image counts and groups to the species of this page only."""
        page = super().paginate_queryset(queryset)
        return page and with_picker_fields(page)

    def get_object(self) -> Species:
        return with_picker_fields([super().get_object()])[0]

    @extend_schema(parameters=[GroupsParameters], responses=CountedGroupSerializer(many=True))
    @action(detail=False, pagination_class=None)
    def groups(self, request: Request) -> Response:
        """List the genera, families and look-alike groups whose names match `search`, best first,
        or those of the species with the id `species`. A group has two or more species.
        """
        given = parameters(request, GroupsParameters)
        if "species" in given:
            of = Species.objects.filter(pk=given["species"])
            listed = groups_with_counts(
                group for groups in groups_of(of).values() for group in groups
            )
        else:
            listed = groups_search(given["search"], limit=GROUPS_SHOWN)
        return Response(CountedGroupSerializer(listed, many=True).data)

    @extend_schema(request=ResolveSerializer, responses=ResolvedSerializer)
    @action(detail=False, methods=["post"])
    def resolve(self, request: Request) -> Response:
        """Resolve a list of names, as pasted by a person, to species."""
        given = validated(request, ResolveSerializer)
        resolved = names_resolve(given["names"], authors=True)
        of_groups = group_species(given["groups"])
        by_id = {species.pk: species for species in [*resolved.species, *of_groups]}
        suggestions = [
            {"name": name, "species": near}
            for name in resolved.missing[:SUGGESTED_FOR]
            if len(str(name)) <= LONGEST_SEARCH
            and (near := species_search(str(name), limit=SUGGESTIONS))
        ]
        answer = {
            "found": with_picker_fields(
                sorted(by_id.values(), key=lambda species: species.scientific_name)
            ),
            "missing": resolved.missing,
            "groups": resolved.groups,
            "suggestions": suggestions,
        }
        return Response(ResolvedSerializer(answer, context={"request": request}).data)

"""What the labeling page reads of one query, as JSON."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.fields import empty

from core.api.fields import IdField, TextField, TruthField
from labeling.candidates.serializers import ListSerializer
from labeling.judging.consensus import DECIDING_ROLES
from labeling.judging.models import Judgment, Relevance
from labeling.judging.serializers import HandInSerializer, ProgressSerializer
from labeling.judging.sources import SOURCE_CHOICES
from labeling.queries.models import Query
from labeling.review.selectors import KINDS
from labeling.studio.reference import MOST_EXAMPLES, MOST_LOOKALIKES, MOST_SPECIES, Lookalike
from retrieval.corpus.models import Species
from retrieval.corpus.serializers import CustomValuesField, SpeciesBriefSerializer
from retrieval.flags.models import ImageFlag

LARGEST_PAGE = 500
MOST_SIMILAR = 200
LARGEST_RANK = 10**9 - 1
_RANK = "[1-9][0-9]{0,8}"
_DEGREES = r"-?[0-9]{1,3}(\.[0-9]{1,20})?(e-[0-9]{1,3})?"


class ImageBriefSerializer(serializers.Serializer[Any]):
    """An image; relevance is one's own."""

    image = serializers.IntegerField(source="image.pk", help_text="its id")
    url = serializers.CharField(source="image.url")
    thumbnail_url = serializers.CharField(source="image.thumbnail_url")
    width = serializers.IntegerField(source="image.width")
    height = serializers.IntegerField(source="image.height")
    species = SpeciesBriefSerializer(allow_null=True, help_text="null where unknown or hidden")
    relevance = serializers.ChoiceField(choices=Relevance.choices, allow_null=True)


class JudgedImageSerializer(ImageBriefSerializer):
    """An image to judge; relevance is one's own."""

    latitude = serializers.FloatField(source="image.latitude", allow_null=True)
    longitude = serializers.FloatField(source="image.longitude", allow_null=True)
    location_uncertainty = serializers.FloatField(
        source="image.location_uncertainty", allow_null=True, help_text="meters"
    )
    coordinates_obscured = serializers.BooleanField(
        source="image.coordinates_obscured", help_text="whether the source may have blurred them"
    )
    observed_at = serializers.DateTimeField(source="image.observed_at", allow_null=True)
    license = serializers.CharField(source="image.license", help_text="empty where unknown")
    rights_holder = serializers.CharField(source="image.rights_holder")
    custom_fields = CustomValuesField()
    grade = serializers.IntegerField(allow_null=True, help_text="one's own, from 0 to 3")
    reason = serializers.CharField(allow_blank=True, help_text="why it has this grade")
    flags = serializers.ListField(
        child=serializers.ChoiceField(choices=ImageFlag.Kind.choices),
        help_text="kinds of its open flags",
    )


class CandidateSerializer(JudgedImageSerializer):
    """One candidate; relevance is one's own."""

    rank = serializers.IntegerField()
    score = serializers.FloatField(help_text="cosine similarity")


class CandidatesSerializer(serializers.Serializer[Any]):
    """Part of a candidate list; results are empty while it isn't ready."""

    list = ListSerializer()
    progress = ProgressSerializer(help_text="one's own")
    count = serializers.IntegerField(help_text="ranks in the list, withdrawn ones among them")
    start_rank = serializers.IntegerField()
    next = serializers.CharField(allow_null=True, help_text="address of what follows")
    results = CandidateSerializer(many=True, help_text="without withdrawn images")


class RanksField(serializers.RegexField):
    """Ranks separated by commas, as a sorted list of each once."""

    default_error_messages: ClassVar = {
        "invalid": f"Up to {LARGEST_PAGE} ranks from 1 on are needed, separated by commas."
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(rf"^{_RANK}(,{_RANK}){{0,{LARGEST_PAGE - 1}}}\Z", **options)

    def run_validation(self, data: Any = empty) -> Any:
        """The ranks, ascending, each once."""
        text = super().run_validation(data)
        return sorted(set(map(int, text.split(","))))


class CandidatesParameters(serializers.Serializer[Any]):
    """Which part of a list."""

    start_rank = serializers.IntegerField(min_value=1, max_value=LARGEST_RANK, default=1)
    limit = serializers.IntegerField(min_value=1, max_value=LARGEST_PAGE, default=100)
    ranks = RanksField(
        required=False,
        help_text=f"instead of a part: up to {LARGEST_PAGE} ranks, separated by commas",
    )


class QueryStatusSerializer(serializers.Serializer[Any]):
    """A query's state, and whether one may label it now."""

    state = serializers.ChoiceField(choices=Query.State.choices)
    can_label = serializers.BooleanField()


class OutlineSerializer(serializers.Serializer[Any]):
    """The whole list in short: one item for each rank, beginning with rank 1."""

    annotator = serializers.IntegerField(help_text="whose labels these are: one's own user id")
    query = QueryStatusSerializer()
    list = ListSerializer()
    progress = ProgressSerializer(help_text="one's own")
    minimum_labels = serializers.IntegerField(help_text="labels required, 0 for none")
    hand_in = HandInSerializer(help_text="by one's own labels")
    images = serializers.ListField(
        child=serializers.IntegerField(allow_null=True),
        help_text="ids; null for an image that is no longer there",
    )
    scores = serializers.ListField(
        child=serializers.FloatField(allow_null=True), help_text="cosine similarity, 4 decimals"
    )
    relevance = serializers.CharField(
        help_text="a letter a rank: r relevant, n not relevant, u unsure, - without a judgment"
    )
    sources = serializers.CharField(
        help_text="a letter a rank: l list, s search, m more like this, a audit, i import, - none"
    )
    grades = serializers.CharField(
        allow_blank=True,
        help_text="a digit a rank, - without a grade; empty where the query asks for none",
    )
    withdrawn = serializers.ListField(child=serializers.IntegerField(), help_text="ranks")
    flagged = serializers.ListField(
        child=serializers.IntegerField(), help_text="ranks with an open flag"
    )
    cursor = serializers.IntegerField(help_text="for `changes`")


class ReviewParameters(serializers.Serializer[Any]):
    """Which images to review."""

    kind = serializers.ChoiceField(
        choices=KINDS, required=False, help_text="one kind of doubt alone"
    )


class VoteSerializer(serializers.Serializer[Any]):
    """Somebody's current judgment of an image."""

    annotator = serializers.IntegerField(source="annotator_id", help_text="their user id")
    username = serializers.CharField(source="annotator.username")
    relevance = serializers.ChoiceField(choices=Relevance.choices)
    decides = serializers.SerializerMethodField(
        help_text="a reviewer's, the last of which decides whatever annotators say"
    )

    def get_decides(self, vote: Judgment) -> bool:
        """Whether the person's role settles the image."""
        return vote.annotator.role in DECIDING_ROLES


class ModelRankSerializer(serializers.Serializer[Any]):
    """Where a model of the list ranked an image."""

    model = serializers.CharField()
    rank = serializers.IntegerField(help_text="from 1")
    score = serializers.FloatField(help_text="cosine similarity under the model")


class ReviewCandidateSerializer(JudgedImageSerializer):
    """One image to review; relevance is one's own."""

    rank = serializers.IntegerField(allow_null=True, help_text="null outside the list")
    score = serializers.FloatField(allow_null=True, help_text="null outside the list")
    source = serializers.ChoiceField(  # type: ignore[assignment]
        choices=SOURCE_CHOICES, allow_null=True, help_text="of one's own relevance"
    )
    votes = VoteSerializer(many=True, help_text="everybody's, the latest last")
    model_ranks = ModelRankSerializer(
        many=True, help_text="by each model of a pooled list that ranked it; else empty"
    )


class ReviewSerializer(serializers.Serializer[Any]):
    """The images about which people are or were unsure, or disagree."""

    annotator = serializers.IntegerField(help_text="one's own user id")
    query = QueryStatusSerializer()
    list = ListSerializer()
    results = ReviewCandidateSerializer(many=True, help_text="in list order, then by image id")
    cursor = serializers.IntegerField(help_text="for `changes`")


class MatchingParameters(serializers.Serializer[Any]):
    """All of these must hold; of several values for one, any."""

    date_from = serializers.DateField(
        required=False, help_text="first day of observation (UTC, as all dates here)"
    )
    date_to = serializers.DateField(required=False, help_text="last day of observation")
    month = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=12),
        required=False,
        max_length=12,
        help_text="1 to 12, in any year; repeat it for several",
    )
    bbox = serializers.RegexField(
        rf"^{_DEGREES}(,{_DEGREES}){{3}}\Z",
        required=False,
        error_messages={
            "invalid": "Four numbers are needed: west, south, east, north, separated by commas."
        },
        help_text="west,south,east,north in degrees; west > east crosses the antimeridian",
    )
    license = serializers.ListField(
        child=serializers.CharField(max_length=200, allow_blank=True, trim_whitespace=False),
        required=False,
        max_length=100,
        help_text="as `facets` gives it; empty for unknown; repeat it for several",
    )
    species = serializers.ListField(
        child=IdField(),
        required=False,
        max_length=500,
        help_text="id; repeat it for several; refused where names are hidden",
    )
    judged = serializers.ChoiceField(
        choices=["yes", "no", *Relevance.values],
        required=False,
        help_text="by oneself, for this query: whether at all, or as what",
    )
    flagged = serializers.ChoiceField(
        choices=["yes", "no"], required=False, help_text="with an open flag"
    )

    def validate_bbox(self, text: str) -> tuple[float, ...]:
        """West, south, east, north as numbers."""
        west, south, east, north = box = tuple(map(float, text.split(",")))
        if not (-180 <= west <= 180 and -180 <= east <= 180):
            raise serializers.ValidationError("West and east are from -180 to 180.")
        if not -90 <= south <= north <= 90:
            raise serializers.ValidationError(
                "South and north are from -90 to 90, and south is not above north."
            )
        return box

    def validate_species(self, ids: list[int]) -> list[int]:
        """Refuse a species filter where names are hidden."""
        if ids and self.context["names_hidden"]:
            raise serializers.ValidationError("Species are hidden while you label.")
        return ids

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a period that ends before it begins."""
        first, last = attrs.get("date_from"), attrs.get("date_to")
        if first is not None and last is not None and last < first:
            raise serializers.ValidationError({"date_to": "It is before date_from."})
        return attrs


class MatchingSerializer(serializers.Serializer[Any]):
    """The candidates that pass a filter, without withdrawn ones."""

    count = serializers.IntegerField()
    ranks = serializers.ListField(child=serializers.IntegerField(), help_text="ascending")


class LicenseCountSerializer(serializers.Serializer[Any]):
    """A license and how many images have it."""

    value = serializers.CharField(allow_blank=True, help_text="empty for unknown")
    count = serializers.IntegerField(source="images")


class SpeciesCountSerializer(serializers.Serializer[Any]):
    """A species and how many images it has."""

    id = serializers.IntegerField(source="value.pk")
    scientific_name = serializers.CharField(source="value.scientific_name")
    common_name = serializers.CharField(source="value.common_name")
    count = serializers.IntegerField(source="images")


class DatesSerializer(serializers.Serializer[Any]):
    """The first and last day of observation."""

    first = serializers.DateField(source="first_date", allow_null=True)
    last = serializers.DateField(source="last_date", allow_null=True)


class FacetsSerializer(serializers.Serializer[Any]):
    """What a list can be filtered by, with the number of images."""

    licenses = LicenseCountSerializer(many=True)
    species = SpeciesCountSerializer(
        many=True, help_text="the 200 with the most images; empty where names are hidden"
    )
    dates = DatesSerializer(source="*")
    with_place = serializers.IntegerField()


class OwnChangeSerializer(serializers.Serializer[Any]):
    """The last of one's own judgments of an image since the cursor."""

    image = serializers.IntegerField()
    rank = serializers.IntegerField(allow_null=True, help_text="in the current list")
    relevance = serializers.ChoiceField(
        choices=Relevance.choices, allow_null=True, help_text="null: taken back"
    )
    source = serializers.ChoiceField(  # type: ignore[assignment]
        choices=SOURCE_CHOICES
    )
    grade = serializers.IntegerField(allow_null=True)


class OtherAnnotatorSerializer(serializers.Serializer[Any]):
    """Somebody else who judged for the query in the last 24 hours."""

    annotator = serializers.CharField()
    judged = serializers.IntegerField(help_text="images of this query, ever")
    last = serializers.DateTimeField()


class ListBriefSerializer(serializers.Serializer[Any]):
    """Which list it is, and whether it has grown."""

    id = serializers.IntegerField(allow_null=True)
    size = serializers.IntegerField()
    state = serializers.ChoiceField(choices=["none", "building", "ready", "failed"])


class ChangesParameters(serializers.Serializer[Any]):
    """Since when."""

    cursor = IdField(default=0, help_text="of the last answer")


class CommentCountSerializer(serializers.Serializer[Any]):
    """How many comments an image has."""

    image = serializers.IntegerField(help_text="its id")
    comments = serializers.IntegerField()


class ChangesSerializer(serializers.Serializer[Any]):
    """What is new since a cursor, and how the query stands."""

    cursor = serializers.IntegerField(help_text="for the next request")
    query = QueryStatusSerializer()
    list = ListBriefSerializer()
    withdrawn = serializers.ListField(child=serializers.IntegerField(), help_text="ranks, all")
    flagged = serializers.ListField(
        child=serializers.IntegerField(), help_text="ranks with an open flag, all"
    )
    own = OwnChangeSerializer(many=True)
    others = OtherAnnotatorSerializer(many=True, help_text="by name (reviewers); else empty")
    comments = CommentCountSerializer(many=True, help_text="of images whose comments one may read")


class SimilarParameters(serializers.Serializer[Any]):
    """Similar to which image, and how many."""

    image = IdField()
    limit = serializers.IntegerField(min_value=1, max_value=MOST_SIMILAR, default=60)


class SimilarImageSerializer(ImageBriefSerializer):
    """An image near the requested one; relevance is one's own."""

    score = serializers.FloatField(help_text="cosine similarity to the requested image")
    rank = serializers.IntegerField(allow_null=True, help_text="null outside the list")


class SimilarSerializer(serializers.Serializer[Any]):
    """The nearest images, the most similar first."""

    within = serializers.ChoiceField(
        choices=["filter", "corpus"], help_text="the query's species filter, where it has one"
    )
    results = SimilarImageSerializer(many=True)


class ExampleImageSerializer(serializers.Serializer[Any]):
    """An image that shows a species."""

    image = serializers.IntegerField(source="pk", help_text="its id")
    url = serializers.CharField()
    thumbnail_url = serializers.CharField()


class LookalikeSerializer(serializers.Serializer[Any]):
    """A species that is easily taken for another."""

    id = serializers.IntegerField(source="species.pk")
    scientific_name = serializers.CharField(source="species.scientific_name")
    common_name = serializers.CharField(source="species.common_name")
    thumbnail_url = serializers.SerializerMethodField()
    times = serializers.IntegerField(
        help_text="how often either is taken for the other; 0 where that isn't known"
    )

    def get_thumbnail_url(self, one: Lookalike) -> str | None:
        """The thumbnail of its first image; None without one."""
        return one.image.thumbnail_url if one.image else None


class VernacularSerializer(serializers.Serializer[Any]):
    """A vernacular name."""

    language = serializers.CharField(help_text="BCP 47 code")
    name = serializers.CharField()


class SpeciesReferenceSerializer(serializers.Serializer[Any]):
    """A species of the filter with what shows it."""

    id = serializers.IntegerField(source="species.pk")
    scientific_name = serializers.CharField(source="species.scientific_name")
    common_name = serializers.CharField(source="species.common_name")
    names = serializers.SerializerMethodField(help_text="vernacular names")
    lineage = serializers.ListField(
        child=serializers.CharField(), source="species.lineage", help_text="kingdom to genus"
    )
    lookalikes = LookalikeSerializer(
        many=True,
        help_text=f"confused with it or of its group, or its genus; at most {MOST_LOOKALIKES}",
    )
    image_count = serializers.IntegerField()
    examples = ExampleImageSerializer(many=True, help_text=f"at most {MOST_EXAMPLES}")

    @extend_schema_field(VernacularSerializer(many=True))
    def get_names(self, one: Any) -> list[dict[str, str]]:
        """The vernacular names whose language is known."""
        species: Species = one.species
        names = [name for name in species.names.all() if name.language]
        return [{"language": name.language, "name": name.name} for name in names]


class ExampleSerializer(serializers.Serializer[Any]):
    """An image that an admin pinned."""

    image = serializers.IntegerField(source="image.pk", help_text="its id")
    url = serializers.CharField(source="image.url")
    thumbnail_url = serializers.CharField(source="image.thumbnail_url")
    relevant = serializers.BooleanField()
    note = serializers.CharField(allow_blank=True)


class ExampleWriteSerializer(serializers.Serializer[Any]):
    """An example to pin or change."""

    image = IdField()
    relevant = TruthField()
    note = TextField(allow_blank=True, default="", max_length=500, help_text="why, for annotators")


class ReferenceSerializer(serializers.Serializer[Any]):
    """What candidates are compared with."""

    guidelines = serializers.CharField(allow_blank=True, help_text="in Markdown")
    guidelines_html = serializers.CharField(allow_blank=True, help_text="as safe HTML")
    names_hidden = serializers.BooleanField()
    species = SpeciesReferenceSerializer(
        many=True,
        help_text=f"the filter by name, at most {MOST_SPECIES}; empty where names are hidden",
    )
    species_total = serializers.IntegerField(help_text="how many the filter has; 0 where hidden")
    pinned = ExampleSerializer(many=True, help_text="relevant ones first")

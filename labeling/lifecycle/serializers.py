"""Queries, lists and progress as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.db import models
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.access import names_hidden_from
from core.api.fields import IdField, TextField, TruthField
from labeling.candidates.selectors import list_status
from labeling.candidates.serializers import ListSerializer
from labeling.judging.serializers import HandInSerializer, ProgressSerializer
from labeling.lifecycle.opening import MOST_AT_ONCE
from labeling.lifecycle.services import QUERY_FIELDS
from labeling.queries.categories import CATEGORIES
from labeling.queries.files import MAX_QUERY_ID
from labeling.queries.models import PART_STATES, Benchmark, Query
from retrieval.corpus.serializers import SpeciesBriefSerializer
from retrieval.species.selectors import species_resolve


class BenchmarkSerializer(serializers.ModelSerializer[Benchmark]):
    """Which benchmark it is."""

    class Meta:
        model = Benchmark
        fields = ("id", "name")


class QuerySerializer(serializers.ModelSerializer[Any]):
    """A query with its progress: one's own for annotators, the consensus for reviewers."""

    benchmark = BenchmarkSerializer()
    supercategory = serializers.CharField()
    reject_reason = serializers.CharField()
    species = serializers.SerializerMethodField(
        help_text="the filter, empty for the whole corpus; null where names are hidden"
    )
    list = serializers.SerializerMethodField()
    progress = ProgressSerializer()
    last_activity = serializers.DateTimeField(allow_null=True)
    annotators = serializers.IntegerField()
    can_label = serializers.BooleanField()

    class Meta:
        model = Query
        fields: tuple[str, ...] = (
            "id",
            *QUERY_FIELDS,
            "supercategory",
            "split_settled",
            "state",
            "reject_reason",
            "reject_note",
            "list",
            "progress",
            "last_activity",
            "annotators",
            "can_label",
            "created_at",
            "updated_at",
        )
        read_only_fields = fields

    @extend_schema_field(SpeciesBriefSerializer(many=True, allow_null=True))
    def get_species(self, row: Any) -> Any:
        """The species filter; None where names are hidden from the user."""
        if names_hidden_from(self.context["request"].user):
            return None
        return SpeciesBriefSerializer(row.query.species.all(), many=True).data

    @extend_schema_field(ListSerializer)
    def get_list(self, row: Any) -> Any:
        """The current list."""
        return ListSerializer(list_status(row.query)).data


class GivenUpSerializer(serializers.Serializer[Any]):
    """A request to reject the query."""

    by = serializers.CharField(source="annotator.username")
    reason = serializers.ChoiceField(choices=Query.RejectReason.choices)
    note = serializers.CharField()
    at = serializers.DateTimeField(source="handed_in_at")


class AssignmentSerializer(serializers.Serializer[Any]):
    """A part in the query that is handed in: by the rule that was met, or with a reason or note."""

    handed_in_at = serializers.DateTimeField()
    rule = serializers.CharField(help_text="what met the query's rule; empty for nothing")
    reason = serializers.ChoiceField(
        choices=Query.RejectReason.choices, allow_blank=True, help_text="of giving up"
    )
    note = serializers.CharField()


class PartSerializer(serializers.Serializer[Any]):
    """Somebody's part in the query."""

    annotator = serializers.CharField(source="annotator.username")
    state = serializers.ChoiceField(choices=PART_STATES)
    assigned_at = serializers.DateTimeField(allow_null=True)
    handed_in_at = serializers.DateTimeField(allow_null=True)
    sent_back_note = serializers.CharField(help_text="what a reviewer asks for")


class OpenPointSerializer(serializers.Serializer[Any]):
    """Something that completing the query now would leave open."""

    kind = serializers.ChoiceField(choices=["rule", "unsure", "disputed", "audit", "second"])
    count = serializers.IntegerField(help_text="of images; 0 for the rule")
    text = serializers.CharField()


class QueryDetailSerializer(QuerySerializer):
    """A query with one's own progress beside the consensus, and the changes one may make."""

    own_progress = ProgressSerializer()
    hand_in = HandInSerializer(help_text="by one's own labels")
    transitions = serializers.ListField(
        child=serializers.ChoiceField(choices=Query.State.choices),
        help_text="states that the user may ask for; an annotator's submitted and open hand in and "
        "resume their own part",
    )
    given_up = GivenUpSerializer(
        allow_null=True, help_text="while a reviewer has to decide on it; else null"
    )
    assignment = AssignmentSerializer(
        allow_null=True, help_text="an annotator's own part once it is handed in; else null"
    )
    assignments = PartSerializer(
        many=True,
        help_text="assigned, begun where a number of people is wanted, paused, sent back or handed "
        "in; an annotator's own alone",
    )
    still_labeling = serializers.ListField(
        child=serializers.CharField(),
        help_text="names of those who are assigned or have judged for an open query, and have not "
        "handed in",
    )
    left_open = OpenPointSerializer(
        many=True,
        help_text="for users who may complete the query; if there are any, a note is required",
    )

    class Meta(QuerySerializer.Meta):
        fields = (
            *QuerySerializer.Meta.fields,
            "own_progress",
            "hand_in",
            "transitions",
            "given_up",
            "assignment",
            "assignments",
            "annotators_wanted",
            "assigned_only",
            "still_labeling",
            "left_open",
            "completion_reason",
        )
        read_only_fields = fields


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "integer"}]})
class SpeciesNameField(serializers.Field[Any, Any, Any, Any]):
    """A name or an id."""

    def to_internal_value(self, data: Any) -> Any:
        """Text or a whole number, as it was sent."""
        if not isinstance(data, str | int) or isinstance(data, bool):
            raise serializers.ValidationError("Names or ids are needed.")
        return data


@extend_schema_field(IdField())
class BenchmarkField(serializers.PrimaryKeyRelatedField[Benchmark]):
    """A benchmark by its id."""

    def __init__(self, **options: Any) -> None:
        super().__init__(queryset=Benchmark.objects.all(), pk_field=IdField(), **options)

    def to_internal_value(self, data: Any) -> Any:
        """Also as it was read."""
        pk: Any = data.get("id") if isinstance(data, Mapping) else data
        return super().to_internal_value(pk)


class QueryWriteSerializer(serializers.ModelSerializer[Query]):
    """What can be written of a query."""

    serializer_field_mapping = serializers.ModelSerializer.serializer_field_mapping | {
        models.CharField: TextField,
        models.TextField: TextField,
        models.BooleanField: TruthField,
    }
    benchmark = BenchmarkField(required=False, help_text="its id; the first if it is left out")
    species = serializers.ListField(
        child=SpeciesNameField(),
        required=False,
        max_length=10_000,
        help_text="scientific or common names, ids, or a genus, family or look-alike group",
    )
    give_up = serializers.ChoiceField(
        choices=Query.RejectReason.choices,
        allow_blank=True,
        required=False,
        help_text="with the state submitted: hand in to have it rejected for this reason",
    )
    note = TextField(
        allow_blank=True,
        required=False,
        max_length=5000,
        help_text="why the state changes; needed to hand in before a stop rule is met, to give up "
        "for the reason other, and to complete with something left open",
    )

    class Meta:
        model = Query
        fields = (*QUERY_FIELDS, "state", "reject_reason", "reject_note", "give_up", "note")
        extra_kwargs: ClassVar = {
            "query_id": {
                "required": False,
                "validators": [],  # the service names a number that is taken
                "help_text": "the next free number if it is left out",
            },
            "text": {"trim_whitespace": False},
            "split": {
                "required": False,
                "allow_blank": True,
                "help_text": "blank or left out of a new query: to be drawn",
            },
            "guidelines": {"trim_whitespace": False, "max_length": 20_000},
            "reject_note": {"max_length": 5000},
        }

    def validate_species(self, names: list[Any]) -> list[Any]:
        """The species that the names mean; refuses names that are not in the corpus."""
        species, missing = species_resolve(names)
        if missing:
            shown = ", ".join(str(name)[:100] for name in missing[:20])
            raise serializers.ValidationError(f"Not in the corpus: {shown}.")
        return species

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse fields that a query doesn't have; those that can only be read are ignored."""
        sent = self.initial_data
        known = {*self.fields, *QueryDetailSerializer().fields}
        unknown = sorted(map(str, set(sent) - known)) if isinstance(sent, Mapping) else []
        if unknown:
            raise serializers.ValidationError(dict.fromkeys(unknown, "There is no such field."))
        return attrs


class SearchToQuerySerializer(serializers.Serializer[Any]):
    """A search that becomes a draft query."""

    text = TextField(max_length=500)
    species = QueryWriteSerializer().fields["species"]
    category = serializers.ChoiceField(choices=list(CATEGORIES), required=False)
    split = serializers.ChoiceField(choices=Query.Split.choices, required=False)

    validate_species = QueryWriteSerializer.validate_species


class QueryParameters(serializers.Serializer[Any]):
    """Which queries."""

    search = serializers.CharField(
        max_length=500, required=False, help_text="part of the text or category, or the query id"
    )
    state = serializers.ChoiceField(choices=Query.State.choices, required=False)
    split = serializers.ChoiceField(choices=Query.Split.choices, required=False)
    category = serializers.ChoiceField(choices=list(CATEGORIES), required=False)
    benchmark = IdField(required=False, help_text="its id")


class ImportChoices(serializers.Serializer[Any]):
    """How to import queries."""

    split = serializers.ChoiceField(
        choices=Query.Split.choices, default="", allow_blank=True, help_text="of every query"
    )
    update_queries = serializers.ListField(
        child=serializers.IntegerField(min_value=0, max_value=MAX_QUERY_ID),
        default=[],
        help_text="numbers of queries to change though they have judgments or no import brought "
        "them",
    )
    dry_run = serializers.BooleanField(
        default=False, help_text="tell what it would do, and change nothing"
    )


class ImportSerializer(ImportChoices):
    """One CSV or several, all imported or none."""

    file = serializers.ListField(
        child=serializers.FileField(allow_empty_file=True),
        error_messages={
            "required": "No file was sent; upload a CSV as “file”, or send it as text/csv."
        },
    )


class ImportParameters(ImportChoices):
    """The same of a CSV that is the whole body."""

    name = serializers.CharField(
        max_length=200, default="body.csv", help_text="the file's name, which tells the split"
    )


class ImportedFieldSerializer(serializers.Serializer[Any]):
    """A field in which a file differs from a query."""

    field = serializers.CharField()
    here = serializers.CharField(allow_blank=True)
    file = serializers.CharField(allow_blank=True)


class ImportedRowSerializer(serializers.Serializer[Any]):
    """A query that differs from the file."""

    query_id = serializers.IntegerField(help_text="its number")
    text = serializers.CharField(help_text="the file's")
    changes = ImportedFieldSerializer(many=True)
    left = serializers.CharField(
        allow_blank=True, help_text="why it stays as it is; empty where it changes"
    )


class CutTextSerializer(serializers.Serializer[Any]):
    """A text that a model in use doesn't read to its end."""

    text = serializers.CharField()
    model = serializers.CharField()
    unread = serializers.CharField()


class ImportReportSerializer(serializers.Serializer[Any]):
    """The number of rows by outcome, and the queries that differ from the file."""

    added = serializers.IntegerField()
    updated = serializers.IntegerField()
    unchanged = serializers.IntegerField()
    left = serializers.IntegerField()
    rows = ImportedRowSerializer(many=True)
    cut = CutTextSerializer(many=True)


class OpenQueriesSerializer(serializers.Serializer[Any]):
    """Which queries to open, by `id`."""

    queries = serializers.ListField(
        child=IdField(),
        min_length=1,
        max_length=MOST_AT_ONCE,
    )


class OpeningRefusalSerializer(serializers.Serializer[Any]):
    """A query that stays as it is, by its number in the CSV files, and why."""

    query_id = serializers.IntegerField()
    detail = serializers.CharField()


class OpeningReportSerializer(serializers.Serializer[Any]):
    """The outcome by query; those that don't exist aren't counted."""

    opened = serializers.IntegerField()
    unchanged = serializers.IntegerField(help_text="open already")
    refused = OpeningRefusalSerializer(many=True)

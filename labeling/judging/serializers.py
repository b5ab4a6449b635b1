"""Judgments and their history as JSON."""

from __future__ import annotations

import uuid
from typing import Any, Final

from rest_framework import serializers

from core.api.fields import IdField, NumberField, TextField
from labeling.candidates.serializers import ListSerializer
from labeling.judging.grades import HIGHEST, LONGEST_REASON
from labeling.judging.models import Judgment, JudgmentEvent, Relevance
from labeling.judging.services import MOST_SECONDS, RefusalCode
from labeling.judging.sources import BY_PEOPLE, JudgmentSource


class StopSerializer(serializers.Serializer[Any]):
    """The stop rules applied to the labeled prefix of the list."""

    rule = serializers.ChoiceField(choices=["streak", "exhausted", "none"])
    met = serializers.BooleanField(
        help_text="the streak or the exhausted list; what allows to hand in is the query's rule"
    )
    streak_met = serializers.BooleanField(help_text="allows to stop once minimum_met holds too")
    exhausted = serializers.BooleanField(help_text="every image of the filter is labeled")
    required = serializers.IntegerField(  # type: ignore[assignment]
        help_text="consecutive negatives that meet the rule"
    )
    minimum = serializers.IntegerField(help_text="labels required besides the streak, 0 for none")
    minimum_met = serializers.BooleanField()


class RuleStateSerializer(serializers.Serializer[Any]):
    """How a rule stands."""

    rule = serializers.CharField(help_text="in full, as certificate:0.9:0.95")
    name = serializers.CharField()
    title = serializers.CharField(help_text="for people")
    met = serializers.BooleanField()
    value = serializers.FloatField()
    of = serializers.FloatField(help_text="where a meter of the value is full")
    sentence = serializers.CharField(help_text="how far it is")


class WaySerializer(serializers.Serializer[Any]):
    """Rules that together allow to hand in."""

    met = serializers.BooleanField()
    rules = RuleStateSerializer(many=True)


class HandInSerializer(serializers.Serializer[Any]):
    """How the rule that allows to hand a query in stands."""

    rule = serializers.CharField()
    met = serializers.BooleanField()
    met_by = serializers.CharField(help_text="the rules of the way that is met, else empty")
    ways = WaySerializer(many=True, help_text="one that is met suffices")


class ProgressSerializer(serializers.Serializer[Any]):
    """Counts over the query's current list; withdrawn images count nowhere."""

    candidates = serializers.IntegerField(source="stop.length")
    judged = serializers.IntegerField(source="stop.judged")
    relevant = serializers.IntegerField(source="stop.relevant")
    unsure = serializers.IntegerField()
    streak = serializers.IntegerField(
        source="stop.streak", help_text="consecutive negatives up to the first gap"
    )
    prefix = serializers.IntegerField(
        source="stop.prefix",
        help_text="ranks 1 to this are all judged or withdrawn; the last is judged in the list",
    )
    remaining = serializers.IntegerField(source="stop.remaining")
    next_rank = serializers.IntegerField(
        source="stop.next_rank", allow_null=True, help_text="the first unjudged rank"
    )
    seconds_per_image = serializers.FloatField(allow_null=True)
    active_seconds = serializers.FloatField(
        help_text="spent on the query in all, on judgments taken back too"
    )
    stop = StopSerializer()


#: Client ids that are no UUIDs are turned into one under this name.
CLIENT_IDS = uuid.UUID("b7f0f7a4-2d0c-4c55-9a50-0a6f2f3f8f11")


class JudgmentItemSerializer(serializers.Serializer[Any]):
    """One judgment, or with null the removal of one."""

    image = IdField(source="image_id")
    relevance = serializers.ChoiceField(
        choices=Relevance.choices, allow_null=True, help_text="null takes the judgment back"
    )
    client_id = TextField(
        max_length=100,
        help_text="made once for this judgment, preferably a UUID; the same in every repeat",
    )
    seconds = NumberField(
        min_value=0, max_value=MOST_SECONDS, default=0, help_text="active time spent"
    )
    source = serializers.ChoiceField(  # type: ignore[assignment]
        choices=BY_PEOPLE, default=JudgmentSource.LIST
    )
    expected = serializers.ChoiceField(
        choices=Relevance.choices,
        allow_null=True,
        required=False,
        help_text="the current judgment as the client knows it, null for none; if it differs, "
        "the item is refused as a conflict",
    )
    age = NumberField(
        default=0, help_text="seconds since the judgment was made, clamped to 0 to 30 days"
    )

    revision = IdField(
        source="revision_id",
        allow_null=True,
        default=None,
        help_text="the id of the revision in whose queue the image was met",
    )
    place = serializers.IntegerField(
        min_value=1,
        max_value=2**31 - 1,
        allow_null=True,
        default=None,
        help_text="the place in that queue, from 1; they come together",
    )

    grade = serializers.IntegerField(
        min_value=0,
        max_value=HIGHEST,
        allow_null=True,
        default=None,
        help_text="3 definitely, 2 partly, 1 mostly not, 0 definitely not, where the query asks "
        "for grades; relevance must be what the query makes of it",
    )
    reason = TextField(
        max_length=LONGEST_REASON, allow_blank=True, default="", help_text="why it has this grade"
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a place without a queue, a queue outside the list, and a reason for no grade."""
        if attrs["reason"] and attrs["grade"] is None:
            raise serializers.ValidationError("A reason needs a grade.")
        queued = attrs["revision_id"] is not None
        if queued != (attrs["place"] is not None):
            raise serializers.ValidationError("revision and place come together.")
        if attrs["source"] == JudgmentSource.LEARNED and not queued:
            raise serializers.ValidationError("The source learned needs a revision and a place.")
        if queued and attrs["source"] not in (JudgmentSource.LIST, JudgmentSource.LEARNED):
            raise serializers.ValidationError("Only images of the list are in a revision's queue.")
        return attrs

    def validate_client_id(self, text: str) -> uuid.UUID:
        """The UUID itself, or one derived from any other text."""
        try:
            return uuid.UUID(text)
        except ValueError:
            return uuid.uuid5(CLIENT_IDS, text)


class JudgmentOutcomeSerializer(serializers.Serializer[Any]):
    """The outcome of one item."""

    client_id = serializers.CharField(allow_null=True, help_text="as it was sent")
    image = serializers.IntegerField(allow_null=True)
    status = serializers.ChoiceField(choices=["stored", "repeated", "refused"])
    code = serializers.ChoiceField(
        choices=[code.value for code in RefusalCode], help_text="why it was refused, for programs"
    )
    detail = serializers.CharField(help_text="why it was refused, else empty")
    relevance = serializers.ChoiceField(
        choices=Relevance.choices, allow_null=True, help_text="what this item stored"
    )
    current = serializers.ChoiceField(
        choices=Relevance.choices,
        allow_null=True,
        help_text="one's judgment of the image after this item",
    )
    rank = serializers.IntegerField(allow_null=True)


class JudgmentAnswerSerializer(serializers.Serializer[Any]):
    """An outcome for each item, in the order sent, and one's own progress with them."""

    results = JudgmentOutcomeSerializer(many=True)
    progress = ProgressSerializer()
    cursor = serializers.IntegerField(help_text="one's own latest judgment event on the query")


#: Of a judgment and of its history.
JUDGMENT_FIELDS: Final = (
    *("relevance", "grade", "reason", "source", "rank", "revision", "place", "seconds"),
)


class JudgmentSerializer(serializers.ModelSerializer[Judgment]):
    """A current judgment."""

    image = serializers.IntegerField(source="image_id")
    annotator = serializers.CharField(source="annotator.username")
    list = serializers.IntegerField(source="candidate_list_id", allow_null=True)
    revision = serializers.IntegerField(
        source="revision_id", allow_null=True, help_text="the id of that whose queue it was met in"
    )

    class Meta:
        model = Judgment
        fields = ("image", "annotator", *JUDGMENT_FIELDS, "list", "created_at", "updated_at")
        read_only_fields = fields


class JudgmentParameters(serializers.Serializer[Any]):
    """Which judgments."""

    image = IdField(required=False)
    annotator = serializers.CharField(max_length=150, required=False)
    relevance = serializers.ChoiceField(choices=Relevance.choices, required=False)


class HistoryParameters(serializers.Serializer[Any]):
    """Whose history."""

    image = IdField()


class EventSerializer(serializers.ModelSerializer[JudgmentEvent]):
    """One change of a judgment: who, when, from what, to what; null for none."""

    annotator = serializers.CharField(source="annotator.username")
    at = serializers.DateTimeField(source="acted_at")
    previous = serializers.ChoiceField(choices=Relevance.choices, allow_null=True)
    relevance = serializers.ChoiceField(choices=Relevance.choices, allow_null=True)
    revision = serializers.IntegerField(
        source="revision.number",
        allow_null=True,
        default=None,
        help_text="the number of that whose queue it was met in",
    )

    class Meta:
        model = JudgmentEvent
        fields = ("annotator", "at", "previous", *JUDGMENT_FIELDS)
        read_only_fields = fields

    def to_representation(self, event: JudgmentEvent) -> dict[str, object]:
        shown = super().to_representation(event)
        return shown | {name: shown[name] or None for name in ("previous", "relevance")}


class HistorySerializer(serializers.Serializer[Any]):
    """The changes of one image's judgments, the oldest first."""

    results = EventSerializer(many=True)


class ExtendSerializer(serializers.Serializer[Any]):
    """How much longer the list becomes."""

    count = serializers.IntegerField(min_value=1, max_value=5000, default=500)


class ExtendedSerializer(serializers.Serializer[Any]):
    """How many candidates were added, and the list with them."""

    added = serializers.IntegerField()
    list = ListSerializer()

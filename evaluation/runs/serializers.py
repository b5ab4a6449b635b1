"""Runs as JSON."""

from __future__ import annotations

from typing import Any

from django.db import models
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.api.fields import IdField, NumberField, TextField, TruthField
from core.ids import LARGEST_ID
from core.jobs.models import Job
from evaluation.runs.forms import SPLIT_CHOICES
from evaluation.runs.fusions import FEWEST, LONGEST_NAME
from evaluation.runs.fusions import MOST as MOST_FUSED
from evaluation.runs.models import Run
from evaluation.runs.rows import split_means
from evaluation.runs.selectors import scores_visible_to
from evaluation.runs.services import CARD_FIELDS
from evaluation.runs.unjudged import DEPTH, MOST
from evaluation.scoring.fusion import METHODS, NORMALIZATIONS
from releases.models import Release


class RunSerializer(serializers.ModelSerializer[Run]):
    """A run with its method card."""

    release_name = serializers.CharField(source="release.__str__", read_only=True)
    owner = serializers.CharField(
        source="owner.username", default=None, allow_null=True, read_only=True
    )
    embedding_model = serializers.CharField(
        source="embedding_model.name", default=None, allow_null=True, read_only=True
    )
    link = serializers.CharField(read_only=True, help_text="an address, or empty")
    code = serializers.CharField(read_only=True, help_text="an address, or empty")
    tuning = serializers.CharField(
        read_only=True, help_text="zero_shot or tuned; empty: not stated"
    )
    prompt = serializers.CharField(
        source="endpoint.prompt",
        default="",
        read_only=True,
        help_text="the question to a multimodal model; empty for other runs",
    )
    state = serializers.SerializerMethodField(
        help_text="ready, or of the job that scores or makes it: queued, running, failed, canceled"
    )
    error = serializers.SerializerMethodField(help_text="why it isn't scored; else empty")
    sha256 = serializers.SerializerMethodField(
        help_text="of the stored ranking; empty for a best possible re-rank: its order shows labels"
    )

    class Meta:
        model = Run
        fields: tuple[str, ...] = (
            "id",
            "release",
            "release_name",
            "task",
            "kind",
            *CARD_FIELDS,
            "owner",
            "created_at",
            "published_at",
            "state",
            "error",
            "job",
            "embedding_model",
            "first_stage",
            "rerank_depth",
            "prompt",
            "val_queries",
            "test_queries",
            "rows",
            "depth",
            "sha256",
        )
        read_only_fields: tuple[str, ...] = fields

    def get_state(self, run: Run) -> str:
        """Ready, or the state of its job."""
        if run.ready:
            return "ready"
        if run.job is None or run.job.state == Job.State.DONE:
            return str(Job.State.FAILED)
        return run.job.state

    def get_sha256(self, run: Run) -> str:
        """Of the stored ranking, unless that would show labels."""
        return "" if run.kind == Run.Kind.BEST else run.sha256

    def get_error(self, run: Run) -> str:
        """The job's error."""
        return "" if run.ready or run.job is None else run.job.error


class RunScoresSerializer(serializers.Serializer[dict[str, Any]]):
    """Means of a run on one release."""

    release = serializers.IntegerField()
    release_name = serializers.CharField()
    means = serializers.DictField(
        child=serializers.DictField(child=serializers.FloatField()),
        help_text="split -> measure -> mean over the split's queries with relevant images; of a "
        "test split whose labels are hidden mAP@50 and nDCG@50 alone, rounded to 0.001, and where "
        "it has halves those of “public”, and of “private” once the board is closed",
    )


class RunErrorSerializer(serializers.Serializer[dict[str, Any]]):
    """Why a submitted file was refused."""

    file = serializers.CharField()
    line = serializers.IntegerField(help_text="from 1")
    field = serializers.CharField(help_text="empty where the error is of the whole line")
    message = serializers.CharField()


class RunDetailSerializer(RunSerializer):
    """A run with its means on each release that it was scored on, as far as you may see them."""

    scores = serializers.SerializerMethodField()
    errors = RunErrorSerializer(  # type: ignore[assignment]
        source="refused", many=True, read_only=True, help_text="why its file was refused"
    )

    class Meta(RunSerializer.Meta):
        fields = (*RunSerializer.Meta.fields, "scores", "errors")
        read_only_fields = fields

    @extend_schema_field(RunScoresSerializer(many=True))
    def get_scores(self, run: Run) -> list[dict[str, Any]]:
        """The means that the user may see."""
        return [
            {
                "release": scores.release_id,
                "release_name": str(scores.release),
                "means": split_means(self.context["request"].user, run, scores),
            }
            for scores in scores_visible_to(self.context["request"].user, run)
        ]


class QueryScoresSerializer(serializers.Serializer[Any]):
    """A run's score of each query whose labels you may see."""

    release = serializers.IntegerField(source="release_id")
    query_ids = serializers.ListField(
        child=serializers.IntegerField(), help_text="queries with relevant images, ascending"
    )
    measures = serializers.DictField(
        child=serializers.ListField(child=serializers.FloatField()),
        help_text="measure -> one value for each of query_ids",
    )


class CardSerializer(serializers.ModelSerializer[Run]):
    """A method card to be written; what is left out stays as it is."""

    serializer_field_mapping = serializers.ModelSerializer.serializer_field_mapping | {
        models.CharField: TextField,
        models.TextField: TextField,
        models.FloatField: NumberField,
        models.BooleanField: TruthField,
    }

    class Meta:
        model = Run
        fields: tuple[str, ...] = CARD_FIELDS
        extra_kwargs = {"open_weights": {"default": None}}


class SubmissionSerializer(CardSerializer):
    """A run to be taken in."""

    file = serializers.FileField(allow_empty_file=True)
    task = serializers.ChoiceField(choices=Run.Task.choices, default=Run.Task.FULL)
    split = serializers.ChoiceField(
        choices=SPLIT_CHOICES, default="all", help_text="which queries it holds"
    )
    publish = serializers.BooleanField(default=False, help_text="show it once it is scored")

    class Meta(CardSerializer.Meta):
        fields = ("file", "task", "split", "publish", *CARD_FIELDS)


class ScoreOnSerializer(serializers.Serializer[dict[str, Any]]):
    """Another version of the run's benchmark."""

    release = serializers.PrimaryKeyRelatedField(queryset=Release.objects.made())


class FusionSerializer(serializers.Serializer[dict[str, Any]]):
    """Which runs of a release are fused, and how."""

    runs = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=LARGEST_ID),
        min_length=FEWEST,
        max_length=MOST_FUSED,
    )
    method = serializers.ChoiceField(choices=[*METHODS.items()], default="rrf")
    normalization = serializers.ChoiceField(choices=[*NORMALIZATIONS.items()], default="min-max")
    name = serializers.CharField(max_length=LONGEST_NAME, default="", allow_blank=True)
    publish = serializers.BooleanField(default=False)


class EvaluationSerializer(serializers.Serializer[dict[str, Any]]):
    """A model to evaluate: an open_clip name with its tag, hf-hub:OWNER/NAME, or a folder
    below MODELS_DIR; admins may name any folder of the server."""

    model = serializers.CharField(max_length=300)


class JudgeSerializer(serializers.Serializer[dict[str, Any]]):
    """How many of a run's first images are to be judged."""

    depth = serializers.IntegerField(min_value=1, max_value=MOST, default=DEPTH)


class RequestedSerializer(serializers.Serializer[dict[str, int]]):
    """What waits for annotators now."""

    images = serializers.IntegerField()
    queries = serializers.IntegerField()


class RunParameters(serializers.Serializer[Any]):
    """Which runs."""

    task = serializers.ChoiceField(choices=Run.Task.choices, required=False)
    kind = serializers.ChoiceField(choices=Run.Kind.choices, required=False)


class RunsParameters(RunParameters):
    """Which runs of which release."""

    release = IdField(required=False)


class ScoresParameters(serializers.Serializer[Any]):
    """On which release."""

    release = TextField(
        required=False, max_length=200, help_text="number or name; by default the run's own"
    )


class AllowanceSerializer(serializers.Serializer[Any]):
    """How many submissions with test queries are left within 24 hours."""

    limit = serializers.IntegerField()
    left = serializers.IntegerField()
    next_at = serializers.DateTimeField(
        allow_null=True, help_text="when the next is free, if none is left"
    )

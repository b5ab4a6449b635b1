"""Two-stage runs through the API: estimating their cost, starting them and resuming them after a
stop; for admins alone, since they cost money and the machine's time."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NoReturn

from django.conf import settings
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.access import Role, require_role
from core.api.fields import IdField, NumberField, TextField
from evaluation.reranking.estimate import rerank_estimate
from evaluation.reranking.multimodal.answers import Prices
from evaluation.reranking.multimodal.prompt import LONGEST_PROMPT, PLACEHOLDER, TEMPLATE
from evaluation.reranking.services import (
    MAX_RPM,
    RerankChoice,
    rerank_begin,
    rerank_checked,
    rerank_resume,
)
from evaluation.reranking.setup import EndpointSetup
from evaluation.runs.api import RunView, created
from evaluation.runs.models import Run
from evaluation.runs.serializers import RunDetailSerializer, RunSerializer
from releases.models import Release
from retrieval.embedding.models import EmbeddingModel


class RerankSerializer(serializers.Serializer[dict[str, Any]]):
    """The choice of a two-stage run."""

    first_stage = IdField(
        allow_null=True, help_text="a run's id; null for the fixed lists of the re-ranking task"
    )
    depth = serializers.IntegerField(min_value=1, max_value=100_000)
    embedding_model = TextField(
        required=False, help_text="name of a model that the corpus is embedded with"
    )
    endpoint = TextField(
        required=False, help_text="name of a server in the setting MULTIMODAL_ENDPOINTS"
    )
    api_model = TextField(
        required=False, max_length=200, help_text="a multimodal model, as that server names it"
    )
    prompt = TextField(
        default=TEMPLATE,
        max_length=LONGEST_PROMPT,
        help_text=f"the question to the multimodal model, with {PLACEHOLDER} for the query's text",
    )
    price_in = NumberField(
        min_value=0,
        required=False,
        allow_null=True,
        help_text="US dollars for a million tokens",
    )
    price_out = NumberField(min_value=0, required=False, allow_null=True)
    max_cost = NumberField(min_value=0, required=False, allow_null=True, help_text="US dollars")
    rpm = serializers.IntegerField(
        min_value=0, max_value=MAX_RPM, required=False, default=0, help_text="0 for no limit"
    )
    name = TextField(required=False, default="", allow_blank=True)

    def choice(self, release: Release) -> RerankChoice:
        """The choice; ValidationError for unknown names."""
        data = self.validated_data
        first = None
        if data["first_stage"] is not None:
            first = Run.objects.filter(release=release, pk=data["first_stage"]).first()
            if first is None:
                _refuse("first_stage", "This release has no such run.")
        model = None
        if "embedding_model" in data:
            model = EmbeddingModel.objects.filter(name=data["embedding_model"]).first()
            if model is None:
                _refuse("embedding_model", "The corpus isn't embedded with a model of this name.")
        return RerankChoice(
            release=release,
            first_stage=first,
            depth=data["depth"],
            embedding_model=model,
            endpoint=_setup(data) if "endpoint" in data else None,
            name=data["name"],
        )


class RerankEstimateSerializer(serializers.Serializer[dict[str, Any]]):
    """What a two-stage run would take."""

    queries = serializers.IntegerField()
    pairs = serializers.IntegerField(help_text="of query and image, to be scored")
    unavailable = serializers.IntegerField(
        help_text="pairs whose image is not embedded or can't be sent"
    )
    answered = serializers.IntegerField(help_text="pairs that are answered already")
    requests = serializers.IntegerField()
    prompt_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    measured = serializers.BooleanField(
        help_text="whether the tokens follow from earlier answers; else they are a guess"
    )
    cost = serializers.FloatField(allow_null=True, help_text="US dollars; null without prices")
    minutes = serializers.FloatField(allow_null=True, help_text="by the limit of requests")


class RerankResumeSerializer(serializers.Serializer[dict[str, Any]]):
    """The limits with which a run that stopped is resumed."""

    max_cost = NumberField(
        min_value=0,
        required=False,
        default=None,
        allow_null=True,
        help_text="US dollars; null for no limit",
    )
    rpm = serializers.IntegerField(
        min_value=0, max_value=MAX_RPM, required=False, default=0, help_text="0 for no limit"
    )


class AdminRunView(RunView):
    """A view for admins alone."""

    def check_permissions(self, request: Request) -> None:
        """Refuse everybody but admins."""
        super().check_permissions(request)
        require_role(request.user, Role.ADMIN)


class RerankView(AdminRunView):
    """Two-stage runs of a release."""

    @extend_schema(request=RerankSerializer, responses={201: RunDetailSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Start a re-ranked run; the same choice again resumes a run that stopped."""
        return created(rerank_begin(choice=_choice(request, pk), created_by=request.user), request)


class RerankEstimateView(AdminRunView):
    """What a two-stage run of a release would take."""

    @extend_schema(request=RerankSerializer, responses=RerankEstimateSerializer)
    def post(self, request: Request, pk: int) -> Response:
        """Count what would be scored, sent and paid; starts nothing."""
        choice = rerank_checked(_choice(request, pk))
        return Response(RerankEstimateSerializer(asdict(rerank_estimate(choice))).data)


class RerankResumeView(AdminRunView):
    """A two-stage run that stopped."""

    @extend_schema(request=RerankResumeSerializer, responses=RunSerializer)
    def post(self, request: Request, pk: int) -> Response:
        """Resume it; nothing that was answered is sent again."""
        run = Run.objects.filter(pk=pk, kind__startswith="rerank_").first()
        if run is None:
            raise Http404
        limits = RerankResumeSerializer(data=request.data)
        limits.is_valid(raise_exception=True)
        return Response(RunSerializer(rerank_resume(run=run, **limits.validated_data)).data)


def _choice(request: Request, pk: int) -> RerankChoice:
    release = get_object_or_404(Release.objects.made(), pk=pk)
    serializer = RerankSerializer(data=request.data)
    serializer.is_valid(raise_exception=True)
    return serializer.choice(release)


def _setup(data: dict[str, Any]) -> EndpointSetup:
    # Only servers that the operator named: the API must not make this machine ask any address.
    address = settings.MULTIMODAL_ENDPOINTS.get(data["endpoint"])
    if address is None:
        _refuse("endpoint", "No server of this name is in the setting MULTIMODAL_ENDPOINTS.")
    return EndpointSetup(
        base_url=address,
        model=data.get("api_model", ""),
        prompt=data["prompt"],
        rpm=data["rpm"],
        prices=Prices(data.get("price_in"), data.get("price_out")),
        max_cost=data.get("max_cost"),
    )


def _refuse(field: str, text: str) -> NoReturn:
    raise serializers.ValidationError({field: [text]})

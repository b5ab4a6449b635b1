"""API of jobs, with the kind that embeds the corpus."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from core.access import Role, require_role
from core.api.fields import TextField
from core.api.parameters import validated
from core.jobs.api import JobViewSet
from core.jobs.serializers import JobDetailSerializer
from retrieval.embedding.choosing import models_listed
from retrieval.embedding.embedding_models import model_use
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.machines import hub_reach
from retrieval.embedding.measuring import measure_job_create
from retrieval.embedding.recommending import recommended_models
from retrieval.embedding.services import embedding_job_create
from retrieval.encoding.model_specs import published_names


class JobCreateSerializer(serializers.Serializer[Any]):
    """A job to start: embedding of the corpus, by default with the model in use."""

    kind = serializers.ChoiceField(choices=["embed"])
    model = TextField(max_length=300, default="", allow_blank=True)


class EmbeddingJobViewSet(JobViewSet):
    """Jobs; admins can start one that embeds the corpus."""

    @extend_schema(request=JobCreateSerializer, responses={201: JobDetailSerializer})
    def create(self, request: Request) -> Response:
        """Start a job that embeds the corpus, unless one of the same model is unfinished."""
        require_role(request.user, Role.ADMIN)
        model = validated(request, JobCreateSerializer)["model"]
        job = embedding_job_create(model_name=model, created_by=request.user)
        return Response(self.get_serializer(job).data, status=status.HTTP_201_CREATED)


class ListedModelSerializer(serializers.Serializer[Any]):
    """A model that is here; hours are those of the images that it has not embedded."""

    name = serializers.CharField(source="model.name")
    dimension = serializers.IntegerField(source="model.dimension")
    parameters = serializers.IntegerField(source="model.parameters", allow_null=True)
    image_flops = serializers.IntegerField(source="model.image_flops", allow_null=True)
    text_flops = serializers.IntegerField(source="model.text_flops", allow_null=True)
    seconds_per_image = serializers.FloatField(source="model.seconds_per_image", allow_null=True)
    embedded = serializers.IntegerField()
    images = serializers.IntegerField()
    hours_left = serializers.FloatField(allow_null=True)
    in_use = serializers.BooleanField()
    in_pool = serializers.BooleanField()


class ModelsSerializer(serializers.Serializer[Any]):
    """The model in use, those that are here, and those that can be had by name; `hub_reached` tells
    whether a worker reaches the hub that has these, null before one has asked.
    """

    in_use = serializers.CharField()
    hub_reached = serializers.BooleanField(allow_null=True)
    models = ListedModelSerializer(many=True)
    recommended = serializers.ListField(child=serializers.CharField())
    published = serializers.ListField(child=serializers.CharField())


class ModelNameSerializer(serializers.Serializer[Any]):
    """A model, as the page "Models" takes it."""

    model = TextField(max_length=300)


class ModelViewSet(viewsets.ViewSet):
    """Models, for admins: what is here, which is in use, and what one costs on this machine."""

    @extend_schema(operation_id="models_list", responses=ModelsSerializer)
    def overview(self, request: Request) -> Response:
        """The models that are here, and those that can be had by name."""
        require_role(request.user, Role.ADMIN)
        hub = hub_reach()
        answer = {
            "in_use": model_in_use(),
            "hub_reached": hub and hub.reached,
            "models": models_listed(),
            "recommended": [model.name for model in recommended_models()],
            "published": published_names(),
        }
        return Response(ModelsSerializer(answer).data)

    @extend_schema(
        operation_id="models_use", request=ModelNameSerializer, responses=ModelNameSerializer
    )
    def use(self, request: Request) -> Response:
        """Make a model the one in use, for new candidate lists and searches; nothing restarts."""
        require_role(request.user, Role.ADMIN)
        name = validated(request, ModelNameSerializer)["model"]
        model = model_use(name=name)
        return Response(ModelNameSerializer({"model": model.name}).data)

    @extend_schema(
        operation_id="models_measure",
        request=ModelNameSerializer,
        responses={201: JobDetailSerializer},
    )
    def measure(self, request: Request) -> Response:
        """Start a job that measures how long a model takes for an image of this corpus."""
        require_role(request.user, Role.ADMIN)
        name = validated(request, ModelNameSerializer)["model"]
        job = measure_job_create(name=name, created_by=request.user)
        return Response(JobDetailSerializer(job).data, status=status.HTTP_201_CREATED)

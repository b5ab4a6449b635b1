"""API of what labeling knows of an image."""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from labeling.images.selectors import image_in_labeling
from labeling.judging.models import Relevance
from retrieval.flags.selectors import images_visible_to


class ImageJudgmentSerializer(serializers.Serializer[Any]):
    """What a person said of the image."""

    query = serializers.IntegerField(source="query_id")
    annotator = serializers.CharField(source="annotator.username")
    relevance = serializers.ChoiceField(Relevance.choices)
    grade = serializers.IntegerField(allow_null=True)
    updated_at = serializers.DateTimeField()


class ImageThreadSerializer(serializers.Serializer[Any]):
    """How many comments there are on the image for a query."""

    query = serializers.IntegerField(source="query_id")
    comments = serializers.IntegerField(source="number")


class ImageCandidateSerializer(serializers.Serializer[Any]):
    """The image's rank in a query's candidate list, from 1."""

    query = serializers.IntegerField(source="list.query_id")
    rank = serializers.IntegerField()
    score = serializers.FloatField(help_text="cosine similarity, or of a pooled list the fused one")


class ImageInLabelingSerializer(serializers.Serializer[Any]):
    """The last judgments of an image, its comments and its ranks, at most 100 of each."""

    judgments = ImageJudgmentSerializer(many=True)
    threads = ImageThreadSerializer(many=True)
    candidates = ImageCandidateSerializer(many=True)


class ImageInLabelingView(APIView):
    """What labeling knows of an image."""

    @extend_schema(operation_id="images_labeling", responses=ImageInLabelingSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """List the judgments, comments and ranks of an image in all queries: annotators see their
        own judgments and comments on what they have judged, reviewers all but those of a query for
        which they are to judge the image blindly.
        """
        image = get_object_or_404(images_visible_to(request.user), pk=pk)
        return Response(ImageInLabelingSerializer(image_in_labeling(request.user, image)).data)

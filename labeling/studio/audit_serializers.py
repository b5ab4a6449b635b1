"""A query's audits and second opinions as JSON."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from rest_framework import serializers

from core.api.fields import IdField, TruthField
from labeling.audits.services import LARGEST_DRAW
from labeling.candidates.serializers import ListSerializer
from labeling.judging.models import Relevance
from labeling.studio.serializers import JudgedImageSerializer, QueryStatusSerializer


class CertificateSerializer(serializers.Serializer[Any]):
    """What the audits bound."""

    sentence = serializers.CharField()
    missing_at_most = serializers.IntegerField()
    recall_at_least = serializers.FloatField(allow_null=True, help_text="null: nothing is found")
    met = serializers.BooleanField(help_text="the target is certified")
    more_without_hit = serializers.IntegerField(
        allow_null=True, help_text="draws that would certify it; null: all that are left"
    )
    out_of_reach = serializers.BooleanField(help_text="more than make sense for a single query")


class DrawnImageSerializer(JudgedImageSerializer):
    """A drawn image, without rank and score; relevance is one's own."""

    to_judge = serializers.BooleanField(help_text="it waits for a judgment")


class AuditSerializer(serializers.Serializer[Any]):
    """A query's audits of its present list: by an annotator's own judgments, where what others
    alone have judged counts as not judged, or by everybody's for reviewers.
    """

    annotator = serializers.IntegerField(help_text="one's own user id")
    query = QueryStatusSerializer()
    list = ListSerializer()
    cursor = serializers.IntegerField(help_text="for `changes`")
    pool = serializers.CharField(help_text="the images that the certificate speaks of")
    target = serializers.FloatField(help_text="the recall to certify")
    confidence = serializers.FloatField()
    found = serializers.IntegerField(help_text="relevant images of the pool")
    unjudged = serializers.IntegerField(help_text="images that aren't drawn or judged")
    drawn = serializers.IntegerField()
    hits = serializers.IntegerField(
        help_text="draws that are relevant, unsure, disputed or not judged yet"
    )
    to_judge = serializers.IntegerField(help_text="draws that nobody has judged yet")
    now = CertificateSerializer(help_text="what is certain: those are taken for relevant")
    then = CertificateSerializer(help_text="what will be if none of them is relevant")
    results = DrawnImageSerializer(
        many=True, help_text="one's own last judged draws, then those to judge, in draw order"
    )


class BlindQueueSerializer(serializers.Serializer[Any]):
    """What a person is to judge blindly: of audits for releases, second opinions, or what runs
    request.
    """

    annotator = serializers.IntegerField(help_text="one's own user id")
    query = QueryStatusSerializer()
    list = ListSerializer()
    cursor = serializers.IntegerField(help_text="for `changes`")
    left = serializers.IntegerField(help_text="images that wait, shown or not")
    to_judge = serializers.IntegerField(help_text="of these, those shown")
    results = DrawnImageSerializer(
        many=True, help_text="one's own last judged images, then those to judge"
    )


class DrawSerializer(serializers.Serializer[Any]):
    """How many draws shall wait to be judged, those that wait already among them."""

    count = serializers.IntegerField(min_value=1, max_value=LARGEST_DRAW, default=10)


class CheckSerializer(serializers.Serializer[Any]):
    """Whether people are checked with an image."""

    image = IdField()
    marked = TruthField()


class CheckedPartSerializer(serializers.Serializer[Any]):
    """A part whose checks propose to send it back."""

    annotator = serializers.IntegerField(source="annotator.pk", help_text="the user's id")
    name = serializers.CharField(source="annotator.username")
    checks = serializers.IntegerField(help_text="that the person answered")
    right = serializers.IntegerField(help_text="of these, answered as known")


class MissedCheckSerializer(serializers.Serializer[Any]):
    """A check that one missed."""

    image = serializers.IntegerField(source="image.pk", help_text="its id")
    url = serializers.CharField(source="image.url")
    thumbnail_url = serializers.CharField(source="image.thumbnail_url")
    said = serializers.ChoiceField(choices=Relevance.choices, source="answer")
    known = serializers.ChoiceField(choices=Relevance.choices, source="relevance")


class AnsweredChecksSerializer(serializers.Serializer[Any]):
    """What the answers to a query's checks say."""

    send_back = CheckedPartSerializer(many=True, help_text="for reviewers; else empty")
    missed = MissedCheckSerializer(
        many=True, help_text="one's own; empty until one's part was sent back for them"
    )


class PartSendBackSerializer(serializers.Serializer[Any]):
    """Whose part to send back."""

    annotator = serializers.PrimaryKeyRelatedField(
        queryset=get_user_model().objects.all(), pk_field=IdField()
    )

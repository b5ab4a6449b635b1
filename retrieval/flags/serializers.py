"""Bodies and answers of the API of flags."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.access import Role, at_least
from core.api.bulk import IdsSerializer
from core.api.fields import IdField, TextField, TruthField
from retrieval.corpus.models import ImageWithdrawal
from retrieval.corpus.serializers import SpeciesBriefSerializer
from retrieval.flags.models import ImageFlag
from retrieval.flags.selectors import FlagReview
from retrieval.flags.services import LONGEST_NOTE


class FlagSerializer(serializers.ModelSerializer[ImageFlag]):
    """A flag; annotators get null for the `note` and `raised_by` of other people's flags."""

    label = serializers.CharField(  # type: ignore[assignment]
        source="get_kind_display", read_only=True
    )
    own = serializers.SerializerMethodField()
    note = serializers.SerializerMethodField()
    raised_by = serializers.SerializerMethodField()

    class Meta:
        model = ImageFlag
        fields = ("id", "kind", "label", "own", "note", "raised_by", "raised_at")
        read_only_fields = fields

    def get_own(self, flag: ImageFlag) -> bool:
        return bool(flag.raised_by_id == self.context["request"].user.pk)

    def get_note(self, flag: ImageFlag) -> str | None:
        return flag.note if self._is_shown(flag) else None

    def get_raised_by(self, flag: ImageFlag) -> str | None:
        return flag.raised_by.username if self._is_shown(flag) else None

    def _is_shown(self, flag: ImageFlag) -> bool:
        return self.get_own(flag) or at_least(self.context["request"].user, Role.REVIEWER)


class FlagListSerializer(serializers.Serializer[Any]):
    """The open flags of an image."""

    results = FlagSerializer(many=True)


class FlagRaiseSerializer(serializers.Serializer[Any]):
    """A new flag."""

    kind = serializers.ChoiceField(choices=ImageFlag.Kind.choices)
    note = TextField(default="", allow_blank=True, max_length=LONGEST_NOTE)


class FlagManySerializer(IdsSerializer):
    """Images to flag for one reason."""

    reason = serializers.ChoiceField(choices=ImageFlag.Kind.choices)
    note = TextField(default="", allow_blank=True, max_length=LONGEST_NOTE)


class WithdrawalSerializer(serializers.ModelSerializer[ImageWithdrawal]):
    """Who withdrew an image, when and why."""

    withdrawn_by = serializers.CharField(source="withdrawn_by.username", read_only=True)

    class Meta:
        model = ImageWithdrawal
        fields = ("note", "withdrawn_by", "withdrawn_at")
        read_only_fields = fields


class FlagReviewSerializer(serializers.Serializer[Any]):
    """An image for a reviewer: its open flags, or the withdrawal in force and the upheld flags."""

    image = serializers.IntegerField(source="image.pk")
    url = serializers.CharField(source="image.url")
    thumbnail_url = serializers.CharField(source="image.thumbnail_url")
    width = serializers.IntegerField(source="image.width")
    height = serializers.IntegerField(source="image.height")
    species = serializers.SerializerMethodField()
    flags = FlagSerializer(many=True)
    withdrawal = WithdrawalSerializer(allow_null=True)

    @extend_schema_field(SpeciesBriefSerializer(allow_null=True))
    def get_species(self, review: FlagReview) -> Any:
        # Only reviewers see this, and no name is hidden from them.
        species = review.image.species
        return SpeciesBriefSerializer(species).data if species else None


class FlagsParameters(serializers.Serializer[Any]):
    """Parameters of the list: images with open flags, or withdrawn ones."""

    state = serializers.ChoiceField(choices=["open", "withdrawn"], default="open")


class WithdrawSerializer(serializers.Serializer[Any]):
    """A withdrawal's reason."""

    note = TextField(default="", allow_blank=True, max_length=LONGEST_NOTE)


class WithdrawManySerializer(IdsSerializer, WithdrawSerializer):
    """Images to withdraw for one reason."""


class RestoreSerializer(serializers.Serializer[Any]):
    """How to restore an image."""

    reopen = TruthField(default=False, help_text="also reopen the flags that the withdrawal upheld")


class ReopenSerializer(serializers.Serializer[Any]):
    """Flags to open again."""

    flags = serializers.ListField(child=IdField(), max_length=1000)


class ClearSerializer(serializers.Serializer[Any]):
    """Flags to close."""

    flags = serializers.ListField(
        child=IdField(),
        max_length=1000,
        required=False,
        help_text="the flags that the reviewer has seen; by default all",
    )


class ClearedSerializer(FlagReviewSerializer):
    """The image, and the ids of the closed flags."""

    cleared = serializers.ListField(child=serializers.IntegerField())

"""Parameters, bodies and answers of the API of the images' page."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from core.api.fields import IdField, TextField, TruthField
from core.bulk import MOST_AT_ONCE
from retrieval.browsing.choice import LONGEST_TEXT, ORDERS
from retrieval.browsing.models import SavedFilter
from retrieval.browsing.selectors import MOST_POSITIONS
from retrieval.flags.models import ImageFlag
from retrieval.search.selectors import SearchMethod

TILES_AT_ONCE = 200


def _texts(help_text: str) -> serializers.ListField:
    child = serializers.CharField(max_length=1000, allow_blank=True)
    return serializers.ListField(child=child, required=False, max_length=500, help_text=help_text)


class ChoiceParameters(serializers.Serializer[Any]):
    """Which images, and in which order; `choice_of` reads them. A filter that would tell what is
    hidden from the user is refused.
    """

    text = serializers.CharField(
        max_length=LONGEST_TEXT, default="", allow_blank=True, help_text="the best for a text"
    )
    like = IdField(required=False, help_text="without a text: those like the image of this id")
    order = serializers.ChoiceField(
        choices=[*ORDERS], default="", help_text="of what isn't ranked; `newest`: last added first"
    )
    dataset = _texts("names of data sets, repeated")
    folder = _texts("with all below it; empty: images without a folder")
    species = _texts("ids, repeated; `none`: images without a species")
    taxon = _texts("a part of the taxon's text")
    date = _texts("2024-05-01..2024-05-31, one end may be missing; `none`")
    license = _texts("repeated; empty: not known")
    flag = _texts(
        f"with an open flag: `any`, {', '.join(ImageFlag.Kind.values)}; for reviewers `withdrawn`",
    )
    location = _texts("`known`, `none`")
    field = _texts(
        "`name:value` of a custom field, repeated: a text, `yes` or `no`, a range 1..5 of numbers "
        "or of days; nothing behind the colon, or `none` for a range: images without",
    )


class MatchesParameters(ChoiceParameters):
    """Which of the matches."""

    offset = serializers.IntegerField(min_value=0, max_value=MOST_POSITIONS, default=0)
    limit = serializers.IntegerField(min_value=1, max_value=MOST_AT_ONCE, default=500)
    tiles = serializers.IntegerField(
        min_value=0, max_value=TILES_AT_ONCE, default=0, help_text="of how many of the first ones"
    )


class TilesParameters(serializers.Serializer[Any]):
    """Which images."""

    id = serializers.ListField(
        child=IdField(), min_length=1, max_length=TILES_AT_ONCE, help_text="repeated"
    )


class CountsParameters(ChoiceParameters):
    """Of which filters."""

    by = _texts("keys of filters, by default all, and none for an empty one")


class TileSerializer(serializers.Serializer[Any]):
    """What the grid shows of an image. `name` is that of its species, or what the source calls the
    taxon; it and `file_name` are empty where they are hidden.
    """

    id = serializers.IntegerField()
    thumbnail_url = serializers.CharField()
    name = serializers.CharField()
    file_name = serializers.CharField()
    flagged = serializers.BooleanField()
    withdrawn = serializers.BooleanField()


class TilesSerializer(serializers.Serializer[Any]):
    """Images in the order in which they were named; those that aren't there are left out."""

    results = TileSerializer(many=True)


class RankingSerializer(serializers.Serializer[Any]):
    """How a text or an image ranked all images that pass the filters, as of a search."""

    total = serializers.IntegerField()
    model = serializers.CharField()
    method = serializers.ChoiceField(choices=[method.value for method in SearchMethod])
    how = serializers.CharField(source="method.words")
    unread = serializers.CharField(help_text="the end of the text that the model doesn't read")
    seconds = serializers.FloatField()


class MatchesSerializer(serializers.Serializer[Any]):
    """The ids of matches in order, from the position `offset` on; `more` says that others follow.
    Where a text or an image ranks them, with their scores, which are cosine similarities.
    """

    ids = serializers.ListField(child=serializers.IntegerField())
    more = serializers.BooleanField()
    scores = serializers.ListField(child=serializers.FloatField(), allow_null=True)
    ranked = RankingSerializer(allow_null=True)
    tiles = TileSerializer(many=True)


class ValueCountSerializer(serializers.Serializer[Any]):
    """How many images have a value, or lie in a range `start..end` with both ends."""

    value = serializers.CharField(allow_blank=True)
    label = serializers.CharField()  # type: ignore[assignment]
    count = serializers.IntegerField()


class FilterCountsSerializer(serializers.Serializer[Any]):
    """The images by a filter, given all others."""

    key = serializers.CharField()
    values = ValueCountSerializer(
        many=True,
        allow_null=True,
        help_text="the 50 most frequent ones, or all ranges; null where counting took too long",
    )


class CountsSerializer(serializers.Serializer[Any]):
    """The number of matches, null where counting took too long, and numbers by filter."""

    total = serializers.IntegerField(allow_null=True)
    filters = FilterCountsSerializer(many=True)


class ListedImages(serializers.Serializer[Any]):
    """The images that a CSV lists, in their order."""

    ids = serializers.ListField(child=IdField(), min_length=1, max_length=MOST_POSITIONS)


class SavedFilterSerializer(serializers.ModelSerializer[SavedFilter]):
    """A filter that was saved: the parameters of the page's address by a name."""

    name = TextField(max_length=100)
    address = TextField(max_length=4000, allow_blank=True)
    shared = TruthField(default=False, help_text="with everybody (admins)")

    class Meta:
        model = SavedFilter
        fields = ("id", "name", "address", "shared")
